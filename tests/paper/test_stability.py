"""The experiment on stability: its jobs, slopes and bound read off rows, claims and page."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from precisionnet.errors import InputError
from precisionnet.evaluation.tuning import Tuning
from precisionnet.paper import build, judge_claims
from precisionnet.paper.config import Config
from precisionnet.paper.stability_slopes import bound_ratios, stability_slopes
from precisionnet.report.experiment_page import build_page, summary
from precisionnet.runner.run import run_experiment
from tests.test_report import Balanced

ROOT = Path(__file__).parents[2]
DATA = {"n_features": 6, "sparsity": 0.4, "n_fit": 60, "n_samples": [50, 200, 800]}
TINY = {"readout": ["mean"], "max_epochs": [2], "weight_steps": [3], "task_steps": [2]}


def config(**changes):
    settings = {"methods": ["joint", "vnn"], "repeats": 2, "data": DATA, "networks": TINY, "tuning": Tuning("none")}
    return Config(name="stability", kind="stability", **settings | changes)


@pytest.fixture(scope="module")
def experiment():
    return build(config(), None)


@pytest.fixture(scope="module")
def measured(experiment):
    return run_experiment(experiment, jobs=1)


def made_rows(power=-0.5, scale=1.0, source="drawn"):
    """Rows of three repeats whose differences follow a power of T, with a bound of twice as much."""
    T = np.array([50.0, 100.0, 200.0, 400.0])
    rows = []
    for repeat in range(3):
        change = (1.0 + 0.01 * repeat) * T**power
        rows.append(
            {"method": "joint", "repeat": repeat, "source": source, "slope": power, "n_rows": T.tolist(),
             "effective_rows": T.tolist(), "difference": change.tolist(), "bound": (2 * scale * change).tolist()}
        )  # fmt: skip
    return rows


def test_one_job_per_method_source_and_repeat(experiment):
    assert len(experiment.jobs) == 4
    assert {job.setting["source"] for job in experiment.jobs} == {"drawn"}
    json.dumps(dict(experiment.config))
    assert pickle.dumps(experiment.work)  # it travels to workers


def test_a_row_holds_a_whole_curve(measured):
    for row in measured:
        assert row["n_rows"] == [50, 200, 800]
        assert row["effective_rows"] == row["n_rows"]
        assert row["difference"][-1] < row["difference"][0]
        assert all(change <= bound for change, bound in zip(row["difference"], row["bound"], strict=True))
        assert np.isfinite(row["slope"])


def test_a_job_gives_the_same_numbers_again(experiment, measured):
    job = experiment.jobs[0]
    again = experiment.work(job, None, None).row
    kept = next(row for row in measured if row["job"] == job.name)
    np.testing.assert_allclose(again["difference"], kept["difference"], rtol=1e-9)


def test_slopes_are_those_of_the_rows():
    (slope,) = stability_slopes(made_rows(-0.4))
    assert slope.slope == pytest.approx(-0.4)
    assert slope.levels == (100.0, 400.0)  # three levels at least
    assert (slope.vary, slope.series, slope.theory) == ("drawn", "joint", -0.5)
    assert bound_ratios(made_rows())["drawn", "joint"] == pytest.approx(np.full(12, 2.0))


@pytest.mark.parametrize(("power", "holds"), [(-0.5, True), (-0.41, True), (-0.3, False), (-0.7, False)])
def test_the_rate_is_judged(power, holds):
    rate, bound = judge_claims("stability", made_rows(power))
    assert rate["holds"] is holds
    assert f"{power:+.2f}" in rate["numbers"]
    assert bound["holds"] is True


def test_a_bound_that_is_broken_is_told():
    assert judge_claims("stability", made_rows(scale=0.4))[-1]["holds"] is False


def test_a_slope_that_misses_by_chance_is_open():
    rows = made_rows()
    for row, power in zip(rows, (-0.2, -0.38, -0.56), strict=True):
        row["difference"] = (np.array(row["n_rows"]) ** power).tolist()
    assert judge_claims("stability", rows)[0]["holds"] is None


def test_page_and_summary(experiment, measured):
    head = {"name": "stability", "about": dict(experiment.about), "config": dict(experiment.config)}
    page = build_page(head, measured)
    parser = Balanced()
    parser.feed(page.html)
    assert parser.open == []
    assert "What is expected of an estimate, and what came out" in page.html
    assert "What the paper says" not in page.html
    assert "Joint, drawn rows" in page.html
    assert set(page.figures) == {"stability"}
    table = summary("stability", measured)
    assert list(table["method"]) == ["joint", "vnn"]
    assert (table["bound_ratio_min"] >= 1).all()


def test_a_page_of_failed_fits_alone():
    failed = [{"method": "joint", "repeat": 0, "source": "drawn", "error": "It did not work."}]
    page = build_page({"name": "stability", "about": {"kind": "stability"}, "config": {}}, failed)
    assert "No network has been measured" in page.verdict


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"methods": ["joint", "naive"]}, "The matrix of naive cannot be estimated from rows alone"),
        ({"methods": ["ridge"]}, "The matrix of ridge cannot"),
        ({"data": DATA | {"n_samples": [3]}}, "data.n_samples must be a whole number at least 4, got 3"),
        ({"data": DATA | {"cohort": "abdie"}}, "data.cohort must be one of abide, ants, adni"),
        ({"networks": TINY | {"order": [1, 2]}}, "networks.order has several values, and nothing is tuned"),
        ({"tuning": Tuning()}, "tuning.search must be 'none'"),
    ],
)
def test_configs_that_make_no_sense(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        build(config(**changes), None)


@pytest.mark.data
def test_a_cohort_has_fewer_rows_than_asked_for(data_folder):
    data = DATA | {"cohort": "abide", "cohort_samples": [100, 1035]}
    with pytest.raises(InputError, match="data.cohort_samples has 1035, and abide has 1035 rows"):
        build(config(data=data), data_folder)


@pytest.mark.data
def test_a_cohort(data_folder):
    data = DATA | {"cohort": "abide", "cohort_samples": [100, 400]}
    experiment = build(config(data=data, methods=["vnn"], repeats=1), data_folder)
    job = next(job for job in experiment.jobs if job.setting["source"] == "abide")
    row = experiment.work(job, None, None).row
    np.testing.assert_allclose(row["effective_rows"], [100 * 1035 / 935, 400 * 1035 / 635])
    assert all(0 < change <= bound for change, bound in zip(row["difference"], row["bound"], strict=True))


def test_the_committed_rows_reach_what_was_asked_for_and_docs_have_their_slopes():
    table = pd.read_csv(ROOT / "results" / "stability" / "summary.csv").set_index(["source", "method"])
    for method in ("joint", "glasso"):
        assert abs(table.slope["drawn", method] + 0.5) <= 0.1
    assert (table.bound_ratio_min >= 1).all()
    text = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    for row in table.itertuples():
        assert f"{row.slope:+.2f} ± {row.standard_error:.2f}" in text


def test_the_slopes_of_the_papers_reading_are_those_of_its_rows():
    table = pd.read_csv(ROOT / "results" / "stability-paper" / "summary.csv").set_index(["source", "method"]).slope
    text = " ".join((ROOT / "docs" / "stability.md").read_text(encoding="utf-8").split())
    methods = ("joint", "glasso", "sample", "vnn")
    drawn = [f"{table['drawn', method]:+.2f}" for method in methods]
    assert "{} (Joint), {} (GL), {} (Sample) and {} (VNN)".format(*drawn) in text
    assert "on ABIDE {}, {}, {} and {}".format(*(f"{table['abide', method]:+.2f}" for method in methods)) in text
