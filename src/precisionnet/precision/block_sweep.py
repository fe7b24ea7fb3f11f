"""One quick sweep of block descent over a large matrix, several columns at a time and over several threads.

A column's lasso reads W at the pairs of its candidates alone. So columns that are not candidates of each other can be
solved at the same time, and give what they would give one after the other. Of the rest of the new columns only the
entries among themselves depend on the order, and those are put right before anything is stored:

    w_l[k] = sum_a b_la w_k[a]        for columns k before l of a block, the a outside of it

How this differs from a sweep column by column (``block_descent.py``), beside the threads:

- a block's columns of W are written together, so that a cache line is fetched once and not once for every column;
- columns that are candidates of one another wait for the next block, so the order is not that of the table;
- which thread solves what changes no bit: every number is computed by one of them, and sums are added up in order.
"""

from __future__ import annotations

import numpy as np

from precisionnet.compiled import compiled, compiled_alongside
from precisionnet.precision.lasso_kernel import LassoColumns, combine_rows, solve_column, violators
from precisionnet.precision.objective import Penalty, row_of
from precisionnet.threads import Team
from precisionnet.types import BoolArray, FloatArray, IndexArray

BLOCK = 64
SMALLEST_BLOCK = 8
"""Columns a block has on average, at least: with fewer, threads wait for each other."""
PASSES = 20


def list_candidates(S: FloatArray, penalty: Penalty, columns: LassoColumns, team: Team) -> None:
    """Fill ``columns`` with the pairs above the penalty, coefficients zero."""
    while True:
        needed = max(
            team(lambda share: _list_candidates(S, *penalty, columns.index, columns.count, *team.part(len(S), share)))
        )
        if needed <= columns.index.shape[1]:
            columns.value[:] = 0.0
            return
        columns.grow(needed)


def blocks_of(columns: LassoColumns) -> list[IndexArray] | None:
    """Blocks of columns that are not candidates of each other; None where they would be small."""
    order, first = _schedule(columns.index, columns.count, BLOCK)
    if len(order) < SMALLEST_BLOCK * len(first):
        return None
    return np.split(order, first[1:])


def sweep_block(
    S: FloatArray,
    W: FloatArray,
    penalty: Penalty,
    columns: LassoColumns,
    theta_diagonal: FloatArray,
    block: IndexArray,
    tolerance: float,
    team: Team,
    rows: FloatArray,
) -> tuple[float, int] | None:
    """Solve and store one block: the squared change of W, and the multiplications spent.

    None where a column leaves W indefinite: nothing is stored then. ``rows`` is memory for ``BLOCK`` rows of W.
    """
    n = len(S)
    schur, moved = np.empty(len(block)), np.empty(len(block))
    within = np.zeros(n, np.bool_)
    within[block] = True
    lists = columns.index, columns.value, columns.count
    work = team(lambda share: _solve(S, W, *penalty, *lists, block, share, team.size, tolerance, rows, schur))
    if not (schur > 0.0).all():
        return None
    team(lambda share: _agree(*lists, block, rows, share, team.size))
    theta_diagonal[block] = 1.0 / schur
    needed = team(
        lambda share: _store(S, W, *penalty, *lists, block, within, rows, moved, share, team.size, *team.part(n, share))
    )
    columns.grow(max(needed))  # what had no room enters in the next sweep
    return float(moved.sum()), sum(work)


@compiled_alongside
def _list_candidates(
    S: FloatArray,
    l1: float,
    unit: FloatArray,
    matrix: FloatArray,
    index: IndexArray,
    count: IndexArray,
    begin: int,
    end: int,
) -> int:
    """Fill some of the lists; the most room that one of them needs."""
    N, capacity, most = len(S), index.shape[1], 0
    penalty = np.empty(N)
    for j in range(begin, end):
        row_of(l1, unit, matrix, j, penalty)
        n = 0
        for i in range(N):
            if abs(S[j, i]) > penalty[i] and i != j:
                if n < capacity:
                    index[j, n] = i
                n += 1
        count[j] = min(n, capacity)
        most = max(most, n)
    return most


@compiled
def _schedule(index: IndexArray, count: IndexArray, size: int) -> tuple[IndexArray, IndexArray]:
    """Order the columns in blocks; return the order, and the position at which each block begins.

    Every column comes once. Columns that did not fit in a block come first in the next one.
    """
    N = len(count)
    order, first = np.empty(N, np.int64), np.empty(N, np.int64)
    waiting, still_waiting = np.empty(N, np.int64), np.empty(N, np.int64)
    taken_in, touched_in = np.full(N, -1), np.full(N, -1)
    n_waiting = placed = fresh = block = 0
    while placed < N:
        first[block] = placed
        n_still, at = 0, 0
        while placed - first[block] < size and (at < n_waiting or fresh < N):
            if at < n_waiting:
                j = waiting[at]
                at += 1
            else:
                j = fresh
                fresh += 1
            free = touched_in[j] != block
            a = 0
            while free and a < count[j]:  # no further: where lists are long, nearly every column has to wait
                free = taken_in[index[j, a]] != block
                a += 1
            if free:
                taken_in[j] = block
                for a in range(count[j]):
                    touched_in[index[j, a]] = block
                order[placed] = j
                placed += 1
            else:
                still_waiting[n_still] = j
                n_still += 1
        while at < n_waiting:
            still_waiting[n_still] = waiting[at]
            n_still += 1
            at += 1
        waiting, still_waiting = still_waiting, waiting
        n_waiting = n_still
        block += 1
    return order, first[:block].copy()


@compiled_alongside
def _solve(
    S: FloatArray,
    W: FloatArray,
    l1: float,
    unit: FloatArray,
    matrix: FloatArray,
    index: IndexArray,
    value: FloatArray,
    count: IndexArray,
    block: IndexArray,
    share: int,
    n_shares: int,
    tol: float,
    rows: FloatArray,
    schur: FloatArray,
) -> int:
    """Solve the lasso of every ``n_shares``-th column of the block, and multiply W by its coefficients.

    Returns the number of multiplications.
    """
    N, capacity = len(S), index.shape[1]
    penalty = np.empty(N)
    gram, factor = np.empty((capacity, capacity)), np.empty((capacity, capacity))
    b, s, r, y, p = (np.empty(capacity), np.empty(capacity), np.empty(capacity), np.empty(capacity), np.empty(capacity))
    support = np.empty(capacity, np.int64)
    work = 0
    for k in range(share, len(block), n_shares):
        j = block[k]
        row_of(l1, unit, matrix, j, penalty)
        n = count[j]
        for a in range(n):
            ia = index[j, a]
            for c in range(n):
                gram[a, c] = W[ia, index[j, c]]
            b[a], s[a], p[a] = value[j, a], S[j, ia], penalty[ia]
        work += solve_column(gram, s, p, b, r, n, tol, PASSES, factor, y, support)
        m = 0
        for a in range(n):
            if b[a] != 0.0:
                index[j, m], value[j, m] = index[j, a], b[a]
                m += 1
        count[j] = m
        combine_rows(W, index[j], value[j], m, rows[k])
        rows[k, j] = S[j, j]
        schur[k] = S[j, j]
        for a in range(m):
            schur[k] -= value[j, a] * rows[k, index[j, a]]
    return work


@compiled_alongside
def _agree(
    index: IndexArray,
    value: FloatArray,
    count: IndexArray,
    block: IndexArray,
    rows: FloatArray,
    share: int,
    n_shares: int,
) -> None:
    """Set the entries of W among the block's columns: those of the later column hold.

    What is read lies outside of the block, since its columns are not candidates of each other: threads do not meet.
    """
    for later in range(share, len(block), n_shares):
        j = block[later]
        for k in range(later):
            total = 0.0
            for a in range(count[j]):
                total += value[j, a] * rows[k, index[j, a]]
            rows[later, block[k]] = total
            rows[k, j] = total


@compiled_alongside
def _store(
    S: FloatArray,
    W: FloatArray,
    l1: float,
    unit: FloatArray,
    matrix: FloatArray,
    index: IndexArray,
    value: FloatArray,
    count: IndexArray,
    block: IndexArray,
    within: BoolArray,
    rows: FloatArray,
    moved: FloatArray,
    share: int,
    n_shares: int,
    begin: int,
    end: int,
) -> int:
    """Every ``n_shares``-th row of the block and what enters there, then the columns in rows ``begin`` to ``end``.

    Rows of the block and other rows are different memory: threads do not meet. Returns the room that is needed.
    """
    N, needed = len(S), 0
    penalty = np.empty(N)
    member = np.zeros(N, np.bool_)
    for k in range(share, len(block), n_shares):
        j = block[k]
        row_of(l1, unit, matrix, j, penalty)
        m = count[j]
        entered = violators(S[j], rows[k], penalty, index[j], m, member, value[j])
        count[j] = min(m + entered, index.shape[1])
        needed = max(needed, m + entered)
        total = 0.0
        for i in range(N):
            change = rows[k, i] - W[j, i]
            total += change * change
            W[j, i] = rows[k, i]
        moved[k] = total
    for i in range(begin, end):
        if not within[i]:
            for k in range(len(block)):
                W[i, block[k]] = rows[k, i]
    return needed
