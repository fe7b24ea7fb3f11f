"""Theorem 1: what is drawn, what is solved, and how slopes are read off rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from precisionnet.errors import FitDivergedError, InputError
from precisionnet.paper import build, judge_claims, slopes
from precisionnet.paper import theorem as theorem_module
from precisionnet.paper.config import Config
from precisionnet.paper.theorem import (
    ANCHORED,
    CONDITION_NUMBER,
    PLAIN,
    Theorem,
    draw_covariance,
    draw_direction,
    draw_truth,
    neighbours,
    regular_graph,
)
from precisionnet.paper.theorem_slopes import bounds_frame, constants, slopes_frame
from precisionnet.precision import spectral_bound
from precisionnet.runner.jobs import Job
from precisionnet.runner.worker import one_thread

BASE = {"vary": "n_samples", "n_samples": 400, "n_features": 12, "n_edges": 24}


def config(**changes):
    data = {
        "base": {"n_features": 20, "n_samples": 3200, "sparsity": 0.25},
        "n_samples": [800, 3200, 12800],
        "n_features": [20, 40, 80],
        "sparsity": [0.25, 0.5],
        "l1_scale": 2.0,
        "distances": [0.3, 1.0],
    }
    return Config(name="theorem", kind="theorem", repeats=2, data=data | changes)


@pytest.fixture(scope="module")
def measured():
    """A small run of everything, in this process."""
    experiment = build(config(), None)
    with one_thread():
        return [
            {"method": job.method, "repeat": job.repeat, **job.setting, **experiment.work(job, None, None).row}
            for job in experiment.jobs
        ]


@pytest.mark.parametrize("degree", [1, 4, 9, 11])
def test_every_feature_has_the_same_number_of_neighbours(degree, rng):
    edges = regular_graph(12, degree, rng)
    assert (edges[:, 0] < edges[:, 1]).all()
    assert len(np.unique(edges, axis=0)) == len(edges) == 6 * degree
    np.testing.assert_array_equal(np.bincount(edges.ravel(), minlength=12), degree)


@pytest.mark.parametrize(("size", "edges"), [(12, 24), (12, 48), (30, 60)])
def test_the_truth_has_the_same_condition_number_whatever_its_size(size, edges, rng):
    theta = draw_truth(size, edges, rng)
    assert np.count_nonzero(theta) == size + 2 * edges
    assert np.linalg.cond(theta) == pytest.approx(CONDITION_NUMBER)
    assert np.trace(np.linalg.inv(theta)) == pytest.approx(size)


def test_rows_have_the_inverse_of_the_truth_as_covariance(rng):
    theta = draw_truth(10, 20, rng)
    off = draw_covariance(theta, 200_000, rng) - np.linalg.inv(theta)
    assert np.abs(off).max() < 0.03


@pytest.mark.parametrize(("direction", "rank"), [("one", 1), ("all", 9)])
def test_a_direction_has_nuclear_norm_one(direction, rank, rng):
    away = draw_direction(direction, 9, rng)
    assert np.abs(np.linalg.eigvalsh(away)).sum() == pytest.approx(1.0)
    assert np.linalg.matrix_rank(away) == rank
    np.testing.assert_array_equal(away, away.T)


def solved_by(monkeypatch):
    """Everything that the solver is called with."""
    calls = []
    solver = theorem_module.graphical_lasso

    def spy(emp_cov, l1_penalty, **options):
        calls.append({"emp_cov": emp_cov, "l1_penalty": l1_penalty, **options})
        return solver(emp_cov, l1_penalty, **options)

    monkeypatch.setattr(theorem_module, "graphical_lasso", spy)
    return calls


def test_step_one_is_solved_as_the_theorem_has_it(monkeypatch):
    """Penalty l1_scale sqrt(log N / T), no ridge, coupling gamma / (1 - alpha), theta_task as far off as asked."""
    calls = solved_by(monkeypatch)
    work = Theorem(l1_scale=2.0, coupling=10.0)
    far = BASE | {"nuclear_distance": 3.0, "direction": "all"}
    row = work(Job(ANCHORED, 0, 5, far), None, None).row
    call = calls[0]
    assert call["l1_penalty"] == row["l1_penalty"] == pytest.approx(2.0 * np.sqrt(np.log(12) / 400))
    assert call["coupling"] == 20.0
    assert "ridge" not in call
    assert call["spectral_bound"] == spectral_bound(call["emp_cov"])
    truth = draw_truth(12, 24, np.random.default_rng([5, 0, 12, 24]))
    assert np.abs(np.linalg.eigvalsh(call["anchor"] - truth)).sum() == pytest.approx(3.0)
    assert row["bound_term"] == pytest.approx(np.sqrt((12 + 48) * np.log(12) / 400))
    assert (row["k_max"] / row["k_min"]) == pytest.approx(CONDITION_NUMBER)
    plain = work(Job(PLAIN, 0, 5, BASE), None, None).row
    assert "anchor" not in calls[1]
    np.testing.assert_array_equal(calls[0]["emp_cov"], calls[1]["emp_cov"])  # the same rows with and without theta_task
    assert plain["frobenius_error"] != row["frobenius_error"]


def test_a_job_is_the_same_whenever_it_is_done():
    work = Theorem(2.0, 10.0)
    assert pickle.dumps(work)
    rows = [work(Job(PLAIN, 0, 7, BASE), None, None).row for _ in range(2)]
    timed = {"fit_seconds", "tune_seconds"}
    assert {k: v for k, v in rows[0].items() if k not in timed} == {k: v for k, v in rows[1].items() if k not in timed}
    assert work(Job(PLAIN, 1, 8, BASE), None, None).row["frobenius_error"] != rows[0]["frobenius_error"]


def test_what_is_not_solved_is_no_result(monkeypatch):
    solver = theorem_module.graphical_lasso
    monkeypatch.setattr(theorem_module, "graphical_lasso", lambda *a, **k: solver(*a, **k, max_iter=1, tol=1e-15))
    with pytest.raises(FitDivergedError, match="Step 1 with N = 12 and T = 400 was not solved"):
        Theorem(0.01, 10.0)(Job(PLAIN, 0, 5, BASE), None, None)


def test_each_sweep_varies_one_quantity():
    experiment = build(config(), None)
    names = [job.name for job in experiment.jobs]
    assert len(set(names)) == len(names)
    assert len({job.seed for job in experiment.jobs}) == 2
    for vary, keys in {
        "n_samples": {"n_samples"},
        "n_features": {"n_features", "n_edges"},
        "sparsity": {"n_edges"},
        "nuclear_distance": set(),
    }.items():
        settings = [job.setting for job in experiment.jobs if job.setting["vary"] == vary and job.method == PLAIN]
        changing = {key for key in settings[0] if len({setting[key] for setting in settings}) > 1}
        assert changing == keys
    sizes = [job.setting for job in experiment.jobs if job.setting["vary"] == "n_features"]
    assert {2 * setting["n_edges"] / setting["n_features"] for setting in sizes} == {4.0}
    assert build(config(), None).data_hash == experiment.data_hash
    assert build(config(coupling=5.0), None).data_hash != experiment.data_hash


def test_levels_that_no_graph_has():
    assert neighbours(0.25, 20) == 4
    with pytest.raises(InputError, match="A sparsity of 0.05 leaves 20 features without an edge: the smallest is 0.1"):
        build(config(sparsity=[0.05]), None)
    with pytest.raises(InputError, match="the same graph with 20 features.*4 at 0.25, 4 at 0.26; leave some out"):
        build(config(sparsity=[0.25, 0.26]), None)
    with pytest.raises(InputError, match="no graph of 4 features with 4 neighbours each"):
        build(config(n_features=[4, 20]), None)
    odd = {"n_features": 20, "n_samples": 3200, "sparsity": 0.2}
    with pytest.raises(InputError, match="no graph of 15 features with 3 neighbours each"):
        build(config(n_features=[15], base=odd), None)


def test_measured_slopes_are_near_the_theorem(measured):
    found = {(slope.vary, slope.series): slope for slope in slopes(measured)}
    assert len(found) == 7
    assert found["n_samples", "glasso"].slope == pytest.approx(-0.5, abs=0.1)
    assert found["n_samples", "truth"].slope == pytest.approx(-0.5, abs=0.1)
    assert abs(found["n_samples", "far"].slope) < 0.1  # a theta_task that is off is not outvoted by rows
    assert 0.2 < found["n_features", "glasso"].slope < 0.6
    assert found["nuclear_distance", "one"].slope > 0.8  # the bound has 1/2
    fixed = constants(measured)
    assert fixed["m1_least"] <= fixed["m1"] < fixed["m1_proof"]
    assert fixed["m2"] < fixed["m2_proof"]
    assert fixed["penalty_covers_noise"] > 0.7
    assert len(slopes_frame(measured)) == 7


def test_measured_claims(measured):
    found = {claim["claim"]: claim["holds"] for claim in judge_claims("theorem", measured)}
    assert found["The error falls with the number of rows as T to a power within 0.05 of -1/2"] is not False
    assert next(holds for claim, holds in found.items() if claim.startswith("At each iteration")) is False
    assert all(holds for claim, holds in found.items() if claim.startswith("m"))


def power_law(exponent, levels, *, flat_below=0.0, repeats=(0, 1, 2), vary="n_samples", **more):
    """Rows whose error is exactly a power of the level, above a level, with a constant of each repeat's own."""
    key = vary if vary in ("n_samples", "nuclear_distance") else "n_samples"
    return [
        {"method": PLAIN, "vary": vary, "n_samples": 100, "n_features": 10, "n_edges": 20, "repeat": repeat,
         "frobenius_error": (1 + repeat) * max(level, flat_below) ** exponent, "bound_term": 1.0,
         "penalty_covers_noise": True, "bound_active": False, key: level, **more}
        for repeat in repeats for level in levels
    ]  # fmt: skip


def test_a_power_law_has_its_exponent_as_slope():
    (slope,) = slopes(power_law(-0.5, [100, 200, 400, 800]))
    assert slope.slope == pytest.approx(-0.5)
    assert slope.deviation == pytest.approx(0.0, abs=1e-12)
    assert slope.draws == 3
    (one,) = slopes(power_law(-0.5, [100, 200], repeats=[0]))
    assert one.slope == pytest.approx(-0.5)
    assert np.isnan(one.deviation)
    (none,) = slopes(power_law(-0.5, [100]))
    assert np.isnan(none.slope)


def test_the_upper_half_of_the_levels_is_judged():
    (slope,) = slopes(power_law(-0.5, [100, 200, 400, 800, 1600, 3200], flat_below=800))
    assert slope.levels == (800, 3200)
    assert slope.slope == pytest.approx(-0.5)
    assert slope.last == pytest.approx(-0.5)
    assert -0.4 < slope.overall < -0.1


def test_deviation_is_that_of_the_mean_over_repeats():
    exponents = [-0.4, -0.5, -0.6]
    rows = [row for i, e in enumerate(exponents) for row in power_law(e, [100, 200, 400], repeats=[i])]
    (slope,) = slopes(rows)
    assert slope.slope == pytest.approx(-0.5)
    assert slope.deviation == pytest.approx(np.std(exponents, ddof=1) / np.sqrt(3))


def test_distance_is_judged_between_the_noise_and_the_bound():
    levels = [0.0, 0.01, 0.1, 1.0, 10.0]
    error = dict(zip(levels, [0.05, 0.06, 0.2, 2.0, 3.0], strict=True))
    rows = power_law(1.0, levels, vary="nuclear_distance", direction="one")
    rows = [row | {"method": ANCHORED, "frobenius_error": error[row["nuclear_distance"]], "proof_m2": 100.0,
                   "bound_active": row["nuclear_distance"] == 10.0} for row in rows]  # fmt: skip
    (slope,) = slopes(rows)
    assert slope.levels == (0.1, 1.0)
    assert slope.slope == pytest.approx(1.0)


def test_a_rate_that_is_wrong_does_not_hold():
    rows = power_law(-0.3, [100, 200, 400, 800])
    (rate, *_) = judge_claims("theorem", rows)
    assert rate["holds"] is False
    assert "-0.30" in rate["numbers"]
    spread = [row for i, e in enumerate([-0.1, -0.5]) for row in power_law(e, [100, 200, 400], repeats=[i])]
    assert judge_claims("theorem", spread)[0]["holds"] is None  # within two standard errors


def test_rows_that_failed_count_for_nothing():
    rows = power_law(-0.5, [100, 200, 400])
    broken = [{"method": PLAIN, "vary": "n_samples", "n_samples": 800, "repeat": 0, "error": "not solved"}]
    assert slopes(rows + broken)[0].slope == slopes(rows)[0].slope
    assert judge_claims("theorem", broken) == []


def test_every_bound_is_kept_and_the_linear_ones_are_tighter(measured):
    """Without coupling the linear ones need little noise, and at these sizes there is more."""
    bounded = [row for row in measured if row["linear_bound"] is not None]
    assert {row["method"] for row in bounded} == {ANCHORED}
    for row in bounded:
        assert row["frobenius_error"] <= row["sharper_bound"] <= row["linear_bound"]
        assert row["frobenius_error"] <= row["paper_bound"]
        assert row["penalty_covers_noise"]
    away = [row for row in bounded if row.get("nuclear_distance")]
    assert away
    assert all(row["linear_bound"] < row["paper_bound"] for row in away)
    one = next(row for row in away if row["direction"] == "one")
    assert one["frobenius_distance"] == pytest.approx(one["nuclear_distance"])  # of rank one


def test_bounds_are_averaged_by_distance(measured):
    frame = bounds_frame(measured)
    assert set(frame["direction"]) <= {"one", "all"}
    assert (frame["kept"] == 1.0).all()
    part = [row for row in measured if row["vary"] == "nuclear_distance" and row.get("direction") == "one"]
    here = [row["linear_bound"] for row in part if row["nuclear_distance"] == 1.0 and row["linear_bound"] is not None]
    line = frame[(frame["direction"] == "one") & (frame["nuclear_distance"] == 1.0)]
    assert line["linear_bound"].item() == pytest.approx(np.mean(here))
    assert bounds_frame([]).empty
    assert bounds_frame([{"vary": "nuclear_distance", "method": ANCHORED}]).empty  # rows of before


def anchored(exponent, levels, distance, constant=1.0):
    """Rows of the sweep over T with theta_task at a distance."""
    rows = power_law(exponent, levels, nuclear_distance=distance, direction="one", method=ANCHORED, proof_m2=10.0)
    return [row | {"frobenius_error": constant * row["frobenius_error"]} for row in rows]


def told(rows, start):
    (claim,) = [claim for claim in judge_claims("theorem", rows) if claim["claim"].startswith(start)]
    return claim


T = [100, 200, 400, 800]


def test_convergence_is_told_as_it_came_out():
    start = "At each iteration"
    stays = told(anchored(-0.5, T, 0.0) + anchored(0.0, T, 1.0), start)
    assert stays["holds"] is False
    assert stays["numbers"].startswith("only where theta_task is at the truth")
    falls = told(anchored(-0.5, T, 0.0) + anchored(-0.5, T, 1.0), start)
    assert falls["holds"] is True
    assert "only" not in falls["numbers"]
    assert "allows" not in falls["numbers"]
    neither = told(anchored(0.0, T, 0.0) + anchored(0.0, T, 1.0), start)
    assert neither["holds"] is False
    assert "only" not in neither["numbers"]
    slowly = told(anchored(-0.5, T, 0.0) + anchored(-0.1, T, 1.0), start)
    assert slowly["holds"] is False  # it falls, but not at the rate
    assert "within 0.05 of -1/2" in slowly["claim"]


def distances(exponent, stopped_at=np.inf, proof_m2=100.0):
    rows = power_law(exponent, [0.0, 0.1, 1.0, 10.0], vary="nuclear_distance", direction="one", method=ANCHORED)
    error = [(1 + row["repeat"]) * max(row["nuclear_distance"], 1e-4) ** exponent for row in rows]
    return [
        row | {"frobenius_error": e, "proof_m2": proof_m2, "bound_active": row["nuclear_distance"] >= stopped_at}
        for row, e in zip(rows, error, strict=True)
    ]


def test_what_theta_task_adds_is_told_as_it_came_out():
    kept = told(distances(1.0, stopped_at=10.0), "m2 times")
    assert kept["holds"] is True
    assert "the bound is kept" in kept["numbers"]
    assert "not 1/2" in kept["numbers"]
    assert "the spectral bound M is first reached at distance 10" in kept["numbers"]
    root = told(distances(0.5), "m2 times")["numbers"]
    assert "not 1/2" not in root
    assert "within 0.05 of 1/2" in root
    assert "spectral bound M" not in root
    broken = told(distances(1.0, proof_m2=0.1), "m2 times")
    assert broken["holds"] is False
    assert "the bound is broken" in broken["numbers"]
    assert "kept" not in broken["numbers"]


def test_a_rate_is_told_without_reasons_that_no_number_shows():
    rate = told(power_law(-0.5, T), "The error falls")
    assert rate["holds"] is True
    assert "within 0.05 of" in rate["claim"]
    assert "saturates" not in rate["numbers"]
    assert "-0.50 over all T" in rate["numbers"]
    assert "nan" not in told(power_law(-0.5, [100]), "The error falls")["numbers"]
