"""The committed rows of benchmarks.honest say what decision 18 says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parents[1] / "results" / "honest"


def test_thirty_labelled_rows_leave_no_more_bias_than_asked_for():
    rows = pd.read_csv(RESULTS / "recalibrated.csv")
    thirty = rows[rows["labelled"] == 30]
    assert {"abide", "ants"} <= set(thirty["model"])
    assert (thirty["draws"] == 200).all()
    assert (thirty["bias_left"] <= thirty["allowed"]).all()


def test_rows_of_the_same_cohort_raise_no_alarm_and_those_of_another_do():
    rows = pd.read_csv(RESULTS / "alarms.csv")
    same, other = (rows[rows["rows"] == name] for name in ("same cohort", "other cohort"))
    assert set(same["model"]) == set(other["model"]) == {"abide", "ants"}
    assert (same["warned"] <= 0.02).all()
    assert (other.loc[other["size"] >= 20, "warned"] == 1.0).all()


def test_the_default_test_does_not_flatter():
    rows = pd.read_csv(RESULTS / "bias.csv")
    paired = rows[(rows["half"] == 0) & (rows["test"] == "networks")].assign(rows=lambda frame: frame["rows"].fillna(0))
    for _, found in paired.groupby(["cohort", "target", "rows"]):
        share = found["bias"].mean() / found["new"].mean()
        assert -0.01 < share < 0.06
