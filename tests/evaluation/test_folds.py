"""Folds: whole people, whole groups, past before future."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from precisionnet.evaluation import group_folds, people_folds, time_folds
from precisionnet.evaluation.folds import as_times


def rows(n: int = 60, groups=None) -> Dataset:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"), index=[f"r{i}" for i in range(n)])
    people = None if groups is None else pd.Series(groups, index=X.index)
    return Dataset(X, pd.Series(rng.normal(size=n), index=X.index, name="y"), people)


@given(n_people=st.integers(20, 60), n_folds=st.integers(2, 6), seed=st.integers(0, 50))
def test_people_are_dealt_whole_and_evenly(n_people, n_folds, seed):
    owners = np.random.default_rng(seed).integers(0, n_people, size=120)
    folds = people_folds(rows(120, owners), "regression", n_folds, seed)
    assert folds.n_folds == n_folds
    per_person = pd.Series(folds.fold).groupby(owners)
    assert per_person.nunique().eq(1).all()
    sizes = per_person.first().value_counts()
    assert sizes.max() - sizes.min() <= 2
    for number in range(n_folds):
        training, test = folds.sides(number)
        assert not set(owners[training]) & set(owners[test])
        assert len(training) + len(test) == 120


def test_groups_are_held_out_whole_and_nobody_is_on_both_sides():
    site = pd.Series(np.array(list("aaaaabbbccd") * 6)[:60], name="site")
    owners = np.r_[0, 1, 2, 0, np.arange(3, 59)]
    folds = group_folds(rows(60, owners), site, "regression", 3)
    assert pd.Series(folds.fold).groupby(site.to_numpy()).nunique().eq(1).all()
    for number in range(folds.n_folds):
        training, test = folds.sides(number)
        assert not set(owners[training]) & set(owners[test])
    assert folds.tested.tolist() == list(range(60))
    assert group_folds(rows(), site, "regression", 40).n_folds == 4


@pytest.mark.parametrize("n_folds", [1, 4, 9])
def test_a_block_is_learned_from_all_that_was_before_it(n_folds):
    times = np.random.default_rng(1).integers(0, 25, size=200)
    folds = time_folds(rows(200), pd.Series(times, name="year"), "regression", n_folds)
    assert folds.n_folds == n_folds
    for number in range(folds.n_folds):
        training, test = folds.sides(number)
        assert times[training].max() < times[test].min()
        assert set(np.flatnonzero(times < times[test].min())) == set(training)
    first = np.flatnonzero(folds.fold < 0)
    assert times[first].max() < times[folds.tested].min()
    assert abs(len(first) - 200 / (n_folds + 1)) < 15


@pytest.mark.parametrize(
    ("text", "days"),
    [
        (["2024-01-31", "2024-02-01"], 1.0),
        (["2024-01-31T12:00:00", "2024-02-01T00:00:00"], 0.5),
        (["31.01.2024", "01.02.2024"], 1.0),
        (["01/31/2024", "02/01/2024"], 1.0),
        (["Jan 31 2024", "Feb 1 2024"], 1.0),
    ],
)
def test_dates_are_read_in_order(text, days):
    first, second = as_times(pd.Series(text, name="when"))
    assert second - first == days


def test_what_cannot_be_tested_is_refused_in_a_sentence():
    data = rows()
    for column, sentence in (
        (pd.Series(["a"] * 60, name="site"), "All rows have the same 'site'"),
        (pd.Series(["a", None] * 30, name="site"), "30 rows have no 'site'"),
        (pd.Series(["a"] * 57 + ["b"] * 3, name="site"), "leaves 3 of 60 rows to learn from"),
    ):
        with pytest.raises(InputError, match=sentence):
            group_folds(data, column, "regression")
    for column, sentence in (
        (pd.Series([1.0] * 60, name="day"), "All rows have the same 'day'"),
        (pd.Series([1.0] * 5 + [2.0] * 55, name="day"), "leaves 5 of 60 rows to learn from"),
        (pd.Series([1.0, np.nan] * 30, name="day"), "30 rows have no 'day'"),
        (pd.Series(["soon"] * 60, name="day"), "'soon', which is neither a number nor a date"),
    ):
        with pytest.raises(InputError, match=sentence):
            time_folds(data, column, "regression")
    with pytest.raises(InputError, match="n_folds must be a whole number, at least 2"):
        people_folds(data, "regression", 1)
    one_class = Dataset(data.X, pd.Series(["a"] * 30 + ["b"] * 30, index=data.X.index, name="y"))
    with pytest.raises(InputError, match="only one class is left to learn from"):
        time_folds(one_class, pd.Series(range(60), name="day"), "classification")
