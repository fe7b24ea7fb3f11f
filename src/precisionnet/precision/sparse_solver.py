r"""One large component of the graphical lasso by sparse factors, with a proof over all pairs.

    minimise over theta   tr(R theta) - log det theta + sum_{i != j} penalty_ij |theta_ij|

in units in which R, the covariance, has a unit diagonal: penalty_ij = l1 / (deviation_i deviation_j). Regime:
components too large for dense matrices (ten thousands of columns and more) whose factor stays sparse: trees, bands,
grids.

Proximal gradient steps with Barzilai and Borwein's step length (Guillot, Rajaratnam, Rolfs, Maleki and Wong 2012,
"G-ISTA") over the pairs above the penalty: a step needs theta^-1 on those pairs alone, which the factor of theta gives
(``sparse_cholesky.py``). The start is the closed form of a graph without circles (Fattahi and Sojoudi 2019), on which
nothing is left to do.

The proof is that of ``certificate.py``: K is theta^-1 moved into the box |K_ij - R_ij| <= penalty_ij, with theta's own
signs on its edges, and the gap at most ||E||_F^2 / (2 (1 - rho)) with E = theta K - I. The box has all pairs: every
column of theta^-1 is solved once, and every column of R computed, a block of columns at a time; neither matrix is
stored. R off the edges is computed in single precision, and the box there made smaller by the most that this can be
wrong, so that K is inside the true one. Pairs that leave the box join the others, and the steps go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from precisionnet.compiled import compiled_alongside
from precisionnet.precision.partitions import ROWS_AT_A_TIME
from precisionnet.precision.result import Status
from precisionnet.precision.screening import ColumnMoments, Pairs, covariance_of_pairs, single_rounding
from precisionnet.precision.sparse_cholesky import (
    Factor,
    Pattern,
    analyse,
    factorise,
    inverse_columns,
    minimum_degree_order,
    position_in_factor,
    selected_inverse,
)
from precisionnet.threads import limited_threads, threads_for
from precisionnet.types import BoolArray, FloatArray, IndexArray

COLUMNS_AT_A_TIME = 64
FACTOR_BYTES = 40
MOST_MULTIPLICATIONS = 3e11
"""Of one factorisation: several minutes. A solve takes about a hundred."""
STEPS, CHECK_EVERY = 1000, 5
HALVINGS = 40
INNER_SHARE = 0.25
"""Share of the gap that the pairs in use may take: the others have the rest."""
LARGEST_CORRELATION = 0.999
LONGEST_STEP, SHORTEST_STEP = 1e4, 1e-10
PASSES = 6
SMALL_ROUNDING = 1e-2
"""Share of the smallest penalty up to which the rounding of single precision is small."""
OUTSIDE = 1e-2
"""Share of the penalty by which a pair must leave the box to join the others; a tenth of it each time."""


class TooMuchFill(Exception):
    """Sparse factors do not help: the sentence's middle says why."""


class SparseSolved(NamedTuple):
    """A component's answer, its gap not divided by anything."""

    theta: sparse.coo_array
    objective: float
    gap: float
    n_iter: int
    status: Status


class Component(NamedTuple):
    """The covariance R on the pairs in use, and the penalty there, in the factor's order, by columns."""

    pattern: Pattern
    first: IndexArray
    second: IndexArray
    correlation: FloatArray
    penalty: FloatArray


class Point(NamedTuple):
    """theta on the pairs in use and on the diagonal, its factor and the smooth loss tr(R theta) - log det theta."""

    above: FloatArray
    diagonal: FloatArray
    factor: Factor
    smooth: float


class Proof(NamedTuple):
    """Bound on the loss less the optimum, and the pairs outside the box that are not in use."""

    gap: float
    first: IndexArray
    second: IndexArray


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
        raise TooMuchFill(f"its own rows take {8e-9 * n * len(X):.3g} GB")
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
            proof = _prove(component, point, rows, unit, l1_penalty, margin if single else 0.0, outside, workers)
        if proof.gap <= tol * n or n_iter >= STEPS:
            break
        if single and len(proof.first) == 0:  # what is left may be the smaller box
            single, rows = False, rows[:0]
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
    """Columns of X as rows of unit length, in the factor's order."""
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
    """The closed form of a graph without circles: on all pairs if that is definite, or on the strongest forest."""
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
    """Which pairs are the strongest that join all columns without a circle."""
    where = component.first, component.second
    graph = sparse.coo_array((-np.abs(w) - np.finfo(float).tiny, where), shape=(n, n))  # pairs of weight zero, too
    tree = minimum_spanning_tree(graph.tocsr()).tocoo()
    return np.isin(component.first * n + component.second, tree.row.astype(np.int64) * n + tree.col)


def _carried(component: Component, above: sparse.csr_array, diagonal: FloatArray) -> Point:
    """The point reached with fewer pairs."""
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
    """Proximal gradient steps until the gap on the pairs in use, over their number of columns, is ``tol``."""
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
    """theta^-1 on the pairs in use and on the diagonal."""
    everywhere, diagonal = selected_inverse(point.factor)
    return everywhere[position], diagonal


def _gap_in_use(component: Component, point: Point, inverse: FloatArray, inverse_diagonal: FloatArray) -> float:
    """The certificate, were all other pairs inside the box."""
    n = len(point.diagonal)
    low, high = component.correlation - component.penalty, component.correlation + component.penalty
    K = np.where(point.above > 0.0, high, np.where(point.above < 0.0, low, np.clip(inverse, low, high)))
    away = sparse.coo_array((K - inverse, (component.first, component.second)), shape=(n, n)).tocsr()
    away = away + away.T + sparse.diags_array(1.0 - inverse_diagonal)
    error = _symmetric(component, point) @ away
    return bound(float((error.data**2).sum()), float(abs(error).sum(axis=0).max()))


def bound(frobenius: float, column_sum: float) -> float:
    """The divergence at most, from ||E||_F^2 and the largest column sum of E."""
    rho = min(np.sqrt(frobenius), column_sum)
    return float(frobenius / (2.0 * (1.0 - rho))) if rho < 1.0 else np.inf


def _symmetric(component: Component, point: Point) -> sparse.csr_array:
    n, kept = len(point.diagonal), point.above != 0.0
    above = sparse.coo_array((point.above[kept], (component.first[kept], component.second[kept])), shape=(n, n)).tocsr()
    theta = (above + above.T + sparse.diags_array(point.diagonal)).tocsr()
    theta.sort_indices()
    return theta


def _prove(
    component: Component,
    point: Point,
    rows: FloatArray,
    unit: FloatArray,
    l1_penalty: float,
    margin: float,
    outside: float,
    workers: int,
) -> Proof:
    """The certificate over all pairs, a block of columns at a time; ``margin`` is how far ``rows`` may take R.

    Pairs are reported that leave the box by more than a share ``outside`` of its width.
    """
    n = len(rows)
    theta = _symmetric(component, point)
    in_use = _in_use(component, point)

    def judge(first: int) -> tuple[float, float, IndexArray]:
        width = min(COLUMNS_AT_A_TIME, n - first)
        K = np.empty((n, width))
        inverse_columns(*point.factor, first, K)
        R = _correlations(rows, first, width)
        new = _into_box(K, R, unit, l1_penalty, margin, outside, first, in_use.indptr, in_use.indices, in_use.data)
        frobenius, column_sum = _error_norms(K, first, theta.indptr, theta.indices, theta.data)
        return frobenius, column_sum, new

    frobenius, column_sum = 0.0, 0.0
    found: list[IndexArray] = []
    for part, largest, pairs in _in_threads(judge, range(0, n, COLUMNS_AT_A_TIME), workers):
        frobenius, column_sum = frobenius + part, max(column_sum, largest)
        found.append(pairs)
    together = np.concatenate(found)
    return Proof(bound(frobenius, column_sum), together[:, 0], together[:, 1])


def _in_use(component: Component, point: Point) -> sparse.csr_array:
    """Every pair in use with K there: exact on the edges; NaN where theta is zero and K is free in the box."""
    n = len(point.diagonal)
    K = np.where(point.above == 0.0, np.nan, component.correlation + component.penalty * np.sign(point.above))
    row = np.concatenate([component.first, component.second, np.arange(n)])
    column = np.concatenate([component.second, component.first, np.arange(n)])
    return sparse.coo_array((np.concatenate([K, K, np.ones(n)]), (row, column)), shape=(n, n)).tocsr()


def _correlations(rows: FloatArray, first: int, width: int) -> FloatArray:
    """Columns of R, summed in chunks of rows of the table."""
    total = rows[:, :ROWS_AT_A_TIME] @ rows[first : first + width, :ROWS_AT_A_TIME].T
    for begin in range(ROWS_AT_A_TIME, rows.shape[1], ROWS_AT_A_TIME):
        here = slice(begin, begin + ROWS_AT_A_TIME)
        total += rows[:, here] @ rows[first : first + width, here].T
    return total


def _in_threads(
    judge: Callable[[int], tuple[float, float, IndexArray]], blocks: range, workers: int
) -> Iterator[tuple[float, float, IndexArray]]:
    """In the order of the blocks, never more of them at once than there are threads."""
    if workers == 1:
        yield from map(judge, blocks)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(judge, blocks)


def _in_given_units(component: Component, point: Point, order: IndexArray, deviation: FloatArray) -> sparse.coo_array:
    theta = _symmetric(component, point).tocoo()
    row, column = order[theta.row], order[theta.col]
    return sparse.coo_array((theta.data / (deviation[row] * deviation[column]), (row, column)), shape=theta.shape)


@compiled_alongside
def _into_box(
    K: FloatArray,
    R: FloatArray,
    unit: FloatArray,
    l1_penalty: float,
    margin: float,
    outside: float,
    first: int,
    start: IndexArray,
    index: IndexArray,
    exact: FloatArray,
) -> IndexArray:
    """Move columns of theta^-1 into the box, in place, or to ``exact`` where that is given.

    Returns the pairs (i, j) with i < j that were outside and not in use.
    """
    n, width = K.shape
    reach = np.empty(width)
    moved = np.zeros(width)
    for c in range(width):
        reach[c] = l1_penalty * unit[first + c]
    for i in range(n):
        for c in range(width):
            box = reach[c] * unit[i] - margin
            inside = min(max(K[i, c], R[i, c] - box), R[i, c] + box)
            moved[c] = max(moved[c], abs(K[i, c] - inside) - outside * box)
    known = np.zeros(n, np.bool_)
    room, found = 256, 0
    pairs = np.empty((room, 2), np.int64)
    for c in range(width):
        j = first + c
        if moved[c] <= 0.0:
            continue
        for p in range(start[j], start[j + 1]):
            known[index[p]] = True
        for i in range(j):
            box = reach[c] * unit[i] - margin
            if abs(K[i, c] - R[i, c]) > (1.0 + outside) * box and not known[i]:
                if found == room:
                    larger = np.empty((2 * room, 2), np.int64)
                    larger[:room] = pairs
                    pairs, room = larger, 2 * room
                pairs[found, 0], pairs[found, 1] = i, j
                found += 1
        for p in range(start[j], start[j + 1]):
            known[index[p]] = False
    for i in range(n):
        for c in range(width):
            box = reach[c] * unit[i] - margin
            K[i, c] = min(max(K[i, c], R[i, c] - box), R[i, c] + box)
    for c in range(width):
        for p in range(start[first + c], start[first + c + 1]):
            if not np.isnan(exact[p]):
                K[index[p], c] = exact[p]
    return pairs[:found]


@compiled_alongside
def _error_norms(
    K: FloatArray, first: int, start: IndexArray, index: IndexArray, value: FloatArray
) -> tuple[float, float]:
    """||E||_F^2 and the largest column sum of these columns of E = theta K - I."""
    n, width = K.shape
    error, sums, squares = np.empty(width), np.zeros(width), np.zeros(width)
    for i in range(n):
        error[:] = 0.0
        for p in range(start[i], start[i + 1]):
            k, v = index[p], value[p]
            for c in range(width):
                error[c] += v * K[k, c]
        if first <= i < first + width:
            error[i - first] -= 1.0
        for c in range(width):
            squares[c] += error[c] * error[c]
            sums[c] += abs(error[c])
    return squares.sum(), sums.max()
