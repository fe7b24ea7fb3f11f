"""Covariances from batches, gaps, ranks and few rows: exact where algebra is exact, optimal where something is optimised."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, spearmanr
from sklearn.covariance import OAS, LedoitWolf

from precisionnet import GraphicalLasso
from precisionnet.errors import InputError
from precisionnet.evidence import edge_inference
from precisionnet.linalg import psd_projection
from precisionnet.memory import gigabytes
from precisionnet.precision import (
    StreamingMoments,
    covariance,
    em_covariance,
    estimate_covariance,
    nonparanormal_correlation,
    pairwise_covariance,
    sample_covariance,
)
from precisionnet.precision.covariance import NormalScores, nearest_correlation
from precisionnet.precision.estimation import estimate_from_moments
from precisionnet.precision.missing import gaussian_score, squared_distances


def rows(n_samples: int, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_samples, n)) @ (np.eye(n) + 0.4 * rng.normal(size=(n, n)))


def with_gaps(X: np.ndarray, share: float, seed: int = 1) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def pandas_covariance(X: np.ndarray) -> np.ndarray:
    """Pair by pair, divided by n instead of the n - 1 that pandas insists on where something is missing."""
    counts = (~np.isnan(X)).astype(float).T @ ~np.isnan(X)
    return pd.DataFrame(X).cov().to_numpy() * (counts - 1) / counts


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference, in units of the standard deviations of b."""
    deviation = np.sqrt(np.diag(b))
    return float(np.abs((a - b) / np.outer(deviation, deviation)).max())


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=8),
    n=st.integers(1, 6),
    offset=st.sampled_from([0.0, -3.0, 1e6]),
    seed=st.integers(0, 2**31),
)
def test_batches_give_the_covariance_of_all_rows(sizes, n, offset, seed):
    X = rows(sum(sizes) + 2, n, seed) * 10.0 ** (np.arange(n) - n // 2) + offset
    moments = StreamingMoments.empty(n).update(X[:2])
    for end, size in zip(np.cumsum(sizes) + 2, sizes, strict=True):
        moments = moments.update(X[end - size : end])
    assert moments.n == len(X)
    assert relative(moments.covariance, sample_covariance(X)) < 1e-12
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=1e-12, atol=1e-12)
    assert np.array_equal(moments.covariance, moments.covariance.T)


def test_a_covariance_without_room_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(covariance, "MANY_COLUMNS", 10)
    monkeypatch.setattr(covariance, "free_memory", lambda: 16.0 * 20**2)
    X = np.random.default_rng(0).normal(size=(30, 21))
    sample_covariance(X[:, :20])
    for refused in (
        sample_covariance,
        lambda X: StreamingMoments.empty(X.shape[1]),
        GraphicalLasso().fit,
        GraphicalLasso().partial_fit,
        edge_inference,
    ):
        with pytest.raises(InputError, match="covariance of 21 columns .* graphical_lasso_from_rows, which stores no"):
            refused(X)
    assert [gigabytes(n) for n in (4.3e8, 2.1e10, 9.96e10, 3.21e12)] == ["0.43 GB", "21 GB", "100 GB", "3,210 GB"]


def test_one_row_at_a_time_far_from_zero_keeps_twelve_digits():
    X = np.round(rows(500, 4) * 2**20) / 2**20 + 2.0**26  # exact in float64, so that the answer is known
    moments = StreamingMoments.empty(4)
    for row in X:
        moments = moments.update(row[None])
    assert relative(moments.covariance, sample_covariance(X - 2.0**26)) < 1e-12
    np.testing.assert_allclose(moments.second_moment, X.T @ X / len(X), rtol=1e-12)


def test_an_update_leaves_the_state_before_it_alone():
    before = StreamingMoments.empty(3).update(rows(5, 3))
    scatter = before.scatter.copy()
    before.update(rows(4, 3, 1))
    assert before.n == 5
    np.testing.assert_array_equal(before.scatter, scatter)
    with pytest.raises(InputError, match="must have 3 columns"):
        before.update(np.ones((2, 4)))
    with pytest.raises(InputError, match="no rows yet"):
        _ = StreamingMoments.empty(2).covariance


def test_moments_of_parts_merge_to_those_of_all_rows():
    """Exact to rounding, with and without weights, in any grouping, far from zero."""
    X = rows(60, 3) + np.array([0.0, 1e6, -5.0])
    weight = np.linspace(0.5, 3.0, 60)
    parts = [StreamingMoments.empty(3).update(X[a:b], weight[a:b]) for a, b in ((0, 1), (1, 40), (40, 60))]
    whole = parts[0].merge(parts[1].merge(parts[2])).merge(StreamingMoments.empty(3))
    mean = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(whole.mean, mean, rtol=1e-14)
    np.testing.assert_allclose(whole.covariance, np.cov(X.T, aweights=weight, bias=True), rtol=1e-9, atol=1e-9)
    assert whole.n == pytest.approx(weight.sum())
    assert StreamingMoments.empty(3).merge(parts[1]) is parts[1]
    with pytest.raises(InputError, match="cannot be merged"):
        whole.merge(StreamingMoments.empty(2))


def test_nearest_correlation_is_a_correlation_and_nearest(rng):
    raw = rng.uniform(-1, 1, size=(6, 6))
    matrix = np.triu(raw, 1) + np.triu(raw, 1).T + np.eye(6)
    assert np.linalg.eigvalsh(matrix)[0] < -0.1
    nearest = nearest_correlation(matrix)
    assert np.linalg.eigvalsh(nearest)[0] > -1e-12
    np.testing.assert_array_equal(np.diag(nearest), 1.0)
    distance = np.linalg.norm(nearest - matrix)
    clipped = psd_projection(matrix)
    deviation = np.sqrt(np.diag(clipped))
    assert distance <= np.linalg.norm(clipped / np.outer(deviation, deviation) - matrix)
    for _ in range(100):  # no correlation matrix on the way to any other is nearer
        other = np.corrcoef(rng.normal(size=(6, 8)))
        for step in (1e-3, 1e-1):
            assert np.linalg.norm((1 - step) * nearest + step * other - matrix) >= distance - 1e-9
    proper = np.corrcoef(rng.normal(size=(6, 50)))
    assert nearest_correlation(proper) is proper


def test_pairwise_is_the_sample_covariance_where_nothing_is_missing():
    X = rows(30, 5)
    np.testing.assert_allclose(pairwise_covariance(X), sample_covariance(X), atol=1e-14)
    np.testing.assert_allclose(pairwise_covariance(X, assume_centered=True), X.T @ X / 30, atol=1e-14)


def test_pairwise_takes_each_entry_from_the_rows_its_pair_shares():
    X = with_gaps(rows(200, 5), 0.2)
    np.testing.assert_allclose(pairwise_covariance(X), pandas_covariance(X), atol=1e-12)


def test_pairwise_is_projected_and_keeps_the_variances():
    X = with_gaps(rows(25, 12), 0.5) * 10.0 ** np.arange(12)
    raw = pandas_covariance(X)
    scale = np.sqrt(np.diag(raw))
    assert np.linalg.eigvalsh(raw / np.outer(scale, scale))[0] < -0.01
    projected = pairwise_covariance(X)
    np.testing.assert_allclose(np.diag(projected), np.diag(raw), rtol=1e-12)
    assert np.linalg.eigvalsh(projected / np.outer(scale, scale))[0] > -1e-12
    units = 2.0 ** np.arange(-6, 6)  # another choice of units gives the same correlations
    np.testing.assert_allclose(pairwise_covariance(X * units), projected * np.outer(units, units), rtol=1e-6)


def test_columns_that_cannot_be_used_are_named():
    X = rows(10, 3)
    apart = X.copy()
    apart[:5, 0] = apart[5:, 2] = np.nan
    with pytest.raises(InputError, match="Columns 0 and 2 never have a value in the same row"):
        pairwise_covariance(apart)
    apart[5, 2] = 1.0
    with pytest.raises(InputError, match="Columns 'a' and 'c' have values together in only one row"):
        pairwise_covariance(apart, names=list("abc"))
    X[:, 1] = np.nan
    for estimate in (pairwise_covariance, em_covariance):
        with pytest.raises(InputError, match="Column 1 has no value at all"):
            estimate(X)
    X[0, 1] = 1.0
    with pytest.raises(InputError, match="Column 1 has only one value"):
        pairwise_covariance(X)
    with pytest.raises(InputError, match="Column 1 is constant"):
        em_covariance(X)


def test_em_on_complete_rows_is_the_sample_covariance():
    X = rows(40, 4) + 7.0
    for assume_centered in (False, True):
        result = em_covariance(X, assume_centered=assume_centered)
        about = np.zeros(4) if assume_centered else X.mean(axis=0)
        np.testing.assert_allclose(result.covariance, (X - about).T @ (X - about) / 40, rtol=1e-12)
        assert (result.converged, result.ridge, result.note) == (True, 0.0, "")


def test_em_for_two_columns_has_a_closed_form():
    """One column complete: regress the other on it where both are there (Anderson 1957)."""
    X = rows(60, 2) + [1.0, -2.0]
    X[40:, 1] = np.nan
    full, both = X[:, 0], X[:40]
    centred = both - both.mean(axis=0)
    slope = (centred[:, 0] @ centred[:, 1]) / (centred[:, 0] @ centred[:, 0])
    noise = np.mean((centred[:, 1] - slope * centred[:, 0]) ** 2)
    variance = full.var()
    result = em_covariance(X, tol=1e-12)
    expected = [[variance, slope * variance], [slope * variance, noise + slope**2 * variance]]
    np.testing.assert_allclose(result.covariance, expected, rtol=1e-8)
    mean = both[:, 1].mean() + slope * (full.mean() - both[:, 0].mean())
    np.testing.assert_allclose(result.mean, [full.mean(), mean], rtol=1e-8)


@pytest.mark.parametrize("share", [0.1, 0.35])
def test_em_never_lowers_the_likelihood_and_ends_at_a_maximum(share, rng):
    X = with_gaps(rows(80, 5), share)
    X = X[~np.isnan(X).all(axis=1)]

    def likelihood(mean, covariance):
        return gaussian_score(X, mean, np.linalg.inv(covariance))

    climb = []
    for max_iter in range(1, 25):
        result = em_covariance(X, max_iter=max_iter, tol=1e-13)
        climb.append(likelihood(result.mean, result.covariance))
        assert result.n_iter <= max_iter
    assert (np.diff(climb) > -1e-12).all()
    best = em_covariance(X, tol=1e-10)
    assert best.converged
    top = likelihood(best.mean, best.covariance)
    assert top >= climb[-1] - 1e-10
    root = np.linalg.cholesky(best.covariance)
    for _ in range(50):
        aside = root @ (np.eye(5) + 1e-3 * rng.normal(size=(5, 5)))
        assert likelihood(best.mean + 1e-3 * root @ rng.normal(size=5), aside @ aside.T) < top


def test_em_is_nearer_to_the_truth_than_pairs_and_undoes_selection():
    """The second column is only there where the first is high: its mean is biased in the rows that have it."""
    X = rows(2000, 4)
    truth = sample_covariance(X)
    gaps = X.copy()
    gaps[X[:, 0] < 0.3, 1] = np.nan
    em = em_covariance(gaps)
    assert abs(em.mean[1] - X[:, 1].mean()) < 0.3 * abs(np.nanmean(gaps[:, 1]) - X[:, 1].mean())
    assert relative(em.covariance, truth) < 0.5 * relative(pairwise_covariance(gaps), truth)


def test_em_works_with_fewer_rows_than_columns_and_says_so():
    X = with_gaps(rows(20, 30), 0.1)
    result = em_covariance(X)
    assert result.converged
    assert result.ridge > 0
    assert "pulled towards independent columns with a ridge of 0.1" in result.note
    assert np.linalg.eigvalsh(result.covariance)[0] > 0
    np.testing.assert_allclose(np.diag(result.covariance), np.nanvar(X, axis=0), rtol=0.8)
    with pytest.raises(InputError, match="singular"):
        em_covariance(X, ridge=0.0)
    assert "stopped after 3 iterations" in em_covariance(X, max_iter=3).note
    for bad in ({"tol": 0.0}, {"max_iter": 0}, {"ridge": -1.0}):
        with pytest.raises(InputError, match=next(iter(bad))):
            em_covariance(X, **bad)


def test_a_row_counts_with_what_is_present_in_it(rng):
    X = with_gaps(rows(30, 4), 0.4)
    X[0] = np.nan
    mean, root = rng.normal(size=4), rng.normal(size=(4, 6))
    covariance = root @ root.T
    precision = np.linalg.inv(covariance)
    expected, distances = [], np.zeros(30)
    for t, row in enumerate(X):
        o = np.flatnonzero(~np.isnan(row))
        if len(o):
            block = covariance[np.ix_(o, o)]
            expected.append(multivariate_normal(mean[o], block).logpdf(row[o]))
            distances[t] = (row[o] - mean[o]) @ np.linalg.solve(block, row[o] - mean[o])
    assert gaussian_score(X, mean, precision) == pytest.approx(np.mean(expected))
    np.testing.assert_allclose(squared_distances(X, mean, precision)[0], distances, atol=1e-10)
    with pytest.raises(InputError, match="no value to score"):
        gaussian_score(X[:1], mean, precision)


def test_nonparanormal_is_the_skeptic_and_blind_to_increasing_transforms():
    X = np.round(rows(80, 5), 1)  # with ties
    correlation = nonparanormal_correlation(X)
    expected = 2.0 * np.sin(np.pi / 6.0 * spearmanr(X).statistic)
    np.testing.assert_allclose(correlation, expected, atol=1e-12)
    np.testing.assert_array_equal(np.diag(correlation), 1.0)
    bent = np.column_stack([np.exp(X[:, 0]), X[:, 1] ** 3, np.arctan(X[:, 2]), 1e6 * X[:, 3] - 5, np.sinh(X[:, 4])])
    np.testing.assert_array_equal(nonparanormal_correlation(bent), correlation)
    few = nonparanormal_correlation(rows(6, 12))
    assert np.linalg.eigvalsh(few)[0] > -1e-12
    with pytest.raises(InputError, match="Column 1 is constant"):
        nonparanormal_correlation(np.array([[1.0, 2.0], [3.0, 2.0], [2.0, 2.0]]))


def test_normal_scores_are_gaussian_and_bounded_by_the_training_rows():
    X = np.exp(rows(400, 2))
    X[3, 1] = np.nan
    scores = NormalScores.fit(X)
    z = scores.transform(X)
    assert np.isnan(z[3, 1])
    assert np.nanmean(z) == pytest.approx(0.0, abs=1e-10)
    assert np.nanvar(z) == pytest.approx(1.0, abs=0.02)
    assert scores.transform(np.array([[1e9, -1e9]]))[0] == pytest.approx([np.nanmax(z[:, 0]), np.nanmin(z[:, 1])])


@pytest.mark.parametrize("n_samples", [8, 40, 500])
@pytest.mark.parametrize(("covariance", "theirs"), [("ledoit_wolf", LedoitWolf), ("oas", OAS)])
@pytest.mark.parametrize("assume_centered", [False, True])
def test_shrinkage_is_scikit_learns_on_complete_rows(n_samples, covariance, theirs, assume_centered):
    X = rows(n_samples, 6) + 0.5
    ours = estimate_covariance(X, covariance, assume_centered=assume_centered)
    fitted = theirs(assume_centered=assume_centered).fit(X)
    np.testing.assert_allclose(ours.emp_cov, fitted.covariance_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.location, fitted.location_)


@pytest.mark.parametrize("covariance", ["empirical", "ledoit_wolf", "oas", "nonparanormal"])
def test_every_covariance_goes_with_every_treatment_of_gaps(covariance):
    X = rows(150, 5)
    complete = estimate_covariance(X, covariance).emp_cov
    for missing in ("pairwise", "em"):
        np.testing.assert_array_equal(estimate_covariance(X, covariance, missing).emp_cov, complete)
        gappy = estimate_covariance(with_gaps(X, 0.1), covariance, missing)
        assert relative(gappy.emp_cov, complete) < 0.2
        assert np.linalg.eigvalsh(gappy.emp_cov)[0] > 0
        assert gappy.n_samples == 150
    with pytest.raises(InputError, match="Column 0, 1, 2 and 2 more has missing values: set missing='pairwise'"):
        estimate_covariance(with_gaps(X, 0.1), covariance)


@pytest.mark.parametrize("covariance", ["ledoit_wolf", "oas"])
def test_scale_free_shrinkage_does_not_depend_on_units(covariance):
    X, units = rows(20, 5), 10.0 ** np.arange(-2, 3)
    plain = estimate_covariance(X, covariance, scale_free=True).emp_cov
    scaled = estimate_covariance(X * units, covariance, scale_free=True).emp_cov
    np.testing.assert_allclose(scaled, plain * np.outer(units, units), rtol=1e-10)
    np.testing.assert_allclose(np.diag(plain), X.var(axis=0), rtol=1e-10)


@pytest.mark.parametrize("covariance", ["empirical", "oas"])
@pytest.mark.parametrize("options", [{}, {"assume_centered": True}, {"scale_free": True}])
def test_moments_give_what_rows_give(covariance, options):
    X = rows(40, 4) + 1.0
    whole = estimate_covariance(X, covariance, **options)
    batches = estimate_from_moments(StreamingMoments.empty(4).update(X[:13]).update(X[13:]), covariance, **options)
    np.testing.assert_allclose(batches.emp_cov, whole.emp_cov, rtol=1e-12)
    np.testing.assert_allclose(batches.location, whole.location, rtol=1e-12)


@pytest.mark.parametrize("missing", ["error", "pairwise", "em"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
def test_a_constant_column_is_named(missing, value):
    X = np.column_stack([rows(20, 2), np.full(20, value)])
    if missing != "error":
        X[3, 2] = np.nan
    with pytest.raises(InputError, match="Column 'flat' is constant: .* drop it, or bring rows"):
        estimate_covariance(X, "empirical", missing, names=["a", "b", "flat"])
