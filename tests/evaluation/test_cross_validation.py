"""Every row is predicted by what has not learned from it, beside baselines that have not either."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from precisionnet.datasets import Dataset
from precisionnet.evaluation import baselines, cross_validation, group_folds, measure, people_folds, time_folds
from precisionnet.evaluation.baselines import fit_baseline, tuned_baseline
from precisionnet.evaluation.cross_validation import FEW_TEST_ROWS
from precisionnet.evaluation.methods import LINEAR, METHODS, TRIVIAL
from precisionnet.evaluation.protocol import FitData
from precisionnet.report import score_lines
from tests.calls import last_first
from tests.cheap import cheap_baselines

__all__ = ["cheap_baselines"]

WHOLE = dict(METHODS)
"""With every penalty: read before they are made few."""

TINY = {"max_epochs": 1, "n_members": 2}
"""Two networks of eight folds: most rows are left out by none of them."""
FAST = {"max_epochs": 2, "n_members": 4}
"""Two networks of each kind: all rows are left out by one of each."""


def table(task: str = "regression", n: int = 60, **parts) -> Dataset:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    y = X["a"] - X["b"] + 0.5 * rng.normal(size=n)
    return Dataset(X, (y if task == "regression" else (y > 0).map({True: "old", False: "young"})).rename("y"), **parts)


@pytest.mark.parametrize("task", ["regression", pytest.param("classification", marks=pytest.mark.slow)])
def test_the_linear_model_is_that_of_a_comparison(task, monkeypatch):
    """The same pipeline, the same grid: only the rows that choose the penalty differ."""
    data, name = table(task), LINEAR[task]
    monkeypatch.setitem(METHODS, name, WHOLE[name])
    assert len(METHODS[name].space(task, {}).popitem()[1]) > 2
    model = tuned_baseline(name, data, task, seed=0)
    assert isinstance(model[-1], Ridge if task == "regression" else LogisticRegression)
    chosen = {"l2_penalty": model[-1].alpha} if task == "regression" else {"C": model[-1].C}
    ((key, value),) = chosen.items()
    assert value in METHODS[name].space(task, {})[key]
    compared = fit_baseline(name, chosen, FitData(data, data, task, 0))
    np.testing.assert_array_equal(model.predict(data.X), compared.predict(data.X))
    result = measure(data, task, TINY)
    assert list(result.scores.index) == ["joint", name, TRIVIAL[task]]
    asked = []
    monkeypatch.setitem(
        baselines.BASELINES, name, replace(baselines.BASELINES[name], fit=lambda p, d: asked.append(p) or 1 / 0)
    )
    with pytest.raises(ZeroDivisionError):
        measure(data, task, TINY)
    assert asked  # there is no other definition


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


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_by_default_the_networks_that_left_a_row_out_predict_it(task):
    people = pd.Series(np.repeat(np.arange(30), 2), name="person")
    result = measure(table(task, groups=people), task, FAST)
    model, folds = result.model, result.folds
    assert (folds.kind, model.n_rows_["training"]) == ("networks", 60)
    np.testing.assert_array_equal(folds.fold, model.oob_folds_)
    assert pd.Series(folds.fold).groupby(people).nunique().eq(1).all()
    said = result.predictions["joint"]
    if task == "regression":
        np.testing.assert_array_equal(said.predicted, model.oob_prediction_)
        assert result.headline["joint"].value == pytest.approx(model.oob_mae_)
    else:
        np.testing.assert_array_equal(said.probabilities, model.oob_decision_function_)
        assert result.headline["joint"].value == pytest.approx(model.oob_accuracy_)
    orders = result.scores["r" if task == "regression" else "auc"]
    assert orders.isna().to_dict() == {"joint": False, LINEAR[task]: False, TRIVIAL[task]: True}  # one guess for all
    assert score_lines(result)[1][TRIVIAL[task]][-1] == "–"


@pytest.mark.parametrize("parameters", [TINY, {"recipe": "paper", "max_epochs": 1}], ids=["two networks", "paper"])
def test_where_no_network_left_a_row_out_models_are_fitted_anew(parameters):
    counted = []
    result = measure(table(), "regression", parameters, on_fit=lambda done, total: counted.append((done, total)))
    assert result.folds.kind == "people"
    assert counted == [(done, 6) for done in range(1, 7)]
    assert np.isfinite(result.predictions["joint"].predicted).all()
    assert len(result.y) == 60


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_folds_side_by_side_are_the_same_to_the_last_bit(task, processes, monkeypatch):
    """With callbacks they stay here, as one may end a training."""
    data, counted, rows = table(task), [], []
    folds, side_by_side = people_folds(data, task, 3), TINY
    here = measure(data, task, TINY, folds=folds)
    if processes:
        side_by_side = TINY | {"n_jobs": 2}
    else:
        monkeypatch.setattr(cross_validation, "as_they_come", last_first)
        monkeypatch.setattr(cross_validation, "count_for", lambda n_jobs: 2)
    there = measure(data, task, side_by_side, folds=folds, on_fit=lambda *counts: counted.append(counts))
    assert counted == [(done, 4) for done in range(5)]
    watched = measure(data, task, side_by_side, folds=folds, callbacks=[lambda row: bool(rows.append(row))])
    assert len(rows) == 4
    for found in (there, watched):
        pd.testing.assert_frame_equal(found.scores, here.scores, check_exact=True)
        np.testing.assert_array_equal(found.predictions["joint"].predicted, here.predictions["joint"].predicted)


def test_the_baselines_have_not_learned_from_the_rows_that_they_predict():
    """A site with one row, whose guess by site would be the row itself."""
    site = pd.Series(["lonely"] + ["big"] * 59, name="site")
    data = table(site=site)
    y = data.y.copy()
    y.iloc[0] = 1000.0
    result = measure(replace(data, y=y), "regression", FAST)
    assert result.scores.index.tolist() == ["joint", "ridge", "group_median", "median"]
    for name in ("group_median", "median", "ridge"):
        assert abs(result.predictions[name].predicted[0]) < 10.0
    fold = result.folds.fold
    for number in range(result.folds.n_folds):
        expected = np.median(y[fold != number])
        np.testing.assert_allclose(result.predictions["median"].predicted[fold == number], expected)


def test_the_site_guess_is_left_out_where_it_knows_nothing():
    site = pd.Series(list("abc") * 20, name="site")
    data = table(site=site)
    folds = group_folds(data, site, "regression")
    assert "group_median" not in measure(data, "regression", TINY, folds=folds).scores.index
    other = pd.Series(list("uvwxyz") * 10, name="year")
    held_out = measure(data, "regression", TINY, folds=group_folds(data, other, "regression"))
    assert "group_median" in held_out.scores.index


@pytest.mark.parametrize("kind", ["people", "groups", "time"])
def test_changing_a_fold_changes_no_prediction_of_it(kind):
    """Bit for bit: neither its target nor its columns reach the models that predict the rest, nor its own target its own."""
    data = table(n=50)
    folds = {
        "people": lambda: people_folds(data, "regression", 2),
        "groups": lambda: group_folds(data, pd.Series(["u", "v"] * 25, name="site"), "regression"),
        "time": lambda: time_folds(data, pd.Series(range(50), name="day"), "regression", 1),
    }[kind]()
    before = measure(data, "regression", TINY, folds=folds)
    here = folds.fold == 0
    y = data.y.where(~here, 100.0 - 3.0 * data.y)
    after = measure(replace(data, y=y), "regression", TINY, folds=folds)
    for name in before.predictions:
        tested = folds.fold[folds.tested] == 0
        np.testing.assert_array_equal(
            before.predictions[name].predicted[tested], after.predictions[name].predicted[tested], name
        )
    X = data.X.copy()
    X[here] = 7.0 * X[here] + 1.0
    moved = measure(replace(data, X=X), "regression", TINY, folds=folds).predictions["joint"].predicted
    assert not np.array_equal(moved[tested], before.predictions["joint"].predicted[tested])


def test_a_class_that_is_only_in_one_fold_is_named():
    data = table("classification")
    rare = data.y.copy()
    rare.iloc[:2] = "ancient"
    people = pd.Series(np.r_[0, 0, np.arange(1, 59)], name="person")
    result = measure(replace(data, y=rare, groups=people), "classification", TINY)
    assert any("Class 'ancient' has all of its rows in one fold" in note for note in result.notes)
    assert result.predictions["joint"].probabilities.shape == (60, 3)
    assert result.predictions["logistic"].probabilities[0, 0] == 0.0


def test_few_rows_and_repeated_ids_are_said():
    people = pd.Series(np.repeat(np.arange(20), 2), name="person")
    notes = measure(table(n=40, groups=people), "regression", TINY).notes
    assert FEW_TEST_ROWS > 40
    assert any("Only 40 rows could be tested" in note for note in notes)
    assert any("intervals count ids, not rows" in note for note in notes)


def test_a_target_of_noise_is_no_better_than_guessing_and_a_real_one_is():
    data = table(n=120)
    assert measure(data, "regression", FAST | {"max_epochs": 6}).beats_guessing
    noise = pd.Series(np.random.default_rng(3).normal(size=120), name="y")
    assert not measure(replace(data, y=noise), "regression", FAST | {"max_epochs": 6}).beats_guessing


def test_where_the_site_tells_the_target_its_median_is_the_guess_to_beat():
    site = pd.Series(list("ab") * 60, name="site")
    data = table(n=120, site=site)
    y = (site == "a") * 50.0 + pd.Series(np.random.default_rng(4).normal(size=120))
    result = measure(replace(data, y=y.rename("y")), "regression", FAST)
    assert result.best_guess == "group_median"
    assert not result.beats_guessing


@pytest.mark.slow
def test_noise_is_rarely_called_better_than_guessing():
    """Two and a half in a hundred by the interval; more than six of sixty would be beyond chance (p < 0.01)."""
    data = table(n=100)
    called = 0
    for seed in range(60):
        noise = pd.Series(np.random.default_rng(100 + seed).normal(size=100), name="y")
        called += measure(replace(data, y=noise), "regression", FAST | {"max_epochs": 10}, seed=seed).beats_guessing
    assert called <= 6


def test_an_index_that_repeats_is_an_id_and_never_split_between_folds():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(np.repeat(rng.normal(size=(30, 4)), 2, axis=0), index=np.repeat(np.arange(30), 2))
    y = pd.Series(np.repeat(rng.normal(size=30), 2), index=X.index, name="y")
    result = measure(Dataset(X.rename(columns=str), y), "regression", FAST)
    folds = pd.Series(result.folds.fold).groupby(np.repeat(np.arange(30), 2)).nunique()
    assert (folds == 1).all()


def test_one_block_of_time_has_no_interval_and_no_verdict_on_guessing():
    when = pd.Series(np.arange(80), name="year")
    data = table(n=80)
    result = measure(data, "regression", FAST, folds=time_folds(data, when, "regression", n_folds=1))
    assert result.beats_guessing is None
