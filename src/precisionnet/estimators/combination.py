r"""How a model ends: what its networks say of rows that they left out, and what follows from it.

How much each kind of network counts in the prediction, its error, its intervals, and what it rests on. Training ends
with it, and so does ``partial_fit``.

The weights of kinds minimise the task's loss of the combined outputs on rows that the networks left out,

    min_w  loss(sum_k w_k f_k(x_i), y_i)   subject to   w_k >= 0,  sum_k w_k = 1,

which is convex for every loss there is (outputs of classes are logits). Kinds that lose far more than the best, and
kinds with next to no weight, are dropped. The weights of the others shrink towards equal ones, the more so the fewer
the rows: a mean of several good kinds is better than the one that a few rows happened to favour.

A mean of logits may say less than it knows, as kinds that are not sure have their say. Where rows left out want it more
sure beyond chance, all weights of classes are multiplied by one factor of at least 1, the ensemble's sharpness.

One surprise costs a classifier as much as it was sure, and the rows left out may hold none. So classes are judged as if
one row among them, spread over all, had any class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from precisionnet.estimators.explanation import AROUND, task_effects
from precisionnet.estimators.fitted import ALL_ROWS, Fitted, OutOfFold
from precisionnet.estimators.intervals import calibrate
from precisionnet.estimators.kernel_machine import Loss, with_kernel
from precisionnet.estimators.preparation import TrainingData
from precisionnet.estimators.reference import reference_of
from precisionnet.estimators.rows import Table
from precisionnet.estimators.targets import ClassTarget, NumberTarget
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray, IndexArray
from precisionnet.workers import in_workers

STEPS, PATIENCE = 300, 30
"""Steps at most, and how many without a lower loss are the end."""
MOST_ROWS = 20_000
"""Rows that weights are found on; of a longer table as many are taken, evenly spaced."""
LEAST_WEIGHT = 0.1
"""A kind with less is dropped: it would cost more at prediction than it brings."""
ROWS_PER_KIND = 10
"""Rows that count as much as the wish for equal weights, for each kind."""
FARTHEST_BEHIND = 1.3
"""A kind whose loss is this many times the best one's is dropped at once: few rows may favour it by chance."""
SHARPEST, ERRORS = 2.0, 2.0
"""Largest factor of logits, and by how many standard errors it must lower the loss."""


def finished(
    fitted: Fitted,
    data: TrainingData,
    *,
    unseen: bool = True,
    weights_before: Mapping[str, float] | None = None,
    kernel: bool = False,
    n_jobs: int | None = None,
) -> Fitted:
    """Return a model with all that is measured of it.

    The kinds are weighed by what they lose on rows that they left out, and those that do not help are dropped. The
    prediction of a row out of fold has weights that come from the other folds.

    Parameters
    ----------
    fitted : Fitted
        With networks of all kinds, and ``folds`` of the rows.
    data : TrainingData
        The rows, with the target as networks have learned it.
    unseen : bool, default=True
        Whether the networks of a fold have never seen its rows; else nothing is known of their errors.
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
    target, several = data.target, fitted.settings.readout == "several"
    rows, fold = _left_out(fitted, data, unseen)
    outputs = _outputs(fitted, rows, fold)
    group, loss = None, target.task_loss
    if isinstance(target, ClassTarget):
        group = rows.group if several else None
        loss = partial(target.task_loss, doubt=1.0 / max(1, len(rows)))
    y, weight = target.tensor(rows.y), rows.weight
    weigh = partial(weights_by_fold, y=y, weight=weight, fold=fold, loss=loss, group=group, n_jobs=n_jobs)
    weights, *elsewhere = weigh(outputs)
    if several and kernel and len(elsewhere) == len(fitted.folds) > 1:
        trained = len(fitted.networks)
        fitted = with_kernel(fitted, data, elsewhere, n_jobs)
        outputs = np.concatenate([outputs, _outputs(fitted, rows, fold, trained)])
        weights, *elsewhere = weigh(outputs)
    if several and weights_before:
        weights = _as_before(fitted, weights_before)
        elsewhere = [weights] * len(elsewhere)
    fold_weights = np.tile(weights, (max(len(fitted.folds), 1), 1))
    output = np.empty(outputs.shape[1:])
    for one, found in zip(np.unique(fold), elsewhere, strict=True):
        here = fold == one
        fold_weights[one] = found
        output[here] = np.tensordot(found, outputs[:, here], axes=1)
    if several:  # else members are alike, and count alike
        fitted = kept_members(fitted, weights, fold_weights)
    fitted = _with_errors(fitted, data, rows, fold, output)
    effects = task_effects(fitted, data.training.X, data.training.weight, around=AROUND)
    return replace(fitted, task_nodes=effects.nodes, task_graph=effects.edges, reference=reference_of(data))


def _left_out(fitted: Fitted, data: TrainingData, unseen: bool) -> tuple[Table, IndexArray]:
    """Return rows that networks left out, and the folds of these networks; of a single one what it was validated on."""
    folds = fitted.folds
    if unseen and any(map(len, folds)):
        fold: IndexArray = np.repeat(np.arange(len(folds)), [len(one) for one in folds])
        return data.training.take(np.concatenate(folds)), fold
    rows = data.validation if unseen else None
    if rows is None:
        rows = data.training.take(np.array([], dtype=np.intp))
    return rows, np.zeros(len(rows), dtype=np.intp)


def _outputs(fitted: Fitted, rows: Table, fold: IndexArray, first: int = 0) -> FloatArray:
    """Return outputs of the networks from the ``first`` on for rows that each left out, (kinds, rows, outputs)."""
    places = np.arange(first, len(fitted.networks))
    folds = fitted.member_folds[places]
    members = [places[folds == one] for one in range(int(folds.max()) + 1)]
    outputs = np.empty((len(members[0]), len(rows), fitted.target.n_outputs))
    for one in np.unique(fold):
        here = fold == one
        found = fitted.outputs(rows.X[here], lambda output: output.swapaxes(0, 1), members[one])
        outputs[:, here] = found.swapaxes(0, 1)
    return outputs


def _as_before(fitted: Fitted, weights_before: Mapping[str, float]) -> FloatArray:
    """Return the weights of an earlier model for the kinds that stay."""
    kinds = dict.fromkeys(fitted.member_kinds)
    weights = np.array([weights_before.get(kind, 0.0) for kind in kinds])
    weights = weights / weights.sum() if weights.any() else np.full(len(weights), 1.0 / len(weights))
    if set(weights_before) <= set(kinds):  # the sharpness is that of this mixture
        weights = weights * sum(weights_before.values())
    return weights


def _with_errors(fitted: Fitted, data: TrainingData, rows: Table, fold: IndexArray, output: FloatArray) -> Fitted:
    """Return the model with out-of-fold predictions, their errors, and what intervals are made of."""
    target, n_folds = data.target, len(fitted.folds)
    meaning, calibration = target.meaning(output), None
    if isinstance(target, NumberTarget) and len(rows):
        targets = np.concatenate([data.targets, rows.y])
        calibration = calibrate(fold, rows.y, meaning, rows.weight, rows.X, max(n_folds, 1), targets)
    known = np.full((data.places.max() + 2, *meaning.shape[1:]), np.nan)  # the last one is for a place of -1
    known_fold: IndexArray = np.full(len(known), ALL_ROWS, dtype=np.intp)
    judged = slice(None if any(map(len, fitted.folds)) else 0)  # validation rows are no training rows out of fold
    known[rows.place[judged]], known_fold[rows.place[judged]] = meaning[judged], fold[judged]
    errors = target.errors_out_of_bag(output[judged], rows.y[judged], rows.weight[judged])
    predicted = OutOfFold(data.row_ids, known[data.places], known_fold[data.places], errors)
    return replace(fitted, out_of_fold=predicted, calibration=calibration)


def weights_by_fold(
    outputs: FloatArray,
    y: Tensor,
    weight: FloatArray,
    fold: IndexArray,
    loss: Loss,
    *,
    group: IndexArray | None = None,
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the weights of kinds by all rows, then those by the rows outside each fold that there is.

    Parameters
    ----------
    outputs, y, weight, loss, group
        As in ``kind_weights``.
    fold : ndarray of shape (n_rows,)
        Fold of each row.
    n_jobs : int, optional
        Workers that share the folds.

    Returns
    -------
    list of ndarray of shape (n_kinds,)
        One more than there are folds.
    """
    parts = [np.arange(len(fold)), *(np.flatnonzero(fold != one) for one in np.unique(fold))]
    groups = [None if group is None else group[rows] for rows in parts]
    calls = (
        (outputs[:, rows], y[torch.from_numpy(rows)], weight[rows], loss, whose)
        for rows, whose in zip(parts, groups, strict=True)
    )
    if len(outputs) == 1:
        return [kind_weights(*call) for call in calls]
    return in_workers(kind_weights, calls, n_jobs, by_file=False)


def kind_weights(
    outputs: FloatArray, y: Tensor, weight: FloatArray, loss: Loss, group: IndexArray | None = None
) -> FloatArray:
    """Return the weights of kinds, zero for those that are dropped.

    Parameters
    ----------
    outputs : ndarray of shape (n_kinds, n_rows, n_outputs)
        Outputs of each kind on rows that it did not learn from.
    y : Tensor of shape (n_rows,)
        Targets of these rows, as the networks learn them.
    weight : ndarray of shape (n_rows,)
        How often each row counts.
    loss : callable
        The task's loss.
    group : ndarray of shape (n_rows,), optional
        Whose row each is, where outputs are logits, whose mean may be multiplied.

    Returns
    -------
    ndarray of shape (n_kinds,)
        Not negative; they sum to one, or to the sharpness. Without rows all count alike.
    """
    n_kinds, n_rows = outputs.shape[:2]
    if not n_rows:
        return np.full(n_kinds, 1.0 / n_kinds)
    taken = np.linspace(0, n_rows - 1, min(n_rows, MOST_ROWS)).round().astype(np.intp)
    known, counts = torch.from_numpy(outputs[:, taken]), torch.from_numpy(weight[taken])
    y = y[torch.from_numpy(taken)]
    with limited_threads(1):  # in a worker, too
        shares = _shares(known, y, counts, loss, float(weight.sum()))
        if group is None:
            return shares
        combined = torch.tensordot(torch.from_numpy(shares), known, dims=1)
        return shares * sharpness(combined, y, counts, loss, group[taken])


def _shares(outputs: Tensor, y: Tensor, counts: Tensor, loss: Loss, n_rows: float) -> FloatArray:
    """Return the weights of kinds; they sum to one."""
    alone = np.array([float(loss(one, y, counts)) for one in outputs])
    kept = np.flatnonzero(alone <= FARTHEST_BEHIND * alone.min())
    if not len(kept):  # some loss is no number
        return np.full(len(alone), 1.0 / len(alone))
    found = _lowest_loss(outputs[torch.from_numpy(kept)], y, counts, loss)
    while (found < LEAST_WEIGHT).any():
        kept = kept[found >= LEAST_WEIGHT]
        found = _lowest_loss(outputs[torch.from_numpy(kept)], y, counts, loss)
    shrunk = ROWS_PER_KIND * len(kept) / (ROWS_PER_KIND * len(kept) + n_rows)
    shares: FloatArray = np.zeros(len(alone))
    shares[kept] = (1.0 - shrunk) * found + shrunk / len(kept)
    return shares / shares.sum()


def sharpness(output: Tensor, y: Tensor, counts: Tensor, loss: Loss, group: IndexArray) -> float:
    """Return what logits are multiplied by: more than 1 only where that lowers the loss beyond chance.

    A factor below 1 is no choice: the mean of several networks, which predicts, is less sure than the single ones that
    left a row out.

    Parameters
    ----------
    output : Tensor of shape (n_rows, n_outputs)
        Combined logits of rows left out.
    y : Tensor of shape (n_rows,)
        Their classes.
    counts : Tensor of shape (n_rows,)
        How often each row counts.
    loss : callable
        The task's loss.
    group : ndarray of shape (n_rows,)
        Whose row each is: the error is that of the mean over groups, as rows of one are alike.

    Returns
    -------
    float
        Between 1 and ``SHARPEST``.
    """

    def row_losses(factor: float) -> FloatArray:
        each: FloatArray = loss(factor * output[:, None], y[:, None], counts[:, None]).numpy()
        return each

    own = counts.numpy() > 0.0
    output, y, counts = output[own], y[own], counts[own]
    _, whose = np.unique(group[own], return_inverse=True)
    if not len(whose) or not whose.max():  # one group tells nothing
        return 1.0
    weight = counts.numpy() / float(counts.mean())
    best = minimize_scalar(
        lambda factor: float(np.average(row_losses(factor), weights=weight)), bounds=(1.0, SHARPEST), method="bounded"
    )
    gain = row_losses(1.0) - row_losses(float(best.x))
    mean = float(np.average(gain, weights=weight))
    n_groups = whose.max() + 1
    by_group = np.bincount(whose, weights=weight * (gain - mean))
    error = math.sqrt(float(by_group @ by_group) * n_groups / (n_groups - 1)) / float(weight.sum())
    return float(best.x) if mean > ERRORS * error else 1.0


def _lowest_loss(outputs: Tensor, y: Tensor, counts: Tensor, loss: Loss) -> FloatArray:
    """Minimise over the simplex by exponentiated gradients; the best of all steps is returned."""
    weights = torch.full((len(outputs),), 1.0 / len(outputs), dtype=outputs.dtype)
    best, lowest, last = weights, np.inf, 0
    for step in range(1, STEPS + 1):
        leaf = weights.detach().requires_grad_()
        value = loss(torch.tensordot(leaf, outputs, dims=1), y, counts)
        if value.item() < lowest:
            best, lowest, last = leaf.detach(), value.item(), step
        if step - last >= PATIENCE:
            break
        (gradient,) = torch.autograd.grad(value, leaf)
        gradient = gradient - gradient.mean()
        size = float(gradient.abs().max())
        if size == 0.0:
            break
        weights = torch.softmax(leaf.detach().clamp_min(1e-12).log() - gradient / (size * step**0.5), dim=0)
    return best.numpy()


def kept_members(fitted: Fitted, weights: FloatArray, fold_weights: FloatArray) -> Fitted:
    """Return the model with its networks weighed by their kinds, and without kinds that count nowhere.

    Parameters
    ----------
    fitted : Fitted
        With networks of all kinds.
    weights : ndarray of shape (n_kinds,)
        Of the kinds in the prediction.
    fold_weights : ndarray of shape (n_folds, n_kinds)
        The same for the prediction of rows in a fold, found without them.

    Returns
    -------
    Fitted
        With the networks that stay.
    """
    names = list(dict.fromkeys(fitted.member_kinds))
    kind = np.array([names.index(name) for name in fitted.member_kinds])
    for_all = fitted.member_folds == ALL_ROWS
    # Of a kind with a network for all rows that one predicts; of the others, the mean of those that left a fold out.
    whole = np.isin(kind, kind[for_all])
    each = weights[kind] * np.where(whole, for_all, 1.0 / len(fold_weights))
    in_fold = np.where(for_all, 0.0, fold_weights[fitted.member_folds, kind])
    kept = np.flatnonzero(np.isin(kind, kind[each + in_fold > 0]))
    return replace(
        fitted,
        networks=tuple(fitted.networks[i] for i in kept),
        member_kinds=tuple(fitted.member_kinds[i] for i in kept),
        member_folds=fitted.member_folds[kept],
        member_weights=each[kept] * (weights.sum() / each[kept].sum()),
        fold_weights=in_fold[kept],
        member_matrices=fitted.member_matrices[kept],
        task_precision=fitted.member_matrices[kept].mean(axis=0),
    )
