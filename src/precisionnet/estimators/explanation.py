r"""What a prediction rests on: columns, pairs of columns, and each row's contributions.

The matrix under the networks is not identified: matrix and filters trade against each other, so its entries differ
between seeds although the predictions agree. The *function* f that is learned is identified, so everything here is read
off f: from its gradient g(x) by the columns, on the training rows, averaged over the members. ``x`` are columns in
standard units with correlation matrix P, and f is in the target's units (log-odds, or logits, of classes).

**Decorrelated columns.** u = P^(-1/2) x has uncorrelated columns of variance one, and of all such u it is the one
closest to x, so that u_i stands for column i (Kessy, Lewin and Strimmer 2018). Correlated columns share what they carry
together, instead of fighting for it: that is what makes the following repeatable between halves of a cohort.

- **Nodes**: omega = P^(1/2) E[g], the mean slope of f along u_i. For a linear f these are the CAR scores of Zuber and
  Strimmer (2011).
- **Edges**: M = sym(P^(1/2) E[(g - E g) x'] P^(-1/2)). By Stein's lemma E[(g - E g) x'] = E[Hess f] P for Gaussian
  columns, so that M is the mean curvature of f along u_i and u_j: how far the two together move the prediction beyond
  the sum of what each does alone. It needs no second derivative, which a network of ReLUs does not have.

- **Products**: H = sym(E[(g - E g) x'] P^-1), the mean curvature of f along the columns themselves. It repeats less
  well than M, but does not pass a strong edge on to its neighbours as M does, so it is what edges are tested by.

A model's own nodes and edges (``task_nodes_``, ``task_graph_``) have slopes taken around the rows, one standard
deviation away: those of f smoothed by as much, E[g(x + e)]. Stein's lemma holds for them as well, with x in place of
x + e, and what a network bends at single rows repeats less than what it does around them.

All are in the target's units. Nodes and edges are the first two orders of the Hermite expansion of f in u:
Var f = sum_i omega_i^2 + sum_{i<j} M_ij^2 + 1/2 sum_i M_ii^2 + higher orders, for Gaussian columns. P is shrunk towards
the identity by the oracle approximating rule, so that it can be inverted for any number of rows.

**Contributions** of a row are integrated gradients along the straight line from the training rows' mean to the row
(Sundararajan, Taly and Yan 2017), taken in the columns as the networks see through their noise. Networks trained on
x + noise of standard deviation s read a column partly from its neighbours: f(x) = F(S x) with S = (I + s^2 C^-1)^-1,
the best linear guess of the columns without noise, C their covariance. A contribution is that of F's argument: what
the networks only borrow from a correlated column is given back to the column that it is a reading of.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import splu
from torch import Tensor

from precisionnet.estimators.fitted import Fitted
from precisionnet.estimators.targets import ClassTarget, NumberTarget
from precisionnet.kinds import EVERY
from precisionnet.linalg import symmetrize
from precisionnet.precision.covariance import oas_share, oas_share_of, sample_precision, shrink, to_correlation
from precisionnet.sparse_kernels import sampled_product
from precisionnet.sparse_matrices import Matrix, Support
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray

MOST_ROWS = 4096
"""Most rows that the task's graph is computed from; from a longer table so many are taken, evenly spaced."""
ROWS_PER_COLUMN = 2
"""With at least so many rows per column, correlations are inverted without shrinkage."""
RANK_TOL, TINY_SHARE = 1e-10, 1e-6
"""Eigenvalues of the rows' products that are rounding, and the least shrinkage: P must be invertible."""
ROUNDING = 1e-10
"""The effect of a pair counts as zero up to this share of a column's largest effect: a linear model has no effects of
pairs, only rounding."""
TINY = float(np.finfo(np.float64).tiny)
AROUND, PAIRS = 1.0, 2
"""A model's slopes are taken so many standard deviations from a row, at so many pairs of places."""
POINTS = 8
"""Places on the line from the mean to a row at which gradients are taken (Gauss and Legendre's)."""


@dataclass(frozen=True)
class TaskEffects:
    """What the prediction owes to columns and to pairs of columns, in the target's units.

    Parameters
    ----------
    nodes : ndarray of shape (n_features,)
        Slope along each decorrelated column; its size alone where there are more than two classes.
    edges : ndarray of shape (n_features, n_features)
        Curvature along pairs of them, symmetric, zero on the diagonal; its size alone of more than two classes.
    products : ndarray of shape (n_features, n_features)
        The same along pairs of the columns themselves, in their standard deviations.
    """

    nodes: FloatArray
    edges: Matrix
    products: Matrix


def task_effects(
    fitted: Fitted, X: FloatArray, weight: FloatArray | None = None, *, around: float = 0.0
) -> TaskEffects:
    """Read nodes and edges of the task off the fitted networks.

    ``X`` are rows in the table's units without missing values, ``weight`` how often each counts; ``around`` is how far
    from a row its slopes are taken, in the columns' standard deviations.
    """
    weight = np.ones(len(X)) if weight is None else weight
    if len(X) > MOST_ROWS:
        taken = np.linspace(0, len(X) - 1, MOST_ROWS).round().astype(np.intp)
        X, weight = X[taken], weight[taken]
    share = weight / weight.sum()
    if fitted.on_support:
        return _effects_on_support(fitted, X, share, around)
    n_rows = float(fitted.n_rows["training"])
    deviation, correlation = to_correlation(fitted.covariance)
    shrinkage = oas_share(correlation, n_rows)
    values, vectors = np.linalg.eigh(shrink(correlation, shrinkage))
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse_root = (vectors / np.sqrt(values)) @ vectors.T
    x = fitted.scaler.transform(X)
    x = np.asarray((x - share @ x) / deviation, dtype=np.float64)
    mean: FloatArray = np.zeros((1, len(correlation)))
    moment: FloatArray = np.zeros((1, *correlation.shape))
    places = list(_places(fitted.scaler.transform(X), around * deviation))
    for rows, slopes in itertools.chain.from_iterable(mean_gradients(fitted, one) for one in places):
        gradient: FloatArray = slopes * (deviation / len(places))  # (outputs, rows, nodes)
        mean = mean + np.asarray(share[rows] @ gradient)
        moment = moment + gradient.transpose(0, 2, 1) @ (share[rows, None] * x[rows])
    nodes = mean @ root
    edges = root @ moment @ inverse_root  # x has mean zero: no need to centre the gradients
    # P^-1 without shrinkage where there are rows enough: it must undo all of the columns' correlation.
    enough = n_rows >= ROWS_PER_COLUMN * len(correlation)
    pairs = moment @ sample_precision(shrink(correlation, 0.0 if enough else shrinkage))
    several = len(nodes) > 1  # classes: the size over all of them
    sizes, rounding = np.sqrt(np.mean(nodes**2, axis=0)) if several else nodes[0], ROUNDING * float(np.abs(nodes).max())
    return TaskEffects(sizes, _as_graph(edges, rounding), _as_graph(pairs, rounding))


def _effects_on_support(fitted: Fitted, X: FloatArray, share: FloatArray, around: float) -> TaskEffects:
    """Compute the same where there is no covariance of all pairs; edges and products on the support alone.

    P = (1 - s) Z'Z + s I has at most as many eigenvalues other than s as there are rows, so P^(1/2) and P^(-1/2) are
    applied by the rows' own products. s is the oracle approximating share of these rows.
    """
    x = fitted.scaler.transform(X)
    deviation = np.sqrt(fitted.covariance.diagonal())
    z = (x - share @ x) / deviation
    weighted = np.sqrt(share)[:, None] * z
    gram = weighted @ weighted.T
    n = fitted.n_features
    mean_square, mean = float((gram**2).sum()) / n**2, float(np.trace(gram)) / n  # ||Z'Z|| = ||ZZ'||
    shrinkage = oas_share_of(mean_square, mean**2, n, float(fitted.n_rows["training"]))
    values, vectors = np.linalg.eigh(gram)
    kept = values > RANK_TOL * values.max()
    values, directions = values[kept], (vectors[:, kept] / np.sqrt(values[kept])).T @ weighted
    floor = max(shrinkage, TINY_SHARE)
    ends = (1.0 - shrinkage) * values + floor

    def power(rows: FloatArray, exponent: float) -> FloatArray:
        change = ends**exponent - floor**exponent
        return floor**exponent * rows + ((rows @ directions.T) * change) @ directions

    total: FloatArray | None = None
    places = list(_places(x, around * deviation))
    for place in places:
        parts = [slopes for _, slopes in mean_gradients(fitted, place)]
        gradient = np.concatenate(parts, axis=1) * (deviation / len(places))  # (outputs, rows, nodes)
        total = gradient if total is None else total + gradient
    assert total is not None
    nodes = power(np.einsum("r,orn->on", share, total), 0.5)
    support: Support = fitted.member_matrices.support
    rounding = ROUNDING * float(np.abs(nodes).max())
    right = {exponent: power(z, exponent) for exponent in (-0.5, -1.0)}
    graphs = []
    for left_power, right_power in ((0.5, -0.5), (0.0, -1.0)):
        found = np.zeros((len(total), support.n_slots))
        for output, gradient in enumerate(total):
            left = power(gradient, left_power) if left_power else gradient
            a, b = (np.ascontiguousarray(one.T)[None, None] for one in (share[:, None] * left, right[right_power]))
            sampled_product(*support.entries, a, b, found[output : output + 1])
        found[:, : support.n] = 0.0
        sizes = 0.5 * found[0] if len(found) == 1 else np.sqrt(np.mean((0.5 * found) ** 2, axis=0))
        graphs.append(support.matrix(np.where(np.abs(sizes) > rounding, sizes, 0.0)))
    several = len(nodes) > 1
    return TaskEffects(np.sqrt(np.mean(nodes**2, axis=0)) if several else nodes[0], graphs[0], graphs[1])


def _places(x: FloatArray, distance: FloatArray) -> Iterator[FloatArray]:
    """Yield where slopes are taken: at the rows, or on both sides of them, so that slopes that grow evenly stay."""
    if not distance.any():
        yield x
        return
    rng = np.random.default_rng(0)
    for _ in range(PAIRS):
        step = distance * rng.standard_normal(x.shape)
        yield x + step
        yield x - step


def _as_graph(matrices: FloatArray, rounding: float) -> FloatArray:
    """Symmetric without a diagonal and without what is rounding; of several outputs the size over all of them."""
    both = 0.5 * (matrices + matrices.transpose(0, 2, 1))
    graph = symmetrize(both[0] if len(both) == 1 else np.sqrt(np.mean(both**2, axis=0)))
    np.fill_diagonal(graph, 0.0)
    graph[np.abs(graph) <= rounding] = 0.0
    return graph


def contributions(fitted: Fitted, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split the prediction of each row into one number per column.

    Returns (n_samples, n_outputs, n_features) and the base, (n_outputs,): the prediction at the training rows' mean.
    With the base, the numbers of a row add up to its prediction. What the integral of the gradient misses, because it
    is a sum over a few points, is spread over the columns by the size of their contributions.
    """
    x, center = fitted.scaler.transform(X), fitted.center
    step = x - center
    share = {kind.name: kind.noise for kind in EVERY}  # kinds that are trained with less noise
    noise = sum(weight * share.get(kind, 1.0) ** 2 for kind, weight in fitted.kind_weights.items())
    noise *= fitted.settings.input_noise**2
    if fitted.on_support:  # theta stands for the inverse of the covariance
        mixing = sparse.eye_array(fitted.n_features, format="csc") + noise * fitted.precision.tocsc()
        seen = splu(mixing).solve(step.T).T if noise else step
    else:
        values, vectors = np.linalg.eigh(fitted.covariance)
        # Where the columns vary less than the noise, how much less is not known: no direction is more than doubled.
        mixing = np.eye(fitted.n_features) + (vectors * (noise / np.maximum(values, max(noise, TINY)))) @ vectors.T
        seen = np.linalg.solve(mixing, step.T).T
    places, weights = np.polynomial.legendre.leggauss(POINTS)
    n_outputs = len(_shown_outputs(fitted, np.zeros((1, fitted.target.n_outputs)))[0])
    slope = np.zeros((n_outputs, *step.shape))
    for place, weight in zip(0.5 * (places + 1.0), 0.5 * weights, strict=True):
        for rows, gradient in mean_gradients(fitted, center + place * step):
            slope[:, rows] += weight * gradient
    parts = np.stack([one @ mixing for one in slope]) * seen if fitted.on_support else (slope @ mixing) * seen
    base = _shown_outputs(fitted, fitted.mean_output(fitted.scaler.inverse(center)[None]))[0]
    whole = _shown_outputs(fitted, fitted.mean_output(X)).T - base[:, None]
    missing = whole - parts.sum(axis=-1)
    size = np.abs(parts) + TINY
    parts += missing[..., None] * (size / size.sum(axis=-1, keepdims=True))
    return parts.transpose(1, 0, 2), base


def _shown_outputs(fitted: Fitted, output: FloatArray) -> FloatArray:
    """Return outputs (rows, outputs) as they are explained: the number, log-odds of two classes, or logits."""
    if isinstance(fitted.target, NumberTarget):
        return fitted.target.meaning(output)[:, None]
    return output[:, 1:] - output[:, :1] if len(fitted.target.classes) == 2 else output


def mean_gradients(fitted: Fitted, x: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield some rows at a time, and the members' mean gradient there, (outputs, rows, nodes), in the target's units.

    Parameters
    ----------
    fitted : Fitted
        The model.
    x : ndarray of shape (n_rows, n_features)
        Rows in standard units.

    Yields
    ------
    slice
        Which rows.
    ndarray of shape (n_outputs, n_rows, n_features)
        Gradients there; of several classes those of logits less the classes' mean.
    """
    target = fitted.target
    two_classes = isinstance(target, ClassTarget) and len(target.classes) == 2
    step = fitted.rows_at_once
    shifts = fitted.network_shifts(range(len(fitted.networks)))
    with limited_threads(1, wait=False):
        for begin in range(0, len(x), step):
            rows = slice(begin, min(begin + step, len(x)))
            leaf = torch.from_numpy(x[rows]).unsqueeze(-1).requires_grad_()
            total: Tensor | None = None
            mean: FloatArray = np.zeros((len(leaf), target.n_outputs))
            for network, shift, share in zip(fitted.networks, shifts, fitted.member_weights, strict=True):
                if not share:
                    continue
                outputs = network(leaf, shift)
                mean += share * outputs.detach().numpy()
                outputs = outputs[:, 1:] - outputs[:, :1] if two_classes else outputs
                found = share * torch.stack([_gradient(output, leaf) for output in outputs.unbind(-1)])
                total = found if total is None else total + found
            assert total is not None
            yield rows, total.numpy() * (target.slope(mean)[:, None] if isinstance(target, NumberTarget) else 1.0)


def _gradient(output: Tensor, leaf: Tensor) -> Tensor:
    """Derivative of each row's output by its columns, (rows, nodes); zero where the network does not look at them."""
    if not output.requires_grad:
        return torch.zeros_like(leaf.detach())[..., 0]
    found = torch.autograd.grad(output.sum(), leaf, retain_graph=True, allow_unused=True)[0]
    return torch.zeros_like(leaf.detach())[..., 0] if found is None else found[..., 0]
