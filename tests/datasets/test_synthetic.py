"""The synthetic recipe: graph families, positive definiteness, rows, targets."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import cholesky, eigvalsh, solve_triangular

from precisionnet.datasets import (
    SyntheticDataset,
    make_gaussian_classification,
    make_gaussian_regression,
    make_sparse_precision,
)
from precisionnet.datasets.graphs import GRAPHS, density
from precisionnet.errors import InputError
from precisionnet.linalg import extreme_eigenvalues

FAMILIES = [name for name in GRAPHS if name != "random"]


def edges(theta):
    rows, cols = np.nonzero(np.triu(theta, 1))
    return np.column_stack([rows, cols])


def degrees(theta):
    return np.count_nonzero(theta, axis=0) - 1


def precision(n, graph="random", sparsity=None, condition_number=10.0, seed=0):
    return make_sparse_precision(n, sparsity, np.random.default_rng(seed), condition_number, graph)


@pytest.mark.parametrize("sparsity", [0.05, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("n", [5, 20, 60])
def test_precision_has_the_sparsity_and_condition_asked_for(n, sparsity):
    theta = precision(n, sparsity=sparsity)
    smallest, largest = extreme_eigenvalues(theta)
    assert np.array_equal(theta, theta.T)
    assert smallest > 0
    assert np.count_nonzero(theta) / n**2 == pytest.approx(max(sparsity, 1 / n), abs=1.01 / n**2 + 1 / n**2)
    if np.count_nonzero(theta) > n:
        assert largest / smallest == pytest.approx(10.0)
    assert np.trace(np.linalg.inv(theta)) / n == pytest.approx(1.0)


@given(
    graph=st.sampled_from(GRAPHS),
    n=st.integers(1, 40),
    sparsity=st.one_of(st.none(), st.floats(0.001, 1.0)),
    condition_number=st.floats(1.001, 1e8),
    seed=st.integers(0, 2**32),
)
def test_every_family_is_positive_definite_with_the_condition_asked_for(graph, n, sparsity, condition_number, seed):
    try:
        theta = precision(n, graph, sparsity, condition_number, seed)
    except InputError:
        assert graph != "random"
        assert sparsity is not None or (graph == "small_world" and n < 3)
        return
    assert np.array_equal(theta, theta.T)
    values = np.linalg.eigvalsh(theta)
    assert values[0] > 0
    expected = condition_number if np.count_nonzero(theta) > n else 1.0
    assert values[-1] / values[0] == pytest.approx(expected, rel=1e-13 * n * condition_number + 1e-9)
    assert np.trace(np.linalg.inv(theta)) / n == pytest.approx(1.0, rel=1e-12 * condition_number + 1e-9)
    if sparsity is not None and n > 1:
        off = abs(np.count_nonzero(theta) / n**2 - sparsity)
        exact = {"random": max(2 / n**2, 1 / n - sparsity), "hub": 2 / n**2, "chain": 2 / n**2}
        assert off <= exact.get(graph, 1 / n) + 1e-9


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_hundred_features(graph):
    smallest, largest = extreme_eigenvalues(precision(100, graph, condition_number=1e4))
    assert largest / smallest == pytest.approx(1e4)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_smallest_tables(graph, n):
    if graph == "small_world" and n < 3:
        with pytest.raises(InputError, match="at least 3 features"):
            precision(n, graph)
        return
    drawn = make_gaussian_regression(5, n, graph=graph, sparsity=None, random_state=0)
    assert np.linalg.eigvalsh(drawn.theta_true)[0] > 0
    assert drawn.X.shape == (5, n)
    if n == 1:
        assert drawn.theta_true == pytest.approx(np.ones((1, 1)))


def test_chain_is_tridiagonal():
    theta = precision(12, "chain")
    near = np.abs(np.subtract.outer(np.arange(12), np.arange(12))) <= 1
    assert np.array_equal(theta != 0, near)


@pytest.mark.parametrize("sparsity", [None, 0.3, 0.6, 1.0])
def test_banded_is_a_full_band(sparsity):
    theta = precision(20, "banded", sparsity)
    distance = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    bandwidth = distance[theta != 0].max()
    assert np.array_equal(theta != 0, distance <= bandwidth)
    assert bandwidth == {None: 2, 0.3: 3, 0.6: 7, 1.0: 19}[sparsity]


def test_hubs_by_default_share_the_other_features():
    theta = precision(40, "hub")
    assert sorted(degrees(theta), reverse=True) == [9] * 4 + [1] * 36
    assert nx.number_connected_components(nx.from_edgelist(edges(theta))) == 4


@pytest.mark.parametrize("sparsity", [0.06, 0.1, 0.2, 0.5, 0.7])
def test_every_edge_has_a_hub_at_an_end(sparsity):
    theta = precision(20, "hub", sparsity)
    pairs = edges(theta)
    n_hubs = pairs[:, 0].max() + 1
    assert n_hubs <= 10
    assert len(pairs) == round((sparsity * 400 - 20) / 2)
    assert degrees(theta)[:n_hubs].mean() > degrees(theta)[n_hubs:].mean()


def test_a_block_is_complete_and_alone():
    theta = precision(23, "block")
    sizes = [5, 5, 5, 5, 3]
    start = 0
    for size in sizes:
        inside = slice(start, start + size)
        assert (theta[inside, inside] != 0).all()
        assert np.count_nonzero(theta[inside]) == size**2
        start += size
    assert density(20, len(edges(precision(20, "block", 0.5)))) == 0.5


def test_a_small_world_has_its_neighbours_and_shortcuts():
    n, neighbors = 100, 4
    pairs = edges(precision(n, "small_world"))
    assert len(pairs) == n * neighbors // 2
    distance = pairs[:, 1] - pairs[:, 0]
    ring = np.minimum(distance, n - distance)
    assert 0.02 < np.mean(ring > neighbors // 2) < 0.25
    assert len(edges(precision(n, "small_world", 0.09))) == n * 8 // 2


def test_a_graph_may_be_given():
    pairs = [(0, 3), (2, 1)]
    drawn = make_gaussian_regression(10, 4, graph=pairs, random_state=0)
    assert edges(drawn.theta_true).tolist() == [[0, 3], [1, 2]]
    assert drawn.graph == "given"
    assert drawn.density == (4 + 2 * 2) / 16
    empty = make_gaussian_regression(10, 4, graph=[], random_state=0)
    assert np.array_equal(empty.theta_true, np.eye(4))


@pytest.mark.parametrize("graph", FAMILIES)
def test_a_density_that_is_only_near_is_said(graph):
    kept = make_gaussian_regression(10, 20, graph=graph, random_state=0)
    assert kept.notes == ()
    assert kept.density == np.count_nonzero(kept.theta_true) / 400
    if graph not in ("hub", "chain"):
        near = make_gaussian_regression(10, 20, graph=graph, sparsity=0.22, random_state=0)
        assert near.density != 0.22
        (note,) = near.notes
        assert f"{near.density:.4g}" in note


def as_it_was(n_samples, n_features, sparsity, seed):
    """The recipe of the first release, line by line: README and the estimators' tests rest on its numbers."""
    rng = np.random.default_rng(seed)
    rows, cols = np.triu_indices(n_features, k=1)
    n_edges = int(np.clip(round((sparsity * n_features**2 - n_features) / 2), 0, len(rows)))
    chosen = rng.choice(len(rows), size=n_edges, replace=False)
    theta = np.zeros((n_features, n_features))
    theta[rows[chosen], cols[chosen]] = rng.choice([-1.0, 1.0], n_edges) * rng.uniform(0.5, 1.0, n_edges)
    theta += theta.T
    values = eigvalsh(theta)
    theta[np.diag_indices(n_features)] = (values[-1] - 10.0 * values[0]) / 9.0 if n_edges else 1.0
    theta = theta * (float(np.trace(np.linalg.inv(theta))) / n_features)
    factor = cholesky(theta, lower=True)
    X = solve_triangular(factor, rng.standard_normal((n_features, n_samples)), lower=True, trans="T").T
    w = rng.standard_normal(n_features)
    noise = rng.standard_normal(n_samples) * np.sqrt(w @ np.linalg.solve(theta, w) / 10.0)
    return X, X @ w + noise, theta, w


@pytest.mark.parametrize(
    ("n", "rows", "sparsity", "stored"),
    [
        (20, 100, 0.2, (1.0509296596017703, 5.610082868260239, -2.4693855949720493)),
        (8, 120, 0.3, (-0.8899964203658107, -4.733228817060754, 0.94385249962237)),
        (4, 9, 0.1, None),
    ],
)
def test_random_graphs_are_the_ones_they_always_were(n, rows, sparsity, stored):
    drawn = make_gaussian_regression(rows, n, sparsity=sparsity, random_state=0)
    found = (drawn.X.to_numpy(), drawn.y.to_numpy(), drawn.theta_true, drawn.coefficients)
    for now, then in zip(found, as_it_was(rows, n, sparsity, 0), strict=True):
        assert np.array_equal(now, then)
    if stored:
        assert (drawn.X.iloc[0, 0], drawn.y.iloc[0], drawn.y.iloc[-1]) == pytest.approx(stored, rel=1e-9)
    if sparsity == 0.2:
        assert make_gaussian_regression(rows, n, random_state=0).X.equals(drawn.X)


@pytest.mark.parametrize("graph", GRAPHS)
def test_rows_have_that_precision_and_the_target_that_noise(graph):
    drawn = make_gaussian_regression(n_samples=100_000, n_features=6, graph=graph, random_state=0)
    empirical = np.linalg.inv(np.cov(drawn.X.to_numpy().T))
    np.testing.assert_allclose(empirical, drawn.theta_true, atol=0.03 * np.abs(drawn.theta_true).max())
    signal = drawn.X.to_numpy() @ drawn.coefficients
    assert np.var(signal) / np.var(drawn.y - signal) == pytest.approx(10.0, rel=0.03)


def test_the_seed_decides():
    first, second = (make_gaussian_regression(random_state=7) for _ in range(2))
    assert first.X.equals(second.X)
    assert first.y.equals(second.y)
    assert not first.X.equals(make_gaussian_regression(random_state=8).X)
    worlds = [make_gaussian_regression(graph="small_world", random_state=7).theta_true for _ in range(2)]
    assert np.array_equal(*worlds)


@pytest.mark.parametrize(("n_samples", "n_classes"), [(100, 2), (101, 3), (7, 7)])
def test_classes_are_balanced_cuts_of_the_regression_target(n_samples, n_classes):
    options = {"n_features": 5, "graph": "chain", "random_state": 3}
    drawn = make_gaussian_classification(n_samples, n_classes=n_classes, **options)
    numbers = make_gaussian_regression(n_samples, **options)
    assert drawn.X.equals(numbers.X)
    assert np.array_equal(drawn.theta_true, numbers.theta_true)
    sizes = drawn.y.value_counts()
    assert sorted(drawn.y.unique()) == list(range(n_classes))
    assert sizes.max() - sizes.min() <= 1
    assert (drawn.y[numbers.y.sort_values().index].diff().dropna() >= 0).all()
    assert f"{n_classes} classes" in drawn.description


@pytest.mark.parametrize("make", [make_gaussian_regression, make_gaussian_classification])
def test_it_is_a_data_set_whose_truth_stays_whole(make):
    drawn = make(random_state=0)
    assert isinstance(drawn, SyntheticDataset)
    assert isinstance(drawn.X.index, pd.RangeIndex)
    train, validation, test = drawn.split((0.6, 0.2, 0.2), seed=1)
    assert sorted(np.concatenate([part.X.index for part in (train, validation, test)])) == list(range(100))
    for part in (train, validation, test):
        assert part.theta_true is drawn.theta_true
        assert part.coefficients is drawn.coefficients
        assert part.y.index.equals(part.X.index)
    assert (train.graph, train.density) == ("random", 0.2)


@pytest.mark.parametrize("sparsity", [0.0, -0.1, 1.1, np.nan, np.inf, "0.2", True])
def test_impossible_sparsity_is_refused(sparsity):
    with pytest.raises(InputError, match="sparsity must be in"):
        make_gaussian_regression(sparsity=sparsity)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number at least 1, got 0: it is rows to draw"),
        ({"n_samples": 2.5}, "n_samples must be a whole number, got 2.5"),
        ({"n_features": 0}, "n_features must be a whole number at least 1"),
        ({"snr": 0.0}, "snr must be a number above 0, got 0"),
        ({"snr": -1.0}, "snr must be a number above 0, got -1"),
        ({"snr": np.inf}, "snr must be a number above 0, got"),
        ({"snr": np.nan}, "snr must be a number above 0, got nan"),
        ({"condition_number": 1.0}, "condition_number must be a number above 1 and at most 1e"),
        ({"condition_number": 1e11}, "condition_number must be a number above 1 and at most 1e"),
        ({"condition_number": np.nan}, "condition_number must be a number above 1"),
        ({"graph": "smal_world"}, "graph must be one of random, .*did you mean 'small_world'"),
        (
            {"graph": "chain", "sparsity": 0.9},
            "graph='chain' with 20 features is always 0.145, got 0.9: leave sparsity",
        ),
        ({"graph": "hub", "sparsity": 0.9}, "graph='hub' with 20 features lies between 0.06 and 0.775, got 0.9"),
        ({"graph": "small_world", "sparsity": 0.01}, "lies between 0.15 and 0.95, got 0.01"),
        ({"graph": [(0, 1)], "sparsity": 0.2}, "sparsity follows from the pairs"),
        ({"graph": [(0, 20)]}, r"Pair \(0, 20\) of graph is not within 0 and 19"),
        ({"graph": [(3, 3)]}, r"Pair \(3, 3\) of graph joins a feature to itself"),
        ({"graph": [(0, 1), (1, 0)]}, "more than once"),
        ({"graph": np.eye(20)}, r"graph must be .* or pairs of features .* \(20, 20\) and type float64"),
        ({"graph": [(0, 1), (2,)]}, "graph must be .* or pairs of features"),
        ({"random_state": -1}, "random_state must be None or a whole number from 0 on, got -1"),
        ({"random_state": "a"}, "random_state must be None or a whole number from 0 on, got 'a'"),
    ],
)
def test_bad_input_is_one_sentence(options, sentence):
    for make in (make_gaussian_regression, make_gaussian_classification):
        with pytest.raises(InputError, match=sentence):
            make(**options)


@pytest.mark.parametrize(
    ("n_classes", "sentence"),
    [
        (1, "n_classes must be a whole number at least 2, got 1"),
        (101, "100 rows cannot be cut into 101 classes"),
        (2.0, "n_classes must be a whole number, got 2.0"),
    ],
)
def test_impossible_classes_are_refused(n_classes, sentence):
    with pytest.raises(InputError, match=sentence):
        make_gaussian_classification(n_classes=n_classes)
