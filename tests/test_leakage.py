"""Nothing of the rows that are predicted reaches the models that predict them, from the folds to the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import Dataset, fetch_abide
from precisionnet.evaluation import measure, people_folds
from tests.cheap import cheap_baselines
from tests.recipes import both_recipes

__all__ = ["cheap_baselines"]


@both_recipes
@pytest.mark.parametrize("missing", ["error", "median"])
def test_changing_a_fold_changes_no_prediction_of_a_row_in_it(gaussian, missing, quick):
    """One row of a fold stays as it is; the columns and the target of the others may be anything."""
    quick = {name: value for name, value in quick.items() if name != "random_state"} | {"missing": missing}
    data = Dataset(gaussian.X.copy(), gaussian.y)
    if missing == "median":
        data.X.iloc[::7, 2] = np.nan
    folds = people_folds(data, "regression", 2, seed=0)
    kept, *others = np.flatnonzero(folds.fold == 0)
    X, y = data.X.copy(), data.y.copy()
    X.iloc[others] = X.iloc[np.random.default_rng(0).permutation(others)].to_numpy() * 10 + 3
    y.iloc[others] = 100.0 - 5.0 * y.iloc[others]
    before, after = (measure(one, "regression", quick, folds=folds) for one in (data, replace(data, X=X, y=y)))
    assert before.folds.tested[kept] == kept
    for name in before.predictions:
        first, second = (result.predictions[name].predicted for result in (before, after))
        assert first[kept] == second[kept], name
        assert not np.array_equal(first, second)


def two_scans_a_person(seed: int) -> Dataset:
    """Labels that only knowing the person tells: 60 people, two nearly equal scans each, ages drawn at random."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(60), 2)
    index = pd.Index([f"p{p}-{i % 2}" for i, p in enumerate(person)])
    X = pd.DataFrame(rng.normal(size=(60, 12))[person] + 0.02 * rng.normal(size=(120, 12)), index=index)
    y = pd.Series(rng.normal(size=60)[person], index=index, name="age")
    return Dataset(X.rename(columns=str), y, pd.Series(person.astype(str), index=index))


@pytest.mark.slow
@pytest.mark.parametrize("few", [{"n_members": 3}, {"recipe": "paper", "max_epochs": 20}], ids=["standard", "paper"])
def test_a_person_seen_twice_gives_nothing_away(few):
    def correlation(data: Dataset, seed: int) -> float:
        result = measure(data, "regression", few, seed=seed)
        return float(np.corrcoef(result.predictions["joint"].predicted, result.y)[0, 1])

    guarded = [correlation(two_scans_a_person(seed), seed) for seed in range(4)]
    blind = [correlation(replace(two_scans_a_person(seed), groups=None), seed) for seed in range(4)]
    assert np.mean(guarded) < 0.35
    assert np.mean(blind) > np.mean(guarded) + 0.3  # what the guard is for


@pytest.mark.data
@pytest.mark.parametrize(
    ("few", "n_folds", "every"),
    [
        ({"n_members": 2, "max_epochs": 20}, 2, 3),
        pytest.param({"recipe": "paper", "max_epochs": 15, "task_steps": 2}, 2, 3, marks=pytest.mark.slow),
        pytest.param({"n_members": 2}, 5, 1, marks=pytest.mark.slow),
        pytest.param({"recipe": "paper"}, 5, 1, marks=pytest.mark.slow),
    ],
)
def test_shuffled_ages_score_at_chance(data_folder, few, n_folds, every):
    """``test_shuffled_labels_score_at_chance`` has both recipes by default."""
    whole = fetch_abide(data_folder)
    data = Dataset(whole.X[::every], whole.y[::every])
    y = pd.Series(np.random.default_rng(0).permutation(data.y), index=data.y.index, name="age")
    data = replace(data, y=y)
    scores = measure(data, "regression", few, folds=people_folds(data, "regression", n_folds)).scores
    assert scores.loc["joint", "mae"] > 0.97 * scores.loc["median", "mae"]
    assert abs(scores.loc["joint", "r"]) < 0.2
