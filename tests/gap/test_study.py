"""``gap_study``: planted shifts, covariates in three parts, sites harmonised out of fold, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from precisionnet.errors import InputError
from precisionnet.gap import gap_study
from precisionnet.gap.checks import target_complaints
from precisionnet.gap.study import difference_sentence
from tests.gap.conftest import people

FEW = {"n_permutations": 99, "random_state": 0}


class Linear(RegressorMixin, BaseEstimator):
    """Ridge regression that can split its predictions into columns."""

    def fit(self, X, y):
        self.names_ = list(X.columns)
        self.at_, self.scale_ = X.to_numpy().mean(axis=0), X.to_numpy().std(axis=0)
        z = (X.to_numpy() - self.at_) / self.scale_
        self.base_ = float(np.mean(y))
        self.coef_ = np.linalg.solve(z.T @ z + 10.0 * np.eye(z.shape[1]), z.T @ (np.asarray(y) - self.base_))
        return self

    def predict(self, X):
        return self.base_ + self.contributions(X).to_numpy().sum(axis=1)

    def contributions(self, X):
        values = (X.to_numpy() - self.at_) / self.scale_ * self.coef_
        return pd.DataFrame(values, columns=self.names_, index=X.index)


def study_of(drawn, **settings):
    given = {"labels": drawn.dx, "controls": "control", "regressor": Linear(), **FEW}
    return gap_study(drawn.X, drawn.age, **{**given, **settings})


def test_a_planted_shift_lies_in_the_interval_and_the_raw_one_is_b_times_it(drawn):
    study = study_of(drawn, site=drawn.site, adjust_for=drawn.sex.to_frame())
    found = study.groups.set_index("kind")
    assert found.loc["scaled", "low"] < 4.0 < found.loc["scaled", "high"]
    assert found.loc["scaled", "p_value"] <= 0.05
    ratio = found.loc["subtractive", "difference"] / found.loc["scaled", "difference"]
    assert ratio == pytest.approx(study.model.slope_, rel=0.05)
    assert found.loc["none", "difference"] == pytest.approx(found.loc["subtractive", "difference"], rel=0.1)
    assert study.adjusted_for == ["age", "site", "sex"]
    assert "patient and control differ: corrected gap +" in study.summary()


def test_everybody_has_a_gap_and_controls_were_never_seen_by_what_predicts_them(drawn):
    study = study_of(drawn)
    gaps = study.gaps
    assert gaps.index.equals(drawn.X.index)
    assert gaps.drop(columns=["group"]).notna().all(axis=None)
    assert gaps["learned_from"].to_numpy().tolist() == (drawn.dx == "control").tolist()
    np.testing.assert_allclose(gaps["gap"], gaps["predicted"] - gaps["true"])
    for row in gaps[~gaps["learned_from"]].iloc[:3].itertuples():
        one = study.model.regressors_[row.fold].predict(drawn.X.loc[[row.Index]])
        assert row.predicted == pytest.approx(one[0])
    held = (gaps["corrected_gap_low"] <= 0) & (gaps["corrected_gap_high"] >= 0)
    assert 0.9 < held[gaps["learned_from"]].mean() <= 1.0
    assert set(study.accuracy) == {"mae", "guess_mae", "r", "r2"}
    assert study.accuracy["mae"] == pytest.approx(gaps.loc[gaps["learned_from"], "gap"].abs().mean())


def test_patients_change_nothing_about_the_controls(drawn):
    """Leakage: other patients leave the controls' corrected gaps as they are, to the last bit."""
    X = drawn.X.copy()
    X[drawn.dx == "patient"] += 30.0
    both = [
        gap_study(x, drawn.age, labels=drawn.dx, controls="control", regressor=Linear(), **FEW) for x in (drawn.X, X)
    ]
    own = (drawn.dx == "control").to_numpy()
    np.testing.assert_array_equal(both[0].gaps["corrected_gap"][own], both[1].gaps["corrected_gap"][own])
    assert [c.slope for c in both[0].model.corrections_] == [c.slope for c in both[1].model.corrections_]


def test_regions_add_up_to_the_difference(drawn):
    study = study_of(drawn)
    whole = study.groups.set_index("kind").loc["scaled", "difference"]
    assert study.regions["difference"].sum() == pytest.approx(whole, abs=0.2)
    assert study.regions["q_value"].between(0, 1).all()
    assert len(study.regions) == 8


def test_a_covariate_as_input_is_a_column_and_one_region(drawn):
    study = study_of(drawn, inputs=pd.concat([drawn.sex, drawn.site], axis=1))
    assert study.model.feature_names_in_.tolist()[-3:] == ["sex=M", "site=Oslo", "site=Rome"]
    assert study.regions["column"].tolist()[-2:] == ["sex", "site"]


def test_a_covariate_regressed_out_is_not_in_the_predictions(drawn):
    """A covariate that moves every column by far: out of the columns, it is out of the gaps."""
    volume = pd.DataFrame({"volume": np.random.default_rng(1).normal(size=240)}, index=drawn.X.index)
    X = drawn.X + 5.0 * volume.to_numpy()
    given = {"labels": drawn.dx, "controls": "control", "regressor": Linear(), **FEW}
    errors = {
        "in": gap_study(X, drawn.age, **given).accuracy["mae"],
        "out": gap_study(X, drawn.age, **given, regress_out=volume).accuracy["mae"],
        "without": gap_study(drawn.X, drawn.age, **given).accuracy["mae"],
    }
    assert errors["out"] == pytest.approx(errors["without"], rel=0.03)
    adjusted = gap_study(X, drawn.age, **given, adjust_for=volume)
    assert adjusted.accuracy["mae"] == errors["in"]  # adjusting leaves the predictions alone


def test_sites_are_harmonised_out_of_fold(drawn):
    study = study_of(drawn, site=drawn.site, combat=True, inputs=drawn.sex.to_frame())
    learned = study.gaps[study.gaps["learned_from"]]
    for k, regressor in enumerate(study.model.regressors_):
        combat = regressor["columns"].named_transformers_["features"]["combat"]
        assert combat.sites_ == ["Bonn", "Oslo", "Rome"]
        seen = learned.loc[learned["fold"] != k, "site"].value_counts().sort_index()
        np.testing.assert_array_equal(combat.site_counts_, seen)
        assert combat.feature_names_in_.tolist() == drawn.X.columns.tolist()  # and not the sex
    assert study.regions["column"].tolist() == [*drawn.X.columns, "sex"]


def test_rows_of_one_person_count_once(drawn):
    twice = pd.concat([drawn.X, drawn.X + 0.01])
    given = {"controls": "control", "regressor": Linear(), **FEW}
    study = gap_study(
        twice, [*drawn.age, *drawn.age], labels=[*drawn.dx, *drawn.dx], groups=[*drawn.X.index] * 2, **given
    )
    row = study.groups.iloc[0]
    assert (row["n_a"], row["n_b"]) == (80, 160)
    fold = study.gaps["fold"].to_numpy().reshape(2, -1)
    np.testing.assert_array_equal(fold[0], fold[1])


def test_without_controls_everybody_is_learned_from_and_it_is_said(drawn):
    study = study_of(drawn, controls=None)
    assert study.gaps["learned_from"].all()
    assert any("understated" in note for note in study.notes)
    alone = gap_study(drawn.X, drawn.age, regressor=Linear(), **FEW)
    assert not len(alone.groups)
    assert alone.correlation("none") < -0.2
    assert abs(alone.correlation()) < 0.05


def test_a_bias_of_their_own_among_patients_is_said(drawn):
    patient = (drawn.dx == "patient").to_numpy()
    X = drawn.X.copy()
    X[patient] -= 0.15 * (drawn.age[patient] - 50.0).to_numpy()[:, None]  # their columns move half as far with age
    said = [note for note in study_of(drawn, adjust_for=None).notes if "still goes with age" in note]
    slower = gap_study(X, drawn.age, labels=drawn.dx, controls="control", regressor=Linear(), **FEW)
    assert not said
    assert any("still goes with age (r = -" in note for note in slower.notes)


def test_missing_features_are_filled_with_training_medians(drawn):
    X = drawn.X.copy()
    X.iloc[::9, 2] = np.nan
    study = gap_study(X, drawn.age, regressor=Linear(), **FEW)
    median = study.model.regressors_[0]["columns"].named_transformers_["features"]["median"]
    np.testing.assert_allclose(median.statistics_, X[study.model.fold_ != 0].median())
    assert study.gaps["gap"].notna().all()


def test_where_no_spline_fits_its_gap_is_empty_and_the_corrected_one_is_there(rng):
    """The note says so, and advises nothing: the study has every correction that there is."""
    age = pd.Series(rng.uniform(10, 80, 300), name="age")
    X = pd.DataFrame(np.minimum(age, 40.0).to_numpy()[:, None] + rng.standard_normal((300, 3)), columns=list("abc"))
    study = gap_study(X, age, regressor=Linear(), **FEW)
    assert study.gaps["smooth_gap"].isna().all()
    assert study.gaps["corrected_gap"].notna().all()
    (note,) = (note for note in study.notes if "smooth" in note)
    assert "left empty" in note
    assert "corrected gap is not affected" in note
    assert "correction=" not in note


def changed(drawn, **columns):
    return {"labels": drawn.dx, "controls": "control", **columns}


def numbered(drawn):
    """Return the groups as numbers, and of two rows none."""
    return (drawn.dx == "patient").astype(float).mask(np.arange(240) < 2)


BAD = {
    "no controls": (lambda d: changed(d, controls="healthy"), r"There are no controls: no row is of group 'healthy'; the groups are 'control' \(160\), 'patient' \(80\)"),
    "a group of two": (lambda d: changed(d, labels=["other"] * 2 + [*d.dx[2:]]), r"Group 'other' has 2 rows: at least 6"),
    "few controls": (lambda d: changed(d, controls="patient", labels=["control"] * 220 + ["patient"] * 20), r"20 rows of group 'patient' are too few"),
    "one group": (lambda d: {"labels": ["control"] * 240}, "All rows are of group 'control'"),
    "many groups": (lambda d: {"labels": [*range(12)] * 20}, "12 different values"),
    "controls without groups": (lambda d: {"controls": "control"}, "there are no groups"),
    "a site with one row": (lambda d: changed(d, site=["Lund", *d.site[1:]]), "Site 'Lund' has one row"),
    "a site without controls": (lambda d: changed(d, site=np.where(np.arange(240) % 6 == 0, "new", d.site), combat=True), "Site 'new' has fewer than two controls"),
    "no site to harmonise": (lambda d: changed(d, combat=True), "harmonises sites, and there are none"),
    "age in months as a covariate": (lambda d: changed(d, adjust_for=pd.DataFrame({"months": (12 * d.age).round()})), "Covariate 'months' is target 'age' in disguise"),
    "age in months as an input": (lambda d: changed(d, inputs=pd.DataFrame({"months": (12 * d.age).round()})), "Covariate 'months' is target 'age' in disguise"),
    "a covariate that is the group": (lambda d: changed(d, adjust_for=(d.dx == "control").astype(float).to_frame("flag")), "Covariate 'flag' coincides with the labels"),
    "a constant covariate": (lambda d: changed(d, adjust_for=pd.DataFrame({"one": [1.0] * 240})), "Covariate 'one' has the same value"),
    "holes in a covariate": (lambda d: changed(d, adjust_for=d.sex.mask(d.sex == "F").to_frame()), "Covariate 'sex' is missing in"),
    "people in both groups": (lambda d: changed(d, groups=[i // 3 for i in range(240)]), "80 people are in several groups"),
    "a group that is not known, beside sites": (lambda d: changed(d, controls=None, labels=numbered(d), site=d.site), r"group is missing in 2 of 240 rows \(row 's0' is"),
    "a group that is not known, beside covariates": (lambda d: changed(d, controls=None, labels=numbered(d), adjust_for=d.sex.to_frame()), "group is missing in 2 of 240 rows"),
    "covariates without names": (lambda d: changed(d, adjust_for=np.ones((240, 1))), "must be a data frame"),
    "labels too short": (lambda d: changed(d, labels=["a"]), "labels has 1 entries"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(BAD))
def test_bad_input_is_one_sentence(drawn, what):
    change, sentence = BAD[what]
    with pytest.raises(InputError, match=sentence):
        gap_study(drawn.X, drawn.age, regressor=Linear(), **FEW, **change(drawn))


def test_all_complaints_come_at_once(drawn):
    given = {
        "labels": ["other"] * 2 + [*drawn.dx[2:]],
        "controls": "healthy",
        "site": ["Lund", *drawn.site[1:]],
        "adjust_for": pd.DataFrame({"days": drawn.age * 365}),
    }
    with pytest.raises(InputError) as refused:
        gap_study(drawn.X, (drawn.age * 12).rename("age"), **given)
    for part in ("looks like months", "There are no controls", "has 2 rows", "'Lund' has one row", "'days' is target"):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (pd.Series(["34 y", "51 y"], name="age"), r"has its unit in the cells \('34 y'\)"),
        (pd.Series(["old", "young"], name="age"), "holds 'old', not numbers"),
        (pd.Series([8000.0, 21000.0], name="AGE_AT_SCAN"), "looks like days: divide it by 365.25"),
        (pd.Series([130.0, 700.0], name="age"), "looks like months: divide it by 12"),
        (pd.Series([-9.0, 70.0], name="age"), "nobody is younger than 0"),
        (pd.Series([30.0, np.nan], name="age"), "missing in 1 of 2 rows"),
        (pd.Series([30.0, 30.0], name="age"), "is always 30"),
        (pd.Series([30.0, np.inf], name="age"), "holds infinity"),
    ],
)
def test_ages_that_are_none(y, sentence):
    (found,) = target_complaints(y, y.index)
    assert pd.Series([found]).str.contains(sentence).all()


def test_another_target_may_be_large():
    volume = pd.Series([800.0, 2100.0], name="volume")
    assert target_complaints(volume, volume.index) == []


@pytest.mark.slow
def test_planted_shifts_lie_in_their_intervals():
    """60 tables, a shift of two years: 95 % of intervals, less four standard errors."""
    held = 0
    for seed in range(60):
        drawn = people(240, shift=2.0, seed=seed)
        row = study_of(drawn, site=drawn.site).groups.set_index("kind").loc["scaled"]
        held += row["low"] <= 2.0 <= row["high"]
    assert held >= 60 * 0.95 - 4 * np.sqrt(60 * 0.95 * 0.05)


def test_groups_differ_up_to_five_percent_and_not_beyond():
    row = {
        "group_a": "a",
        "group_b": "b",
        "difference": 1.0,
        "low": 0.0,
        "high": 2.0,
        "effect_size": 0.5,
        "n_a": 9,
        "n_b": 9,
    }
    for p_value, differ in ((0.05, True), (np.nextafter(0.05, 1.0), False)):
        assert (" differ" in difference_sentence(row | {"p_value": p_value}, "group")) is differ
