"""The solver is judged by optimality and feasibility, not by stored numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import graphical_lasso as sklearn_graphical_lasso

from precisionnet.errors import InputError
from precisionnet.linalg import extreme_eigenvalues
from precisionnet.precision import (
    graphical_lasso,
    graphical_lasso_terms,
    sample_covariance,
    sample_precision,
    spectral_bound,
)
from precisionnet.precision.objective import min_norm_subgradient


def covariance(n: int, rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return sample_covariance(rng.normal(size=(rows, n)) @ rng.normal(size=(n, n)))


def correlation(n: int, rows: int, seed: int) -> np.ndarray:
    emp_cov = covariance(n, rows, seed)
    deviation = np.sqrt(np.diag(emp_cov))
    return emp_cov / np.outer(deviation, deviation)


def objective(theta, emp_cov, l1_penalty, anchor, coupling, ridge):
    gl = graphical_lasso_terms(theta, emp_cov, l1_penalty, ridge).total
    return gl + 0.5 * coupling * np.linalg.norm(theta - anchor) ** 2


def assert_feasible(theta: np.ndarray, bound: float) -> None:
    smallest, largest = extreme_eigenvalues(theta)
    assert np.array_equal(theta, theta.T)
    assert smallest > 0
    assert largest <= bound * (1 + 1e-12)
    np.linalg.cholesky(theta)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(2, 12),
    rows=st.integers(3, 60),
    l1_penalty=st.floats(0.01, 1.0),
    coupling=st.sampled_from([0.0, 0.1, 20.0, 2000.0]),
    ridge=st.sampled_from([0.0, 1e-4, 0.1]),
    seed=st.integers(0, 2**31),
)
def test_result_is_optimal_and_feasible(n, rows, l1_penalty, coupling, ridge, seed):
    emp_cov = correlation(n, rows, seed)
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(n, n))
    anchor = raw + raw.T if coupling else None
    bound = spectral_bound(emp_cov)
    solved = graphical_lasso(
        emp_cov, l1_penalty, anchor=anchor, coupling=coupling, spectral_bound=bound, ridge=ridge, tol=1e-13
    )
    theta = solved.precision
    assert_feasible(theta, bound)
    assert solved.gap < (1e-9 if solved.bound_active else 1e-11), solved.message
    if not solved.bound_active:
        gradient = (
            emp_cov - np.linalg.inv(theta + ridge * np.eye(n)) + coupling * (theta - (0 if anchor is None else anchor))
        )
        subgradient = min_norm_subgradient(theta, gradient, l1_penalty)
        assert np.abs(subgradient).max() <= 1e-4 * (np.abs(emp_cov).max() + coupling * np.abs(theta).max())


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), share=st.floats(0.3, 0.9))
def test_where_the_bound_binds_no_feasible_neighbour_is_better(seed, share):
    n, rng = 6, np.random.default_rng(seed)
    emp_cov = correlation(n, 40, seed)
    free = graphical_lasso(emp_cov, 0.05)
    bound = share * extreme_eigenvalues(free.precision)[1]
    solved = graphical_lasso(emp_cov, 0.05, spectral_bound=bound, tol=1e-8, max_iter=20000)
    theta = solved.precision
    assert solved.bound_active
    assert_feasible(theta, bound)
    here = objective(theta, emp_cov, 0.05, theta, 0.0, 0.0)
    for _ in range(50):  # a convex combination with any feasible point is feasible
        root = rng.normal(size=(n, n))
        other = root @ root.T
        other *= bound * rng.uniform() / extreme_eigenvalues(other)[1]
        for step in (1e-3, 1e-1):
            candidate = (1 - step) * theta + step * other
            assert objective(candidate, emp_cov, 0.05, theta, 0.0, 0.0) >= here - 1e-6


@pytest.mark.parametrize("l1_penalty", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_agrees_with_scikit_learn_where_that_works(seed, l1_penalty):
    emp_cov = correlation(12, 200, seed)
    _, theirs = sklearn_graphical_lasso(emp_cov, alpha=l1_penalty, tol=1e-6, enet_tol=1e-12, max_iter=1000)
    ours = graphical_lasso(emp_cov, l1_penalty, tol=1e-8)
    difference = [graphical_lasso_terms(theta, emp_cov, l1_penalty).total for theta in (ours.precision, theirs)]
    assert difference[0] <= difference[1] + 1e-6
    np.testing.assert_allclose(ours.precision, theirs, atol=1e-4)


def test_two_variables_have_a_closed_form():
    """theta^-1 keeps the variances and soft-thresholds the covariance."""
    emp_cov = np.array([[2.0, 0.7], [0.7, 1.0]])
    expected = np.linalg.inv([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(graphical_lasso(emp_cov, 0.2, tol=1e-10).precision, expected, rtol=1e-7)
    assert graphical_lasso(emp_cov, 0.7 + 1e-9).precision[0, 1] == 0.0


def test_one_coupled_variable_solves_its_quadratic():
    """c - 1 / x + k (x - a) = 0."""
    solved = graphical_lasso(np.array([[2.0]]), 0.0, anchor=np.array([[3.0]]), coupling=5.0, tol=1e-12)
    x = solved.precision[0, 0]
    assert 2.0 - 1.0 / x + 5.0 * (x - 3.0) == pytest.approx(0.0, abs=1e-9)


def test_coupling_pulls_towards_the_anchor():
    emp_cov, anchor = correlation(6, 50, 0), 3.0 * np.eye(6)
    distance = [
        np.linalg.norm(graphical_lasso(emp_cov, 0.1, anchor=anchor, coupling=c).precision - anchor)
        for c in (0.1, 1, 100)
    ]
    assert distance[0] > distance[1] > distance[2]
    assert distance[2] < 0.1


@pytest.mark.parametrize(("n", "rows"), [(20, 5), (12, 12)])
def test_fewer_rows_than_columns_is_solved(n, rows):
    emp_cov = correlation(n, rows, 3)
    bound = spectral_bound(emp_cov)
    solved = graphical_lasso(emp_cov, 0.3, spectral_bound=bound)
    assert solved.converged
    assert_feasible(solved.precision, bound)
    assert (solved.precision == 0).any()


def test_no_penalty_and_a_singular_covariance_is_held_by_the_bound():
    emp_cov = correlation(6, 4, 0)
    bound = 50.0
    solved = graphical_lasso(emp_cov, 0.0, spectral_bound=bound, max_iter=5000)
    assert solved.bound_active
    assert_feasible(solved.precision, bound)
    assert extreme_eigenvalues(solved.precision)[1] == pytest.approx(bound, rel=1e-3)


def test_warm_start_takes_fewer_iterations_to_the_same_place():
    emp_cov = correlation(15, 60, 0)
    cold = graphical_lasso(emp_cov, 0.1, tol=1e-10)
    near = graphical_lasso(emp_cov, 0.11, tol=1e-10)
    warm = graphical_lasso(emp_cov, 0.1, init=near.precision, tol=1e-10)
    np.testing.assert_allclose(warm.precision, cold.precision, atol=1e-4)
    assert warm.n_iter <= cold.n_iter
    again = graphical_lasso(emp_cov, 0.1, init=cold.precision, tol=1e-8)
    assert again.n_iter <= 2
    ignored = graphical_lasso(emp_cov, 0.1, init=-np.eye(15), tol=1e-10)
    np.testing.assert_array_equal(ignored.precision, cold.precision)


def test_stopping_early_says_so():
    solved = graphical_lasso(correlation(10, 15, 0), 0.01, max_iter=2)
    assert not solved.converged
    assert "raise max_iter" in solved.message
    np.linalg.cholesky(solved.precision)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"emp_cov": np.ones((2, 3))}, "square"),
        ({"emp_cov": np.array([[1.0, 0.5], [0.1, 1.0]])}, "not symmetric"),
        ({"emp_cov": np.array([[1.0, np.nan], [np.nan, 1.0]])}, "NaN"),
        ({"l1_penalty": -1.0}, "l1_penalty"),
        ({"l1_penalty": np.nan}, "l1_penalty"),
        ({"l1_penalty": True}, "l1_penalty must be a finite number"),
        ({"ridge": True}, "ridge must be a finite number"),
        ({"coupling": 1.0}, "needs an anchor"),
        ({"coupling": 1.0, "anchor": np.eye(3)}, "anchor has shape"),
        ({"spectral_bound": 0.0}, "spectral_bound"),
        ({"emp_cov": np.empty((0, 0))}, "square"),
        ({"emp_cov": np.array([["a", "b"], ["c", "d"]])}, "matrix of numbers"),
        ({"emp_cov": np.diag([1.0, -1.0])}, r"negative variance for variable 1:"),
        ({"emp_cov": np.diag([0.0, 1.0])}, r"no variance in variable 0:"),
        ({"emp_cov": np.zeros((5, 5))}, r"no variance in variables 0, 1, 2 and 2 more"),
        ({"l1_penalty": "much"}, "l1_penalty must be a finite number"),
        ({"l1_penalty": np.ones((3, 3))}, r"l1_penalty has shape \(3, 3\)"),
        ({"l1_penalty": np.array([[0.0, 1.0], [0.5, 0.0]])}, "l1_penalty is not symmetric"),
        ({"l1_penalty": np.array([[0.0, np.inf], [np.inf, 0.0]])}, "known_zeros"),
        ({"l1_penalty": np.full((2, 2), -1.0)}, ">= 0"),
        ({"known_zeros": np.eye(2, dtype=bool)}, "diagonal of a precision matrix is positive"),
        ({"known_zeros": np.array([[False, True], [False, False]])}, r"\(0, 1\) and \(1, 0\) are one entry"),
        ({"known_zeros": np.zeros((3, 3), dtype=bool)}, "known_zeros must be"),
        ({"known_zeros": np.full((2, 2), 0.5)}, "known_zeros must be"),
        ({"init": np.eye(3)}, "init has shape"),
        ({"init": np.full((2, 2), np.nan)}, "init holds NaN"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 2.5}, "max_iter"),
        ({"tol": "tight"}, "tol"),
        ({"coupling": np.array([1.0, 2.0]), "anchor": np.eye(2)}, "coupling must be a finite number"),
        ({"l1_penalty": [["a", "b"], ["c", "d"]]}, "matrix of numbers"),
        ({"coupling": "strong", "anchor": np.eye(2)}, "coupling must be a finite number"),
        ({"emp_cov": np.eye(2) * 1e-320}, "variance below 1e-300 for variables 0, 1: .* rescale"),
        ({"emp_cov": np.eye(2) * 1e-320, "spectral_bound": 1.0}, "variance below 1e-300"),
        ({"emp_cov": np.eye(2) + 0j}, "emp_cov holds complex numbers: pass its real part"),
        ({"emp_cov": [[1.0, 1j], [-1j, 1.0]]}, "emp_cov holds complex numbers"),
        ({"l1_penalty": np.full((2, 2), 0.1 + 1j)}, "l1_penalty holds complex numbers"),
        ({"l1_penalty": 0.1 + 1j}, "l1_penalty must be a finite number"),
        ({"anchor": np.eye(2) + 0j, "coupling": 1.0}, "anchor holds complex numbers"),
        ({"init": np.eye(2) + 0j}, "init holds complex numbers"),
        ({"ridge": 1e300}, "ridge=1e.300 is so large .* lower it"),
        ({"ridge": 1e300, "anchor": np.eye(2), "coupling": 1.0}, "ridge=1e.300 is so large .* lower it"),
        ({"coupling": 1e300, "anchor": np.eye(2)}, "coupling=1e.300 is too large for float64: lower it"),
        ({"coupling": 1e90, "anchor": 1e90 * np.eye(2)}, "coupling=1e.90 is too large .* beside this anchor"),
        ({"spectral_bound": 1e-300}, "spectral_bound=1e-300 is too small for float64: raise it"),
        ({"spectral_bound": 1e-30, "ridge": 1e-4}, "too small for float64 beside ridge=0.0001: raise it"),
    ],
)
def test_bad_input_is_named(change, sentence):
    arguments = {"emp_cov": np.eye(2), "l1_penalty": 0.1} | change
    with pytest.raises(InputError, match=sentence):
        graphical_lasso(arguments.pop("emp_cov"), arguments.pop("l1_penalty"), **arguments)


def test_a_matrix_that_is_no_covariance_is_called_so():
    for l1_penalty, options in ((0.1, {}), (0.0, {}), (0.1, {"penalize_diagonal": True})):
        solved = graphical_lasso(np.array([[1.0, 5.0], [5.0, 1.0]]), l1_penalty, max_iter=50, **options)
        assert solved.status == "indefinite"
        assert "not a covariance: eigenvalue -4" in solved.message
        assert "max_iter" not in solved.message
        np.linalg.cholesky(solved.precision)
    units = np.diag([1e-3, 1e-3, 1e3])  # seen in the variables' own units, not beside the largest eigenvalue
    assert graphical_lasso(units @ [[1, 5, 0], [5, 1, 0], [0, 0, 1]] @ units, 0.0).status == "indefinite"
    assert graphical_lasso([[1.0, 5.0], [5.0, 1.0]], 4.5).converged  # the penalty makes up for it
    assert graphical_lasso(correlation(10, 15, 0), 0.01, max_iter=2).status == "max_iter"


@pytest.mark.parametrize(
    "options", [{}, {"spectral_bound": 0.5}, {"ridge": 10.0}, {"anchor": np.eye(8), "coupling": 1}]
)
def test_no_zero_is_negative(options):
    solved = graphical_lasso(correlation(8, 40, 0), 0.3, **options)
    assert (solved.precision == 0).any()
    assert not np.signbit(solved.precision[solved.precision == 0]).any()


def test_other_kinds_of_arrays_give_the_same_answer():
    emp_cov = correlation(8, 40, 0)
    frozen = emp_cov.copy()
    frozen.flags.writeable = False
    expected = graphical_lasso(emp_cov, 0.1).precision
    for other in (frozen, np.asfortranarray(emp_cov), emp_cov.tolist(), emp_cov.astype(">f8")):
        np.testing.assert_allclose(graphical_lasso(other, 0.1).precision, expected, rtol=1e-12)


def test_sample_covariance_counts_weights_as_rows(rng):
    X, weight = rng.normal(size=(10, 3)), rng.integers(0, 4, 10)
    np.testing.assert_allclose(sample_covariance(X, weight), sample_covariance(np.repeat(X, weight, axis=0)))
    np.testing.assert_allclose(sample_covariance(X), np.cov(X.T, bias=True))


def test_sample_precision_inverts_and_survives_a_singular_covariance():
    regular = covariance(5, 100, 0)
    np.testing.assert_allclose(sample_precision(regular) @ regular, np.eye(5), atol=1e-8)
    singular = correlation(6, 3, 0)
    assert extreme_eigenvalues(sample_precision(singular))[1] == pytest.approx(1000.0, rel=1e-6)


def test_spectral_bound_overshoots_the_largest_eigenvalue_of_the_precision():
    emp_cov = covariance(5, 100, 0)
    assert spectral_bound(emp_cov, overshoot=2.0) == pytest.approx(2.0 * np.linalg.eigvalsh(np.linalg.inv(emp_cov))[-1])
