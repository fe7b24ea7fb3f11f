r"""Go on from a fitted model with rows that came later: ``partial_fit``.

The units of the columns and of the target stay those of the first fit, because the networks know no others. Mean and
covariance of all rows so far are merged, exactly, and Step 1 solves the graph of all of them. The networks take steps
on the new rows alone. With s the share of new rows among all rows so far, they take s times the epochs of a fit at s
times its learning rate: over batches of one size the rates fall like 1/k, as stochastic approximation asks for.

A linear network that predicts a number is solved for all rows, old and new, without keeping the old ones: around its
optimum w_0 their squared error is n (w - w_0)' C (w - w_0) up to a constant, and the model has their covariance C.
(This is recursive least squares; the penalty of the first fit counts as part of its optimum.) A linear network that
predicts one of K classes takes a step like Newton's, label by label, with the curvature of the old rows taken from the
probabilities of the new ones. Solved one at a time, the labels move apart K / (K - 1) times too far, so the step is
shortened to (K - 1) / K of that: with two classes it is Newton's own. A kernel machine keeps its rows, and is solved
for old and new ones as long as there are no more than it may keep.

Every new row is left out by the networks of one fold, which have not seen it before: its out-of-fold prediction is as
honest as in ``fit``, unless its group had rows in an earlier call, as folds are dealt anew. The out-of-fold predictions
of earlier rows are dropped. The weights of the kinds stay as they are. If the new rows are few, the calibration of
intervals, the distances of training rows and the explanation of the prediction stay as well.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.checks import refuse_no_logarithm
from precisionnet.estimators.combination import finished
from precisionnet.estimators.fitted import ALL_ROWS, Fitted
from precisionnet.estimators.intervals import Calibration
from precisionnet.estimators.kernel_machine import extended
from precisionnet.estimators.networks import NetworkFactory
from precisionnet.estimators.preparation import TrainingData, WholeTable, prepare
from precisionnet.estimators.rows import FEWEST_FOLDS, left_out_rows
from precisionnet.estimators.targets import NumberTarget, learns_logarithm
from precisionnet.estimators.training import TrainingRun, snapshot_of
from precisionnet.joint.problem import GlassoCache, GraphTerms, start_of
from precisionnet.joint.trainer import Callback
from precisionnet.kinds import EVERY, KERNEL, LASSO
from precisionnet.parameters import Settings
from precisionnet.precision import StreamingMoments
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray, IndexArray

FEW = 200
"""With fewer new rows than this, what was measured on left-out rows stays as it was."""
LEAST_CURVATURE = 1e-6
"""Least curvature of a linear network's error on the old rows along any direction, in standard units."""

SOLVED = frozenset(kind.name for kind in EVERY if kind.solved)
"""Names of the kinds that are solved, not trained."""


def go_on(
    model: Any,
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    network: NetworkFactory | None = None,
    callbacks: Sequence[Callback] = (),
    n_jobs: int | None = None,
) -> Fitted:
    """Return a fitted model that has also learned from further rows.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        The fitted estimator, which stays as it is.
    settings : Settings
        Settings of the fit.
    X : array-like of shape (n_samples, n_features)
        New rows.
    y : array-like of shape (n_samples,)
        Their target.
    sample_weight : array-like of shape (n_samples,), optional
        How often each row counts.
    groups : array-like of shape (n_samples,), optional
        The person, or other group, that each row belongs to.
    network : callable, optional
        Makes the networks, if they are the user's own.
    callbacks : sequence of callable, default=()
        Called after each epoch.
    n_jobs : int, optional
        Workers.

    Returns
    -------
    Fitted
        The model after the new rows.
    """
    fitted: Fitted = model.fitted
    fitted.refuse_on_support("partial_fit")
    data = _new_rows(model, settings, X, y, sample_weight, groups)
    assert data.whole is not None
    share = float(data.training.weight.sum()) / data.whole.weight
    short = replace(
        settings,
        max_epochs=max(1, round(share * settings.max_epochs)),
        learning_rate=share * settings.learning_rate,
    )
    cache = GlassoCache()
    with limited_threads(1):
        graph = GraphTerms.of(settings, data.emp_cov, data.weight)
        start = start_of(settings.method, graph, cache)
        solved = _solved_on(fitted, data, settings.kernel_rows)
        if set(fitted.member_kinds) <= SOLVED:  # nothing to train
            moved = replace(
                fitted,
                networks=tuple(network for _, network in solved),
                precision=start.theta,
                task_precision=start.theta_task,
                member_matrices=np.repeat(start.theta_task[None], len(solved), axis=0),
                scale=start.norm if settings.scale_shift else 1.0,
                l1_penalty=graph.l1_penalty,
                spectral_bound=graph.spectral_bound,
                center=data.scaler.transform(data.mean),
                folds=data.whole.folds,
                rows_hash=data.training.hash(),
            )
            found = finished(moved, data, weights_before=fitted.kind_totals, n_jobs=n_jobs)
            return _measured(found, fitted, data)
    # Networks see their matrix divided by the norm of the start, which the new rows have changed.
    ratio = float(np.linalg.norm(start.theta_task, 2)) / fitted.scale if settings.scale_shift else 1.0
    before = replace(fitted, member_matrices=fitted.member_matrices * ratio)
    if snapshot_of(before, short, data, network) is None:
        raise InputError(
            "The model was fitted with other parameters than it has now, so that its networks cannot go on: set them "
            "back, or fit it again with all rows."
        )
    run = TrainingRun(
        data,
        short,
        network=network,
        callbacks=callbacks,
        n_jobs=n_jobs,
        resume=before,
        cache=cache,
        keep="last",
        solved=solved,
        paused=False,
    )
    with run.threads():
        while not run.trainer.done:
            run.trainer.advance()
        found = replace(run.finish(), settings=settings)
    return _measured(found, fitted, data)


def _new_rows(model: Any, settings: Settings, X: Any, y: Any, sample_weight: Any, groups: Any) -> TrainingData:
    """Check the new rows as ``fit`` does, and prepare them in the model's units with the moments of all rows so far."""
    fitted: Fitted = model.fitted
    rows = model._checked_rows(X)
    values = rows[0 : len(rows)]
    n_missing = np.isnan(values).sum(axis=0)
    classes = None if isinstance(fitted.target, NumberTarget) else fitted.target.classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionNetWarning)  # a batch may be short, and its columns constant
        data = prepare(
            model,
            "regression" if classes is None else "classification",
            settings,
            fitted.filled(values),
            y,
            sample_weight,
            groups=groups,
            random_state=model.random_state,
            classes=classes,
        )
    table, ends = data.training, np.full(2, np.nan)
    if classes is None:
        if learns_logarithm(fitted.target):
            refuse_no_logarithm(table.y)
        known = None if fitted.reference is None else fitted.reference.target_range
        ends = np.array(known if known is not None else (table.y.min(), table.y.max()))
    before = StreamingMoments(
        fitted.weight, fitted.center, np.zeros(fitted.n_features), fitted.weight * fitted.covariance
    )
    merged = before.update(fitted.scaler.transform(table.X), table.weight)
    strata = None if classes is None else table.y
    n_folds = max(len(fitted.folds), 1)
    fewest = n_folds if settings.readout == "several" else FEWEST_FOLDS
    seed = int(data.rng.randint(2**31 - 1))
    folds = left_out_rows(table, n_folds, strata, np.random.RandomState(seed), fewest)
    return replace(
        data,
        target=fitted.target,
        scaler=fitted.scaler,
        emp_cov=merged.covariance,
        column_names=fitted.column_names,
        target_name=fitted.target_name,
        row_ids=X.index.to_numpy() if isinstance(X, pd.DataFrame) else data.row_ids,
        medians=fitted.medians,
        n_missing=fitted.n_missing + (n_missing if len(n_missing) == len(fitted.n_missing) else 0),
        n_rows={**fitted.n_rows, "training": fitted.n_rows["training"] + data.n_rows["training"]},
        encoder=fitted.encoder,
        whole=WholeTable(fitted.scaler.inverse(merged.mean), float(merged.n), ends, tuple(folds)),
    )


def _solved_on(fitted: Fitted, data: TrainingData, kernel_rows: int) -> list[tuple[str, nn.Module]]:
    """Solve the model's linear networks and kernel machines for all rows so far.

    Returns names of kinds and networks in the order of the model; an empty list if it has none that is solved.
    """
    assert data.whole is not None
    rows, found = data.training, []
    x, y = data.scaler.transform(rows.X), data.target.tensor(rows.y)
    kernels = [one for one, kind in zip(fitted.networks, fitted.member_kinds, strict=True) if kind == KERNEL.name]
    n_kept = max((len(one.readout.noise) for one in kernels), default=0)  # type: ignore[arg-type, union-attr]
    for place in (i for i, kind in enumerate(fitted.member_kinds) if kind in SOLVED):
        fold = int(fitted.member_folds[place])
        used = np.ones(len(rows), dtype=bool)
        if fold != ALL_ROWS:
            used[data.whole.folds[fold]] = False
        network = copy.deepcopy(fitted.networks[place])
        if fitted.member_kinds[place] == KERNEL.name:
            own = x[used], rows.y[used], rows.weight[used]
            found.append((KERNEL.name, extended(network, *own, data.target, kernel_rows, fitted.weight / n_kept)))
            continue
        weight, bias = network.readout.perceptron[0].weight, network.readout.perceptron[0].bias  # type: ignore
        coefficients = torch.column_stack([bias, weight]).detach().numpy()
        columns = np.arange(x.shape[1])
        if fitted.member_kinds[place] == LASSO.name:  # columns that its penalty left out stay out
            columns = np.flatnonzero(coefficients[:, 1:].any(axis=0))
        change = _step(coefficients, x[used], y.numpy()[used], rows.weight[used], fitted, columns)
        with torch.no_grad():
            bias += torch.from_numpy(change[:, 0])
            weight += torch.from_numpy(change[:, 1:])
        found.append((fitted.member_kinds[place], network))
    return found


def _step(
    coefficients: FloatArray, x: FloatArray, y: FloatArray, weight: FloatArray, fitted: Fitted, columns: IndexArray
) -> FloatArray:
    """Return the change that new rows make to the coefficients, (n_outputs, 1 + n_columns), the constants first.

    Only the coefficients of ``columns`` and the constants change. This is one step of Newton's method from the optimum
    of the old rows, exact for the squared error. For classes it goes label by label, and the probabilities of the new
    rows give the curvature of old and new rows alike.
    """
    own = np.concatenate([[0], 1 + columns])
    center, covariance = fitted.center[columns], fitted.covariance[np.ix_(columns, columns)]
    design = np.column_stack([np.ones(len(x)), x[:, columns]])
    output = design @ coefficients[:, own].T
    if isinstance(fitted.target, NumberTarget):
        pull, sizes, length = y[:, None] - output, np.ones_like(output), 1.0
    else:
        said = fitted.target.meaning(output)
        pull = np.eye(len(coefficients))[y] - said
        sizes = np.maximum(said * (1.0 - said), 1e-3)
        length = 1.0 - 1.0 / len(coefficients)  # only differences of the outputs matter
    old = np.empty((len(own), len(own)))
    old[0, 0], old[0, 1:], old[1:, 0] = 1.0, center, center
    old[1:, 1:] = covariance + np.outer(center, center) + LEAST_CURVATURE * np.eye(len(columns))
    change: FloatArray = np.zeros_like(coefficients)
    for i, (own_pull, size) in enumerate(zip(pull.T, sizes.T, strict=True)):
        curvature = (
            fitted.weight * float(np.average(size, weights=weight)) * old + (design.T * (weight * size)) @ design
        )
        change[i, own] = length * np.linalg.solve(curvature, design.T @ (weight * own_pull))
    return change


def _measured(found: Fitted, before: Fitted, data: TrainingData) -> Fitted:
    """Return the model with the counts of all rows so far; if few rows are new, its earlier measurements are kept."""
    counted = replace(found, n_rows=data.n_rows, weight=data.weight, n_missing=data.n_missing, covariance=data.emp_cov)

    if len(data.training) >= FEW:
        return counted
    calibration: Calibration | None = before.calibration
    if calibration is not None:
        low, high = calibration.limits
        y = data.training.y
        limits = low if y.min() >= low else -np.inf, high if y.max() <= high else np.inf
        calibration = replace(calibration, limits=limits)
    reference = before.reference
    if reference is not None and reference.target_range is not None:
        low, high = float(data.targets.min()), float(data.targets.max())
        reference = replace(reference, target_range=(low, high))
    return replace(
        counted,
        calibration=calibration,
        reference=reference,
        task_nodes=before.task_nodes,
        task_graph=before.task_graph,
    )
