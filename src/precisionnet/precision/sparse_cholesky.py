r"""Sparse symmetric factors A = L D L' and what is read off them: solutions, and A^-1 on the pattern of L.

Regime: graphs whose factor stays sparse under a minimum-degree order: trees, bands, planar grids of a hundred thousand
nodes. One pattern is analysed once and factorised many times, with other numbers.

- the order is the multiple minimum degree of SuperLU, by way of an incomplete factorisation that drops everything;
- ``factorise`` is the up-looking method (Davis 2005, "LDL"): row k of L is a triangular solve along its branches of the
  elimination tree;
- ``selected_inverse`` is the recurrence of Takahashi, Fagan and Chin (1973), from the last column to the first:

    Z_ij = -sum_{k > j} Z_ik L_kj   (i > j, L_ij in the pattern),     Z_jj = 1 / D_j - sum_{k > j} Z_kj L_kj

  Every Z_ik on the right is in the pattern, so that no other entry of the inverse is ever computed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spilu

from precisionnet.compiled import compiled, compiled_alongside
from precisionnet.types import FloatArray, IndexArray


class Pattern(NamedTuple):
    """The entries of a symmetric matrix above its diagonal that may differ from zero, and the size of its factor.

    The rows of column j are ``row[start[j] : start[j + 1]]``.
    """

    start: IndexArray
    row: IndexArray
    parent: IndexArray
    """The elimination tree: the parent of every node, -1 for a root."""
    factor_start: IndexArray
    """The position at which each column of L begins."""

    @property
    def n_multiplications(self) -> float:
        """About how many multiplications one factorisation takes."""
        return float((np.diff(self.factor_start).astype(float) ** 2).sum())


class Factor(NamedTuple):
    """The factors of A = L D L'.

    L is stored column by column, each column's rows sorted, without its unit diagonal; ``diagonal`` is D.
    """

    start: IndexArray
    row: IndexArray
    value: FloatArray
    diagonal: FloatArray

    @property
    def log_det(self) -> float:
        """The logarithm of the determinant of A."""
        return float(np.log(self.diagonal).sum())


def minimum_degree_order(first: IndexArray, second: IndexArray, n: int) -> IndexArray:
    """Return the node at each position of an order in which the factor of the graph's matrix has few entries."""
    ones = np.ones(len(first))
    graph = sparse.coo_array((ones, (first, second)), shape=(n, n)).tocsr()
    graph = graph + graph.T
    dominant = sparse.diags_array(np.asarray(graph.sum(axis=1)).ravel() + 1.0) - graph
    dropped = spilu(
        sparse.csc_matrix(dominant),
        drop_tol=1e10,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(dropped.perm_c)


def analyse(start: IndexArray, row: IndexArray, most: int) -> Pattern | None:
    """Find the factor's size from the pattern; return None if it has more than ``most`` entries."""
    parent, count, total = _elimination_tree(start, row, most)
    if total > most:
        return None
    return Pattern(start, row, parent, np.concatenate([[0], np.cumsum(count)]))


def factorise(pattern: Pattern, above: FloatArray, diagonal: FloatArray) -> Factor | None:
    """Compute L and D; return None if the matrix is not positive definite."""
    size = int(pattern.factor_start[-1])
    row, value, d = np.empty(size, np.int32), np.empty(size), np.empty(len(diagonal))
    definite = _ldl(*pattern, above, diagonal, row, value, d)
    return Factor(pattern.factor_start, row, value, d) if definite else None


def selected_inverse(factor: Factor) -> tuple[FloatArray, FloatArray]:
    """Compute the entries of A^-1 on the pattern of L, and its diagonal."""
    inverse, diagonal = np.empty(len(factor.row)), np.empty(len(factor.diagonal))
    _takahashi(*factor, inverse, diagonal)
    return inverse, diagonal


def position_in_factor(factor: Factor, pattern: Pattern) -> IndexArray:
    """Return the position, among the entries of L, of each entry of the pattern."""
    return _positions(factor.start, factor.row, pattern.start, pattern.row)


@compiled
def _elimination_tree(start: IndexArray, row: IndexArray, most: int) -> tuple[IndexArray, IndexArray, int]:
    n = len(start) - 1
    parent, mark, count = np.full(n, -1), np.full(n, -1), np.zeros(n, np.int64)
    total = 0
    for k in range(n):
        mark[k] = k
        for p in range(start[k], start[k + 1]):
            i = row[p]
            while mark[i] != k:
                if parent[i] < 0:
                    parent[i] = k
                count[i] += 1
                total += 1
                mark[i] = k
                i = parent[i]
        if total > most:
            break
    return parent, count, total


@compiled
def _ldl(
    start: IndexArray,
    row: IndexArray,
    parent: IndexArray,
    factor_start: IndexArray,
    above: FloatArray,
    diagonal: FloatArray,
    out_row: IndexArray,
    out_value: FloatArray,
    d: FloatArray,
) -> bool:
    n = len(diagonal)
    mark, stack, branch = np.full(n, -1), np.empty(n, np.int64), np.empty(n, np.int64)
    filled = factor_start[:-1].copy()
    y = np.zeros(n)
    for k in range(n):
        top = n
        mark[k] = k
        for p in range(start[k], start[k + 1]):
            i = row[p]
            y[i] += above[p]
            length = 0
            while mark[i] != k:
                branch[length] = i
                length += 1
                mark[i] = k
                i = parent[i]
            while length > 0:
                length -= 1
                top -= 1
                stack[top] = branch[length]
        pivot = diagonal[k]
        for s in range(top, n):
            i = stack[s]
            here = y[i]
            y[i] = 0.0
            for p in range(factor_start[i], filled[i]):
                y[out_row[p]] -= out_value[p] * here
            entry = here / d[i]
            pivot -= entry * here
            out_row[filled[i]] = k
            out_value[filled[i]] = entry
            filled[i] += 1
        if not pivot > 0.0:
            return False
        d[k] = pivot
    return True


@compiled
def _takahashi(
    start: IndexArray, row: IndexArray, value: FloatArray, d: FloatArray, out: FloatArray, diagonal: FloatArray
) -> None:
    n = len(d)
    column, total = np.zeros(n), np.zeros(n)  # only the totals at the rows of column j are ever read
    for j in range(n - 1, -1, -1):
        begin, end = start[j], start[j + 1]
        for p in range(begin, end):
            column[row[p]] = value[p]
            total[row[p]] = 0.0
        for p in range(begin, end):
            k, here = row[p], value[p]
            own = here * diagonal[k]
            for q in range(start[k], start[k + 1]):
                total[row[q]] += here * out[q]
                own += column[row[q]] * out[q]
            total[k] += own
        inverse = 1.0 / d[j]
        for p in range(begin, end):
            out[p] = -total[row[p]]
            inverse += value[p] * total[row[p]]
            column[row[p]] = 0.0
        diagonal[j] = inverse


@compiled
def _positions(factor_start: IndexArray, factor_row: IndexArray, start: IndexArray, row: IndexArray) -> IndexArray:
    out = np.empty(len(row), np.int64)
    for j in range(len(start) - 1):
        for p in range(start[j], start[j + 1]):
            i = row[p]
            low, high = factor_start[i], factor_start[i + 1] - 1
            while low < high:
                middle = (low + high) // 2
                if factor_row[middle] < j:
                    low = middle + 1
                else:
                    high = middle
            out[p] = low
    return out


@compiled_alongside
def inverse_columns(
    start: IndexArray, row: IndexArray, value: FloatArray, d: FloatArray, first: int, out: FloatArray
) -> None:
    """Write the columns of A^-1 from ``first`` on into ``out`` of shape (n, n_columns)."""
    n, width = out.shape
    out[:] = 0.0
    for c in range(width):
        out[first + c, c] = 1.0
    reached = np.zeros(n, np.bool_)
    reached[first : first + width] = True
    for j in range(first, n):
        if not reached[j]:
            continue
        for p in range(start[j], start[j + 1]):
            i, factor = row[p], value[p]
            reached[i] = True
            for c in range(width):
                out[i, c] -= factor * out[j, c]
        for c in range(width):
            out[j, c] /= d[j]
    sums = np.empty(width)
    for j in range(n - 1, -1, -1):
        for c in range(width):
            sums[c] = out[j, c]
        for p in range(start[j], start[j + 1]):
            i, factor = row[p], value[p]
            for c in range(width):
                sums[c] -= factor * out[i, c]
        for c in range(width):
            out[j, c] = sums[c]
