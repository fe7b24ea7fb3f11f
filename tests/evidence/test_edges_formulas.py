"""Agreement with independent formulas and programs: Fisher's z, t-tests, least squares, NetworkX, R."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from precisionnet.evidence import edge_inference
from precisionnet.evidence.centrality import centralities
from precisionnet.evidence.desparsified import NeighbourhoodGraph, most_given, select_neighbours
from precisionnet.evidence.nodes import _on_all_others, _on_neighbours, multiplier_draws, predictability
from precisionnet.evidence.observations import read_observations
from precisionnet.evidence.pairs import pairs_of
from precisionnet.evidence.partial_correlation import saturated_graph
from precisionnet.evidence.stability_selection import StabilitySelection

GOLDEN = {
    line.split()[0]: np.array(line.split()[1:], dtype=float)
    for line in (Path(__file__).parent / "golden" / "values.txt").read_text().splitlines()
    if not line.startswith("#")
}


def golden_rows() -> np.ndarray:
    """The rows of ``golden/make.R``."""
    t, i = np.arange(1, 61)[:, None], np.arange(1, 7)
    rows = (t * (7 * i + 3) + t**2 * i + (t * i) % 11) % (17 + 6 * i)
    rows[:, 1] += rows[:, 0]
    rows[:, 3] -= rows[:, 2]
    return rows.astype(float)


def correlated(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)) @ (np.eye(n_columns) + 0.3 * rng.normal(size=(n_columns, n_columns)))


def test_partial_correlations_are_those_of_corpcor() -> None:
    found = edge_inference(golden_rows()).edges["partial_correlation"]
    np.testing.assert_allclose(found, GOLDEN["partial_correlation"], rtol=1e-9)


def test_p_values_agree_with_the_t_tests_of_r() -> None:
    """Not equal: these do not assume equal variances. No more than a factor of 1.5 in the statistic."""
    found = edge_inference(golden_rows()).edges["p_value"]
    ours, theirs = stats.norm.isf(found / 2), stats.norm.isf(GOLDEN["p_value"] / 2)
    clear = theirs > 0.5
    assert (ours[clear] / theirs[clear] > 1 / 1.5).all()
    assert (ours[clear] / theirs[clear] < 1.5).all()


def test_predictability_is_the_adjusted_r2_of_least_squares() -> None:
    nodes = edge_inference(golden_rows()).nodes
    np.testing.assert_allclose(nodes["predictability"], np.maximum(GOLDEN["adjusted_r2"], 0.0), rtol=1e-9)


def test_centralities_are_those_of_qgraph() -> None:
    edges = [(0, 1, 0.5), (0, 2, -0.25), (1, 2, 0.3), (2, 3, 0.4), (3, 4, -0.6), (4, 5, 0.2), (3, 5, 0.15)]
    first, second, weights = (np.array(column) for column in zip(*edges, strict=True))
    found = {name: value[0] for name, value in centralities(6, first, second, weights[None]).items()}
    np.testing.assert_allclose(found["strength"], GOLDEN["strength"], rtol=1e-12)
    np.testing.assert_allclose(found["expected_influence"], GOLDEN["expected_influence"], atol=1e-12)
    np.testing.assert_allclose(found["closeness"], 5 * GOLDEN["closeness"], rtol=1e-9)  # over a mean, not a sum
    np.testing.assert_allclose(found["betweenness"], GOLDEN["betweenness"] / 20, rtol=1e-9)  # a share of ordered pairs


@pytest.mark.parametrize("seed", range(4))
def test_centralities_are_those_of_networkx(seed) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(12, (0.1, 0.2, 0.4, 0.9)[seed], seed=seed)  # in parts, and nearly complete
    first, second = np.array(graph.edges).T
    weights = rng.uniform(0.1, 0.9, size=(3, len(first))) * rng.choice([-1, 1], size=(3, len(first)))
    found = centralities(12, first, second, weights)
    for number, row in enumerate(weights):
        for a, b, weight in zip(first, second, row, strict=True):
            graph.edges[a, b].update(size=abs(weight), length=1 / abs(weight), signed=weight)
        theirs = {
            "strength": dict(graph.degree(weight="size")),
            "expected_influence": dict(graph.degree(weight="signed")),
            "closeness": nx.closeness_centrality(graph, distance="length"),
            "betweenness": nx.betweenness_centrality(graph, weight="length"),
        }
        for name, values in theirs.items():
            np.testing.assert_allclose(found[name][number], [values[i] for i in range(12)], atol=1e-10, err_msg=name)


def test_paths_of_equal_length_share_their_betweenness() -> None:
    first, second = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])  # a square
    found = centralities(4, first, second, np.full((1, 4), 0.3))
    theirs = nx.betweenness_centrality(nx.Graph(list(zip(first, second, strict=True))))
    np.testing.assert_allclose(found["betweenness"][0], [theirs[i] for i in range(4)])


def test_gaussian_rows_give_the_intervals_of_fisher() -> None:
    X = correlated(20_000, 4)
    edges = edge_inference(X, level=0.9).edges
    z = np.arctanh(edges["partial_correlation"])
    reach = stats.norm.ppf(0.95) / np.sqrt(20_000 - 2 - 3)
    np.testing.assert_allclose(np.arctanh(edges["ci_low"]), z - reach, atol=0.06 * reach)
    np.testing.assert_allclose(np.arctanh(edges["ci_high"]), z + reach, atol=0.06 * reach)


def test_gaussian_rows_give_the_t_tests_of_regression_coefficients(rng) -> None:
    X = rng.normal(size=(20_000, 4))
    X[:, 0] += 0.02 * X[:, 1]
    found = edge_inference(X).edges["p_value"].iloc[0]
    design = np.column_stack([np.ones(len(X)), X[:, 1:]])
    beta, rss = np.linalg.lstsq(design, X[:, 0], rcond=None)[:2]
    error = np.sqrt(rss[0] / (len(X) - 4) * np.linalg.inv(design.T @ design)[1, 1])
    expected = 2 * stats.t.sf(abs(beta[1]) / error, len(X) - 4)
    assert stats.norm.isf(found / 2) == pytest.approx(stats.norm.isf(expected / 2), rel=0.04)


@pytest.mark.parametrize("groups", [None, "repeated"])
def test_both_programs_agree_where_all_nodes_are_neighbours(groups) -> None:
    X = correlated(100, 7)
    people = None if groups is None else np.random.default_rng(1).integers(0, 40, 100)
    data = read_observations(X, people)
    one, two = saturated_graph(data), NeighbourhoodGraph(data, np.ones((7, 7), dtype=bool))
    for name in ("correlation", "variance", "dof"):
        np.testing.assert_allclose(getattr(one.estimates(), name), getattr(two.estimates(), name), rtol=1e-8)
    pairs = pairs_of(7)
    np.testing.assert_allclose(one.influence(*pairs), two.influence(*pairs), rtol=1e-6, atol=1e-10)


def test_a_pair_given_its_neighbours_is_least_squares_on_them() -> None:
    X = correlated(40, 8)
    data = read_observations(X)
    joined = np.eye(8, dtype=bool)
    for i, j in ((0, 2), (1, 3), (1, 5)):
        joined[i, j] = joined[j, i] = True
    found = NeighbourhoodGraph(data, joined).estimates().correlation[0]  # nodes 0 and 1 given 2, 3, 5
    design = np.column_stack([np.ones(40), X[:, [2, 3, 5]]])
    residuals = X[:, :2] - design @ np.linalg.lstsq(design, X[:, :2], rcond=None)[0]
    assert found == pytest.approx(np.corrcoef(residuals.T)[0, 1], rel=1e-9)


def test_the_influence_of_a_row_is_what_its_weight_changes() -> None:
    """The derivative of z by a row's weight, by finite differences; leverage corrections are near one at T = 4000."""
    X = correlated(4000, 4)
    influence = saturated_graph(read_observations(X)).influence(*pairs_of(4))

    def z(weight: np.ndarray) -> np.ndarray:
        theta = np.linalg.inv(np.cov(X.T, aweights=weight, ddof=0))
        scale = np.sqrt(np.diag(theta))
        return np.arctanh(-(theta / scale[:, None] / scale)[pairs_of(4)])

    for row in (0, 17, 1234):
        up, down = np.ones(4000), np.ones(4000)
        up[row], down[row] = 1.01, 0.99
        np.testing.assert_allclose(influence[row], (z(up) - z(down)) / 0.02, rtol=0.02, atol=1e-6)


def test_a_union_of_neighbours_is_counted_right(rng) -> None:
    upper = np.triu(rng.random((9, 9)) < 0.3, 1)
    joined = upper | upper.T | np.eye(9, dtype=bool)
    by_hand = max(
        len({k for k in range(9) if joined[i, k] or joined[j, k]} - {i, j}) for i, j in zip(*pairs_of(9), strict=True)
    )
    assert most_given(joined) == by_hand
    assert most_given(np.eye(9, dtype=bool)) == 0


def test_neighbours_are_few_beside_the_people() -> None:
    for n_rows in (15, 40, 100):
        assert most_given(select_neighbours(read_observations(correlated(n_rows, 20)))) <= n_rows / 3


def test_draws_have_the_variance_of_the_interval(rng) -> None:
    graph = saturated_graph(read_observations(correlated(200, 5)))
    estimates = graph.estimates()
    draws = multiplier_draws(
        estimates.z, graph.influence(*pairs_of(5)), estimates.variance, rng.standard_normal((20_000, 200))
    )
    np.testing.assert_allclose(draws.mean(axis=0), estimates.z, atol=0.003)
    np.testing.assert_allclose(draws.var(axis=0), estimates.variance, rtol=0.06)


def test_predictability_given_neighbours_alone(rng) -> None:
    X = correlated(50, 4)
    joined = np.eye(4, dtype=bool)
    joined[0, 1] = joined[1, 0] = True
    found = predictability(read_observations(X), joined).values
    r2 = np.corrcoef(X[:, 0], X[:, 1])[0, 1] ** 2
    assert found[0] == pytest.approx(max(0.0, 1 - (1 - r2) * 49 / 48), rel=1e-9)
    assert found[2] == found[3] == 0.0


def test_one_inverse_gives_the_regressions_of_all_nodes() -> None:
    X = read_observations(correlated(60, 6)).X
    covariance = X.T @ X / 60
    one_by_one = _on_neighbours(X, covariance, np.ones((6, 6), dtype=bool))
    for one, other in zip(_on_all_others(X, covariance), one_by_one, strict=True):
        assert one[0] == other[0] == 5
        np.testing.assert_allclose(one[1], other[1], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(one[2], other[2], rtol=1e-8)


def test_the_bound_on_false_edges_by_hand() -> None:
    """Shah and Samworth's (8) with B = 50, q = 10 and p = 200: q^2 / p is 0.5."""
    selected = StabilitySelection(np.linspace(0, 1, 200), 10, 50)
    assert selected.false_edges(0.6) == pytest.approx(0.5 / (2 * (0.2 - 0.01)))
    assert selected.false_edges(0.9) == pytest.approx(0.5 * 4 * (0.1 + 0.01) / 1.02)
    assert selected.false_edges(0.5) == 200
    assert selected.false_edges(selected.threshold_for(0.3)) <= 0.3
    assert selected.false_edges(selected.threshold_for(0.3) - 0.01) > 0.3
    assert selected.bounds().set_index("frequency").loc[0.9, "n_edges"] == np.sum(np.linspace(0, 1, 200) >= 0.9)
