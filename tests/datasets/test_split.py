"""Splits by person, alike in site or target, whatever the order of the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precisionnet.datasets import Dataset
from precisionnet.errors import InputError


def dataset(n=200, people=None, seed=0, sites=4):
    rng = np.random.default_rng(seed)
    index = pd.Index([f"scan-{i}" for i in range(n)])
    groups = None if people is None else pd.Series([f"p{i}" for i in rng.integers(0, people, n)], index=index)
    return Dataset(
        pd.DataFrame(rng.normal(size=(n, 3)), index=index, columns=list("abc")),
        pd.Series(rng.normal(size=n), index=index, name="age"),
        groups,
        pd.Series(rng.integers(0, sites, n).astype(str), index=index, name="site"),
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(30, 300), st.integers(15, 100), st.integers(0, 2**31), st.sampled_from(["target", "site", "none"]))
def test_every_row_is_on_one_side_and_every_person_too(n, people, seed, stratify):
    data = dataset(n, people, seed)
    parts = data.split(seed=seed, stratify=stratify)
    assert sorted(i for part in parts for i in part.X.index) == sorted(data.X.index)
    sides = [set(part.groups) for part in parts]
    assert sum(len(side) for side in sides) == len(set.union(*sides))
    for part in parts:
        assert part.X.index.equals(part.y.index)
        assert part.X.index.equals(part.site.index)
    for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
        assert abs(part.groups.nunique() - share * data.groups.nunique()) <= 1


def test_without_people_the_shares_are_exact():
    for seed in range(5):
        assert [len(part) for part in dataset(1000).split(seed=seed)] == [600, 200, 200]


@pytest.mark.parametrize("stratify", ["auto", "site"])
def test_sides_are_alike_in_what_they_are_stratified_by(stratify):
    data = dataset(1000, sites=10)
    parts = data.split(seed=1, stratify=stratify)
    if stratify == "site":
        for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
            counts = part.site.value_counts().sort_index() - share * data.site.value_counts().sort_index()
            assert counts.abs().max() <= 2
    else:
        inner = np.quantile(data.y, np.linspace(0, 1, 11)[1:-1])
        for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
            counts = np.bincount(np.searchsorted(inner, part.y), minlength=10)
            assert np.abs(counts - 100 * share).max() <= 2


def test_the_order_of_the_rows_does_not_matter_and_the_seed_does():
    data = dataset(150, people=60)
    shuffled = data.take(np.random.default_rng(1).permutation(150))
    for first, second in zip(data.split(seed=3), shuffled.split(seed=3), strict=True):
        assert set(first.X.index) == set(second.X.index)
    assert set(data.split(seed=3).test.X.index) != set(data.split(seed=4).test.X.index)


def test_strata_of_one_are_dealt_at_random():
    data = dataset(50, sites=1)
    data = Dataset(data.X, site=pd.Series([str(i) for i in range(50)], index=data.X.index))
    tests = [frozenset(data.split(seed=seed, stratify="site").test.X.index) for seed in range(5)]
    assert len(set(tests)) == 5


def test_percentages_and_two_way_splits():
    data = dataset(100)
    assert [len(p) for p in data.split((60, 20, 20), 5)] == [60, 20, 20]
    assert [len(p) for p in data.split((0.8, 0, 0.2))] == [80, 0, 20]


@pytest.mark.parametrize("fractions", [(0.6, 0.4), (0.6, 0.2, 0.3), (-0.2, 0.6, 0.6), "abc", (0, 0.5, 0.5), None])
def test_bad_fractions_are_refused(fractions):
    with pytest.raises(InputError, match="fractions must be"):
        dataset(20).split(fractions)


def test_what_cannot_be_split_says_so():
    with pytest.raises(InputError, match="No row is left for"):
        dataset(2).split()
    with pytest.raises(InputError, match="needs a site"):
        Dataset(dataset(20).X).split(stratify="site")
    with pytest.raises(InputError, match="did you mean 'site'"):
        dataset(20).split(stratify="sites")


def test_rows_with_missing_values_can_be_left_out():
    data = dataset(20)
    data.X.iloc[3, 1] = np.nan
    data.y.iloc[5] = np.nan
    assert list(data.without_missing().X.index) == [i for i in data.X.index if i not in ("scan-3", "scan-5")]
    X, y = data.to_numpy()
    assert X.dtype == np.float64
    assert X.shape == (20, 3)
    assert y.shape == (20,)


@pytest.mark.parametrize("fractions", [(0.6, 0.2, 0.2), pytest.param((0.8, 0.0, 0.2), marks=pytest.mark.slow)])
def test_the_chance_to_be_tested_does_not_depend_on_the_number_of_scans(fractions):
    scans = np.r_[np.ones(80, dtype=int), np.full(19, 3), 20]
    person = np.repeat([f"p{i:03d}" for i in range(100)], scans)
    index = pd.Index([f"{p}-{i}" for i, p in enumerate(person)])
    data = Dataset(pd.DataFrame({"a": np.arange(len(person))}, index=index), groups=pd.Series(person, index=index))
    tested = {1: 0, 3: 0, 20: 0}
    for seed in range(250):
        for who in set(person[data.split_rows(fractions, seed)[2]]):
            tested[int(scans[int(who[1:])])] += 1
    for size, n in ((1, 80), (3, 19), (20, 1)):
        assert tested[size] / (250 * n) == pytest.approx(0.2, abs=0.06 if n == 1 else 0.03)


def test_without_people_every_row_is_dealt_by_itself():
    data = dataset(100, people=20)
    data = Dataset(data.X.set_axis(data.groups), data.y.set_axis(data.groups), data.groups.set_axis(data.groups))
    parts = data.split(by_person=False)
    assert [len(part) for part in parts] == [60, 20, 20]
    assert set(parts.train.groups) & set(parts.test.groups)
