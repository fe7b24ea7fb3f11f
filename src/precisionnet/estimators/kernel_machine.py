r"""The kind of network that keeps its rows: a readout with endlessly many hidden units, solved in closed form.

A flattened perceptron with more and more random hidden units tends to a kernel machine (Neal 1996), and kernel ridge
regression is its least-squares solution,

    f(x) = c + sum_m a_m k(|s * (x - x_m)|),        (K + noise diag(1 / w)) a = y - c,

with k Matern's kernel or the Gaussian one, and w the rows' weights. What makes it one of the ensemble is the distance:
s_i is the size that the gradient of the trained networks has along column i, root mean square over the rows, so that
columns that the task does not use do not set rows apart (Radhakrishnan, Beaglehole, Pandit and Belkin 2024, who take
the gradient of the machine itself, and all of its outer product). The rows left out decide between this and a distance
in which all columns count alike, and about the kernel, its width and the noise.

One machine is solved for every fold, on the rows outside it, with the gradient of the networks that left the same fold
out, and all that is chosen is chosen on the rows of the other folds. One more is solved on all rows: it predicts.

Of classes the same is solved for the indicator of each class, and the probabilities that come out, times a factor that
is chosen with the rest, are the logits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist
from torch import Tensor, nn

from precisionnet.estimators.explanation import mean_gradients
from precisionnet.estimators.fitted import ALL_ROWS, Fitted
from precisionnet.estimators.networks import kernel_network
from precisionnet.estimators.preparation import TrainingData
from precisionnet.estimators.rows import LEAST_SHARE, moments
from precisionnet.estimators.targets import NumberTarget, Target
from precisionnet.kinds import KERNEL
from precisionnet.nn.readout import KernelReadout, gaussian, matern
from precisionnet.sparse_matrices import with_means
from precisionnet.types import FloatArray, IndexArray
from precisionnet.workers import in_workers

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(outputs, targets, weights of the rows) -> the mean loss."""

POWERS = 0.0, 1.0
"""Of the mean squared gradients in a squared distance: all columns alike, or as the task uses them."""
KERNELS = matern, gaussian
WIDTHS = 1.0, 2.0, 4.0, 8.0, 16.0
"""Of the kernel, in median distances of two rows."""
NOISES = 0.001, 0.004, 0.015, 0.06, 0.25, 1.0
"""Variance of the noise beside that of the function."""
FACTORS = 1.0, 2.0, 4.0, 8.0, 16.0
"""Of the probabilities of classes."""
TUNED_ROWS, GRADIENT_ROWS, MEDIAN_ROWS = 300, 300, 300
"""Rows at most that choices are made with, gradients are taken at, and the median distance is of; evenly spaced."""


@dataclass(frozen=True)
class Choice:
    """What is chosen on rows left out."""

    power: float
    smooth: bool
    """Whether the kernel is the Gaussian one."""
    width: float
    noise: float
    factor: float


@dataclass(frozen=True)
class _Rows:
    """Rows that a machine is solved on: in standard units, what is to be fitted, and how often each counts."""

    x: FloatArray
    wanted: FloatArray
    """(n_rows, n_outputs)."""
    weight: FloatArray

    def take(self, rows: IndexArray) -> _Rows:
        return _Rows(self.x[rows], self.wanted[rows], self.weight[rows])


def with_kernel(
    fitted: Fitted, data: TrainingData, fold_weights: Sequence[FloatArray], n_jobs: int | None = None
) -> Fitted:
    """Add the networks of the kind to a model whose other networks are trained.

    Parameters
    ----------
    fitted : Fitted
        With networks of all other kinds for every fold.
    data : TrainingData
        The rows.
    fold_weights : list of ndarray of shape (n_kinds,)
        For each fold, weights of the kinds that its rows have no say in.
    n_jobs : int, optional
        Workers that share the folds where choices are made.

    Returns
    -------
    Fitted
        With one network more for every fold, and one for all rows, not weighed yet.
    """
    rows, folds = data.training, fitted.folds
    x = data.scaler.transform(rows.X)
    _, deviation, constant = moments(x, rows.weight)
    deviation = np.where(constant, np.inf, deviation)  # such a column sets no rows apart, those to come neither
    everything = _Rows(x, _wanted(data.target, rows.y), rows.weight)
    outside = [np.setdiff1d(np.arange(len(x)), fold) for fold in folds]
    unit = np.where(constant, 0.0, deviation)
    used = [
        _importance(fitted, x[own], unit, fold, weights)
        for fold, (own, weights) in enumerate(zip(outside, fold_weights, strict=True))
    ]
    choices = _chosen(everything, data.target, rows.y, folds, outside, used, deviation, n_jobs)
    parts = zip([*outside, np.arange(len(x))], [*used, np.mean(used, axis=0)], choices, strict=True)
    networks = [
        _solved(everything.take(own), np.sqrt(importance**choice.power) / deviation, choice)
        for own, importance, choice in parts
    ]
    places = [*range(len(folds)), ALL_ROWS]
    n = len(networks)
    return replace(
        fitted,
        networks=(*fitted.networks, *networks),
        member_kinds=(*fitted.member_kinds, *[KERNEL.name] * n),
        member_folds=np.concatenate([fitted.member_folds, places]),
        member_weights=np.full(len(fitted.networks) + n, 1.0 / (len(fitted.networks) + n)),
        fold_weights=np.ones(len(fitted.networks) + n),
        member_matrices=with_means(fitted.member_matrices, n),
    )


def extended(
    network: nn.Module, x: FloatArray, y: FloatArray, weight: FloatArray, target: Target, most: int, unit: float = 1.0
) -> nn.Module:
    """Solve a machine again with rows that came later; what it was solved for follows from its coefficients.

    Parameters
    ----------
    network : nn.Module
        Of the kind.
    x : ndarray of shape (n_rows, n_columns)
        New rows as networks see them.
    y : ndarray of shape (n_rows,)
        Their target, in the table's units or as numbers of classes.
    weight : ndarray of shape (n_rows,)
        How often each counts.
    target : NumberTarget or ClassTarget
        What is predicted.
    most : int
        Rows that it may keep; of the new ones as many are taken as there is room for, evenly spaced.
    unit : float, default=1.0
        Mean weight of the rows before.

    Returns
    -------
    nn.Module
        Of the same kind, scale, noise and factor.
    """
    readout = network.readout
    assert isinstance(readout, KernelReadout)
    own = np.flatnonzero(weight > 0.0)
    room = min(max(0, most - len(readout.anchors)), len(own))
    if not room:
        return network
    own = own[np.linspace(0, len(own) - 1, room).round().astype(np.intp)]
    anchors, noise, factor = (one.numpy() for one in (readout.anchors, readout.noise, readout.factor))
    coefficients, constant = readout.coefficients.numpy() / factor, readout.constant.numpy() / factor
    before = (readout.kernel.numpy() + np.diag(noise)) @ coefficients.T
    scale = readout.scale.numpy()
    # An old row of weight w has noise level * unit / w; the level is that of their mean weight.
    level = len(noise) / float((1.0 / noise).sum())
    rows = np.concatenate([anchors, x[own] * scale])
    wanted = np.concatenate([before, _wanted(target, y)[own] - constant])
    noise = np.concatenate([noise, _noise(level, weight[own], unit)])
    return _network(rows, wanted, noise, scale, constant, float(factor), smooth=bool(readout.gaussian))


def _wanted(target: Target, y: FloatArray) -> FloatArray:
    """Return what is fitted: the target as networks learn it, or indicators of the classes."""
    known = target.tensor(y).numpy()
    return known[:, None] if isinstance(target, NumberTarget) else np.eye(target.n_outputs)[known]


def _importance(fitted: Fitted, x: FloatArray, unit: FloatArray, fold: int, weights: FloatArray) -> FloatArray:
    """Return the squared gradient of the networks that left a fold out along each column, one on average."""
    kinds = list(dict.fromkeys(fitted.member_kinds))
    each = np.array([weights[kinds.index(kind)] for kind in fitted.member_kinds])
    theirs = replace(fitted, member_weights=np.where(fitted.member_folds == fold, each, 0.0))
    taken = _evenly(len(x), GRADIENT_ROWS)
    total = np.zeros(x.shape[1])
    for _, gradient in mean_gradients(theirs, x[taken]):
        total += (gradient**2).sum(axis=(0, 1))
    total *= unit**2
    mean = float(total.mean())
    return total / mean if mean > 0.0 and np.isfinite(mean) else np.ones_like(total)


def _chosen(
    everything: _Rows,
    target: Target,
    y: FloatArray,
    folds: tuple[IndexArray, ...],
    outside: Sequence[IndexArray],
    used: Sequence[FloatArray],
    deviation: FloatArray,
    n_jobs: int | None = None,
) -> list[Choice]:
    """Return a choice for every fold, by the rows of the others, and one for all rows."""
    factors = (1.0,) if isinstance(target, NumberTarget) else FACTORS
    grid = [Choice(*one) for one in itertools.product(POWERS, (False, True), WIDTHS, NOISES, factors)]
    known = target.tensor(y)
    calls = []
    for fold, own, importance in zip(folds, outside, used, strict=True):
        left = fold[_evenly(len(fold), TUNED_ROWS)]
        metrics = [np.sqrt(importance**power) / deviation for power in POWERS]
        rows = everything.take(own[_evenly(len(own), TUNED_ROWS)])
        calls.append((rows, metrics, everything.x[left], known[left], torch.from_numpy(everything.weight[left])))
    losses = np.array(in_workers(_losses, calls, n_jobs, shared=(target.task_loss, factors), by_file=False))
    elsewhere = [losses.sum(axis=0) - own for own in losses]
    return [grid[int(np.argmin(one))] for one in (*elsewhere, losses.sum(axis=0))]


def _losses(
    loss: Loss,
    factors: Sequence[float],
    rows: _Rows,
    metrics: Sequence[FloatArray],
    left: FloatArray,
    known: Tensor,
    weight: Tensor,
) -> list[float]:
    """Return what machines that are solved on some rows lose on rows left out, choice by choice."""
    if not len(left):
        return [0.0] * (len(POWERS) * len(KERNELS) * len(WIDTHS) * len(NOISES) * len(factors))
    metrics = [scale / _median_distance(rows.x * scale) for scale in metrics]
    constant = np.average(rows.wanted, axis=0, weights=rows.weight)
    found = []
    for metric, k, width in itertools.product(metrics, KERNELS, WIDTHS):
        scale = metric / width
        z = torch.from_numpy(rows.x * scale)
        kernel = k(z, z).numpy()
        between = k(torch.from_numpy(left * scale), z).numpy()
        for noise in NOISES:
            solution = _solution(kernel, rows.wanted - constant, _noise(noise, rows.weight))
            output = torch.from_numpy(between @ solution + constant)
            found += [float(loss(factor * output, known, weight)) for factor in factors]
    return [float(weight.sum()) * one for one in found]


def _solved(rows: _Rows, scale: FloatArray, choice: Choice) -> nn.Module:
    """Solve a machine; ``scale`` has the columns' weights in a distance, up to the kernel's width."""
    scale = scale / (choice.width * _median_distance(rows.x * scale))
    constant = np.average(rows.wanted, axis=0, weights=rows.weight)
    noise = _noise(choice.noise, rows.weight)
    return _network(rows.x * scale, rows.wanted - constant, noise, scale, constant, choice.factor, smooth=choice.smooth)


def _network(
    anchors: FloatArray,
    wanted: FloatArray,
    noise: FloatArray,
    scale: FloatArray,
    constant: FloatArray,
    factor: float,
    *,
    smooth: bool,
) -> nn.Module:
    """Solve, and put the solution into a network."""
    z = torch.from_numpy(anchors)
    coefficients = _solution(KERNELS[smooth](z, z).numpy(), wanted, noise).T
    network = kernel_network(len(scale), len(constant), len(anchors))
    state = {
        "readout.scale": scale,
        "readout.anchors": anchors,
        "readout.coefficients": factor * coefficients,
        "readout.constant": factor * constant,
        "readout.noise": noise,
        "readout.factor": np.array(factor),
        "readout.gaussian": np.array(float(smooth)),
    }
    network.load_state_dict(
        {
            name: torch.from_numpy(state[name]) if name in state else value
            for name, value in network.state_dict().items()
        }
    )
    return network


def _solution(kernel: FloatArray, wanted: FloatArray, noise: FloatArray) -> FloatArray:
    """Solve (K + diag(noise)) a = wanted."""
    matrix = kernel.copy()
    matrix[np.diag_indices_from(matrix)] += noise
    solution: FloatArray = cho_solve(cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False), wanted)
    return solution


def _noise(level: float, weight: FloatArray, unit: float | None = None) -> FloatArray:
    """Return each row's noise: the level for a row of weight ``unit``, by default the mean; more for one of less."""
    share = weight / (weight.mean() if unit is None else unit)
    return level / np.maximum(share, LEAST_SHARE)


def _median_distance(z: FloatArray) -> float:
    median = float(np.median(pdist(z[_evenly(len(z), MEDIAN_ROWS)]))) if len(z) > 1 else 0.0
    return median if median > 0.0 else 1.0


def _evenly(n: int, most: int) -> IndexArray:
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)
