r"""One large component of the graphical lasso by sparse factors, with a proof over all pairs.

    minimise over theta   tr(R theta) - log det theta + sum_{i != j} penalty_ij |theta_ij|

in units in which R, the covariance, has a unit diagonal: penalty_ij = l1 / (deviation_i deviation_j). Regime:
components too large for dense matrices (ten thousands of columns and more) whose factor stays sparse: trees, bands,
grids.

Proximal gradient steps with Barzilai and Borwein's step length (Guillot, Rajaratnam, Rolfs, Maleki and Wong 2012,
"G-ISTA") over the pairs above the penalty: a step needs theta^-1 on those pairs alone, which the factor of theta gives
(``sparse_cholesky.py``). The start is the closed form of a graph without circles (Fattahi and Sojoudi 2019), on which
no step is needed.

After the steps ``sparse_certificate.py`` proves a gap over all pairs. Pairs that it finds outside the box join the
pairs in use, and the steps go on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from precisionnet.precision.result import Status
from precisionnet.precision.screening import ColumnMoments, Pairs, covariance_of_pairs, single_rounding
from precisionnet.precision.sparse_certificate import COLUMNS_AT_A_TIME, bound, prove
from precisionnet.precision.sparse_cholesky import (
    Factor,
    Pattern,
    analyse,
    factorise,
    minimum_degree_order,
    position_in_factor,
    selected_inverse,
)
from precisionnet.threads import limited_threads, threads_for
from precisionnet.types import BoolArray, FloatArray, IndexArray

FACTOR_BYTES = 40
MOST_MULTIPLICATIONS = 3e11
"""Most multiplications that one factorisation may take: several minutes. A solve takes about a hundred of them."""
STEPS, CHECK_EVERY = 1000, 5
HALVINGS = 40
INNER_SHARE = 0.25
"""Share of the tolerated gap that the pairs in use may take up; the rest is left to all other pairs."""
LARGEST_CORRELATION = 0.999
LONGEST_STEP, SHORTEST_STEP = 1e4, 1e-10
PASSES = 6
SMALL_ROUNDING = 1e-2
"""Single precision is used while its rounding is at most this share of the smallest penalty."""
OUTSIDE = 1e-2
"""A pair joins those in use if it is outside the box by more than this share of the penalty. Every pass takes a tenth
of the share of the pass before."""


class TooMuchFill(Exception):
    """Raised where sparse factors do not help. Its text is the reason, a clause for the middle of a sentence."""


class SparseSolved(NamedTuple):
    """The solution of one component.

    ``gap`` bounds the objective less the optimum as it is, not relative to the size or the objective.
    """

    theta: sparse.coo_array
    objective: float
    gap: float
    n_iter: int
    status: Status


class Component(NamedTuple):
    """The pairs in use: positions, covariance R and penalty, column by column in the factor's order."""

    pattern: Pattern
    first: IndexArray
    second: IndexArray
    correlation: FloatArray
    penalty: FloatArray


class Point(NamedTuple):
    """An iterate: theta on the pairs in use and on the diagonal, its factor and the loss without the penalty.

    ``smooth`` is tr(R theta) - log det theta.
    """

    above: FloatArray
    diagonal: FloatArray
    factor: Factor
    smooth: float


def solve_sparse(
    X: FloatArray,
    columns: ColumnMoments,
    members: IndexArray,
    pairs: Pairs,
    l1_penalty: float,
    tol: float,
    memory: float,
    n_jobs: int | None = None,
) -> SparseSolved:
    """Solve one component to a gap of ``tol`` times its size; ``pairs`` are those above the penalty."""
    n = len(members)
    workers = effective_n_jobs(n_jobs)
    spent = 8.0 * n * len(X) + 16.0 * n * COLUMNS_AT_A_TIME * (workers + 1) + 100.0 * len(pairs.value)
    if spent > memory:
        raise TooMuchFill(f"the sparse solver needs {1e-9 * spent:.3g} GB for it, more than {1e-9 * memory:.3g} GB")
    place = np.empty(X.shape[1], dtype=np.int64)
    place[members] = np.arange(n)
    first, second = place[pairs.first], place[pairs.second]
    order = minimum_degree_order(first, second, n)
    unit = 1.0 / columns.deviation[members[order]]
    margin = single_rounding(len(X))
    single = margin <= SMALL_ROUNDING * l1_penalty * float(unit.min()) ** 2
    rows = _standardised_rows(X, columns, members[order], np.float32 if single else np.float64)
    outside = OUTSIDE
    theta: tuple[sparse.csr_array, FloatArray] | None = None
    n_iter, inner_tol = 0, INNER_SHARE * tol
    new = np.argsort(order)
    first, second = new[first], new[second]
    proof, point, component = None, None, None
    for _ in range(PASSES):
        component = _component(X, columns, members[order], first, second, l1_penalty, memory - spent)
        start = _start(component, n) if theta is None else _carried(component, *theta)
        point, steps = _descend(component, start, inner_tol)
        n_iter += steps
        with limited_threads(1 if workers > 1 else threads_for(n * len(X))):
            proof = prove(
                _symmetric(component, point),
                point.factor,
                _in_use(component, point),
                rows,
                unit,
                l1_penalty,
                margin if single else 0.0,
                outside,
                workers,
            )
        if proof.gap <= tol * n or n_iter >= STEPS:
            break
        if single and len(proof.first) == 0:  # the rest of the gap may come from the smaller box alone
            single, rows = False, np.empty((0, 0))  # not a slice, which would keep the old rows alive
            rows = _standardised_rows(X, columns, members[order], np.float64)
        used = sparse.coo_array((point.above, (component.first, component.second)), shape=(n, n)).tocsr()
        theta = used, point.diagonal
        first = np.concatenate([component.first, proof.first])
        second = np.concatenate([component.second, proof.second])
        inner_tol, outside = 0.1 * inner_tol, 0.1 * outside
    assert proof is not None
    assert point is not None
    assert component is not None
    back = order, columns.deviation[members]
    status: Status = "optimal" if proof.gap <= tol * n else "max_iter"
    objective = (
        point.smooth
        + 2.0 * float(component.penalty @ np.abs(point.above))
        + 2.0 * float(np.log(columns.deviation[members]).sum())
    )
    return SparseSolved(_in_given_units(component, point, *back), objective, proof.gap, n_iter, status)


def _standardised_rows(
    X: FloatArray, columns: ColumnMoments, members: IndexArray, dtype: type[np.floating[Any]]
) -> FloatArray:
    """Return the columns of X, centred and scaled to unit length, as rows in the order of ``members``."""
    n_rows = len(X)
    out = np.empty((len(members), n_rows), dtype=dtype)
    for begin in range(0, len(members), 1024):
        here = members[begin : begin + 1024]
        block = np.asarray(X[:, here], dtype=np.float64) - columns.mean[here]
        out[begin : begin + 1024] = (block / (columns.deviation[here] * np.sqrt(n_rows))).T
    return out


def _component(
    X: FloatArray,
    columns: ColumnMoments,
    members: IndexArray,
    first: IndexArray,
    second: IndexArray,
    l1_penalty: float,
    memory: float,
) -> Component:
    n = len(members)
    low, high = np.minimum(first, second), np.maximum(first, second)
    by_column = np.lexsort([low, high])
    low, high = low[by_column], high[by_column]
    start = np.searchsorted(high, np.arange(n + 1))
    pattern = analyse(start, low.astype(np.int32), max(0, int(memory / FACTOR_BYTES)))
    if pattern is None or pattern.n_multiplications > MOST_MULTIPLICATIONS:
        raise TooMuchFill("its graph has too many circles for a sparse factor")
    unit = 1.0 / columns.deviation[members]
    both = unit[low] * unit[high]
    correlation = covariance_of_pairs(X, columns.mean, members[low], members[high]) * both
    return Component(pattern, low, high, correlation, l1_penalty * both)


def _start(component: Component, n: int) -> Point:
    """Start from the closed form of a graph without circles.

    It is taken on all pairs, if that is positive definite, else on the forest of the strongest pairs.
    """
    shrunk = np.sign(component.correlation) * np.maximum(np.abs(component.correlation) - component.penalty, 0.0)
    w = np.clip(shrunk, -LARGEST_CORRELATION, LARGEST_CORRELATION)
    for kept in (np.ones(len(w), dtype=bool), _forest(component, w, n), np.zeros(len(w), dtype=bool)):
        above = np.where(kept, -w / (1.0 - w * w), 0.0)
        share = np.where(kept, w * w / (1.0 - w * w), 0.0)
        diagonal = 1.0 + np.bincount(component.first, share, n) + np.bincount(component.second, share, n)
        point = _point(component, above, diagonal)
        if point is not None:
            break
    assert point is not None, "the identity is positive definite"
    return point


def _forest(component: Component, w: FloatArray, n: int) -> BoolArray:
    """Mark the pairs of the strongest forest: the one that joins as many columns as possible, without a circle."""
    where = component.first, component.second
    graph = sparse.coo_array((-np.abs(w) - np.finfo(float).tiny, where), shape=(n, n))  # a zero would be no edge
    tree = minimum_spanning_tree(graph.tocsr()).tocoo()
    return np.isin(component.first * n + component.second, tree.row.astype(np.int64) * n + tree.col)


def _carried(component: Component, above: sparse.csr_array, diagonal: FloatArray) -> Point:
    """Continue from the solution on fewer pairs, with zero at the new ones; start anew if that is not definite."""
    values = np.asarray(above[component.first, component.second]).ravel()
    point = _point(component, values, diagonal)
    return _start(component, len(diagonal)) if point is None else point


def _point(component: Component, above: FloatArray, diagonal: FloatArray) -> Point | None:
    factor = factorise(component.pattern, above, diagonal)
    if factor is None:
        return None
    smooth = float(diagonal.sum()) + 2.0 * float(component.correlation @ above) - factor.log_det
    return Point(above, diagonal, factor, smooth)


def _descend(component: Component, point: Point, tol: float) -> tuple[Point, int]:
    """Take proximal gradient steps until the gap on the pairs in use, per column, is at most ``tol``."""
    position = position_in_factor(point.factor, component.pattern)
    step = 1.0
    steps = 0
    inverse, inverse_diagonal = _inverse(point, position)
    for steps in range(STEPS):
        gradient, gradient_diagonal = component.correlation - inverse, 1.0 - inverse_diagonal
        if steps % CHECK_EVERY == 0 and _gap_in_use(component, point, inverse, inverse_diagonal) <= tol * len(
            point.diagonal
        ):
            break
        moved = None
        for _ in range(HALVINGS):
            above = point.above - step * gradient
            above = np.sign(above) * np.maximum(np.abs(above) - step * component.penalty, 0.0)
            diagonal = point.diagonal - step * gradient_diagonal
            change, change_diagonal = above - point.above, diagonal - point.diagonal
            square = float(change_diagonal @ change_diagonal) + 2.0 * float(change @ change)
            candidate = _point(component, above, diagonal)
            if candidate is not None:
                model = float(gradient_diagonal @ change_diagonal) + 2.0 * float(gradient @ change)
                rounding = 1e-14 * (abs(point.smooth) + len(diagonal))
                if candidate.smooth <= point.smooth + model + square / (2.0 * step) + rounding:
                    moved = candidate
                    break
            step *= 0.5
        if moved is None or square == 0.0:
            break
        point = moved
        inverse_before, diagonal_before = inverse, inverse_diagonal
        inverse, inverse_diagonal = _inverse(point, position)
        curvature = float(change_diagonal @ (diagonal_before - inverse_diagonal))
        curvature += 2.0 * float(change @ (inverse_before - inverse))
        step = float(np.clip(square / curvature, SHORTEST_STEP, LONGEST_STEP)) if curvature > 0.0 else LONGEST_STEP
    return point, steps


def _inverse(point: Point, position: IndexArray) -> tuple[FloatArray, FloatArray]:
    """Return the entries of theta^-1 on the pairs in use, and its diagonal."""
    everywhere, diagonal = selected_inverse(point.factor)
    return everywhere[position], diagonal


def _gap_in_use(component: Component, point: Point, inverse: FloatArray, inverse_diagonal: FloatArray) -> float:
    """Return the gap that the certificate would prove if all pairs that are not in use were inside the box."""
    n = len(point.diagonal)
    low, high = component.correlation - component.penalty, component.correlation + component.penalty
    K = np.where(point.above > 0.0, high, np.where(point.above < 0.0, low, np.clip(inverse, low, high)))
    away = sparse.coo_array((K - inverse, (component.first, component.second)), shape=(n, n)).tocsr()
    away = away + away.T + sparse.diags_array(1.0 - inverse_diagonal)
    error = _symmetric(component, point) @ away
    return bound(float((error.data**2).sum()), float(abs(error).sum(axis=0).max()))


def _symmetric(component: Component, point: Point) -> sparse.csr_array:
    n, kept = len(point.diagonal), point.above != 0.0
    above = sparse.coo_array((point.above[kept], (component.first[kept], component.second[kept])), shape=(n, n)).tocsr()
    theta = (above + above.T + sparse.diags_array(point.diagonal)).tocsr()
    theta.sort_indices()
    return theta


def _in_use(component: Component, point: Point) -> sparse.csr_array:
    """Return K on the pairs in use: known on the edges and the diagonal, NaN where theta is zero.

    A NaN stands for an entry that may lie anywhere in the box.
    """
    n = len(point.diagonal)
    K = np.where(point.above == 0.0, np.nan, component.correlation + component.penalty * np.sign(point.above))
    row = np.concatenate([component.first, component.second, np.arange(n)])
    column = np.concatenate([component.second, component.first, np.arange(n)])
    return sparse.coo_array((np.concatenate([K, K, np.ones(n)]), (row, column)), shape=(n, n)).tocsr()


def _in_given_units(component: Component, point: Point, order: IndexArray, deviation: FloatArray) -> sparse.coo_array:
    theta = _symmetric(component, point).tocoo()
    row, column = order[theta.row], order[theta.col]
    return sparse.coo_array((theta.data / (deviation[row] * deviation[column]), (row, column)), shape=theta.shape)
