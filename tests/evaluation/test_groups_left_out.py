"""Whole sites left out: no row of a tested site is learnt from, and the cost stands beside the ordinary figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from precisionnet.evaluation.baselines import BaselineCandidate, predict_rows
from precisionnet.evaluation.comparison import compare, compare_experiment
from precisionnet.evaluation.protocol import HELD_OUT, FitData, leave_groups_out, splits_frame, target_of
from precisionnet.evaluation.statistics import apart, paired, shift_costs
from precisionnet.evaluation.verdict import shift_verdict, verdict
from precisionnet.report.experiment_page import build_page, summary

SIZES = {"A": 60, "B": 50, "C": 30, "D": 25, "E": 20, "F": 15}


def table(task: str = "regression") -> Dataset:
    """Every site has a level of its own; one column has an effect."""
    rng = np.random.default_rng(0)
    site = np.repeat(list(SIZES), list(SIZES.values()))
    X = pd.DataFrame(rng.normal(size=(len(site), 3)), columns=list("abc"), index=[f"s{i}" for i in range(len(site))])
    y = 5 * X["a"] + 20 * pd.Series(site, X.index).map({name: i for i, name in enumerate(SIZES)})
    target = y if task == "regression" else pd.Series(np.where(y > 40, "high", "low"), X.index)
    return Dataset(X, target.rename("y"), site=pd.Series(site, X.index, name="site"))


def test_every_site_is_tested_once_and_never_learnt_from():
    data = table()
    folds = leave_groups_out(data, 3, task="regression")
    assert len(folds) == 4
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(data)))
    for fold in folds:
        tested = set(data.site.iloc[fold.test])
        assert not tested & set(data.site.iloc[fold.train])
        assert not tested & set(data.site.iloc[fold.validation])
        assert not set(fold.train) & set(fold.validation)
        assert len(fold.train) == pytest.approx(0.8 * (len(data) - len(fold.test)), abs=2)
    assert max(len(fold.test) for fold in folds) == SIZES["A"], "folds have about as many rows"
    again = leave_groups_out(data, 3, task="regression")
    assert all(np.array_equal(one.train, other.train) for one, other in zip(folds, again, strict=True))


def test_a_person_with_rows_at_two_sites_is_not_learnt_from_where_tested():
    data = table()
    people = pd.Series([f"p{i % 70}" for i in range(len(data))], data.X.index)
    data = Dataset(data.X, data.y, people, data.site)
    for fold in leave_groups_out(data, 0, task="regression"):
        tested = set(people.iloc[fold.test])
        assert not tested & set(people.iloc[fold.train])
        assert not tested & set(people.iloc[fold.validation])
    frame = splits_frame(data, [], leave_groups_out(data, 0, task="regression"))
    assert list(frame.columns) == [f"{HELD_OUT}_{i}" for i in range(4)]
    assert set(frame[f"{HELD_OUT}_0"]) == {"", "train", "validation", "test"}


@pytest.mark.parametrize(
    ("site", "told"),
    [(None, "no groups"), (["A"] * 200, "one group"), ([np.nan, *["A", "B"] * 99, "A"], "no group to be left out")],
)
def test_groups_that_cannot_be_left_out_are_refused(site, told):
    data = table()
    series = None if site is None else pd.Series(site, data.X.index, dtype=object)
    with pytest.raises(InputError, match=told):
        leave_groups_out(Dataset(data.X, data.y, site=series), 0, task="regression")


def test_the_guess_by_group_knows_the_group_and_nothing_else():
    data = table()
    candidate = BaselineCandidate("group_median", {}, FitData(data, data, "regression", 0))
    candidate.advance(1)
    said, _ = predict_rows(candidate.model(), data, "regression")
    own = data.y.groupby(data.site).transform("median")
    assert np.allclose(said, own)
    elsewhere = Dataset(data.X, data.y, site=pd.Series("Z", data.X.index))
    assert set(predict_rows(candidate.model(), elsewhere, "regression")[0]) == {float(np.median(data.y))}


def test_the_guess_of_classes_by_group_finds_nothing_impossible():
    data = table("classification")
    candidate = BaselineCandidate("group_majority", {}, FitData(data, data, "classification", 0))
    loss = candidate.advance(1)
    said, shares = predict_rows(candidate.model(), data, "classification")
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert (shares > 0).all()
    assert loss < 0.3
    assert np.mean(said == target_of(data)) > 0.8


def test_groups_are_asked_for_where_a_guess_needs_them():
    data = Dataset(table().X, table().y)
    with pytest.raises(InputError, match="needs groups"):
        BaselineCandidate("group_median", {}, FitData(data, data, "regression", 0)).advance(1)


@pytest.fixture(scope="module")
def rows():
    data = table()
    found = compare(data.X, data.y, ["ridge"], 3, hold_out=data.site.rename("centre"), jobs=1)
    return [{key: value for key, value in row.items() if value is not np.nan} for row in found.to_dict("records")]


def test_ordinary_and_left_out_rows_stand_side_by_side(rows):
    ordinary, left_out = apart(rows)
    assert {row["method"] for row in ordinary} == {"ridge", "group_median", "median"}
    assert {row["method"] for row in left_out} == {"ridge", "median"}, "no guess by group where the group is unknown"
    costs = shift_costs(rows, "mae")
    assert costs.loc["ridge", "cost"] > 0
    assert np.isnan(costs.loc["group_median", "left_out"])
    assert costs.loc["group_median", "ordinary"] < costs.loc["ridge", "ordinary"]
    assert costs.loc["ridge", "left_out"] == pytest.approx(
        np.mean([r["mae"] for r in left_out if r["method"] == "ridge"])
    )
    assert set(paired(left_out, "median").index) == {"ridge"}


def test_the_page_and_the_summary_show_the_cost(rows):
    about = {"kind": "comparison", "task": "regression", "target": "y", "unit": "years", "hold_out": "centre"}
    page = build_page({"name": "compare", "about": about}, rows)
    assert page.verdict.startswith(verdict(apart(rows)[0], "regression", "y", "years"))
    assert page.verdict.endswith(shift_verdict(rows, "regression", "y", "centre", "years"))
    shown = page.tables[1]
    assert shown.columns[:4] == ["method", "ordinary", "left out", "cost"]
    assert {line[0]: line[2] == "–" for line in shown.rows} == {"ridge": False, "median": False, "group_median": True}
    assert "Where whole groups (centre) are left out" in page.html
    table = summary("comparison", rows).set_index(["held_out", "method", "metric"])
    assert table.loc[(True, "ridge", "mae"), "n"] == 4
    assert table.loc[(False, "ridge", "mae"), "n"] == 3


def test_other_groups_make_another_experiment():
    data = table()
    first = compare_experiment(data, "regression", ["ridge"], 2, hold_out="site")
    swapped = Dataset(data.X, data.y, site=data.site.sample(frac=1, random_state=0).set_axis(data.X.index))
    assert first.config != compare_experiment(swapped, "regression", ["ridge"], 2, hold_out="site").config
    assert len({job.name for job in first.jobs}) == len(first.jobs)
    assert compare_experiment(data, "regression", ["ridge"], 2).config.keys() == first.config.keys() - {
        "hold_out",
        "group_hash",
    }
