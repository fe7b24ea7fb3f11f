"""Outer folds of whole fits: who is in which fold, and fits and predictions with sites and covariates on their way.

Folds are dealt by person. Within a site people lie in the order of their target, in blocks of as many as there are
folds, shuffled within a block, and are dealt in turn: folds are alike in site and target, and no fold holds all people
of a site that has two or more, so every site is always among the rows learned from.

Rows that nobody learned from are dealt to folds by a checksum of their own values (or of the person they belong to):
each is predicted by one regressor of the outer folds, as the rows of ``fit`` are, and by the same one whatever rows
stand beside it.

scikit-learn's ``cross_val_predict`` passes no site to ``predict``. The loop here does: ``site``, ``covariates`` and
``groups`` go to every step of a pipeline that asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray, IndexArray

Metadata = Mapping[str, Any]
"""``groups``, ``site`` and ``covariates``: None, or one entry per row."""


def outer_folds(y: FloatArray, n_folds: int, rng: np.random.Generator, *, groups: Any = None, site: Any = None) -> Any:
    """Return the fold of each row.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        The target.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Shuffles sites, people of about the same target, and the fold to begin with.
    groups : array-like of shape (n_rows,), optional
        Whose row it is.
    site : array-like of shape (n_rows,), optional
        Where it was measured; of a person, the first row's.
    """
    person = np.arange(len(y)) if groups is None else pd.factorize(pd.Series(list(groups), dtype=object))[0]
    first = np.unique(person, return_index=True)[1]
    target = np.bincount(person, weights=y) / np.bincount(person)
    place = np.zeros(len(y), dtype=int) if site is None else pd.factorize(pd.Series(list(site), dtype=object))[0]
    place = place[first]
    place = rng.permutation(int(place.max()) + 1)[place]
    order = np.lexsort([rng.random(len(target)), target, place])
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    within = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    order = order[np.lexsort([rng.random(len(order)), within // n_folds, place[order]])]
    fold = np.empty(len(order), dtype=int)
    fold[order] = (np.arange(len(order)) + rng.integers(n_folds)) % n_folds
    return fold[person]


def dealt_folds(X: Any, n_folds: int, groups: Any = None) -> IndexArray:
    """Return the fold whose regressor predicts each new row: a checksum of the row, or of whose row it is."""
    if groups is not None:
        labels = np.array([str(label) for label in groups], dtype=object)
        return np.asarray(pd.util.hash_array(labels) % np.uint64(n_folds), dtype=int)
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(masked_as_missing(X)))
    # The same number has one checksum, whether its column holds whole numbers or not, and 0.0 is -0.0.
    columns = [
        frame.iloc[:, place].astype(np.float64) + 0.0
        if pd.api.types.is_numeric_dtype(frame.dtypes.iloc[place])
        else frame.iloc[:, place]
        for place in range(frame.shape[1])
    ]
    frame = pd.concat(columns, axis=1)
    return np.asarray(pd.util.hash_pandas_object(frame, index=False).to_numpy() % np.uint64(n_folds), dtype=int)


def rows_of(values: Any, rows: IndexArray) -> Any:
    """Return some rows of a table, a column or a list; None stays None."""
    if values is None:
        return None
    return values.iloc[rows] if hasattr(values, "iloc") else np.asarray(values)[rows]


def fit_on(regressor: Any, X: Any, y: FloatArray, rows: IndexArray, metadata: Metadata) -> Any:
    """Return a clone of the regressor fitted on some rows; site and covariates go to the steps that request them."""
    with config_context(enable_metadata_routing=True):
        model = clone(regressor)
        return model.fit(rows_of(X, rows), y[rows], **_asked(model, "fit", metadata, rows))


def fit_fold(
    regressor: Any, X: Any, y: FloatArray, fold: IndexArray, metadata: Metadata, k: int
) -> tuple[int, Any, FloatArray]:
    """Return the number of a fold, a clone fitted without it, and what that predicts for it: one call of many."""
    with limited_threads(1):  # the same bits in a worker
        model = fit_on(regressor, X, y, np.flatnonzero(fold != k), metadata)
        return k, model, predict_with(model, X, np.flatnonzero(fold == k), metadata)


def predict_with(model: Any, X: Any, rows: IndexArray, metadata: Metadata) -> FloatArray:
    """Return the predictions of some rows."""
    with config_context(enable_metadata_routing=True):
        found = model.predict(rows_of(X, rows), **_asked(model, "predict", metadata, rows))
    found = np.asarray(found, dtype=np.float64)
    if found.shape != (len(rows),) or not np.isfinite(found).all():
        raise InputError(
            f"The regressor returned predictions of shape {found.shape} for {len(rows)} rows, or some that are not "
            "finite: give a regressor of one number per row."
        )
    return found


def contributions_with(model: Any, X: Any, rows: IndexArray, metadata: Metadata) -> pd.DataFrame | None:
    """Return what each column adds to the predictions of some rows; None where the regressor cannot tell."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if not hasattr(last, "contributions"):
        return None
    prepared = rows_of(X, rows)
    if isinstance(model, Pipeline):
        before = model[:-1]
        with config_context(enable_metadata_routing=True):
            prepared = before.transform(prepared, **_asked(before, "transform", metadata, rows))
    found: pd.DataFrame = last.contributions(prepared)
    return found


def _asked(model: Any, method: str, metadata: Metadata, rows: IndexArray) -> dict[str, Any]:
    """Return what the model asks for: a single estimator by its signature, a pipeline by what its steps request."""
    given = {name: value for name, value in metadata.items() if value is not None}
    asked = set(get_routing_for_object(model).consumes(method, given))
    if method == "fit" and "groups" in given and has_fit_parameter(model, "groups"):
        asked.add("groups")
    return {name: rows_of(given[name], rows) for name in given if name in asked}
