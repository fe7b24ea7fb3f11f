"""Measurements on rows that networks left out: the weights of kinds, the error, intervals; and what it rests on.

Training ends with it, and so does ``partial_fit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from precisionnet.estimators.combination import ALL_ROWS, kept_members, weights_by_fold
from precisionnet.estimators.explanation import AROUND, task_effects
from precisionnet.estimators.fitted import Fitted, OutOfFold
from precisionnet.estimators.intervals import calibrate
from precisionnet.estimators.kernel_machine import with_kernel
from precisionnet.estimators.preparation import TrainingData
from precisionnet.estimators.reference import reference_of
from precisionnet.estimators.rows import Table
from precisionnet.estimators.targets import NumberTarget
from precisionnet.types import FloatArray, IndexArray


def finished(
    fitted: Fitted,
    data: TrainingData,
    *,
    same_rows: bool = True,
    weights_before: Mapping[str, float] | None = None,
    kernel: bool = False,
    n_jobs: int | None = None,
) -> Fitted:
    """Return a model with all that is measured of it.

    Parameters
    ----------
    fitted : Fitted
        With networks of all kinds, and ``folds`` of the rows.
    data : TrainingData
        The rows, with the target as networks have learned it.
    same_rows : bool, default=True
        Whether the networks of a fold have never seen its rows.
    weights_before : mapping of str to float, optional
        Weights of kinds that stay.
    kernel : bool, default=False
        Solve a kernel machine as one more kind, in a distance that follows from the networks.
    n_jobs : int, optional
        Workers.

    Returns
    -------
    Fitted
        With weights, out-of-fold predictions, calibration, effects and reference.
    """
    fitted = _weighed(fitted, data, same_rows, weights_before or {}, kernel, n_jobs)
    effects = task_effects(fitted, data.training.X, data.training.weight, around=AROUND)
    return replace(fitted, task_nodes=effects.nodes, task_graph=effects.edges, reference=reference_of(data))


def _weighed(
    fitted: Fitted,
    data: TrainingData,
    same_rows: bool,
    weights_before: Mapping[str, float],
    kernel: bool,
    n_jobs: int | None,
) -> Fitted:
    """Weigh the kinds by what they lose on rows that they left out, drop those that do not help, keep the errors.

    The prediction of a row out of fold has weights that come from the other folds.
    """
    target, folds, several = data.target, fitted.folds, fitted.settings.readout == "several"
    rows, fold, outputs = _unseen(fitted, data, same_rows)
    y = target.tensor(rows.y)
    sharpen = several and not isinstance(target, NumberTarget)
    judged_by = rows.weight, fold, target.task_loss
    weights, *elsewhere = weights_by_fold(outputs, y, *judged_by, sharpen=sharpen, n_jobs=n_jobs)
    if several and kernel and len(elsewhere) == len(folds) > 1:
        fitted = with_kernel(fitted, data, elsewhere)
        _, _, outputs = _unseen(fitted, data, same_rows)
        weights, *elsewhere = weights_by_fold(outputs, y, *judged_by, sharpen=sharpen, n_jobs=n_jobs)
    if several and weights_before:
        kinds = dict.fromkeys(fitted.member_kinds)
        weights = np.array([weights_before.get(kind, 0.0) for kind in kinds])
        weights = weights / weights.sum() if weights.any() else np.full(len(weights), 1.0 / len(weights))
        weights = weights * sum(weights_before.values())
        elsewhere = [weights] * len(elsewhere)
    fold_weights = np.tile(weights, (max(len(folds), 1), 1))
    output = np.empty(outputs.shape[1:])
    for one, found in zip(np.unique(fold), elsewhere, strict=True):
        here = fold == one
        fold_weights[one] = found
        output[here] = np.tensordot(found, outputs[:, here], axes=1)
    if several:  # else members are alike, and count alike
        fitted = kept_members(fitted, weights, fold_weights)
    meaning, calibration = target.meaning(output), None
    if isinstance(target, NumberTarget) and len(rows):
        targets = np.concatenate([data.targets, rows.y])
        calibration = calibrate(fold, rows.y, meaning, rows.weight, rows.X, max(len(folds), 1), targets)
    known = np.full((data.places.max() + 2, *meaning.shape[1:]), np.nan)  # the last one is for a place of -1
    known_fold: IndexArray = np.full(len(known), ALL_ROWS, dtype=np.intp)
    left_out = any(map(len, folds)) and same_rows
    if left_out:
        known[rows.place], known_fold[rows.place] = meaning, fold
    judged = slice(None if left_out else 0)
    errors = target.errors_out_of_bag(output[judged], rows.y[judged], rows.weight[judged])
    predicted = OutOfFold(data.row_ids, known[data.places], known_fold[data.places], errors)
    return replace(fitted, out_of_fold=predicted, calibration=calibration)


def _unseen(fitted: Fitted, data: TrainingData, same_rows: bool) -> tuple[Table, IndexArray, FloatArray]:
    """Return rows that networks left out, their folds, and these networks' outputs, (kinds, rows, outputs)."""
    folds, no_rows = fitted.folds, np.array([], dtype=np.intp)
    if any(map(len, folds)) and same_rows:
        rows = data.training.take(np.concatenate(folds))
        fold = np.repeat(np.arange(len(folds)), [len(one) for one in folds])
    else:  # what a single network was validated on; no rows where it was not, or where all were learned from before
        use_validation = data.validation is not None and same_rows and not any(map(len, folds))
        rows = data.validation if use_validation and data.validation is not None else data.training.take(no_rows)
        fold = np.zeros(len(rows), dtype=np.intp)
    members = [np.flatnonzero(fitted.member_folds == one) for one in range(int(fitted.member_folds.max()) + 1)]
    outputs = np.empty((len(members[0]), len(rows), data.target.n_outputs))
    for one in np.unique(fold):
        here = fold == one
        found = fitted.outputs(rows.X[here], lambda output: output.swapaxes(0, 1), members[one])
        outputs[:, here] = found.swapaxes(0, 1)
    return rows, fold, outputs
