"""The certificate is a true bound: never below the real distance to the optimum, and zero at it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precisionnet.linalg import into_spectral_box
from precisionnet.precision import graphical_lasso, graphical_lasso_terms, sample_covariance
from precisionnet.precision.admm import bounded_divergence
from precisionnet.precision.certificate import (
    SparseSymmetric,
    divergence,
    divergence_bound,
    exact_divergence,
    fitted_dual,
)
from precisionnet.precision.objective import Penalty


def by_rows(dense: np.ndarray) -> SparseSymmetric:
    rows, columns = np.nonzero(dense)
    start = np.searchsorted(rows, np.arange(len(dense) + 1))
    return SparseSymmetric(start, columns.astype(np.int32), np.ascontiguousarray(dense[rows, columns]))


def problem(seed: int, n: int = 8, rows: int = 30, l1: float = 0.1):
    rng = np.random.default_rng(seed)
    emp_cov = sample_covariance(rng.normal(size=(rows, n)) @ (np.eye(n) + 0.3 * rng.normal(size=(n, n))))
    return emp_cov, Penalty.of(l1, n), rng


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), noise=st.sampled_from([1e-6, 1e-4, 1e-2, 0.05]))
def test_both_bounds_are_above_the_true_gap(seed, noise):
    emp_cov, penalty, rng = problem(seed)
    best = graphical_lasso(emp_cov, 0.1, tol=1e-13)
    # A point nearby with the same zeros, and a rough idea of its inverse.
    wiggle = rng.normal(size=emp_cov.shape) * noise * (best.precision != 0)
    theta = into_spectral_box(best.precision + wiggle + wiggle.T, 1e-3, np.inf)
    W = np.linalg.inv(theta) + noise * 0.1 * np.diag(rng.normal(size=len(theta)))
    true = graphical_lasso_terms(theta, emp_cov, 0.1).total - best.objective
    sparse = by_rows(theta)
    exact, bound = divergence(sparse, W, emp_cov, penalty), divergence_bound(sparse, W, emp_cov, penalty)
    assert exact.gap * len(theta) >= true - 1e-9
    assert bound.gap >= exact.gap - 1e-12


def test_it_is_second_order_where_clipping_the_inverse_is_first_order():
    emp_cov, penalty, rng = problem(0)
    best = graphical_lasso(emp_cov, 0.1, tol=1e-14).precision
    ratios = []
    for noise in (1e-3, 1e-4):
        wiggle = rng.normal(size=best.shape) * noise * (best != 0)
        theta = best + wiggle + wiggle.T
        inverse = np.linalg.inv(theta)
        ours = exact_divergence(theta, fitted_dual(theta, inverse, emp_cov, penalty.dense()))
        clipped = np.clip(inverse, emp_cov - penalty.dense(), emp_cov + penalty.dense())
        loss = graphical_lasso_terms(theta, emp_cov, 0.1).total
        theirs = loss - np.linalg.slogdet(clipped)[1] - len(theta)
        ratios.append(theirs / ours)
    assert ratios[0] > 5
    assert ratios[1] > 50


def test_an_indefinite_point_is_not_certified():
    emp_cov, penalty, _ = problem(1)
    theta = -np.eye(len(emp_cov))
    assert divergence(by_rows(theta), emp_cov, emp_cov, penalty).gap == np.inf
    assert divergence_bound(by_rows(theta), emp_cov, emp_cov, penalty).gap == np.inf


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), share=st.floats(0.3, 0.95))
def test_with_a_binding_bound_it_is_still_above_the_true_gap(seed, share):
    emp_cov, _, rng = problem(seed)
    free = graphical_lasso(emp_cov, 0.1)
    high = share * float(np.linalg.eigvalsh(free.precision)[-1])
    best = graphical_lasso(emp_cov, 0.1, spectral_bound=high, tol=1e-10, max_iter=20000)
    assert best.bound_active
    assert best.converged, best.message
    for noise in (1e-4, 1e-2):
        wiggle = rng.normal(size=emp_cov.shape) * noise * (best.precision != 0)
        theta = into_spectral_box(best.precision + wiggle + wiggle.T, 1e-3 * high, high)
        K = emp_cov + 0.1 * np.sign(theta - np.diag(np.diag(theta)))
        K = np.where(theta == 0, emp_cov, K)
        true = graphical_lasso_terms(theta, emp_cov, 0.1).total - best.objective
        assert bounded_divergence(theta, K, 1e-3 * high, high) >= true - 1e-7


@pytest.mark.parametrize("n", [6, 9, 12])
def test_rounding_is_not_mistaken_for_a_proof(n):
    """Hilbert matrices: nearly singular, and their inverse is known in whole numbers."""
    from scipy.linalg import hilbert, invhilbert

    emp_cov = hilbert(n)
    solved = graphical_lasso(emp_cov, 0.0)
    optimum = n - np.linalg.slogdet(invhilbert(n))[1]
    true = abs(solved.objective - optimum) / max(n, abs(optimum))
    assert solved.gap >= 0.1 * true
    np.linalg.cholesky(solved.precision)


def test_sparse_rows_hold_what_the_dense_matrix_holds(rng):
    dense = rng.normal(size=(7, 7)) * (rng.uniform(size=(7, 7)) < 0.4)
    dense = dense + dense.T
    np.testing.assert_array_equal(by_rows(dense).toarray(), dense)


@pytest.mark.parametrize("n", [1, 3, 8, 9, 17])
def test_error_norms_are_those_of_theta_times_k_minus_the_identity(n):
    """Sizes around the number of columns that are handled together."""
    emp_cov, penalty, _ = problem(n, n=n)
    theta = graphical_lasso(emp_cov, 0.1, tol=1e-3).precision
    W = np.linalg.inv(theta)
    error = theta @ fitted_dual(theta, W, emp_cov, penalty.dense()) - np.eye(n)
    verdict = divergence_bound(by_rows(theta), W, emp_cov, penalty)
    assert verdict.residual == pytest.approx(np.abs(error).max(), rel=1e-6, abs=1e-14)
    rho = min(np.linalg.norm(error), np.abs(error).sum(axis=0).max())
    expected = np.linalg.norm(error) ** 2 / (2 * (1 - rho)) / n
    assert verdict.gap == pytest.approx(expected, rel=1e-6, abs=1e-20)
