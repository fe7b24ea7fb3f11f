"""Configs become experiments: the cohorts, the synthetic sweep, and the rows that each job is given."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import make_gaussian_regression
from precisionnet.datasets.neuro.regions import ADNI_CODES
from precisionnet.errors import InputError
from precisionnet.evaluation.comparison import TableSource
from precisionnet.evaluation.protocol import make_folds
from precisionnet.evaluation.tuning import Tuning
from precisionnet.paper import build
from precisionnet.paper.config import Config, builtin, load_config
from precisionnet.paper.synthetic import SyntheticSource
from precisionnet.runner.jobs import Job
from precisionnet.runner.run import run_experiment

NAMES = ("abide", "ants", "adni", "synthetic", "theorem", "stability")
TINY = {"n_layers": [1], "n_filters": [2], "order": [1, 2], "l1_scale": [1.0], "max_epochs": [1], "weight_steps": [2],
        "task_steps": [1], "readout_width": [4]}  # fmt: skip


def synthetic(**changes):
    data = {"n_features": 6, "n_samples": 60, "sparsity": [0.9, 0.3, 0.5], "tuned_at": 0.5, "snr": 10.0}
    settings = {"methods": ["joint", "glasso"], "repeats": 2, "networks": TINY, "data": data} | changes
    return Config(name="synthetic", kind="synthetic", **settings)


def adni_folder(folder, n=30, missing=0):
    """Thickness and people as ADNI writes them."""
    rng = np.random.default_rng(0)
    scans = pd.DataFrame({"RID": np.arange(n), "VISCODE2": "bl", "EXAMDATE": "2011-06-01", "OVERALLQC": "Pass"})
    scans["COLPROT"] = "ADNI2"
    thickness = pd.DataFrame(rng.uniform(1.5, 4, (n, len(ADNI_CODES))), columns=list(ADNI_CODES))
    thickness.iloc[:missing, 0] = np.nan
    pd.concat([scans, thickness], axis=1).to_csv(folder / "UCSFFSX51_11_08_19.csv", index=False)
    people = pd.DataFrame({"RID": np.arange(n), "VISCODE": "bl", "AGE": rng.uniform(60, 90, n)})
    people.assign(EXAMDATE="2011-06-01").to_csv(folder / "ADNIMERGE.csv", index=False)
    return folder


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_configs_of_the_package_are_valid_and_say_what_to_expect(name, quick):
    config = load_config(builtin(name), quick)
    assert config.name == name
    assert set(config.expected) == {"full", "quick"}
    assert all("minute" in text for text in config.expected.values())
    json.dumps(config.hashed())
    if config.kind in ("cohort", "synthetic"):
        assert {"joint", "glasso", "sample"} <= set(config.methods)
    if config.kind == "synthetic":
        assert "naive" in config.methods  # which the table of the cohorts has not


@pytest.mark.parametrize("name", NAMES)
def test_quick_runs_are_smaller(name):
    full, quick = load_config(builtin(name)), load_config(builtin(name), quick=True)
    assert quick.repeats < full.repeats
    assert set(quick.methods) <= set(full.methods)


@pytest.mark.parametrize("name", ["abide", "synthetic"])
def test_the_full_grid_is_the_papers(name):
    networks = load_config(builtin(name)).networks
    assert networks["n_layers"] == [1, 2, 3]
    assert networks["n_filters"] == [8, 16]
    assert networks["order"] == [1, 2, 3]
    assert networks["l1_scale"] == [1.0, 10.0, 20.0]
    config = load_config(builtin("synthetic"))
    assert (config.data["n_features"], config.data["n_samples"], config.data["tuned_at"]) == (20, 100, 0.2)
    assert config.repeats >= 5  # the paper has 5, which leave claims open
    assert config.fractions == (0.6, 0.2, 0.2)


def test_synthetic_jobs_are_tuned_at_one_level_and_reused_at_the_others():
    experiment = build(synthetic(), None)
    names = [job.name for job in experiment.jobs]
    assert len(set(names)) == len(names) == 2 * 2 * 3
    for place, job in enumerate(experiment.jobs):
        if job.setting["sparsity"] == 0.5:
            assert job.after is None
        else:
            earlier = experiment.jobs[names.index(job.after)]
            assert names.index(job.after) < place
            assert (earlier.method, earlier.repeat, earlier.seed) == (job.method, job.repeat, job.seed)
            assert earlier.setting["sparsity"] == 0.5
    seeds = {(job.repeat, job.seed) for job in experiment.jobs}
    assert len(seeds) == 2  # every method of a repeat gets the same rows
    assert pickle.dumps(experiment.work)


def test_synthetic_hash_tells_draws_apart():
    one = build(synthetic(), None)
    assert build(synthetic(methods=["sample"]), None).data_hash == one.data_hash
    assert build(synthetic(seed=1), None).data_hash != one.data_hash


def test_every_repeat_is_a_new_draw_and_a_new_split():
    source = SyntheticSource(100, 8, 10.0, "random", 10.0)
    first, again, other, denser = (
        source.split(Job(method, 0, seed, {"sparsity": level}))
        for method, seed, level in (("joint", 3, 0.3), ("ridge", 3, 0.3), ("joint", 4, 0.3), ("joint", 3, 0.6))
    )
    assert [len(part.y) for part in first[:3]] == [60, 20, 20]
    pd.testing.assert_frame_equal(first.train.X, again.train.X)
    assert list(first.test.X.index) != list(other.test.X.index)
    assert not np.array_equal(first.train.theta_true, other.train.theta_true)
    assert np.count_nonzero(denser.train.theta_true) == pytest.approx(0.6 * 64, abs=2)
    whole = pd.concat([part.X for part in first[:3]]).sort_index()
    data = make_gaussian_regression(100, 8, sparsity=0.3, random_state=3)
    pd.testing.assert_frame_equal(whole, data.X)
    np.testing.assert_array_equal(first.test.y, data.y.loc[first.test.X.index])
    np.testing.assert_array_equal(first.train.theta_true, data.theta_true)


def test_a_table_gives_the_rows_of_its_folds(gaussian):
    data = gaussian
    folds = make_folds(data, 2, 0, task="regression")
    sides = TableSource(data, folds).split(Job("ridge", 1, folds[1].seed))
    pd.testing.assert_frame_equal(sides.test.X, data.X.iloc[folds[1].test])
    np.testing.assert_array_equal(sides.validation.y, data.y.iloc[folds[1].validation])
    assert sides.train.groups is None


def test_a_small_synthetic_experiment_runs():
    experiment = build(synthetic(repeats=1, tuning=Tuning(race=False)), None)
    rows = run_experiment(experiment, None, jobs=1)
    assert len(rows) == 6
    assert not [row["error"] for row in rows if "error" in row]
    for method in ("joint", "glasso"):
        own = [row for row in rows if row["method"] == method]
        tuned = next(row for row in own if row["sparsity"] == 0.5)
        assert tuned["n_candidates"] == 2
        assert all(row["parameters"] == tuned["parameters"] for row in own)
        assert all(row["n_candidates"] == 1 for row in own if row is not tuned)
        assert all(row["density_true"] == pytest.approx(row["sparsity"], abs=0.06) for row in own)
        assert all(row["l1_error"] > 0 for row in own)


def test_adni_from_a_folder(tmp_path):
    config = Config(name="adni", kind="cohort", methods=["ridge", "median"], repeats=2, data={"cohort": "adni"})
    experiment = build(config, adni_folder(tmp_path, missing=2))
    about = experiment.about
    assert (about["n_rows"], about["n_features"]) == (28, 68)
    assert any("2 of 30 rows miss a region" in note for note in about["notes"])
    assert about["published"]["rows"]["joint"]["mae"] == "5.31 ± 0.18"
    assert len(experiment.splits) == 28
    rows = run_experiment(experiment, None, jobs=1)
    assert [row["method"] for row in rows] == ["ridge", "ridge", "median", "median"]
    assert all(np.isfinite(row["mae"]) for row in rows)


def test_adni_mistakes(tmp_path):
    config = Config(name="adni", kind="cohort", methods=["ridge"], data={"cohort": "adni"})
    with pytest.raises(InputError, match="registered users only: name the folder of its tables"):
        build(config, None)
    with pytest.raises(InputError, match="There is no folder .*nowhere"):
        build(config, tmp_path / "nowhere")
    with pytest.raises(InputError, match="has no UCSFFSX51"):
        build(config, tmp_path)
    adni_folder(tmp_path)
    (tmp_path / "UCSFFSX6_07_06_22.csv").write_text("RID\n1\n")
    assert build(config, tmp_path).about["n_rows"] == 30  # the table of another phase is passed over
    (tmp_path / "ADNIMERGE.csv").rename(tmp_path / "people.csv")
    with pytest.raises(InputError, match="has no ADNIMERGE"):
        build(config, tmp_path)
    for name in ("UCSFFSX51_ADNI1.csv", "ADNIMERGE.csv"):
        (tmp_path / name).write_text("RID\n1\n")
    with pytest.raises(InputError, match="several tables UCSFFSX51.*leave one of them there"):
        build(config, tmp_path)


@pytest.mark.data
@pytest.mark.parametrize(("cohort", "n_rows", "paper"), [("abide", 1035, True), ("ants", 1061, False)])
def test_public_cohorts(data_folder, cohort, n_rows, paper):
    experiment = build(load_config(builtin(cohort), quick=True), data_folder)
    about = experiment.about
    assert (about["n_rows"], about["n_features"], about["unit"]) == (n_rows, 62, "years")
    assert (about["published"] is not None) == paper
    assert len(about["notes"]) == 1  # how this table differs from the paper's
    json.dumps(about)
    assert experiment.splits.shape == (n_rows, 2)
    sides = experiment.work.source.split(experiment.jobs[-1])
    people = [set(part.X.index) for part in sides[:3]]
    assert sum(map(len, people)) == n_rows == len(set.union(*people))
