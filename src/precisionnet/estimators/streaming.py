"""A fit to more rows than memory holds.

``fit_table`` goes over the table twice. The first pass finds the moments of all rows, exactly, what the target is, and
a uniform sample of rows (``survey``); where values are missing it is repeated with the sample's medians in their place.
The second deals rows into windows on disk (``windows``). Training then is that of ``fit``, with another window of rows
in every epoch. The sample takes the place of the table in what needs left-out rows: the epoch that is kept, the weights
of kinds, the linear networks, out-of-fold predictions and intervals.

How this differs from ``fit`` (``docs/decisions/0021-rows-without-end.md``): rows are neither sorted nor merged, so that
their order matters, and two copies of a row may be in different folds unless ``groups`` keeps them together; folds are
hashes; medians of columns with gaps are those of the sample.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from precisionnet.datasets.row_source import PARTS, RowSource
from precisionnet.errors import InputError, shown
from precisionnet.estimators.checks import MIN_ROWS, refuse_empty_columns, refuse_no_logarithm
from precisionnet.estimators.fitted import training_device
from precisionnet.estimators.preparation import TrainingData, WholeTable, usable_covariance
from precisionnet.estimators.rows import FEWEST_FOLDS, Scaler, Table, medians
from precisionnet.estimators.survey import Survey, survey
from precisionnet.estimators.targets import ClassTarget, NumberTarget, Target, class_numbers, classes_of
from precisionnet.estimators.windows import MOST_WINDOWS, FoldDealer, deal_windows
from precisionnet.parameters import Settings

SAMPLE_ROWS = 2**14
"""Rows of the sample at most."""


def small_table(source: RowSource, most: int) -> dict[str, Any] | None:
    """Return the arguments of ``fit`` for a table of fewer than ``most`` rows; None for a larger one.

    Parameters
    ----------
    source : RowSource
        The table.
    most : int
        Rows from which on a table is large.

    Returns
    -------
    dict or None
        ``X``, ``y``, ``sample_weight`` and ``groups``.
    """
    blocks, n_rows = [], 0
    for block in source.blocks():
        blocks.append(block)
        n_rows += len(block)
        if n_rows >= most:
            return None
    if not n_rows:
        raise InputError(f"{source.pieces.name} has no {source.rows_are_called}: pass one that has.")
    joined = {part: np.concatenate([getattr(one, part) for one in blocks]) for part in PARTS}
    groups = None if source.groups is None else np.concatenate([one.group for one in blocks])
    return {
        "X": pd.DataFrame(joined["X"], columns=list(source.columns), index=joined["row"]),
        "y": pd.Series(joined["y"], name=source.target, index=joined["row"]),
        "sample_weight": None if source.sample_weight is None else joined["weight"],
        "groups": groups,
    }


def prepare_table(
    source: RowSource, settings: Settings, folder: Path, window_rows: int, random_state: Any
) -> TrainingData:
    """Survey a table and deal its rows into windows.

    Parameters
    ----------
    source : RowSource
        The table.
    settings : Settings
        Of the fit.
    folder : Path
        An empty folder for the windows, which is needed until training has ended.
    window_rows : int
        Rows of a window.
    random_state : int, RandomState or None
        Seed of the fit.

    Returns
    -------
    TrainingData
        Its ``training`` is a sample; ``whole`` knows the rest.
    """
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    found = survey(source, min(SAMPLE_ROWS, window_rows), seed, settings.missing)
    middle = None
    if settings.missing != "error":
        refuse_empty_columns(
            np.flatnonzero(found.n_missing == found.n_rows), source.columns, f"{found.n_rows} training rows"
        )
        drawn = f"{len(found.sample)} rows drawn at random from {found.n_rows}"
        refuse_empty_columns(np.flatnonzero(np.isnan(found.sample.X).all(axis=0)), source.columns, drawn)
        middle = medians(found.sample.X, found.sample.weight)
        if found.n_missing.any():
            found = survey(source, len(found.sample), seed, settings.missing, middle)
    if found.n_rows < MIN_ROWS:
        raise InputError(
            f"{source.pieces.name} has {found.n_rows} {source.rows_are_called}: at least {MIN_ROWS} are needed."
        )
    target, classes = _target(source, found, settings)
    scaler = _scaler(found, settings)
    names = list(source.columns)
    emp_cov = found.moments.covariance / np.outer(scaler.scale, scaler.scale)
    emp_cov = usable_covariance(emp_cov, found.constant, found.n_rows, names, settings)
    n_folds = 1 + max(fold for _, fold in settings.members(settings.n_folds(len(found.sample))))
    parts = n_folds if settings.readout == "several" else max(n_folds, FEWEST_FOLDS)
    dealer = FoldDealer(parts, seed, found.groups)
    n_windows = max(1, min(settings.n_epochs, found.n_rows // window_rows, MOST_WINDOWS))
    windows = deal_windows(
        source,
        folder,
        n_rows=found.n_rows,
        n_windows=n_windows,
        window_rows=window_rows,
        seed=seed,
        dealer=dealer,
        scaler=scaler,
        middle=middle,
        classes=classes,
        dtype=settings.dtype,
        device=training_device(settings.device),
    )
    windows.refuse_few_rows(n_folds, source.groups)
    in_order = np.argsort(found.sample.row, kind="stable")
    rows = found.sample.take(in_order)
    fold = dealer.folds(rows)
    number = np.arange(len(rows))
    y = rows.y if classes is None else class_numbers(rows.y, classes)
    owner = number if rows.group is None else np.unique(rows.group_hash, return_inverse=True)[1]
    table = Table(rows.X, y, rows.weight, owner, number)
    folds = tuple(np.flatnonzero(fold == one) for one in range(n_folds))
    return TrainingData(
        training=table if middle is None else table.filled(middle),
        validation=None,
        target=target,
        scaler=scaler,
        emp_cov=emp_cov,
        column_names=source.columns,
        target_name=source.target,
        row_ids=rows.row,
        places=number,
        medians=middle,
        n_missing=found.n_missing,
        n_rows={"training": found.n_rows, "validation": 0},
        rng=rng,
        encoder=None,
        whole=WholeTable(found.moments.mean, float(found.moments.n), found.target_range, folds, windows),
    )


def _target(source: RowSource, found: Survey, settings: Settings) -> tuple[Target, Any]:
    """Return how the target is learned, and the labels of a class."""
    sample = found.sample
    if source.task == "classification":
        labels = np.array(list(found.classes), dtype=sample.y.dtype)
        classes = classes_of(labels, np.ones(len(labels)))
        return ClassTarget(classes), classes
    low, high = found.target_range
    if low == high:
        raise InputError(
            f"Target {shown(source.target)} is {low:g} in all {found.n_rows} rows: there is nothing to predict; check "
            "the target column."
        )
    if settings.target_scale == "log":
        refuse_no_logarithm(np.append(sample.y, low))
        return NumberTarget.of(sample.y, sample.weight, settings, logarithm=True), None
    mean, scale = found.target.mean[0], np.sqrt(found.target.covariance[0, 0])
    scaler = Scaler(mean, scale) if settings.standardize_target else Scaler(np.zeros(()), np.ones(()))
    return NumberTarget(scaler, settings.loss), None


def _scaler(found: Survey, settings: Settings) -> Scaler:
    """Return what ``Scaler.fit`` makes of the rows."""
    mean, deviation = found.moments.mean, np.sqrt(np.diag(found.moments.covariance))
    if not settings.standardize:
        return Scaler(np.where(found.constant, mean, 0.0), np.ones(len(mean)))
    return Scaler(mean, np.where(found.constant, 1.0, deviation))
