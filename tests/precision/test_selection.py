"""Choosing a penalty: the criteria by their formulas, their choices by the graphs they find."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet.errors import InputError
from precisionnet.precision import (
    adaptive_graphical_lasso,
    count_edges,
    ebic,
    graphical_lasso,
    graphical_lasso_path,
    partial_correlations,
    penalty_grid,
    sample_covariance,
    select_by_ebic,
    stars,
)
from precisionnet.precision.estimation import EstimationPlan
from precisionnet.precision.penalties import edge_weights
from precisionnet.precision.selection import cross_validate, stars_subsample_size


def chain(n: int, strength: float = 0.4) -> np.ndarray:
    theta, i = np.eye(n), np.arange(n - 1)
    theta[i, i + 1] = theta[i + 1, i] = -strength
    return theta


def draw(theta: np.ndarray, n_samples: int, seed: int) -> np.ndarray:
    root = np.linalg.cholesky(np.linalg.inv(theta))
    return np.random.default_rng(seed).normal(size=(n_samples, len(theta))) @ root.T


def edge_f1(found: np.ndarray, truth: np.ndarray) -> float:
    upper = np.triu_indices(len(truth), k=1)
    a, b = found[upper] != 0, truth[upper] != 0
    return 2 * np.sum(a & b) / (a.sum() + b.sum())


TRUTH = chain(20)
CHANCE = 2 * 19 / (190 + 19)
"""F1 of joining every pair; 0.18."""


def test_ebic_is_its_formula(rng):
    root = rng.normal(size=(5, 9))
    emp_cov, theta = root @ root.T, np.eye(5)
    theta[0, 3] = theta[3, 0] = 0.3
    n, gamma = 70, 0.25
    likelihood = n / 2 * (np.linalg.slogdet(theta)[1] - np.trace(emp_cov @ theta))
    assert ebic(theta, emp_cov, n, gamma) == pytest.approx(
        -2 * likelihood + np.log(n) + 4 * gamma * np.log(5), rel=1e-12
    )
    with pytest.raises(InputError, match="gamma"):
        ebic(theta, emp_cov, n, 2.0)
    with pytest.raises(InputError, match="n_samples"):
        ebic(theta, emp_cov, 0)
    with pytest.raises(InputError, match="positive definite"):
        ebic(-theta, emp_cov, n)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ebic_finds_the_chain(seed):
    emp_cov = sample_covariance(draw(TRUTH, 300, seed))
    path = graphical_lasso_path(emp_cov, penalty_grid(emp_cov))
    chosen = select_by_ebic(path, emp_cov, 300)
    assert chosen.scores[chosen.index] == chosen.scores.min()
    assert edge_f1(path[chosen.index].precision, TRUTH) > 0.6 > 3 * CHANCE  # measured: 0.65 to 0.84 over ten seeds
    sparser = select_by_ebic(path, emp_cov, 300, gamma=1.0)
    assert count_edges(path[sparser.index].precision) <= count_edges(path[chosen.index].precision)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_stars_finds_the_chain(seed):
    X = draw(TRUTH, 300, seed)
    emp_cov = sample_covariance(X)
    chosen = stars(X, penalty_grid(emp_cov), random_state=seed)
    theta = graphical_lasso(emp_cov, chosen.l1_penalty).precision
    assert edge_f1(theta, TRUTH) > 0.75  # measured: 0.81 to 0.95 over ten seeds
    assert chosen.instability[chosen.index] <= 0.05


def test_stars_counts_what_it_says(rng):
    """By hand, over the subsamples of the same generator."""
    X = draw(TRUTH, 60, 0)
    penalties = np.array([0.2, 0.6, 0.35])  # in any order
    chosen = stars(X, penalties, n_subsamples=4, threshold=0.2, random_state=3)
    draws = np.random.default_rng(3)
    graphs = []
    for _ in range(4):
        emp_cov = sample_covariance(X[np.sort(draws.choice(60, 48, replace=False))])
        graphs.append([result.precision != 0 for result in graphical_lasso_path(emp_cov, penalties)])
    share = np.mean(graphs, axis=0)
    upper = np.triu_indices(20, k=1)
    raw = np.array([np.mean(2 * f[upper] * (1 - f[upper])) for f in share])
    expected = np.array([raw.max(), raw[1], max(raw[1], raw[2])])
    np.testing.assert_allclose(chosen.instability, expected)
    within = [l1 for l1, value in zip(penalties, expected, strict=True) if value <= 0.2]
    assert chosen.l1_penalty == min(within)
    np.testing.assert_allclose(chosen.n_edges, [f[upper].sum() for f in share])
    np.testing.assert_allclose(chosen.selection_frequency, share[chosen.index] * (1 - np.eye(20)))


def test_stars_leaves_out_what_cannot_be_chosen():
    X = draw(TRUTH, 100, 0)
    grid = penalty_grid(sample_covariance(X))
    chosen = stars(X, grid, n_subsamples=5, random_state=0)
    known = ~np.isnan(chosen.instability)
    assert known.sum() in (5, 10, 15)
    assert known[: chosen.index + 2].all()
    assert (np.diff(chosen.instability[known]) >= 0).all()
    np.testing.assert_array_equal(np.isnan(chosen.n_edges), ~known)
    cut = stars(X, grid[known], n_subsamples=5, random_state=0)
    assert cut.l1_penalty == chosen.l1_penalty


def test_stars_takes_the_largest_penalty_where_none_is_stable():
    X = draw(TRUTH, 60, 0)
    chosen = stars(X, [0.1, 0.2], n_subsamples=3, threshold=1e-9, random_state=0)
    assert chosen.l1_penalty == 0.2
    assert (stars_subsample_size(144), stars_subsample_size(145), stars_subsample_size(400)) == (115, 120, 200)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"threshold": 0.7}, "threshold must be between 0 and 0.5"),
        ({"n_subsamples": 1}, "n_subsamples must be at least 2"),
        ({"subsample_size": 30}, "a subsample of 30 of 30 rows cannot be drawn"),
    ],
)
def test_stars_names_what_is_wrong(change, sentence):
    with pytest.raises(InputError, match=sentence):
        stars(draw(TRUTH, 30, 0), [0.1], **change)


def test_the_number_of_workers_changes_no_bit():
    X = draw(TRUTH, 100, 0)
    alone, together = (stars(X, [0.5, 0.3], n_subsamples=4, random_state=0, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(alone.instability, together.instability)
    splits = [(np.arange(50), np.arange(50, 100)), (np.arange(50, 100), np.arange(50))]
    for a, b in zip(*(cross_validate(X, splits, EstimationPlan(), 5, n_jobs=n) for n in (1, 2)), strict=True):
        np.testing.assert_allclose(a.scores, b.scores, rtol=1e-13)  # the last bit depends on where memory lies


def test_weights_lower_the_penalty_of_strong_edges_only():
    weights = edge_weights(TRUTH)
    np.testing.assert_array_equal(weights[TRUTH == 0], 1.0)
    np.testing.assert_array_equal(np.diag(weights), 1.0)
    assert weights[0, 1] == pytest.approx(1 / (1 + 0.4 / 0.1))
    assert edge_weights(TRUTH, floor=0.4)[0, 1] == pytest.approx(0.5)
    units = np.diag(10.0 ** np.arange(20))
    np.testing.assert_allclose(edge_weights(units @ TRUTH @ units), weights)
    with pytest.raises(InputError, match="floor"):
        edge_weights(TRUTH, floor=0.0)


@pytest.mark.parametrize("l1_penalty", [0.2, 0.3])
def test_reweighting_removes_most_of_the_bias(l1_penalty):
    """Mean error of the true edges: 0.14 and 0.19 plain, 0.044 and 0.054 after two rounds (five seeds)."""
    plain_error, error, f1 = [], [], []
    for seed in range(3):
        emp_cov = sample_covariance(draw(TRUTH, 400, seed))
        plain = graphical_lasso(emp_cov, l1_penalty)
        adaptive = adaptive_graphical_lasso(emp_cov, l1_penalty, n_reweights=2)
        edges = np.triu(TRUTH, k=1) != 0
        plain_error.append(np.abs(plain.precision - TRUTH)[edges].mean())
        error.append(np.abs(adaptive.precision - TRUTH)[edges].mean())
        f1.append(edge_f1(adaptive.precision, TRUTH) - edge_f1(plain.precision, TRUTH))
        assert adaptive.converged
    assert np.mean(error) < 0.5 * np.mean(plain_error)
    assert np.mean(f1) > 0.05


def test_reweighting_starts_where_it_is_told_and_keeps_known_zeros():
    emp_cov = sample_covariance(draw(TRUTH, 100, 0))
    plain = graphical_lasso(emp_cov, 0.2)
    assert adaptive_graphical_lasso(emp_cov, 0.2, n_reweights=0, first=plain) is plain
    assert adaptive_graphical_lasso(emp_cov, 0.0, n_reweights=2, first=plain) is plain  # nothing to reweight
    from_scratch = adaptive_graphical_lasso(emp_cov, 0.2, n_reweights=1)
    again = adaptive_graphical_lasso(emp_cov, 0.2, n_reweights=1, first=plain)
    np.testing.assert_array_equal(from_scratch.precision, again.precision)
    by_hand = graphical_lasso(emp_cov, 0.2 * edge_weights(plain.precision), tol=1e-10)
    np.testing.assert_allclose(again.precision, by_hand.precision, atol=1e-3)
    mask = np.zeros((20, 20), dtype=bool)
    mask[0, 1] = mask[1, 0] = True
    masked = adaptive_graphical_lasso(emp_cov, 0.1, n_reweights=2, known_zeros=mask)
    assert masked.precision[0, 1] == 0.0
    with pytest.raises(InputError, match="n_reweights"):
        adaptive_graphical_lasso(emp_cov, 0.2, n_reweights=-1)


def test_partial_correlations_and_edges_are_read_off():
    theta = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    expected = [[1.0, 0.5, 0.0], [0.5, 1.0, -0.5 / np.sqrt(2)], [0.0, -0.5 / np.sqrt(2), 1.0]]
    np.testing.assert_allclose(partial_correlations(theta), expected)
    assert count_edges(theta) == 2


def test_scale_free_solves_the_correlations():
    X = draw(TRUTH, 200, 0)
    units = 10.0 ** np.linspace(-3, 3, 20)
    plan = EstimationPlan(scale_free=True, tol=1e-9)
    plain, scaled = sample_covariance(X), sample_covariance(X * units)
    a, b = plan.solve(plain, 0.2), plan.solve(scaled, 0.2)
    np.testing.assert_allclose(b.precision * np.outer(units, units), a.precision, rtol=1e-6, atol=1e-8)
    deviation = np.sqrt(np.diag(plain))
    as_matrix = graphical_lasso(plain, 0.2 * np.outer(deviation, deviation), tol=1e-9)
    np.testing.assert_allclose(a.precision, as_matrix.precision, atol=1e-5)
    assert a.objective == pytest.approx(as_matrix.objective, rel=1e-7)
    assert plan.l1_max(plain) == pytest.approx(plan.l1_max(scaled))
    np.testing.assert_allclose(plan.solve(plain, 0.2, init=as_matrix.precision).precision, a.precision, atol=1e-5)
