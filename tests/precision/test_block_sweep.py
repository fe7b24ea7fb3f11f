"""Large problems: columns in blocks and over threads, a proof of definiteness without a factor, a late objective."""

from __future__ import annotations

import multiprocessing
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precisionnet.linalg import try_cholesky
from precisionnet.precision import block_descent as block_descent_module
from precisionnet.precision import component_solver, graphical_lasso, graphical_lasso_terms, l1_max, sample_covariance
from precisionnet.precision.block_sweep import blocks_of
from precisionnet.precision.certificate import SparseSymmetric
from precisionnet.precision.lasso_kernel import LassoColumns
from precisionnet.precision.objective import Penalty
from precisionnet.threads import Team, blas_threads, limited_threads
from tests.precision.test_component_solver import FAMILIES, kkt_residual


@pytest.fixture(autouse=True)
def _every_problem_is_large(monkeypatch):
    for module in (block_descent_module, component_solver):
        monkeypatch.setattr(module, "LARGE", 10)


def chained(rng, n, rows=300):
    """Each column follows from the one before and sometimes from another one: one component, few neighbours."""
    X = rng.standard_normal((rows, n))
    for j in range(1, n):
        X[:, j] = 0.7 * X[:, j] + 0.6 * X[:, j - 1] + 0.2 * X[:, rng.integers(j)]
    return sample_covariance(X / X.std(axis=0))


def by_rows(dense):
    rows, columns = np.nonzero(dense)
    start = np.searchsorted(rows, np.arange(len(dense) + 1))
    return SparseSymmetric(start, columns.astype(np.int32), np.ascontiguousarray(dense[rows, columns]))


@pytest.mark.parametrize("tol", [1e-6, 1e-10])
def test_blocks_and_single_columns_give_the_same_answer(monkeypatch, rng, tol):
    emp_cov = chained(rng, 150)
    blocks = []
    sweep = block_descent_module.sweep_block
    monkeypatch.setattr(block_descent_module, "sweep_block", lambda *a: blocks.append(len(a[5])) or sweep(*a))
    in_blocks = graphical_lasso(emp_cov, 0.25, tol=tol)
    assert blocks
    assert max(blocks) > 8
    monkeypatch.setattr(block_descent_module, "LARGE", 10**9)
    one_by_one = graphical_lasso(emp_cov, 0.25, tol=tol)
    assert in_blocks.converged
    assert one_by_one.converged
    np.testing.assert_allclose(in_blocks.precision, one_by_one.precision, atol=3.0 * np.sqrt(tol))
    terms = graphical_lasso_terms(in_blocks.precision, emp_cov, 0.25)
    assert terms.total - one_by_one.objective <= (in_blocks.gap + one_by_one.gap) * 150


@pytest.mark.parametrize("share", [0.3, 0.03, 0.003])
@pytest.mark.parametrize("family", FAMILIES)
def test_hard_families_are_certified_in_blocks_too(family, share):
    emp_cov = sample_covariance(FAMILIES[family](np.random.default_rng(7), 48))
    deviation = np.sqrt(np.diag(emp_cov))
    correlation = emp_cov / np.outer(deviation, deviation)
    l1_penalty = share * l1_max(correlation)
    solved = graphical_lasso(correlation, l1_penalty)
    assert solved.converged, solved.message
    assert kkt_residual(solved.precision, correlation, l1_penalty) < 0.02


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("single", [False, True])
def test_the_number_of_threads_changes_no_bit(monkeypatch, rng, size, single):
    if single:
        monkeypatch.setattr(block_descent_module, "SINGLE_PRECISION_FROM", 10)
    emp_cov = chained(rng, 130)
    monkeypatch.setattr(component_solver, "blas_threads", lambda: 1)
    alone = graphical_lasso(emp_cov, 0.2)
    monkeypatch.setattr(component_solver, "blas_threads", lambda: size)
    together = graphical_lasso(emp_cov, 0.2)
    np.testing.assert_array_equal(together.precision, alone.precision)
    assert (together.gap, together.n_iter, together.objective) == (alone.gap, alone.n_iter, alone.objective)


def test_a_block_that_fails_is_solved_column_by_column(monkeypatch, rng):
    emp_cov = chained(rng, 100)
    expected = graphical_lasso(emp_cov, 0.25, tol=1e-10)
    monkeypatch.setattr(block_descent_module, "sweep_block", lambda *_: None)
    solved = graphical_lasso(emp_cov, 0.25, tol=1e-10)
    assert solved.converged
    np.testing.assert_allclose(solved.precision, expected.precision, atol=1e-4)


@pytest.mark.parametrize("l1_penalty", [0.6, 0.05, 0.01])
def test_lists_that_outgrow_their_room_and_dense_answers(monkeypatch, rng, l1_penalty):
    """At small penalties lists are long, and blocks so small that columns go one by one."""
    monkeypatch.setattr("precisionnet.precision.lasso_kernel.FIRST_CAPACITY", 2)
    emp_cov = chained(rng, 90)
    solved = graphical_lasso(emp_cov, l1_penalty)
    assert solved.converged, solved.message
    objective = graphical_lasso_terms(solved.precision, emp_cov, l1_penalty).total
    assert solved.objective == pytest.approx(objective, rel=1e-9)


@given(st.integers(1, 120), st.integers(0, 6), st.integers(1, 12), st.integers(0, 10**6))
def test_columns_of_a_block_are_not_candidates_of_each_other(n, degree, size, seed):
    from precisionnet.precision.block_sweep import _schedule

    rng = np.random.default_rng(seed)
    columns = LassoColumns.of(None, n)
    for j in range(n):
        others = rng.permutation(np.delete(np.arange(n), j))[: rng.integers(degree + 1)]
        columns.index[j, : len(others)], columns.count[j] = others, len(others)
    order, first = _schedule(columns.index, columns.count, size)
    assert sorted(order.tolist()) == list(range(n))
    for block in np.split(order, first[1:]):
        assert 1 <= len(block) <= size
        for j in block:
            assert not set(columns.index[j, : columns.count[j]].tolist()) & set(block.tolist())


def test_columns_that_all_know_each_other_make_no_blocks():
    columns = LassoColumns.of(None, 40)
    for j in range(40):
        others = np.delete(np.arange(40), j)
        columns.index[j, :39], columns.count[j] = others, 39
    assert blocks_of(columns) is None
    assert [len(block) for block in blocks_of(LassoColumns.of(None, 100))] == [64, 36]


@given(st.integers(1, 12), st.floats(0.0, 2.0), st.integers(0, 10**6))
def test_a_dominant_diagonal_is_never_said_of_an_indefinite_matrix(n, strength, seed):
    rng = np.random.default_rng(seed)
    off = strength * rng.standard_normal((n, n)) * (rng.uniform(size=(n, n)) < 0.5)
    theta = np.triu(off, 1) + np.triu(off, 1).T + np.diag(rng.uniform(0.1, 3.0, n))
    if by_rows(theta).has_dominant_diagonal():
        assert np.linalg.eigvalsh(theta)[0] > 0.0
    weight = np.exp(rng.standard_normal(n))  # M-matrices, far from dominance in their own units
    dominant = theta.copy()
    np.fill_diagonal(dominant, (np.abs(off * 0.0 + theta) @ np.ones(n) - np.diag(theta)) * 1.01 + 0.01)
    assert by_rows(dominant * np.outer(weight, weight)).has_dominant_diagonal()


def test_dominance_proves_some_definite_matrices_and_says_nothing_of_others():
    ring = np.eye(5) - 0.45 * (np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0))
    assert by_rows(ring).has_dominant_diagonal()
    equal = 0.4 * np.eye(5) + 0.6  # eigenvalues 0.4 and 3.4
    assert try_cholesky(equal) is not None
    assert not by_rows(equal).has_dominant_diagonal()
    assert not by_rows(np.diag([1.0, -1.0])).has_dominant_diagonal()
    pairs = np.kron(np.eye(3), [[1.0, 0.5], [0.5, 1.0]])  # two-coloured: plain power iteration goes to and fro
    pairs[0, 0], pairs[1, 1] = 4.0, 0.1
    assert by_rows(pairs).has_dominant_diagonal()


def test_the_objective_of_a_large_answer_is_computed_when_asked_for(rng):
    emp_cov = chained(rng, 60)
    solved = graphical_lasso(emp_cov, 0.4)
    assert solved.log_det is None
    assert solved.converged
    terms = graphical_lasso_terms(solved.precision, emp_cov, 0.4)
    assert solved.objective == pytest.approx(terms.total, rel=1e-12)
    tighter = graphical_lasso(emp_cov, 0.4, tol=1e-12)
    assert solved.objective - tighter.objective <= solved.gap * max(60, abs(solved.objective))
    np.testing.assert_array_equal(solved.precision, solved.precision.T)
    assert try_cholesky(solved.precision) is not None


def test_screened_components_have_their_log_determinants_added(rng):
    emp_cov = np.zeros((45, 45))
    for begin, size in ((0, 20), (20, 24)):
        emp_cov[begin : begin + size, begin : begin + size] = chained(rng, size)
    emp_cov[44, 44] = 2.0
    solved = graphical_lasso(emp_cov, 0.2)
    assert solved.log_det == pytest.approx(np.linalg.slogdet(solved.precision)[1], rel=1e-12)


def test_the_start_is_the_same_whoever_looks_at_which_rows(rng):
    """Two pairs whose shares differ in the last digit: the least one counts, not the one that is looked at first."""
    penalty, first = rng.uniform(0.01, 0.1, 100_000), rng.uniform(0.1, 1.0, 100_000)
    second = np.nextafter(first, 2.0)
    differs = np.flatnonzero((penalty / first * second <= penalty) & (penalty / second < penalty / first))
    assert len(differs)
    for k in differs[:20]:
        S = np.eye(4)
        S[1, 0] = S[0, 1] = first[k]
        S[3, 2] = S[2, 3] = second[k]
        box = Penalty.of(penalty[k], 4)
        parts = [block_descent_module._largest_share(S, np.empty((0, 0)), *box, *part) for part in ((0, 2), (2, 4))]
        assert block_descent_module._largest_share(S, np.empty((0, 0)), *box, 0, 4) == min(parts)


@pytest.mark.parametrize("single", [False, True])
@given(st.integers(2, 26), st.integers(2, 9), st.integers(0, 10**6))
def test_any_problem_with_any_number_of_threads(single, n, size, seed):
    """More threads than columns, matrices of penalties, known zeros, units and warm starts: bits, proof and zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rng.integers(3, 60), n)) @ (np.eye(n) + 0.3 * rng.standard_normal((n, n)))
    unit = 2.0 ** rng.integers(-3, 4, n) if seed % 2 else np.ones(n)
    emp_cov = sample_covariance(X * unit)
    scale = np.sqrt(np.outer(np.diag(emp_cov), np.diag(emp_cov)))
    l1 = rng.uniform(0.05, 0.6)
    kind = seed % 3
    penalty = l1 if kind == 0 else l1 * scale * (1.0 if kind == 1 else symmetric_uniform(n, rng))
    zeros = symmetric_uniform(n, rng) < 0.6 if seed % 5 == 0 else None
    if zeros is not None:
        np.fill_diagonal(zeros, False)
    init = None
    if seed % 4 == 0:
        init = np.linalg.inv(emp_cov + np.diag(np.diag(emp_cov)))
        init = 0.5 * (init + init.T)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_descent_module, "LARGE", 1)
        patch.setattr(component_solver, "LARGE", 1)
        patch.setattr(block_descent_module, "SINGLE_PRECISION_FROM", 1 if single else 10**9)
        for threads in (1, size):
            patch.setattr(component_solver, "blas_threads", lambda threads=threads: threads)
            found.append(graphical_lasso(emp_cov, penalty, known_zeros=zeros, init=init))
    alone, together = found
    np.testing.assert_array_equal(together.precision, alone.precision)
    assert (together.gap, together.n_iter) == (alone.gap, alone.n_iter)
    assert alone.converged, alone.message
    assert try_cholesky(alone.precision) is not None
    np.testing.assert_array_equal(alone.precision, alone.precision.T)
    if zeros is not None:
        assert not alone.precision[zeros].any()
    exact = graphical_lasso(emp_cov, penalty, known_zeros=zeros, tol=1e-12)
    assert alone.objective - exact.objective <= alone.gap * max(n, abs(alone.objective)) + 1e-9 * max(
        n, abs(exact.objective)
    )


def symmetric_uniform(n, rng):
    drawn = rng.uniform(0.3, 1.5, (n, n))
    return np.triu(drawn) + np.triu(drawn, 1).T


def test_an_interrupt_waits_for_the_other_threads():
    """What they write into must not be used by anybody else while they do."""
    ended = []

    def slow(share):
        if share == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)
        ended.append(share)

    with pytest.raises(KeyboardInterrupt), Team(3) as team:
        team(slow)
    assert sorted(ended) == [1, 2]


def test_a_forked_child_solves_on_one_thread(monkeypatch, rng):
    """The parent's threads do not exist there."""
    monkeypatch.setattr(component_solver, "blas_threads", lambda: 2)
    emp_cov = chained(rng, 60)
    expected = graphical_lasso(emp_cov, 0.3)
    monkeypatch.undo()
    for module in (block_descent_module, component_solver):
        monkeypatch.setattr(module, "LARGE", 10)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        threads, precision = pool.apply(_solved_in_child, (emp_cov,))
    assert threads == 1
    np.testing.assert_array_equal(precision, expected.precision)


def _solved_in_child(emp_cov):
    return blas_threads(), graphical_lasso(emp_cov, 0.3).precision


def test_a_team_returns_in_order_and_hands_errors_on():
    with Team(3) as team:
        assert team(lambda share: share * 10) == [0, 10, 20]
        assert [team.part(10, share) for share in range(3)] == [(0, 3), (3, 6), (6, 10)]
        for wrong in (0, 2):
            with pytest.raises(ZeroDivisionError):
                team(lambda share, wrong=wrong: 1 / (share - wrong))
    assert Team()(lambda share: share) == [0]


def test_blas_says_how_many_threads_it_has():
    with limited_threads(1):
        assert blas_threads() == 1
    assert blas_threads() >= 1
