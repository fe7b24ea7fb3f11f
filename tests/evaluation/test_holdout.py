"""One split: the baselines beside a network are those of a comparison, and messages speak to Python users."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from precisionnet.evaluation import baselines, measure, split_rows
from precisionnet.evaluation.baselines import fit_baseline, tuned_baseline
from precisionnet.evaluation.methods import LINEAR, METHODS, TRIVIAL
from precisionnet.evaluation.protocol import FitData

SMALL = {"max_epochs": 1, "n_members": 2}


def table(task: str = "regression", n: int = 60) -> Dataset:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    y = X["a"] - X["b"] + 0.5 * rng.normal(size=n)
    return Dataset(X, (y if task == "regression" else (y > 0).map({True: "old", False: "young"})).rename("y"))


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_linear_model_is_that_of_a_comparison(task, monkeypatch):
    """The same pipeline, the same grid: only the rows that choose the penalty differ."""
    data, name = table(task), LINEAR[task]
    model = tuned_baseline(name, data, task, seed=0)
    assert isinstance(model[-1], Ridge if task == "regression" else LogisticRegression)
    chosen = {"l2_penalty": model[-1].alpha} if task == "regression" else {"C": model[-1].C}
    ((key, value),) = chosen.items()
    assert value in METHODS[name].space(task, {})[key]
    compared = fit_baseline(name, chosen, FitData(data, data, task, 0))
    np.testing.assert_array_equal(model.predict(data.X), compared.predict(data.X))
    assert [step for step, _ in model.steps] == [step for step, _ in compared.steps]
    result = measure(data, task, SMALL)
    assert list(result.scores.index) == ["joint", name, TRIVIAL[task]]
    asked = []
    monkeypatch.setitem(
        baselines.BASELINES, name, replace(baselines.BASELINES[name], fit=lambda p, d: asked.append(p) or 1 / 0)
    )
    with pytest.raises(ZeroDivisionError):
        measure(data, task, SMALL)
    assert asked  # there is no other definition


def test_the_penalty_is_chosen_without_the_test_rows():
    data = table()
    _, test = split_rows(data, "regression", 0.25, 0)
    changed = data.y.copy()
    changed.iloc[test] += 100.0
    training = np.setdiff1d(np.arange(len(data)), test)
    models = [tuned_baseline("ridge", one.take(training), "regression") for one in (data, replace(data, y=changed))]
    assert models[0][-1].alpha == models[1][-1].alpha


def test_whole_people_choose_the_penalty(monkeypatch):
    seen = []
    monkeypatch.setattr(baselines, "search_grid", lambda make, space, rungs: seen.append(make({}).data) or 1 / 0)
    people = pd.Series(np.repeat(np.arange(20), 3), name="person")
    with pytest.raises(ZeroDivisionError):
        tuned_baseline("ridge", replace(table(), groups=people), "regression")
    assert not set(seen[0].train.groups) & set(seen[0].validation.groups)


def test_a_class_of_one_row_leaves_the_defaults():
    data = table("classification")
    rare = data.y.copy()
    rare.iloc[0] = "ancient"
    for seed in range(4):  # on whichever side it falls
        model = tuned_baseline("logistic", replace(data, y=rare), "classification", seed)
        assert set(model.classes_) == {"ancient", "old", "young"}


def test_messages_name_parameters():
    with pytest.raises(InputError, match="change test_fraction or bring more rows") as caught:
        split_rows(table(n=12), "regression", 0.9, 0)
    assert "--" not in str(caught.value)
    result = measure(table(n=40), "regression", SMALL, test_fraction=0.1)
    assert any("raise test_fraction" in note for note in result.notes)
