"""Sparse factors against dense linear algebra, on graphs with and without fill."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precisionnet.precision.sparse_cholesky import (
    analyse,
    factorise,
    inverse_columns,
    minimum_degree_order,
    position_in_factor,
    selected_inverse,
)


def by_columns(dense: np.ndarray):
    high, low = np.nonzero(np.tril(dense, k=-1))
    order = np.lexsort([low, high])
    low, high = low[order], high[order]
    return np.searchsorted(high, np.arange(len(dense) + 1)), low.astype(np.int32), high, dense[low, high]


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 30), share=st.floats(0.0, 0.6), seed=st.integers(0, 2**31))
def test_factor_solutions_and_selected_inverse(n, share, seed):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < share), k=1)
    A = A + A.T
    A += np.diag(0.5 + np.abs(A).sum(axis=0))
    start, low, high, above = by_columns(A)
    pattern = analyse(start, low, n * n)
    factor = factorise(pattern, above, np.diag(A).copy())
    W = np.linalg.inv(A)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(A)[1])
    for column in range(n):
        rows = factor.row[factor.start[column] : factor.start[column + 1]]
        assert (np.diff(rows) > 0).all()
    inverse, diagonal = selected_inverse(factor)
    np.testing.assert_allclose(diagonal, np.diag(W), rtol=1e-9)
    np.testing.assert_allclose(inverse[position_in_factor(factor, pattern)], W[low, high], atol=1e-12)
    first = n // 2
    out = np.empty((n, n - first))
    inverse_columns(*factor, first, out)
    np.testing.assert_allclose(out, W[:, first:], atol=1e-12)


def test_an_indefinite_matrix_has_no_factor():
    A = np.array([[1.0, 2.0], [2.0, 1.0]])
    start, low, _, above = by_columns(A)
    assert factorise(analyse(start, low, 10), above, np.ones(2)) is None


def test_the_order_keeps_trees_and_grids_sparse():
    side = 30
    node = np.arange(side * side).reshape(side, side)
    first = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    second = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    assert size(first, second, side * side) < 12 * side * side
    star = np.arange(1, 200)
    assert size(np.zeros(199, dtype=int), star, 200) == 199


def size(first: np.ndarray, second: np.ndarray, n: int) -> int:
    place = np.argsort(minimum_degree_order(first, second, n))
    assert sorted(place) == list(range(n))
    low, high = np.sort([place[first], place[second]], axis=0)
    order = np.lexsort([low, high])
    start = np.searchsorted(high[order], np.arange(n + 1))
    pattern = analyse(start, low[order].astype(np.int32), n * n)
    assert analyse(start, low[order].astype(np.int32), int(pattern.factor_start[-1]) - 1) is None
    return int(pattern.factor_start[-1])
