"""``precisionnet.evaluation.compare``: what comes back, what it depends on, what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from precisionnet.errors import InputError
from precisionnet.evaluation import compare
from precisionnet.evaluation.comparison import _as_dataset, compare_experiment, make_candidate
from precisionnet.evaluation.methods import PAPER_GRID, PAPER_METHODS, QUICK_GRID, STANDARD_GRID, usual_methods
from precisionnet.evaluation.protocol import FitData
from precisionnet.evaluation.tuning import Tuning
from precisionnet.runner.lines import digest

TINY = {"n_layers": [1], "n_filters": [2], "order": [1], "l1_scale": [0.5, 1.0], "max_epochs": [1]}
TINY |= {"n_members": [2], "input_noise": [0.3]}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60)


def test_a_row_a_method_and_repeat(table):
    rows = compare(*table, methods=["ridge", "joint", "median"], repeats=2, random_state=1, networks=TINY, jobs=1)
    assert isinstance(rows, pd.DataFrame)
    assert sorted(zip(rows["method"], rows["repeat"], strict=True)) == [
        (method, repeat) for method in ("joint", "median", "ridge") for repeat in (0, 1)
    ]
    assert {"mae", "mse", "rmse", "r2", "r", "seed", "config_hash", "data_hash", "versions"} <= set(rows)
    means = rows.groupby("method")["mae"].mean()
    assert means["ridge"] < 0.5 * means["median"]
    joint = rows[rows["method"] == "joint"]
    assert (joint["n_candidates"] == 2).all()
    assert joint["edges"].notna().all()
    again = compare(*table, methods=["ridge"], repeats=2, random_state=1, jobs=1)
    assert list(again["mae"]) == list(rows.loc[rows["method"] == "ridge", "mae"])
    other = compare(*table, methods=["ridge"], repeats=2, random_state=2, jobs=1)
    assert not np.isclose(other["mae"], again["mae"]).any()


def test_both_readouts_side_by_side(table):
    networks = TINY | {"l1_scale": [1.0]}
    rows = compare(*table, methods=["joint", "joint_mlp", "vnn", "vnn_mlp"], repeats=1, networks=networks, jobs=1)
    rows = rows.set_index("method")
    assert rows["mae"].nunique() == 4
    assert rows.loc[["joint", "joint_mlp"], "edges"].notna().all()
    assert rows.loc[["vnn", "vnn_mlp"], "edges"].isna().all()
    assert [rows.loc[name, "parameters"].get("readout") for name in ("joint", "joint_mlp")] == [None, "mlp"]
    assert all(row["recipe"] == "standard" for row in rows["parameters"])


def test_methods_and_grid_where_nothing_is_said(gaussian):
    first = compare_experiment(gaussian, "regression", repeats=1)
    assert first.config["methods"] == list(usual_methods("regression"))
    assert first.config["networks"] == STANDARD_GRID
    assert first.config["fixed"]["max_epochs"] == 50
    paper = compare_experiment(gaussian, "regression", repeats=1, networks={"recipe": ["paper"]})
    assert paper.config["networks"] == PAPER_GRID
    assert set(PAPER_METHODS) < set(paper.config["methods"])
    assert not {"joint_mean", "joint_mlp"} & set(paper.config["methods"])  # they would be joint and vnn once more
    assert paper.config["fixed"]["readout"] == "mean"
    assert paper.config["fixed"]["coupling"] == 10.0
    assert paper.config["rungs"] != first.config["rungs"]
    quick = compare_experiment(gaussian, "regression", repeats=1, networks=QUICK_GRID)
    assert all(len(values) == 1 for values in quick.config["networks"].values())
    assert "n_members" not in quick.config["networks"]


def test_nothing_tuned(table):
    small = {"max_epochs": [2], "n_members": [2]}
    rows = compare(*table, methods=["joint", "svr", "median"], repeats=1, tuning=Tuning("none"), networks=small, jobs=1)
    rows = rows.set_index("method")
    assert (rows["n_candidates"] == 1).all()
    assert rows.loc["joint", "parameters"] == {"recipe": "standard", "max_epochs": 2, "n_members": 2}
    assert rows.loc["svr", "parameters"] == {}
    X, y = table
    experiment = compare_experiment(_as_dataset(X, y, None), "regression", ["joint", "svr"], 1, tuning=Tuning("none"))
    assert experiment.about["tuned"] is False
    assert experiment.config["spaces"] == {"joint": {"recipe": ["standard"]}, "svr": {}}
    sides = experiment.work.source.split(experiment.jobs[-1])
    user = make_pipeline(StandardScaler(), SVR()).fit(sides.train.X, sides.train.y)
    assert rows.loc["svr", "mae"] == pytest.approx(np.abs(user.predict(sides.test.X) - sides.test.y).mean())


def test_classes_and_people(table):
    X, y = table
    labels, people = np.where(y > 0, "old", "young"), np.arange(60) // 3
    rows = compare(X, labels, methods=["logistic", "majority"], repeats=1, groups=people, jobs=1)
    assert rows.set_index("method").loc["logistic", "accuracy"] > 0.8
    assert {"balanced_accuracy", "auc", "log_loss"} <= set(rows)
    assert set(rows["n_train"] % 3) == {0}  # whole people


def test_missing_values_are_filled(table):
    X, y = table
    X = X.copy()
    X[::7, 2] = np.nan
    rows = compare(X, y, methods=["glasso", "ridge"], repeats=1, networks=TINY, jobs=1)
    assert rows["mae"].notna().all()


def test_test_rows_do_not_move_what_is_chosen(gaussian):
    """Other values in the test rows: other scores, the same parameters and the same validation error."""
    data = replace(gaussian, X=gaussian.X.copy(), y=gaussian.y.copy())
    experiment = compare_experiment(data, "regression", ["glasso", "svr"], 1, networks=TINY)
    source = experiment.work.source
    found = [experiment.work(job, None, None).row for job in experiment.jobs]
    test = source.folds[0].test
    data.X.iloc[test] += 5.0
    data.y.iloc[test] -= 100.0
    changed = [experiment.work(job, None, None).row for job in experiment.jobs]
    for before, after in zip(found, changed, strict=True):
        assert before["parameters"] == after["parameters"]
        assert before["validation"] == after["validation"]
        assert before["mae"] != after["mae"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ["jiont"]}, "did you mean 'joint'"),
        ({"methods": "joint"}, "methods must be a list of names"),
        ({"methods": []}, "No method is named"),
        ({"methods": ["logistic"]}, "take ridge instead"),
        ({"repeats": 0}, "repeats must be a whole number, at least 1"),
        ({"random_state": -1}, "random_state must be a whole number, at least 0"),
        ({"random_state": None}, "random_state must be a whole number"),
        ({"task": "ranking"}, "task must be"),
        ({"networks": {"n_layer": [1]}}, "did you mean"),
        ({"networks": {"missing": ["error"]}}, "missing"),
        ({"networks": {"order": []}}, "list of values"),
        ({"networks": {"order": [1, 2]}, "tuning": Tuning("none")}, "nothing is tuned: name one"),
        ({"networks": {"recipe": ["standard", "paper"]}}, "run an experiment of each"),
        ({"jobs": 0}, "jobs must be a whole number"),
        ({"groups": [1, 2]}, "a row each for every sample"),
    ],
)
def test_mistakes_are_one_sentence(table, changes, words):
    with pytest.raises(InputError, match=words):
        compare(*table, **({"methods": ["ridge"], "repeats": 1} | changes))


def labelled(table):
    """The same rows with a label that moves the target, a date, and gaps."""
    X, y = table
    rng = np.random.default_rng(1)
    city = pd.Series(rng.choice(["Oslo", "Rome", "Paris"], 60))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(city=city, day=pd.Timestamp("2020-01-01"))
    frame["day"] += pd.to_timedelta(rng.integers(0, 900, 60), unit="D")
    frame["a"] = frame["a"].where(rng.random(60) > 0.1)
    frame["city"] = frame["city"].where(rng.random(60) > 0.1)
    return frame, y + 5.0 * (city == "Rome")


def test_labels_are_encoded_for_every_method(table):
    X, y = labelled(table)
    methods = ["joint", "ridge", "svr", "median"]
    rows = compare(X, y, methods=methods, repeats=1, networks=TINY, jobs=1)
    assert sorted(rows["method"]) == sorted(methods)
    assert rows["mae"].notna().all()
    errors = rows.set_index("method")["mae"]
    assert errors["ridge"] < 0.5 * errors["median"]
    other = compare(X.assign(city=X["city"].fillna("Oslo")), y, methods=["median"], repeats=1, jobs=1)
    assert other["data_hash"].iloc[0] != rows["data_hash"].iloc[0]


@pytest.mark.parametrize("method", ["ridge", "hist_gb", "svr", "pca_mlp", "joint"])
def test_rows_outside_training_do_not_reach_the_encoder(table, method):
    """Levels, medians and gaps of validation and test rows change; what was learned does not, to the bit."""
    X, y = labelled(table)
    rows = np.arange(60)
    models = []
    for change in (False, True):
        changed = X.copy()
        if change:
            changed.loc[40:, "city"], changed.loc[40:, "a"] = "Atlantis", 1e6
        data = _as_dataset(changed, y, None)
        fold = FitData(data.take(rows[:40]), data.take(rows[30:40]), "regression", 0)
        candidate = make_candidate(method, fold, {"max_epochs": 1, "n_members": 2} if method == "joint" else {})
        candidate.advance(1)
        models.append(candidate.model())
        unseen = candidate.model().predict(data.X.iloc[40:])
        assert np.isfinite(unseen).all()
    first, second = (model.predict(X.iloc[:40]) for model in models)
    np.testing.assert_array_equal(first, second)


def test_text_among_numbers_is_named(table):
    X, y = table
    mixed = pd.DataFrame(X, columns=list("abcd")).astype(object)
    mixed.loc[3, "c"] = "n/a?"
    with pytest.raises(InputError, match="'c'"):
        compare(mixed, y, methods=["ridge"], repeats=1)
    with pytest.raises(InputError, match="'x0' holds text|holds text"):
        compare(np.where(X > 5, "much", X.astype(str)).astype(object) + "!", y, methods=["ridge"], jobs=1)


def test_without_optuna_nothing_is_begun(table, monkeypatch, tmp_path):
    monkeypatch.setattr("precisionnet.evaluation.comparison.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'precisionnet\[search\]'"):
        compare(*table, methods=["svr"], repeats=1, tuning=Tuning("optuna", 3), folder=tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_the_hash_is_of_what_can_change_a_number(gaussian, monkeypatch):
    def config_hash(**changes):
        return digest(compare_experiment(gaussian, "regression", ["joint", "svr"], 1, **changes).config)

    first = config_hash(networks=TINY)
    assert config_hash(networks=dict(reversed(TINY.items()))) == first
    assert config_hash(networks=TINY | {"coupling": [1.0]}) != first
    assert config_hash(networks=TINY, tuning=Tuning(race=False)) != first
    assert config_hash(networks=TINY | {"recipe": ["paper"]}) != first
    assert config_hash(networks=QUICK_GRID) != config_hash(tuning=Tuning("none"))
    monkeypatch.setattr("precisionnet.evaluation.comparison.RUNGS", {"standard": {0.5: 0.5}})
    assert config_hash(networks=TINY) != first
