"""How few edges are enough: error on left-out rows against the number of edges, along the l1 path.

One chain of fits: a dense one first, then penalty after penalty, each going on from the one before with a graph of
fewer edges. The error of a point is the out-of-bag one: every row is judged by a member that has not seen it, the same
member at every point, so the points differ by their graphs and not by luck of a split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from precisionnet.errors import InputError
from precisionnet.estimators.base import BasePNN
from precisionnet.sparse_matrices import Support
from precisionnet.types import FloatArray

L1_SCALES = (0.3, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
FURTHER_EPOCHS = 0.4
"""Epochs of the fits that go on from another, as a share of the first one's; what polishes comes on top."""


@dataclass(frozen=True)
class SparsityCurve:
    """Error against the number of edges, and the model that was chosen.

    Parameters
    ----------
    frame : DataFrame
        One row per point, densest first: l1_scale (NaN: every pair may be an edge), n_edges, zeros (share of the
        matrix), error, standard_error.
    chosen : int
        The row of the sparsest graph within one standard error of the best.
    model : PNNRegressor or PNNClassifier
        The model of that row, fitted.

    Examples
    --------
    >>> import pandas as pd
    >>> SparsityCurve(pd.DataFrame({"n_edges": [3, 1]}), chosen=1, model=None).chosen
    1
    """

    frame: pd.DataFrame
    chosen: int
    model: Any


def sparsity_curve(
    model: BasePNN,
    X: Any,
    y: Any,
    l1_scales: Sequence[float] = L1_SCALES,
    *,
    groups: Any = None,
    on_point: Callable[[dict[str, float]], object] | None = None,
) -> SparsityCurve:
    """Fit along the l1 path and pick the sparsest graph that costs no accuracy.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        With ``method="joint"`` and the standard recipe; it is copied.
    X : array-like of shape (n_samples, n_features)
        Rows, as for ``fit``.
    y : array-like of shape (n_samples,)
        The target.
    l1_scales : sequence of float, default=(0.3, 1, 2, 3, 5, 8, 12)
        Penalties, as multiples of sqrt(log N / T); tried in ascending order.
    groups : array-like of shape (n_samples,), optional
        Whose row it is, as for ``fit``.
    on_point : callable, optional
        Called with each row as it is known, for a progress display.

    Returns
    -------
    SparsityCurve
        One row per penalty, and the chosen model.

    Examples
    --------
    >>> from precisionnet import PNNRegressor, sparsity_curve
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> data = make_gaussian_regression(n_samples=80, n_features=5, random_state=0)
    >>> model = PNNRegressor(n_members=2, max_epochs=4, random_state=0)
    >>> len(sparsity_curve(model, data.X, data.y, l1_scales=[1.0, 4.0]).frame)
    3
    """
    model = _checked(model)
    scales: list[float | None] = [None, *sorted(float(scale) for scale in l1_scales)]
    if not l1_scales or scales[1] is None or scales[1] <= 0:
        raise InputError("l1_scales must hold numbers above 0.")
    epochs = model.settings.max_epochs
    rows, fitted, before = [], [], None
    for scale in scales:
        chosen = {"predict_on": "task"} if scale is None else {"predict_on": "sparse", "l1_scale": scale}
        length = epochs if before is None else max(2, round(FURTHER_EPOCHS * epochs))
        point = clone(model).set_params(max_epochs=length, **chosen)
        run = point.start_training(X, y, groups=groups, resume=before)
        with run.threads():
            while not run.done:
                run.advance()
            before = run.finish()
        fitted.append(point.keep(before))
        rows.append(_row(point, y, scale))
        if on_point is not None:
            on_point(rows[-1])
    frame = pd.DataFrame(rows)
    chosen_row = sparsest_within_one_error(frame)
    return SparsityCurve(frame, chosen_row, fitted[chosen_row])


def sparsest_within_one_error(frame: pd.DataFrame) -> int:
    """The row with the fewest edges whose error is at most the lowest plus that one's standard error."""
    best = frame.iloc[int(frame["error"].argmin())]
    good = frame[frame["error"] <= best["error"] + best["standard_error"]]
    return int(good.index[int(good["n_edges"].argmin())])


def _checked(model: BasePNN) -> BasePNN:
    settings = model.settings
    if settings.method != "joint" or settings.recipe != "standard":
        raise InputError('A sparsity curve is for method="joint" with recipe="standard": set both.')
    if model.random_state is None or not isinstance(model.random_state, int | np.integer):
        model = clone(model).set_params(random_state=0)  # every point must deal the rows to the members alike
    if settings.readout == "several":  # a linear member has no graph, and would hide what edges are worth
        model = clone(model).set_params(readout="both")
    return model


def _row(model: Any, y: Any, scale: float | None) -> dict[str, float]:
    errors = _errors_out_of_bag(model, y)
    matrix = model.task_precision_ if scale is None else model.precision_
    n, n_edges = matrix.shape[0], Support.of(matrix).n_edges
    return {
        "l1_scale": np.nan if scale is None else scale,
        "n_edges": n_edges,
        "zeros": 1.0 - (n + 2 * n_edges) / n**2,
        "error": float(errors.mean()),
        "standard_error": float(errors.std(ddof=1) / np.sqrt(len(errors))),
    }


def _errors_out_of_bag(model: Any, y: Any) -> FloatArray:
    """Return the absolute error, or the log loss, of each row given to fit that a network left out."""
    said = model.fitted.out_of_fold.prediction
    if said.ndim == 1:
        errors = np.abs(np.asarray(y, dtype=np.float64) - said)
        return errors[np.isfinite(errors)]
    known = np.isfinite(said[:, 0])
    likely = said[known, np.searchsorted(model.classes_, np.asarray(y)[known])]
    return -np.log(np.maximum(likely, np.finfo(float).tiny))
