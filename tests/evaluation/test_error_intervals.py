"""Intervals of an error: right by hand, and right as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from precisionnet.evaluation.error_intervals import mean_interval, share_interval


def test_without_clusters_it_is_the_t_interval():
    losses = np.random.default_rng(0).exponential(size=30)
    low, high = stats.t.interval(0.95, 29, losses.mean(), stats.sem(losses))
    np.testing.assert_allclose(mean_interval(losses, range(30)), [losses.mean(), low, high])


def test_a_row_that_stands_there_twice_tells_nothing_new():
    losses = np.random.default_rng(0).exponential(size=30)
    np.testing.assert_allclose(
        mean_interval(np.repeat(losses, 2), np.repeat(np.arange(30), 2)), mean_interval(losses, range(30))
    )


@pytest.mark.parametrize("per_cluster", [1, 8])
def test_the_true_mean_is_held_as_often_as_promised(per_cluster):
    rng = np.random.default_rng(1)
    held = []
    for _ in range(1500):
        losses = np.repeat(rng.normal(size=20), per_cluster) + rng.normal(size=20 * per_cluster)
        _, low, high = mean_interval(losses, np.repeat(np.arange(20), per_cluster))
        held.append(low <= 0.0 <= high)
    assert 0.93 < np.mean(held) < 0.97


@pytest.mark.parametrize("share", [0.5, 0.97])
def test_shares_are_held_too_and_stay_within_zero_and_one(share):
    rng = np.random.default_rng(2)
    found = [share_interval(rng.random(60) < share, range(60)) for _ in range(1500)]
    assert 0.92 < np.mean([one.low <= share <= one.high for one in found]) < 0.985
    assert min(one.low for one in found) >= 0.0
    assert max(one.high for one in found) <= 1.0


def test_all_right_is_no_certainty():
    estimate = share_interval([True] * 20, range(20))
    assert (estimate.value, estimate.high) == (1.0, 1.0)
    assert 0.8 < estimate.low < 0.9


def test_one_cluster_has_no_interval():
    assert np.isnan(mean_interval([1.0, 2.0], ["a", "a"]).low)
    assert np.isnan(share_interval([True, False], ["a", "a"]).low)


@pytest.mark.parametrize("sizes", [[100, 60, 20, 10, 5], [150, 10, 10, 10, 10, 10], [184, 101, 57] + [36] * 17])
def test_clusters_of_unequal_size_do_not_make_it_too_short(sizes):
    rng = np.random.default_rng(3)
    cluster, held = np.repeat(np.arange(len(sizes)), sizes), []
    for _ in range(600):
        losses = 0.5 * rng.normal(size=len(sizes))[cluster] + rng.normal(size=len(cluster))
        _, low, high = mean_interval(losses, cluster)
        held.append(low <= 0.0 <= high)
    assert np.mean(held) > 0.92
