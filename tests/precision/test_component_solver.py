"""The plain graphical lasso: hard families, screening, scales, single precision, matrix penalties, known zeros."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precisionnet.precision import block_descent as block_descent_module
from precisionnet.precision import graphical_lasso, graphical_lasso_path, l1_max, penalty_grid, sample_covariance
from precisionnet.precision.component_solver import components, solve_plain
from precisionnet.precision.objective import Penalty


def kkt_residual(theta: np.ndarray, emp_cov: np.ndarray, penalty: np.ndarray | float) -> float:
    """Largest violation of the optimality conditions on the correlation scale, written out independently."""
    gradient = emp_cov - np.linalg.inv(theta)
    penalty = np.broadcast_to(penalty, theta.shape).copy()
    np.fill_diagonal(penalty, 0.0)
    with np.errstate(invalid="ignore"):
        violation = np.where(
            theta == 0, np.maximum(np.abs(gradient) - penalty, 0.0), np.abs(gradient + penalty * np.sign(theta))
        )
    deviation = np.sqrt(np.diag(emp_cov))
    return float((violation / np.outer(deviation, deviation)).max())


def chain(rng, rows: int, n: int) -> np.ndarray:
    X = rng.normal(size=(rows, n))
    for i in range(1, n):
        X[:, i] = 0.95 * X[:, i - 1] + np.sqrt(1 - 0.95**2) * X[:, i]
    return X


FAMILIES = {
    "factor-1": lambda rng, n: (
        rng.normal(size=(2 * n, 1)) @ rng.normal(size=(1, n)) + 0.3 * rng.normal(size=(2 * n, n))
    ),
    "factor-5": lambda rng, n: (
        rng.normal(size=(2 * n, 5)) @ rng.normal(size=(5, n)) + 0.3 * rng.normal(size=(2 * n, n))
    ),
    "T = N/4": lambda rng, n: rng.normal(size=(n // 4, n)),
    "unscaled": lambda rng, n: rng.normal(size=(2 * n, n)) * 10.0 ** rng.uniform(-3, 3, n),
    "duplicated": lambda rng, n: np.tile(rng.normal(size=(2 * n, n // 2)), 2),
    "rank-deficient": lambda rng, n: rng.normal(size=(2 * n, n // 3)) @ rng.normal(size=(n // 3, n)),
    "chain": lambda rng, n: chain(rng, 2 * n, n),
    "one row": lambda rng, n: np.vstack([rng.normal(size=(1, n)), np.zeros((1, n))]),
}


@pytest.mark.parametrize("share", [0.3, 0.03, 0.003])
@pytest.mark.parametrize("family", FAMILIES)
def test_hard_families_are_solved_and_certified(family, share):
    n = 48
    emp_cov = sample_covariance(FAMILIES[family](np.random.default_rng(7), n))
    deviation = np.sqrt(np.diag(emp_cov))
    correlation = emp_cov / np.outer(deviation, deviation)
    l1 = share * l1_max(correlation) * np.outer(deviation, deviation)
    solved = graphical_lasso(emp_cov, l1)
    assert solved.converged, solved.message
    assert solved.gap <= 1e-6
    np.linalg.cholesky(solved.precision)
    assert np.array_equal(solved.precision, solved.precision.T)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 15), rows=st.integers(2, 40), share=st.floats(0.01, 1.1), seed=st.integers(0, 2**31))
def test_the_optimality_conditions_hold(n, rows, share, seed):
    rng = np.random.default_rng(seed)
    emp_cov = sample_covariance(rng.normal(size=(rows, n)) @ (np.eye(n) + rng.normal(size=(n, n))))
    l1 = share * l1_max(emp_cov) if n > 1 else share
    solved = graphical_lasso(emp_cov, l1, tol=1e-12)
    assert solved.converged, solved.message
    assert kkt_residual(solved.precision, emp_cov, l1) < 1e-4
    np.testing.assert_allclose(solved.covariance @ solved.precision, np.eye(n), atol=1e-7)
    assert np.array_equal(solved.covariance, solved.covariance.T)


def blocks(rng, sizes=(1, 4, 2, 6, 1)) -> np.ndarray:
    n = sum(sizes)
    emp_cov = 0.02 * np.eye(n) + sample_covariance(0.1 * rng.normal(size=(200, n)))
    begin = 0
    for size in sizes:
        group = slice(begin, begin + size)
        emp_cov[group, group] += sample_covariance(rng.normal(size=(50, size)) @ (np.eye(size) + 0.5))
        begin += size
    order = rng.permutation(n)
    return emp_cov[np.ix_(order, order)]


@pytest.mark.parametrize("seed", range(3))
def test_screened_is_unscreened(seed):
    emp_cov = blocks(np.random.default_rng(seed))
    penalty = Penalty.of(0.05, len(emp_cov))
    assert len(components(emp_cov, penalty)) > 2
    screened = solve_plain(emp_cov, penalty, tol=1e-12, max_iter=500)
    full = solve_plain(emp_cov, penalty, tol=1e-12, max_iter=500, screen=False)
    np.testing.assert_allclose(screened.theta, full.theta, atol=1e-5)
    assert screened.verdict.gap <= 1e-12


def test_components_are_those_of_the_thresholded_graph(rng):
    import networkx as nx

    for threshold in (0.01, 0.05, 0.2):
        emp_cov = blocks(rng)
        graph = nx.from_numpy_array((np.abs(emp_cov) > threshold) & ~np.eye(len(emp_cov), dtype=bool))
        expected = sorted(sorted(group) for group in nx.connected_components(graph))
        found = sorted(group.tolist() for group in components(emp_cov, Penalty.of(threshold, len(emp_cov))))
        assert found == expected


@pytest.mark.parametrize("factor", [2.0**40, 2.0**-40])
def test_powers_of_two_do_not_change_a_bit(factor, rng):
    emp_cov = sample_covariance(rng.normal(size=(40, 10)) @ rng.normal(size=(10, 10)))
    once = graphical_lasso(emp_cov, 0.3)
    scaled = graphical_lasso(emp_cov * factor, 0.3 * factor)
    np.testing.assert_array_equal(scaled.precision * factor, once.precision)


@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_other_units_give_the_same_answer(factor, rng):
    emp_cov = sample_covariance(rng.normal(size=(40, 10)) @ rng.normal(size=(10, 10)))
    once = graphical_lasso(emp_cov, 0.3, tol=1e-10)
    scaled = graphical_lasso(emp_cov * factor, 0.3 * factor, tol=1e-10)
    assert scaled.converged
    np.testing.assert_allclose(scaled.precision * factor, once.precision, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(scaled.precision == 0, once.precision == 0)


@pytest.mark.parametrize(("rows", "tol", "dtype"), [(120, 1e-6, np.float32), (20, 1e-10, np.float64)])
def test_single_precision_falls_back_to_double_where_the_certificate_asks_for_it(monkeypatch, rng, rows, tol, dtype):
    monkeypatch.setattr(block_descent_module, "SINGLE_PRECISION_FROM", 10)
    monkeypatch.setattr(block_descent_module, "SINGLE_PRECISION_TOL", 0.0)
    emp_cov = sample_covariance(rng.normal(size=(rows, 60)))
    solved = block_descent_module.block_descent(emp_cov, Penalty.of(0.05, 60), tol=tol, max_iter=200)
    assert solved.verdict.gap <= tol
    assert solved.dual.dtype == dtype


def test_a_matrix_of_penalties(rng):
    emp_cov = sample_covariance(rng.normal(size=(60, 8)) @ rng.normal(size=(8, 8)))
    penalty = rng.uniform(0.01, 1.0, size=(8, 8))
    penalty = penalty + penalty.T
    solved = graphical_lasso(emp_cov, penalty, tol=1e-12)
    assert solved.converged, solved.message
    assert kkt_residual(solved.precision, emp_cov, penalty) < 1e-5
    uniform = graphical_lasso(emp_cov, np.full((8, 8), 0.2), tol=1e-10)
    np.testing.assert_allclose(uniform.precision, graphical_lasso(emp_cov, 0.2, tol=1e-10).precision, atol=1e-5)


@pytest.mark.parametrize("coupling", [0.0, 2.0])
@pytest.mark.parametrize("spectral_bound", [None, 0.6])
def test_known_zeros_are_zero_and_the_rest_is_optimal(rng, coupling, spectral_bound):
    n = 7
    emp_cov = sample_covariance(rng.normal(size=(60, n)) @ (np.eye(n) + 0.4))
    mask = rng.uniform(size=(n, n)) < 0.3
    mask = (mask | mask.T) & ~np.eye(n, dtype=bool)
    assert mask.any()
    anchor = np.full((n, n), 0.3) if coupling else None
    solved = graphical_lasso(
        emp_cov, 0.02, known_zeros=mask, coupling=coupling, anchor=anchor, spectral_bound=spectral_bound, tol=1e-8
    )
    assert solved.converged, solved.message
    assert (solved.precision[mask] == 0).all()
    assert (solved.precision[~mask] != 0).mean() > 0.5
    warm = graphical_lasso(
        emp_cov,
        0.02,
        known_zeros=mask,
        coupling=coupling,
        anchor=anchor,
        spectral_bound=spectral_bound,
        tol=1e-8,
        init=np.eye(n) + 0.01,
    )
    assert (warm.precision[mask] == 0).all()
    assert warm.objective == pytest.approx(solved.objective, abs=1e-6)
    if not coupling and spectral_bound is None:
        assert kkt_residual(solved.precision, emp_cov, np.where(mask, np.inf, 0.02)) < 1e-4


def test_a_start_that_ignores_the_known_zeros_is_not_believed(rng):
    emp_cov = sample_covariance(rng.normal(size=(60, 6)) @ (np.eye(6) + 0.4))
    mask = np.zeros((6, 6), dtype=bool)
    mask[0, 1] = mask[1, 0] = True
    for options in ({}, {"coupling": 1e-3, "anchor": np.eye(6)}, {"spectral_bound": 0.5}):
        free = graphical_lasso(emp_cov, 0.01, **options)
        assert free.precision[0, 1] != 0
        solved = graphical_lasso(emp_cov, 0.01, known_zeros=mask, init=free.precision, **options)
        assert solved.converged, solved.message
        assert solved.precision[0, 1] == 0
    hopeless = graphical_lasso(np.ones((6, 6)), 0.0, known_zeros=mask, max_iter=50)
    assert hopeless.precision[0, 1] == 0
    assert not hopeless.converged
    assert hopeless.gap == np.inf


def test_a_singular_covariance_without_a_penalty_is_held_by_a_distant_bound(rng):
    emp_cov = 1e4 * sample_covariance(rng.normal(size=(3, 5)))
    solved = graphical_lasso(emp_cov, 0.0, spectral_bound=1e-2, max_iter=5000)
    assert solved.status in ("optimal", "max_iter")
    assert solved.bound_active


def test_known_zeros_alone_fit_the_covariance_on_the_edges(rng):
    """Dempster's covariance selection: no penalty, W = C wherever theta may be non-zero."""
    emp_cov = sample_covariance(rng.normal(size=(60, 5)))
    mask = np.zeros((5, 5), dtype=bool)
    mask[0, 3] = mask[3, 0] = mask[1, 4] = mask[4, 1] = True
    solved = graphical_lasso(emp_cov, 0.0, known_zeros=mask, tol=1e-14)
    assert solved.converged, solved.message
    np.testing.assert_allclose(solved.covariance[~mask], emp_cov[~mask], atol=1e-6)


GOLDEN = (Path(__file__).parent / "golden.txt").read_text().splitlines()


@pytest.mark.parametrize("start", range(0, len(GOLDEN), 4), ids=[line.split()[0] for line in GOLDEN[::4]])
def test_agrees_with_r_glasso(start):
    """Values of ``tools/golden_glasso.R``."""
    _, size, rho, diagonal = GOLDEN[start].split()
    n = int(size)
    emp_cov, theirs = (np.array(GOLDEN[start + k].split(), dtype=float).reshape(n, n) for k in (2, 3))
    mask = np.zeros((n, n), dtype=bool)
    zeros = np.array(GOLDEN[start + 1].split(), dtype=int).reshape(-1, 2) - 1
    mask[zeros[:, 0], zeros[:, 1]] = mask[zeros[:, 1], zeros[:, 0]] = True
    ours = graphical_lasso(
        (emp_cov + emp_cov.T) / 2,
        float(rho),
        penalize_diagonal=diagonal == "1",
        known_zeros=mask if mask.any() else None,
        tol=1e-13,
    )
    assert ours.converged, ours.message
    np.testing.assert_allclose(ours.precision, theirs, rtol=1e-5, atol=2e-6 * np.abs(theirs).max())


def test_a_path_is_the_cold_solves(rng):
    emp_cov = sample_covariance(rng.normal(size=(40, 12)) @ (np.eye(12) + 0.3 * rng.normal(size=(12, 12))))
    penalties = penalty_grid(emp_cov, 8)
    assert penalties[0] == l1_max(emp_cov)
    shuffled = rng.permutation(penalties)
    for l1, solved in zip(shuffled, graphical_lasso_path(emp_cov, shuffled, tol=1e-10), strict=True):
        cold = graphical_lasso(emp_cov, l1, tol=1e-10)
        assert solved.converged
        assert solved.objective == pytest.approx(cold.objective, abs=1e-8)
        np.testing.assert_allclose(solved.precision, cold.precision, atol=1e-3)


def test_a_path_with_a_binding_bound_and_known_zeros_is_the_cold_solves(rng):
    emp_cov = sample_covariance(rng.normal(size=(40, 6)) @ (np.eye(6) + 0.3))
    mask = np.zeros((6, 6), dtype=bool)
    mask[0, 1] = mask[1, 0] = True
    options = {"spectral_bound": 0.8, "known_zeros": mask, "ridge": 1e-3}
    results = graphical_lasso_path(emp_cov, [0.5, 0.1, 0.02], tol=1e-9, **options)
    assert any(result.bound_active for result in results)
    for l1, solved in zip([0.5, 0.1, 0.02], results, strict=True):
        cold = graphical_lasso(emp_cov, l1, tol=1e-9, **options)
        assert solved.objective == pytest.approx(cold.objective, abs=1e-7)


def test_l1_max_is_where_the_graph_becomes_empty(rng):
    emp_cov = sample_covariance(rng.normal(size=(40, 6)))
    largest = l1_max(emp_cov)
    off_diagonal = ~np.eye(6, dtype=bool)
    assert not graphical_lasso(emp_cov, largest).precision[off_diagonal].any()
    assert graphical_lasso(emp_cov, 0.99 * largest).precision[off_diagonal].any()


def test_an_indefinite_covariance_is_solved_where_the_penalty_allows_it():
    """Pairwise estimates need not be semi-definite; some positive definite W in the box is all it takes."""
    emp_cov = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    assert np.linalg.eigvalsh(emp_cov)[0] < -0.5
    solved = graphical_lasso(emp_cov, 0.5, tol=1e-9)
    assert solved.converged, solved.message
    assert kkt_residual(solved.precision, emp_cov, 0.5) < 1e-3
    hopeless = graphical_lasso(emp_cov, 0.1, max_iter=300)
    assert not hopeless.converged
    np.linalg.cholesky(hopeless.precision)


def test_a_singular_covariance_without_a_penalty_says_that_there_is_no_answer():
    solved = graphical_lasso(np.ones((3, 3)), 0.0)
    assert solved.status == graphical_lasso(np.ones((3, 3)), np.zeros((3, 3))).status == "unbounded"
    assert "no minimiser" in solved.message
    np.linalg.cholesky(solved.precision)
