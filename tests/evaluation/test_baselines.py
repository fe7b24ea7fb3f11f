"""Every baseline for both tasks: fitted on training rows alone, deterministic, better than guessing."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from precisionnet import PNNRegressor
from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from precisionnet.evaluation import baselines, early_stopping
from precisionnet.evaluation.baselines import BaselineCandidate
from precisionnet.evaluation.methods import (
    METHODS,
    PAPER_GRID,
    PAPER_METHODS,
    RIVALS,
    STANDARD_GRID,
    TRIVIAL,
    check_methods,
    methods_for,
    quick_methods,
)
from precisionnet.evaluation.metrics import judge
from precisionnet.evaluation.protocol import FitData
from precisionnet.evaluation.tuning import RUNGS, combinations, search_grid
from precisionnet.parameters import BY_NAME, RECIPES

TASKS = ("regression", "classification")
NETWORKS = ("joint", "naive", "glasso", "sample", "vnn")
PLAIN = [(name, task) for task in TASKS for name in methods_for(task) if METHODS[name].family == "baseline"]


ROWS = 60
"""To learn from: few, because a Gaussian process takes the cube of their number."""


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """Models that grow do so in a fraction of the time."""
    monkeypatch.setattr(early_stopping, "MOST_TREES", 60)
    monkeypatch.setattr(early_stopping, "MOST_PASSES", 60)


def table(n: int, task: str, seed: int) -> Dataset:
    """A bent function of three of five columns, a hole here and there; in classes thirds of it, by name."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 100, 1, 0.01, 1]
    y = X[:, 0] + X[:, 1] / 100 + (X[:, 3] * 100) ** 2 + 0.1 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.02] = np.nan
    target = 50 + 20 * y if task == "regression" else np.array(["low", "mid", "top"])[np.digitize(y, [0.0, 1.5])]
    return Dataset(pd.DataFrame(X, columns=list("abcde")), pd.Series(target, name="y"))


def sides(task: str, seed: int = 0) -> FitData:
    return FitData(table(ROWS, task, 1), table(40, task, 2), task, seed)


def middle(name: str, task: str) -> dict:
    choices = combinations(METHODS[name].space(task, {}))
    return choices[len(choices) // 2]


def says(model, X, task):
    return model.predict(X) if task == "regression" else model.predict_proba(X)


@pytest.mark.parametrize(("name", "task"), PLAIN)
def test_a_baseline_candidate_keeps_the_contract(name, task):
    candidate = BaselineCandidate(name, middle(name, task), sides(task))
    assert (candidate.max_epochs, candidate.epochs, candidate.done) == (1, 0, False)
    score = candidate.advance(1)
    assert (candidate.epochs, candidate.done) == (1, True)
    assert candidate.advance(1) == score
    assert candidate.seconds > 0.0
    model, rows = candidate.model(), candidate.data.validation
    classes = None if task == "regression" else model.classes_
    assert score == judge(rows.y, says(model, rows.X, task), classes)
    test = table(40, task, 3)
    assert len(model.predict(test.X)) == 40
    if task == "classification":
        assert list(model.classes_) == ["low", "mid", "top"]
        np.testing.assert_allclose(model.predict_proba(test.X).sum(axis=1), 1.0)
        likeliest = model.classes_[model.predict_proba(test.X).argmax(axis=1)]
        np.testing.assert_array_equal(model.predict(test.X), likeliest)
    guess = BaselineCandidate(TRIVIAL[task], {}, sides(task))
    assert score < guess.advance(1) or name == TRIVIAL[task]
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict(test.X), model.predict(test.X))


@pytest.mark.parametrize(("name", "task"), PLAIN)
def test_equal_seeds_make_equal_models(name, task):
    test = table(40, task, 3)
    twice = [BaselineCandidate(name, middle(name, task), sides(task, seed=7)) for _ in range(2)]
    assert twice[0].advance(1) == twice[1].advance(1)
    first, second = (says(candidate.model(), test.X, task) for candidate in twice)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["ridge", "svr", "gp", "logistic", "svc"])
def test_validation_rows_do_not_reach_a_model_fitted_in_one_go(name):
    task = METHODS[name].tasks[0]
    given = sides(task)
    other = replace(given, validation=table(40, task, 9))
    test = table(40, task, 3)
    models = [BaselineCandidate(name, middle(name, task), rows) for rows in (given, other)]
    scores = [model.advance(1) for model in models]
    assert scores[0] != scores[1]
    first, second = (says(model.model(), test.X, task) for model in models)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("task", TASKS)
def test_boosting_is_cut_where_the_validation_rows_want_it(task):
    candidate = BaselineCandidate("hist_gb", middle("hist_gb", task), sides(task))
    score = candidate.advance(1)
    model, rows = candidate.model(), candidate.data.validation
    stages = model.trees.staged_predict(rows.X) if task == "regression" else model.trees.staged_predict_proba(rows.X)
    scores = [judge(rows.y, said, None if task == "regression" else model.classes_) for said in stages]
    assert score == min(scores)
    assert scores.index(score) + 1 == model.n_trees < len(scores)


@pytest.mark.parametrize("task", TASKS)
def test_the_perceptron_keeps_its_best_pass_and_not_the_last(task, monkeypatch):
    choice = {"variance": 0.999, "hidden": [64, 64], "l2_penalty": 1e-4, "learning_rate": 0.05}
    given = sides(task)
    best = BaselineCandidate("pca_mlp", choice, given).advance(1)
    cut_off = []
    for passes in (1, 3, 10, 30):  # the same passes from the same seed, each run a longer beginning
        monkeypatch.setattr(early_stopping, "MOST_PASSES", passes)
        cut_off.append(BaselineCandidate("pca_mlp", choice, given).advance(1))
    assert cut_off == sorted(cut_off, reverse=True)  # more passes never make it worse
    assert best <= cut_off[-1]


def test_targets_of_any_unit_are_predicted_alike():
    small = sides("regression")
    large = replace(
        small,
        train=replace(small.train, y=small.train.y * 1e6 + 1e7),
        validation=replace(small.validation, y=small.validation.y * 1e6 + 1e7),
    )
    for name in ("svr", "gp", "pca_mlp"):
        scores = [BaselineCandidate(name, middle(name, "regression"), rows).advance(1) for rows in (small, large)]
        assert scores[1] == pytest.approx(1e6 * scores[0], rel=0.02), name


def test_the_search_tunes_a_baseline():
    given = sides("regression")
    space = METHODS["ridge"].space("regression", {})
    found = search_grid(lambda p: BaselineCandidate("ridge", p, given), space, RUNGS["standard"])
    scores = [trial["validation"] for trial in found.trials]
    assert len(scores) == 25
    assert found.best.advance(1) == min(scores)
    assert not any(trial["stopped"] for trial in found.trials)


def test_gp_says_why_it_is_left_out(monkeypatch):
    monkeypatch.setattr(baselines, "LARGEST_GP", 50)
    with pytest.raises(InputError, match="gp is left out at 60 training rows"):
        BaselineCandidate("gp", {"kernel": "rbf"}, sides("regression")).advance(1)


def test_svc_with_a_class_of_one_person_says_what_it_needs():
    given = sides("classification")
    y = np.where(np.arange(ROWS) == 0, "rare", "common")
    with pytest.raises(InputError, match="svc needs two ids of each class"):
        BaselineCandidate(
            "svc", {"C": 1.0, "gamma_scale": 1.0}, replace(given, train=replace(given.train, y=pd.Series(y)))
        ).advance(1)


def test_calibration_folds_keep_people_whole():
    given = sides("classification")
    people = np.repeat(np.arange(ROWS // 2), 2)
    for train, test in baselines._calibration_folds(
        replace(given, train=replace(given.train, groups=pd.Series(people)))
    ):
        assert not set(people[train]) & set(people[test])


def test_a_column_without_any_training_value_is_no_obstacle():
    given = sides("regression")
    X = given.train.X.assign(b=np.nan)
    hollow = replace(given, train=replace(given.train, X=X))
    for name in ("ridge", "svr", "gp", "hist_gb", "pca_mlp"):
        assert np.isfinite(BaselineCandidate(name, middle(name, "regression"), hollow).advance(1))


def test_the_order_of_every_table():
    networks = (*NETWORKS, *(f"{name}_{readout}" for readout in ("mean", "mlp") for name in NETWORKS), "pca_mlp")
    assert (*NETWORKS, "pca_mlp") == PAPER_METHODS
    assert methods_for("regression") == (*networks, "ridge", "svr", "gp", "hist_gb", "group_median", "median", *RIVALS)
    assert methods_for("classification") == (
        *networks,
        "logistic",
        "svc",
        "gp",
        "hist_gb",
        "group_majority",
        "majority",
        *RIVALS,
    )
    quick = ("joint", "glasso", "vnn", "joint_mean", "joint_mlp", "pca_mlp")
    assert quick_methods("regression") == (*quick, "ridge", "svr", "gp", "hist_gb", "median")


def test_networks_get_the_part_of_the_grid_they_use():
    assert sizes(PAPER_GRID) == {"joint": 54, "naive": 54, "glasso": 54, "sample": 18, "vnn": 18}
    grid = {**PAPER_GRID, "coupling": [1.0, 10.0], "task_steps": [5, 20], "task_weight": [0.3, 0.5]}
    assert sizes(grid) == {"joint": 54 * 8, "naive": 54 * 2, "glasso": 54 * 2, "sample": 18 * 2, "vnn": 18 * 2}
    assert sizes(STANDARD_GRID) == dict.fromkeys(NETWORKS, 2)
    more = STANDARD_GRID | {"l1_scale": [1.0, 5.0], "task_steps": [5, 20], "theta_every": [1, 5]}
    assert sizes(more)["joint"] == 8


def sizes(grid: dict) -> dict[str, int]:
    found = {name: len(combinations(METHODS[name].space("regression", grid))) for name in NETWORKS}
    for readout in ("mean", "mlp"):
        variants = {name: METHODS[f"{name}_{readout}"] for name in NETWORKS}
        assert found == {name: len(combinations(spec.space("regression", grid))) for name, spec in variants.items()}
    return found


def test_a_readout_in_the_grid_is_for_the_plain_names_alone():
    grid = {"recipe": ["standard"], "readout": ["mean", "mlp"]}
    assert METHODS["joint"].space("regression", grid)["readout"] == ["mean", "mlp"]
    assert METHODS["joint_mlp"].space("regression", grid)["readout"] == ["mlp"]
    assert METHODS["joint_mlp"].space("regression", {"recipe": ["standard"]}, tuned=False) == {
        "recipe": ["standard"],
        "readout": ["mlp"],
    }


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("method", NETWORKS)
def test_what_is_left_out_of_a_networks_grid_has_no_effect(method, recipe):
    """Each such parameter, set away from its default, is one that the estimator refuses as without effect."""
    far = {"coupling": 1.0, "task_steps": 3, "theta_steps": 3, "step1": "paper", "predict_on": "sparse"}
    far |= {"l1_scale": 9.0, "l1_penalty": 0.5, "ridge": 0.1, "spectral_bound": 1.5, "theta_every": 1, "patience": 1}
    far |= {"input_noise": 0.7, "batch_size": 16}
    used = METHODS[method].space("regression", {"recipe": [recipe], **{name: [value] for name, value in far.items()}})
    left_out = {name: value for name, value in far.items() if name not in used}
    assert left_out
    assert set(far) <= set(BY_NAME)
    for name, value in left_out.items():
        with pytest.raises(InputError, match=f"{name}=.* has no effect"):
            _ = PNNRegressor(METHODS[method].runs, recipe=recipe, **{name: value}).settings


DEFAULTS = {
    ("pca_mlp", "regression"): make_pipeline(PCA(), MLPRegressor(random_state=0)),
    ("pca_mlp", "classification"): make_pipeline(PCA(), MLPClassifier(random_state=0)),
    ("ridge", "regression"): Ridge(),
    ("logistic", "classification"): LogisticRegression(),
    ("svr", "regression"): SVR(C=1.0, gamma="scale", epsilon=0.1),
    ("svc", "classification"): SVC(C=1.0, gamma="scale"),
    ("hist_gb", "regression"): HistGradientBoostingRegressor(random_state=0),
    ("hist_gb", "classification"): HistGradientBoostingClassifier(random_state=0),
    ("median", "regression"): DummyRegressor(strategy="median"),
    ("majority", "classification"): DummyClassifier(),
}


@pytest.mark.parametrize(("name", "task"), PLAIN)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_a_default_is_scikit_learns_on_standardised_features(name, task):
    given = sides(task)
    full = [replace(part, X=part.X.fillna(0.0)) for part in (given.train, given.validation)]
    given = replace(given, train=full[0], validation=full[1])
    assert METHODS[name].space(task, {}, tuned=False) == {}
    candidate = BaselineCandidate(name, {}, given)
    assert np.isfinite(candidate.advance(1))
    said = candidate.model().predict(full[1].X)
    if name == "gp":  # the exception: this module's kernel
        np.testing.assert_array_equal(said, baselines._fit_gp({"kernel": "rbf"}, given).predict(full[1].X))
        return
    user = make_pipeline(StandardScaler(), DEFAULTS[name, task]).fit(full[0].X, full[0].y)
    np.testing.assert_array_equal(said, user.predict(full[1].X))
    other = BaselineCandidate(name, {}, replace(given, validation=table(40, task, 9)))
    other.advance(1)
    np.testing.assert_array_equal(other.model().predict(full[1].X), said)
    pickle.dumps(candidate.model())


@pytest.mark.parametrize(("name", "task"), PLAIN)
def test_a_default_takes_gaps_and_empty_columns(name, task):
    given = sides(task)
    hollow = replace(given, train=replace(given.train, X=given.train.X.assign(b=np.nan)))
    assert np.isfinite(BaselineCandidate(name, {}, hollow).advance(1))


def test_method_names_are_checked():
    assert check_methods(["median", "joint", "joint"], "regression") == ("joint", "median")
    for names, task, sentence in [
        (["jiont"], "regression", "no method 'jiont' .did you mean 'joint'"),
        (["xyzzy"], "regression", "choose some of joint, naive"),
        (["svr"], "classification", "svr is not for classification: take svc"),
        (["majority"], "regression", "majority is not for regression: take median"),
        ([], "regression", "No method is named"),
    ]:
        with pytest.raises(InputError, match=sentence):
            check_methods(names, task)
