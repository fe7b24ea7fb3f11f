"""The convergence experiment: its step-size condition, its rows, what is judged by them, and its page."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from precisionnet.errors import InputError
from precisionnet.paper import build, builtin, judge_claims, load_config
from precisionnet.paper.config import Config
from precisionnet.paper.convergence import CHANGES, rises
from precisionnet.paper.convergence_rows import VARIANTS, convergence_frame
from precisionnet.precision.algorithm1_step1 import listing_curvature, listing_passes
from precisionnet.report.experiment_page import build_page, summary, write_results
from precisionnet.runner.run import run_experiment


def config(**data):
    return Config("convergence", "convergence", repeats=1, data={"tables": ["smooth"], "n_epochs": 3} | data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small run of everything that is drawn."""
    place = tmp_path_factory.mktemp("convergence") / "results"
    run_experiment(build(config(tables=["synthetic", "smooth"])), place, jobs=1)
    return place


@pytest.fixture(scope="module")
def rows(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_config_of_the_package_says_what_to_expect():
    full, quick = load_config(builtin("convergence")), load_config(builtin("convergence"), quick=True)
    assert full.data["n_epochs"] == 200
    assert set(full.data["tables"]) == {"abide", "ants", "synthetic", "smooth"}
    assert quick.data["n_epochs"] < full.data["n_epochs"]
    assert not {"abide", "ants"} & set(quick.data["tables"])
    assert all("minute" in text for text in full.expected.values())
    assert tuple(CHANGES) == VARIANTS


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"tables": ["abid"]}, "data.tables must be one of .*did you mean 'abide'"),
        ({"tables": []}, "data.tables must be a list"),
        ({"n_epochs": 0}, "data.n_epochs must be a whole number at least 1"),
        ({"n_epochs": None}, "data.n_epochs must be a whole number"),
        ({"rate": 1}, "rate"),
    ],
)
def test_mistakes_are_refused(data, sentence):
    with pytest.raises(InputError, match=sentence):
        config(**data)


def test_the_condition_is_told_before_anything_runs():
    experiment = build(config())
    (told,) = experiment.about["notes"]
    assert told.startswith("smooth: curvature + coupling is ")
    assert "2 / 0.01 = 200; the condition is met there" in told
    assert pickle.dumps(experiment.work)


def test_the_condition_separates_steps_that_descend_from_steps_that_do_not():
    """A step below 2 / curvature lowers what the listing descends on, a longer one raises it."""
    theta = np.diag([0.05, 1.0, 2.0])
    limit = 2.0 / listing_curvature(theta, coupling=3.0, ridge=0.0)
    assert limit == pytest.approx(2.0 / (1.0 / 0.05**2 + 3.0))
    solution, moved = np.linalg.inv(theta), theta + np.diag([1e-4, 0.0, 0.0])

    def distance(step):
        arguments = {"l1_penalty": 0.0, "coupling": 3.0, "bound": 100.0, "ridge": 0.0, "step": step}
        return np.linalg.norm(listing_passes(moved, solution, theta, **arguments, n_passes=1) - theta)

    assert distance(0.9 * limit) < 1e-4 < distance(1.1 * limit)


def test_rows_have_both_curves_from_the_start(rows):
    assert {(row["table"], row["method"]) for row in rows} == {
        (table, variant) for table in ("synthetic", "smooth") for variant in VARIANTS
    }
    for row in rows:
        assert len(row["objective"]) == len(row["stationarity"]) == row["n_epochs"] + 1 == 4
        assert np.isfinite(row["mae"])
        assert 1 <= row["kept_epoch"] <= 3
        steps = np.diff(row["objective"])
        assert row["objective_rises"] == (steps > 0).sum()
        if row["method"] == "monotone":
            assert row["objective_rises"] == 0
    starts = {(row["table"], row["objective"][0], row["curvature"]) for row in rows}
    assert len(starts) == 2  # the three variants of a table begin at the same place


def test_rises():
    assert rises([3.0, 1.0, 2.0, 2.0], "x") == {"x_rises": 1, "x_largest_rise": 1.0}
    assert rises([3.0], "x") == {"x_rises": 0, "x_largest_rise": 0.0}


def test_what_is_promised_is_judged_by_the_rows(rows):
    long = [{**row, "stationarity": [1.0, 1e-4]} if row["table"] == "smooth" else {**row} for row in rows]
    for row in long:
        row["mae"] = 1.0
    assert [claim["holds"] for claim in judge_claims("convergence", long)] == [True, True, True, True]
    for row in long:
        if row["method"] == "monotone":
            row |= {"objective_rises": 1, "mae": 1.03, "stationarity": [1.0, 0.01]}
        if row["method"] == "listing" and row["table"] == "synthetic":
            row["curvature"] = 500.0
    broken = judge_claims("convergence", long)
    assert [claim["holds"] for claim in broken] == [False, False, False, False]
    assert "Synthetic +3.0%" in broken[2]["numbers"]
    assert "Synthetic 500" in broken[3]["numbers"]
    assert judge_claims("convergence", []) == []


def test_the_page_shows_curves_and_statements(folder, rows):
    page = write_results(folder)
    assert "The objective rose with listing in " in page.verdict
    assert "What is said of convergence" in page.html
    assert "What the paper says" not in page.html
    assert page.html.count("<figure") == 4
    assert "mathdefault" not in page.html
    for name in ("index.html", "summary.csv", "figure-convergence.svg"):
        assert (folder / name).exists()
    frame = summary("convergence", rows)
    assert len(frame) == 6
    assert set(convergence_frame(rows)["method"]) == set(VARIANTS)
    manifest = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
    unfinished = build_page(manifest, rows[:1], 6)
    assert not unfinished.claims
    failed = [{"method": "listing", "table": "smooth", "repeat": 0, "error": "it broke"}]
    assert build_page(manifest, failed, 6).verdict == "No variant has finished yet."


@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
def test_a_listing_that_diverges_is_a_result(monkeypatch):
    """With a coupling beyond the limit every pass of the listing overshoots by three times what it should go."""
    from precisionnet.paper import convergence

    monkeypatch.setitem(convergence.CHANGES, "listing", {"step1": "paper", "ridge": 0.0, "coupling": 400.0})
    experiment = build(config(tables=["synthetic"], n_epochs=6))
    assert "the listing may raise the objective, or diverge" in experiment.about["notes"][0]
    job = next(job for job in experiment.jobs if job.method == "listing")
    row = experiment.work(job, None, None).row
    assert "The fit diverged in epoch" in row["diverged"]
    assert row["n_epochs"] < 6
    assert row["curvature"] > row["curvature_limit"]
    assert len(row["objective"]) == row["n_epochs"] + 1
