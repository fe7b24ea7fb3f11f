"""The graphical lasso from rows is that of the covariance, certified, within its memory, in one sentence where it cannot."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from precisionnet.errors import InputError
from precisionnet.precision import (
    graphical_lasso,
    graphical_lasso_from_rows,
    l1_max,
    sample_covariance,
    screening,
    sparse_certificate,
    sparse_solver,
)
from precisionnet.precision import rows as rows_module


def blocks(rng: np.random.Generator, sizes: tuple[int, ...], n_rows: int = 400) -> np.ndarray:
    """Columns in random order; within a block each follows from an earlier one. In units of their own."""
    X = rng.normal(size=(n_rows, sum(sizes)))
    begin = 0
    for size in sizes:
        for j in range(begin + 1, begin + size):
            X[:, j] = 0.7 * X[:, rng.integers(begin, j)] + 0.7 * X[:, j]
        begin += size
    return X[:, rng.permutation(sum(sizes))]


def chain(rng: np.random.Generator, n: int, n_rows: int = 300) -> np.ndarray:
    X = rng.normal(size=(n_rows, n))
    for j in range(1, n):
        X[:, j] = 0.7 * X[:, j - 1] + 0.7 * X[:, j]
    return X


def lattice(rng: np.random.Generator, side: int, n_rows: int = 500) -> np.ndarray:
    step = sparse.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1])
    one = sparse.eye_array(side)
    theta = np.eye(side * side) - 0.24 * (sparse.kron(step, one) + sparse.kron(one, step)).toarray()
    return rng.normal(size=(n_rows, side * side)) @ np.linalg.cholesky(np.linalg.inv(theta)).T


def loss(theta: np.ndarray, emp_cov: np.ndarray, l1: float) -> float:
    off_diagonal = np.abs(theta).sum() - np.abs(np.diag(theta)).sum()
    return float(np.sum(emp_cov * theta) - np.linalg.slogdet(theta)[1] + l1 * off_diagonal)


def lower_bound(theta: np.ndarray, emp_cov: np.ndarray, l1: float) -> float:
    """log det W + N of the dual point nearest to theta^-1: below every loss."""
    W = np.clip(np.linalg.inv(theta), emp_cov - l1, emp_cov + l1)
    np.fill_diagonal(W, np.diag(emp_cov))
    sign, log_det = np.linalg.slogdet(W)
    assert sign > 0
    return float(log_det + len(W))


def assert_solves(result, X: np.ndarray, l1: float, tol: float) -> np.ndarray:
    """Symmetric, definite, optimal by a proof written out independently, and the loss and gap it says."""
    assert result.converged, result.message
    assert sparse.issparse(result.precision)
    theta, emp_cov = result.precision.toarray(), sample_covariance(X)
    n = len(theta)
    assert np.array_equal(theta, theta.T)
    np.linalg.cholesky(theta)
    here = loss(theta, emp_cov, l1)
    assert result.objective == pytest.approx(here, abs=1e-8 * n)
    exact = graphical_lasso(emp_cov, l1, tol=1e-13)
    assert here - exact.objective <= (result.gap + 1e-12) * max(n, abs(here))
    assert result.gap <= tol
    assert here - lower_bound(theta, emp_cov, l1) <= 30 * np.sqrt(tol) * n  # a clipped point proves to first order
    return exact.precision


@pytest.fixture
def all_sparse(monkeypatch):
    """Every component of three columns or more goes to the sparse solver."""
    monkeypatch.setattr(rows_module, "largest_dense", lambda memory, n_rows: 2)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("sizes", [(60, 30, 12, 5, 3, 2, 2, 2) + (1,) * 34, (1,) * 50, (300,), (2,) * 30])
def test_it_is_the_dense_solver_on_the_covariance(sizes, scale, rng):
    X = scale * blocks(rng, sizes) * np.exp(0.3 * rng.normal(size=sum(sizes))) + 100.0 * scale
    l1 = 0.25 * scale**2
    result = graphical_lasso_from_rows(X, l1, tol=1e-12)
    expected = assert_solves(result, X, l1, 1e-12)
    np.testing.assert_allclose(result.precision.toarray(), expected, rtol=1e-6, atol=1e-6 / scale**2)
    np.testing.assert_array_equal(result.precision.toarray() != 0, expected != 0)


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 25), n_rows=st.integers(2, 40), share=st.floats(0.05, 1.2), seed=st.integers(0, 2**31))
def test_any_table_is_solved_as_its_covariance(n, n_rows, share, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n)) @ (np.eye(n) + 0.3 * rng.normal(size=(n, n)))
    emp_cov = sample_covariance(X)
    l1 = share * l1_max(emp_cov) if n > 1 else share
    result = graphical_lasso_from_rows(X, l1, tol=1e-10)
    dense = graphical_lasso(emp_cov, l1, tol=1e-10)
    assert result.converged == dense.converged
    assert result.objective == pytest.approx(dense.objective, abs=1e-8 * n)
    assert result.gap <= 1e-10


@pytest.mark.parametrize("tile", [1, 7, 16, 41, 64])
@pytest.mark.parametrize("chunk", [50, 2048])
def test_tiles_and_chunks_of_any_size_find_the_same_pairs(tile, chunk, rng, monkeypatch):
    X = blocks(rng, (20, 10, 5, 1, 1, 4), n_rows=120)
    emp_cov = sample_covariance(X)
    l1 = 0.3
    monkeypatch.setattr(screening, "tile_width", lambda n_rows, memory: tile)
    monkeypatch.setattr(screening, "ROWS_AT_A_TIME", chunk)
    found = screening.screen(X, screening.column_moments(X), l1, 1e9)
    expected = np.argwhere(np.triu(np.abs(emp_cov) > l1, k=1))
    pairs = np.sort(np.stack([found.pairs.first, found.pairs.second], axis=1), axis=1)
    np.testing.assert_array_equal(pairs[np.lexsort(pairs.T[::-1])], expected)
    assert found.kept_above == l1
    graph = sparse.coo_array((np.ones(len(expected)), expected.T), shape=emp_cov.shape)
    n_components, labels = sparse.csgraph.connected_components(graph, directed=False)
    assert len(np.unique(found.labels)) == n_components
    assert len(np.unique(np.stack([labels, found.labels]), axis=1).T) == n_components


def test_a_pair_next_to_the_penalty_is_decided_in_double(rng):
    """Penalties one part in 10^12 above and below a covariance: single precision cannot tell them apart."""
    X = rng.normal(size=(100, 12))
    covariance = abs(sample_covariance(X)[3, 8])
    columns = screening.column_moments(X)
    for factor, expected in ((1 - 1e-12, True), (1 + 1e-12, False)):
        pairs = screening.screen(X, columns, covariance * factor, 1e9).pairs
        assert bool(((pairs.first == 3) & (pairs.second == 8)).any()) == expected


def test_workers_do_not_change_a_bit(rng, monkeypatch):
    monkeypatch.setattr(rows_module, "BATCH", (4, 300))
    X = blocks(rng, (40, 20, 9, 8, 7, 6, 5, 4, 3, 2, 1))
    alone, shared = (graphical_lasso_from_rows(X, 0.2, n_jobs=n_jobs) for n_jobs in (None, 2))
    assert (alone.precision != shared.precision).nnz == 0
    assert (alone.gap, alone.objective, alone.status) == (shared.gap, shared.objective, shared.status)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-60, 1e20, 1e49])
def test_columns_in_small_and_large_units_are_solved(scale, rng):
    """Also where covariances are beyond single precision."""
    X = chain(rng, 8)
    result, usual = (graphical_lasso_from_rows(unit * X, 0.3 * unit**2, tol=1e-10) for unit in (scale, 1.0))
    assert result.converged
    np.testing.assert_array_equal(result.precision.indices, usual.precision.indices)
    np.testing.assert_allclose(result.precision.data * scale**2, usual.precision.data, rtol=1e-3)


def test_a_penalty_for_columns_in_large_units_is_a_number(rng):
    X = 1e25 * rng.normal(size=(60, 900))
    with pytest.raises(InputError, match="raise l1_penalty") as error:
        graphical_lasso_from_rows(X, 1e48, max_memory=4e6)
    assert graphical_lasso_from_rows(X, named_penalty(error), max_memory=4e6).converged


def test_rows_without_room_for_sparse_factors_are_refused_with_what_they_need(rng, monkeypatch):
    monkeypatch.setattr(rows_module, "largest_dense", lambda memory, n_rows: 20)
    with pytest.raises(InputError, match="solver needs .* GB for it, more than 0.004 GB: raise l1_penalty") as error:
        graphical_lasso_from_rows(chain(rng, 900), 0.3, max_memory=4e6)
    assert float(re.search("solver needs (.*) GB for it", str(error.value))[1]) > 0.004


def test_types_and_orders_of_a_table_give_the_same_answer(rng, tmp_path):
    X = blocks(rng, (10, 5, 1)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    expected = graphical_lasso_from_rows(X.astype(np.float64), 0.2).precision.toarray()
    for table in (X, np.asfortranarray(X), np.load(tmp_path / "rows.npy", mmap_mode="r"), X.tolist()):
        given = graphical_lasso_from_rows(table, 0.2).precision.toarray()
        np.testing.assert_allclose(given, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("l1", [0.3, 0.15])
def test_a_large_component_is_solved_by_sparse_factors(l1, rng, all_sparse):
    X = chain(rng, 250)
    result = graphical_lasso_from_rows(X, l1)
    assert result.largest_component > 200
    assert_solves(result, X, l1, 1e-6)


@pytest.mark.parametrize("single", [True, False])
def test_sparse_factors_reach_a_tight_tolerance(single, rng, all_sparse, monkeypatch):
    monkeypatch.setattr(sparse_solver, "SMALL_ROUNDING", 1e-2 if single else 0.0)
    monkeypatch.setattr(sparse_certificate, "COLUMNS_AT_A_TIME", 17)
    X = lattice(rng, 11) * np.exp(0.3 * rng.normal(size=121))
    l1 = 0.15 * np.median(X.var(axis=0))
    result = graphical_lasso_from_rows(X, l1, tol=1e-10)
    expected = assert_solves(result, X, l1, 1e-10)
    np.testing.assert_allclose(result.precision.toarray(), expected, atol=1e-4 * np.abs(expected).max())


def test_a_tree_needs_no_step(rng, all_sparse):
    X = chain(rng, 60, n_rows=4000)
    result = graphical_lasso_from_rows(X, 0.35)
    assert result.n_iter <= 30
    assert_solves(result, X, 0.35, 1e-6)


def test_pairs_that_leave_the_box_join_the_others(rng, monkeypatch):
    """Only a few pairs to begin with: the proof finds the others, and the answer is the same."""
    monkeypatch.setattr(rows_module, "largest_dense", lambda memory, n_rows: 2)
    whole = sparse_solver.solve_sparse

    def with_a_forest(X, columns, members, pairs, *rest):
        kept = np.zeros(len(pairs.value), dtype=bool)
        joined = np.arange(X.shape[1])
        for k in np.argsort(-np.abs(pairs.value)):
            a, b = joined[pairs.first[k]], joined[pairs.second[k]]
            if a != b:
                kept[k], joined[joined == b] = True, a
        assert not kept.all()
        return whole(X, columns, members, pairs.where(kept), *rest)

    monkeypatch.setattr(rows_module, "solve_sparse", with_a_forest)
    X = chain(rng, 80)
    assert_solves(graphical_lasso_from_rows(X, 0.15, tol=1e-8), X, 0.15, 1e-8)


def test_threads_do_not_change_the_proof(rng, all_sparse):
    X = chain(rng, 150)
    alone, shared = (graphical_lasso_from_rows(X, 0.2, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert (alone.precision != shared.precision).nnz == 0
    assert alone.gap == pytest.approx(shared.gap, rel=1e-6)


def named_penalty(error: pytest.ExceptionInfo[InputError]) -> float:
    found = re.search(r"raise (?:it|l1_penalty) to (?:about )?([0-9.e+-]+)", str(error.value))
    assert found, error.value
    return float(found[1].rstrip(".,"))


@pytest.mark.parametrize("sampled", [True, False])
def test_a_penalty_without_room_is_refused_with_one_that_has_room(sampled, rng, monkeypatch):
    if sampled:
        monkeypatch.setattr(rows_module, "WORTH_SAMPLING", 0.0)
    X = rng.normal(size=(60, 900))
    with pytest.raises(InputError, match="max_memory") as error:
        graphical_lasso_from_rows(X, 0.01, max_memory=4e6)
    assert ("judged by" in str(error.value)) == sampled
    penalty = named_penalty(error)
    result = graphical_lasso_from_rows(X, penalty, max_memory=4e6)
    assert result.converged
    assert result.n_components < 900 or sampled
    if not sampled:  # and it is the smallest one at which every component is small, up to the digits it is given in
        columns, dense_most = screening.column_moments(X), rows_module.largest_dense(4e6, len(X))
        largest = [np.bincount(screening.screen(X, columns, l1, 4e6).labels).max() for l1 in (penalty, 0.98 * penalty)]
        assert largest[0] <= dense_most < largest[1]


@pytest.mark.parametrize("alike", [True, False])
def test_pairs_without_room_that_lie_in_small_groups_still_name_a_penalty(alike, rng):
    """The pairs that have room join groups of 100 columns at most, or are none at all where all columns are alike."""
    n, n_rows = 1200, 60
    X = np.repeat(rng.normal(size=(n_rows, 1 if alike else n // 100)), n if alike else 100, axis=1)
    if not alike:
        X += 0.5 * rng.normal(size=X.shape)
    with pytest.raises(InputError, match="do not fit into .* raise l1_penalty to") as error:
        graphical_lasso_from_rows(X, 0.02, max_memory=4e6)
    penalty = named_penalty(error)
    assert 0.02 < penalty <= 1.01 * X.var(axis=0).max()
    assert graphical_lasso_from_rows(X, penalty, max_memory=4e6).converged


def test_a_factor_that_fills_is_refused_with_a_penalty_that_works(rng, monkeypatch):
    monkeypatch.setattr(rows_module, "largest_dense", lambda memory, n_rows: 40)
    monkeypatch.setattr(sparse_solver, "MOST_MULTIPLICATIONS", 1e4)
    X = rng.normal(size=(50, 200))
    with pytest.raises(InputError, match="sparse factor") as error:
        graphical_lasso_from_rows(X, 0.2)
    assert graphical_lasso_from_rows(X, named_penalty(error)).largest_component <= 40


NORMAL = np.random.default_rng(0).normal(size=(20, 4))


@pytest.mark.parametrize(
    ("X", "options", "said"),
    [
        (np.where(np.arange(4) == 2, np.nan, NORMAL), {}, r"column 2.*impute"),
        (np.where(np.arange(4) > 0, np.inf, NORMAL), {}, r"columns 1, 2, 3"),
        (np.where(np.arange(4) == 1, 0.1, NORMAL), {}, r"constant in column 1.*drop"),
        (NORMAL[:1], {}, "two rows"),
        (NORMAL[:, :0], {}, "one column"),
        (NORMAL[0], {}, r"shape \(4,\)"),
        (NORMAL[None], {}, "shape"),
        ([["a", "b"], ["c", "d"]], {}, "table of numbers"),
        (NORMAL * 1j, {}, "complex"),
        (NORMAL * 1e-160, {}, "rescale"),
        (NORMAL * 1e80, {}, "variance beyond .* column.*rescale"),
        (NORMAL, {"l1_penalty": 0.0}, "l1_penalty=0.*graphical_lasso"),
        (NORMAL, {"l1_penalty": -1.0}, "l1_penalty.*> 0"),
        (NORMAL, {"l1_penalty": np.nan}, "l1_penalty"),
        (NORMAL, {"l1_penalty": True}, "l1_penalty must be a finite number"),
        (NORMAL, {"l1_penalty": "a"}, "l1_penalty"),
        (NORMAL, {"l1_penalty": np.ones((4, 4))}, "one number.*matrix"),
        (NORMAL, {"tol": 0.0}, "tol"),
        (NORMAL, {"max_memory": -1}, "max_memory"),
        (NORMAL, {"max_memory": True}, "max_memory must be a number"),
        (NORMAL, {"max_memory": 8}, "max_memory=8 bytes"),
        (NORMAL, {"n_jobs": 0}, "n_jobs must be"),
        (NORMAL, {"n_jobs": "two"}, "n_jobs must be"),
    ],
)
def test_bad_input_is_one_sentence(X, options, said):
    with pytest.raises(InputError, match=said) as error:
        graphical_lasso_from_rows(X, **({"l1_penalty": 0.1} | options))
    assert "\n" not in str(error.value)


def test_a_result_that_is_not_proved_says_so(rng, monkeypatch):
    monkeypatch.setattr(rows_module, "MAX_ITER", 1)
    result = graphical_lasso_from_rows(chain(rng, 40), 0.01, tol=1e-12)
    assert not result.converged
    assert result.status == "max_iter"
    assert "not 1e-12" in result.message


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_nearly_collinear_columns_end_in_a_proof_or_a_sentence(share, rng, all_sparse):
    """Sparse factors where they do not belong: dense answers, correlations of nearly one."""
    X = np.tile(rng.normal(size=(40, 6)), 3) + 1e-4 * rng.normal(size=(40, 18))
    result = graphical_lasso_from_rows(X, share, tol=1e-6)
    theta = result.precision.toarray()
    np.linalg.cholesky(theta)
    best = graphical_lasso(sample_covariance(X), share, tol=1e-12).objective
    assert result.objective - best <= (result.gap + 1e-9) * max(18, abs(result.objective))
    assert result.converged == (result.gap <= 1e-6)
