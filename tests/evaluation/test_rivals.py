"""Rivals: skipped with the reason where they cannot run, wired as their packages want it, and real where installed."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from precisionnet.datasets import Dataset
from precisionnet.errors import FitDivergedError, InputError, PrecisionNetWarning
from precisionnet.evaluation import rivals
from precisionnet.evaluation.baselines import BaselineCandidate, fit_baseline
from precisionnet.evaluation.comparison import compare, compare_experiment
from precisionnet.evaluation.methods import METHODS, RIVALS, usual_methods
from precisionnet.evaluation.metrics import judge
from precisionnet.evaluation.protocol import FitData, target_of
from precisionnet.evaluation.tuning import combinations

INSTALLED = [name for name in RIVALS if name != "tabicl" and find_spec(RIVALS[name]) is not None]


def table(n: int, task: str, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 100, 1, 0.01]
    y = 50 + 10 * X[:, 0] + X[:, 1] / 10 + rng.normal(size=n)
    X[0, 2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = np.where(y > 55, "high", np.where(y > 45, "middle", "low"))
    return Dataset(X=frame, y=pd.Series(y if task == "regression" else labels, name="y"))


def sides(task: str) -> FitData:
    return FitData(table(90, task, 0), table(30, task, 1), task, 2**32 - 5)


class Fake:
    """Stands for every model of the packages: keeps what it was given, and is a linear model."""

    made: ClassVar[list[Fake]] = []
    kind: type = Ridge

    def __init__(self, *positional, **parameters):
        assert not positional
        self.parameters = parameters
        self.rfm_params = {"model": {"bandwidth": 10.0}, "fit": {"reg": 1e-3}}
        type(self).made.append(self)

    def fit(self, X, y, X_val=None, y_val=None, eval_set=None):
        assert np.isfinite(X).all()
        self.X, self.y = X, y
        self.stopped_on = (X_val, y_val) if X_val is not None else eval_set
        self.model = self.kind().fit(X, y)
        return self

    def predict(self, X):
        return self.model.predict(X)[:, None]

    def predict_proba(self, X):
        return self.model.predict_proba(X)


class FakeClassifier(Fake):
    kind = LogisticRegression


NAMES = {
    "catboost": ("CatBoostRegressor", "CatBoostClassifier"),
    "pytabkit": ("RealMLP_TD_Regressor", "RealMLP_TD_Classifier"),
    "tabicl": ("TabICLRegressor", "TabICLClassifier"),
}


@pytest.fixture
def fakes(monkeypatch, tmp_path):
    """All packages installed, as fakes, and a checkpoint named."""
    for package in RIVALS.values():
        module = ModuleType(package)
        module.__spec__ = ModuleSpec(package, None)
        for name, kind in zip(NAMES.get(package, ()), (Fake, FakeClassifier), strict=False):
            setattr(module, name, kind)
        if package == "xrfm":  # one class for both, told by the target's type
            module.xRFM = lambda **given: (Fake if given["tuning_metric"] == "mae" else FakeClassifier)(**given)
        monkeypatch.setitem(sys.modules, package, module)
    named = [tmp_path / "tabicl-classifier.ckpt", tmp_path / "tabicl-regressor.ckpt"]
    for path in named:
        path.touch()
    monkeypatch.setenv(rivals.CHECKPOINT, rivals.os.pathsep.join(map(str, named)))
    monkeypatch.setattr(Fake, "made", [])
    monkeypatch.setattr(FakeClassifier, "made", Fake.made)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("name", list(RIVALS))
def test_every_choice_learns_from_training_rows_and_speaks_the_tables_units(fakes, name, task):
    data = sides(task)
    for parameters in combinations(METHODS[name].space(task, {})):
        candidate = BaselineCandidate(name, parameters, data)
        validation = candidate.advance(1)
        model, fake = candidate.model(), Fake.made[-1]
        assert len(fake.X) == len(data.train)
        assert (fake.stopped_on is None) == (name == "tabicl")
        if task == "regression":
            assert validation == judge(target_of(data.validation), model.predict(data.validation.X)) < 2.0
            assert model.predict(data.validation.X).shape == (30,)
        else:
            assert list(model.classes_) == ["high", "low", "middle"]
            assert model.predict_proba(data.validation.X).shape == (30, 3)
            assert set(model.predict(data.validation.X)) <= {"high", "low", "middle"}
            assert validation < 0.7


def test_choices_reach_the_package(fakes):
    data = sides("regression")
    fit_baseline("catboost", {"depth": 4, "loss_function": "MAE"}, data)
    assert Fake.made[-1].parameters["depth"] == 4
    fit_baseline("xrfm", {"bandwidth": 3.0, "reg": 1.0}, data)
    assert Fake.made[-1].rfm_params == {"model": {"bandwidth": 3.0}, "fit": {"reg": 1.0}}
    assert abs(Fake.made[-1].y.mean()) < 1e-9, "its penalty is for a target in standard units"


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_tabicl_takes_the_checkpoint_of_the_task_and_downloads_nothing(fakes, task):
    fit_baseline("tabicl", {}, sides(task))
    given = Fake.made[-1].parameters
    assert given["model_path"].endswith({"regression": "regressor.ckpt", "classification": "classifier.ckpt"}[task])
    assert given["allow_auto_download"] is False


@pytest.mark.parametrize("name", list(RIVALS))
def test_defaults_see_no_validation_row(fakes, name):
    data = sides("regression")
    fit_baseline(name, {}, data)
    fake = Fake.made[-1]
    stopped = 0 if fake.stopped_on is None else len(fake.stopped_on[0])
    assert len(fake.X) + stopped == len(data.train)


def test_a_rival_that_is_not_installed_is_left_out_with_the_reason(monkeypatch):
    monkeypatch.setattr(rivals, "find_spec", lambda package: None)
    data = table(60, "regression", 0)
    experiment = compare_experiment(data, "regression", ["ridge", "catboost"], 2)
    assert {job.method for job in experiment.jobs} == {"ridge"}
    assert "catboost is not installed" in experiment.about["skipped"][0]
    with pytest.raises(InputError, match="precisionnet\\[rivals\\]"):
        compare_experiment(data, "regression", ["catboost", "xrfm"], 2)
    with pytest.warns(PrecisionNetWarning, match="CatBoost is left out"):
        rows = compare(data.X.fillna(0), data.y, ["median", "catboost"], 2, jobs=1)
    assert set(rows["method"]) == {"median"}


def test_a_rival_that_breaks_down_is_a_failed_fit(fakes, monkeypatch):
    monkeypatch.setattr(Fake, "fit", lambda *_: 1 / 0)
    with pytest.raises(FitDivergedError, match="xrfm could not be fitted"):
        fit_baseline("xrfm", {}, sides("regression"))


def test_tabicl_wants_a_file(fakes, monkeypatch):
    assert rivals.why_not("tabicl") is None
    monkeypatch.setenv(rivals.CHECKPOINT, "nowhere.ckpt")
    assert "not a file" in rivals.why_not("tabicl")
    monkeypatch.delenv(rivals.CHECKPOINT)
    assert "nothing is downloaded" in rivals.why_not("tabicl")


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_nobody_is_compared_with_rivals_unasked(task):
    assert not set(usual_methods(task)) & set(RIVALS)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("name", INSTALLED)
def test_installed_rivals_beat_a_constant(name, task):
    data = sides(task)
    model = fit_baseline(name, {}, data)
    said = model.predict(data.validation.X) if task == "regression" else model.predict_proba(data.validation.X)
    loss = judge(target_of(data.validation), said, model.classes_)
    assert loss < (5.0 if task == "regression" else 0.9)
