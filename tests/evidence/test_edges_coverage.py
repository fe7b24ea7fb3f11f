"""Small simulations of what is claimed: coverage, false discoveries, groups, stability selection, centralities.

Margins are wide beside Monte Carlo errors; ``benchmarks/evidence/coverage.py`` has the large simulation.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from benchmarks.evidence.coverage import FAMILIES, draw_precision, draw_rows, judge, main, oracle_auroc

from precisionnet.evidence import edge_inference
from precisionnet.evidence.nodes import case_dropping
from precisionnet.evidence.observations import read_observations
from precisionnet.precision import partial_correlations


def simulated(n: int, t: int, distribution: str, draws: int, method: str) -> dict[str, float]:
    found = []
    for draw in range(draws):
        rng = np.random.default_rng([draw, n, t])
        theta = draw_precision(FAMILIES[draw % len(FAMILIES)], n, rng)
        result = edge_inference(draw_rows(theta, t, distribution, rng))
        assert (result.method, result.claims_coverage) == (method, True)
        found.append(judge(theta, result.edges, t))
    return {name: float(np.nanmean([one[name] for one in found])) for name in found[0]}


@pytest.mark.parametrize("distribution", ["gauss", "t5"])
@pytest.mark.parametrize(
    ("n", "t", "method"),
    [
        (20, 20, "desparsified"),
        (15, 75, "exact"),
        pytest.param(20, 60, "desparsified", marks=pytest.mark.slow),
        pytest.param(10, 200, "exact", marks=pytest.mark.slow),
    ],
)
def test_intervals_cover_and_discoveries_are_true(n, t, method, distribution) -> None:
    found = simulated(n, t, distribution, 42, method)
    assert 0.92 <= found["coverage_edges"] <= 0.985
    assert 0.935 <= found["coverage_zeros"] <= 0.98
    assert found["fdr"] <= 0.16


@pytest.mark.slow
@pytest.mark.parametrize("distribution", ["gauss", "t5", "t5_noise"])
@pytest.mark.parametrize(("n", "t", "method"), [(20, 20, "desparsified"), (40, 40, "desparsified"), (20, 100, "exact")])
def test_intervals_cover_over_many_draws(n, t, method, distribution) -> None:
    found = simulated(n, t, distribution, 210 if n == 20 else 70, method)
    assert 0.93 <= found["coverage_edges"] <= 0.975
    assert 0.94 <= found["coverage_zeros"] <= 0.975
    assert found["fdr"] <= 0.13


def test_a_gaussian_variance_would_not_cover_heavy_tails() -> None:
    """That the simulation can fail: Fisher's intervals, which are right for Gaussian rows, lose a tenth here."""
    covered = []
    for draw in range(20):
        rng = np.random.default_rng([draw, 7])
        theta = draw_precision("chain", 10, rng)
        r = edge_inference(draw_rows(theta, 200, "t5", rng)).edges["partial_correlation"].to_numpy()
        truth = partial_correlations(theta)[np.triu_indices(10, 1)]
        covered.append(np.mean(np.abs(np.arctanh(r) - np.arctanh(truth)) < 1.96 / np.sqrt(200 - 8 - 3)))
    assert np.mean(covered) < 0.91


@pytest.mark.parametrize("within", [0.0, 0.9])
def test_intervals_cover_when_rows_of_one_person_are_alike(within) -> None:
    covered, ignored = [], []
    for draw in range(40):
        rng = np.random.default_rng([draw, 11])
        theta = draw_precision(FAMILIES[draw % len(FAMILIES)], 10, rng)
        person = np.repeat(np.arange(60), 4)
        X = np.sqrt(within) * draw_rows(theta, 60, "gauss", rng)[person]
        X += np.sqrt(1 - within) * draw_rows(theta, 240, "gauss", rng)
        truth = partial_correlations(theta)[np.triu_indices(10, 1)]
        for groups, found in ((person, covered), (None, ignored)):
            edges = edge_inference(X, groups=groups).edges
            found.append(((edges["ci_low"] <= truth) & (truth <= edges["ci_high"])).mean())
    assert 0.93 <= np.mean(covered) <= 0.985
    assert np.mean(ignored) < 0.8 if within else np.mean(ignored) > 0.93


def test_true_edges_come_first() -> None:
    """Area under ROC on synthetic graphs, and that it is no better than what no estimate can beat."""
    found = simulated(20, 400, "gauss", 14, "exact")
    assert found["auroc"] >= 0.97
    assert found["auroc"] <= found["oracle_auroc"] + 0.01
    assert oracle_auroc(np.array([0.0]), 100) == pytest.approx(0.5, abs=1e-3)


def test_noise_has_few_sure_edges_by_any_method() -> None:
    rng = np.random.default_rng(0)
    for shape, runs in (((100, 10), 60), ((24, 20), 40), ((22, 60), 4)):
        sure = [len(edge_inference(rng.normal(size=shape), random_state=0).sure_edges) for _ in range(runs)]
        # no edge is true, so a discovery at q <= 0.1 is allowed in a tenth of the runs, and one false edge by frequency
        assert np.mean(np.array(sure) > 0) <= 0.25 if shape[1] < 60 else np.mean(sure) <= 1.0


def test_stability_selection_finds_strong_edges_and_keeps_its_bound() -> None:
    n_true, n_false = 0, 0
    for draw in range(4):
        rng = np.random.default_rng([draw, 3])
        theta = draw_precision("chain", 60, rng)
        result = edge_inference(draw_rows(theta, 29, "gauss", rng), random_state=draw)
        assert result.method == "stability"
        true = theta[result.sure_edges["source"].str[1:].astype(int), result.sure_edges["target"].str[1:].astype(int)]
        n_true, n_false = n_true + np.count_nonzero(true), n_false + np.count_nonzero(true == 0)
    assert n_true >= 8
    assert n_false <= 4


def test_a_strong_edge_is_named_where_all_columns_have_a_common_cause(rng) -> None:
    """Its correlation is smaller than those of pairs that the cause alone joins."""
    cause = rng.normal(size=(400, 1))
    X = np.hstack([2.0 * cause + 0.8 * rng.normal(size=(400, 13)), 0.6 * cause + rng.normal(size=(400, 2))])
    X[:, 14] += 0.8 * (X[:, 13] - 0.6 * cause[:, 0])
    edges = edge_inference(X, n_bootstraps=40, random_state=0).edges
    pair = edges.iloc[-1]
    size = np.abs(np.corrcoef(X.T)[np.triu_indices(15, 1)])
    assert (size > size[-1]).sum() > 50
    assert pair["selection_frequency"] > 0.9


@pytest.mark.slow
def test_intervals_of_strength_and_predictability_cover() -> None:
    """A chain with strong edges at many rows: all of them are found, and the graph's strengths are the truth's."""
    covered: dict[str, list[float]] = {"strength": [], "predictability": []}
    for draw in range(30):
        rng = np.random.default_rng([draw, 5])
        theta = np.eye(5) * 1.2 + 0.45 * (np.eye(5, k=1) + np.eye(5, k=-1))
        nodes = edge_inference(draw_rows(theta, 300, "t5", rng), n_bootstraps=200, random_state=draw).nodes
        off = np.abs(partial_correlations(theta)) - np.eye(5)
        truth = {
            "strength": off.sum(axis=0),
            "predictability": 1 - 1 / (np.diag(theta) * np.diag(np.linalg.inv(theta))),
        }
        for name, values in truth.items():
            covered[name].append(float(nodes[f"{name}_low"].le(values).mul(nodes[f"{name}_high"].ge(values)).mean()))
    assert np.mean(covered["strength"]) >= 0.87  # a false edge in the graph adds to a strength
    assert 0.89 <= np.mean(covered["predictability"]) <= 0.99


def test_the_stability_coefficient_is_high_for_clear_graphs_and_zero_for_noise() -> None:
    rng = np.random.default_rng(0)
    theta = np.eye(8)
    for i, j, value in ((0, 1, 0.5), (0, 2, 0.4), (0, 3, 0.3), (4, 5, 0.3)):
        theta[i, j] = theta[j, i] = value
    clear = edge_inference(draw_rows(theta, 2000, "gauss", rng), n_bootstraps=80, random_state=0)
    assert clear.stability >= 0.7
    assert clear.stability_curve is not None
    assert clear.stability_curve["n_people"].tolist()[:2] == [1800, 1600]
    assert edge_inference(rng.normal(size=(100, 8)), n_bootstraps=80, random_state=0).stability == 0.0


def test_dropping_people_drops_all_their_rows() -> None:
    data = read_observations(np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) // 3)
    seen = []

    def look(part):
        seen.append((part.n_people, np.bincount(part.person).tolist()))
        return np.arange(3.0)

    found = case_dropping(data, np.arange(3.0), look, 8, 16, np.random.default_rng(0), None)
    assert all(counts == [3] * n for n, counts in seen)
    assert found.curve["n_people"].tolist() == [18, 16, 14, 12, 10, 8]
    assert found.coefficient == 0.6


def test_the_simulation_appends_and_goes_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("benchmarks.evidence.coverage.FAMILIES", ("chain",))
    main(tmp_path / "rows.csv", quick=True)
    first = (tmp_path / "rows.csv").read_text()
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert set(rows["method"]) == {"desparsified", "exact"}
    (tmp_path / "rows.csv").write_text("".join(first.splitlines(keepends=True)[:-1]))
    main(tmp_path / "rows.csv", quick=True)
    again = pd.read_csv(tmp_path / "rows.csv")
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), rows.drop(columns="seconds"))


@pytest.mark.slow
def test_a_thousand_bootstraps_of_68_nodes_take_less_than_30_seconds_on_two_cores() -> None:
    """A quarter of them on one core, in time of the processor: what else the machine does is not counted."""
    rng = np.random.default_rng(0)
    X = draw_rows(draw_precision("small_world", 68, rng), 500, "gauss", rng)
    edge_inference(X, n_bootstraps=8)
    started = time.process_time()
    edge_inference(X, n_bootstraps=250, random_state=0, n_jobs=1)
    assert time.process_time() - started < 30.0 * 2 / 4
