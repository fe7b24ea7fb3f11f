"""``GapModel``: out of fold, the same predictor for everybody, nothing leaks, sites and people on their way."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet import PNNRegressor
from precisionnet.errors import InputError
from precisionnet.gap import GapModel
from precisionnet.gap import model as gap_model
from precisionnet.gap.outer_folds import outer_folds
from precisionnet.preprocessing import ComBat, CovariateRegression
from tests.calls import last_first
from tests.gap.conftest import people


@pytest.fixture
def fitted(drawn, ridge):
    own = drawn.controls
    return GapModel(ridge, random_state=0).fit(drawn.X.iloc[own], drawn.age.iloc[own])


def test_each_row_is_predicted_by_the_fit_that_left_it_out(drawn, ridge, fitted):
    X, age = drawn.X.iloc[drawn.controls], drawn.age.iloc[drawn.controls]
    for k in range(5):
        out = fitted.fold_ == k
        expected = clone(ridge).fit(X[~out], age[~out]).predict(X[out])
        np.testing.assert_allclose(fitted.oof_prediction_[out], expected)
    np.testing.assert_allclose(fitted.oof_gap_, fitted.oof_prediction_ - age)


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_folds_side_by_side_are_the_same_to_the_last_bit(drawn, processes, monkeypatch):
    """Sites and people find their way to the workers, too; a regressor with callbacks stays here."""
    if not processes:
        monkeypatch.setattr(gap_model, "as_they_come", last_first)
    X, age, site, counted = drawn.X, drawn.age, drawn.site, []
    pipeline = make_pipeline(ComBat(), StandardScaler(), Ridge(10.0))
    here, there = (
        GapModel(pipeline, n_jobs=n_jobs, on_fit=lambda *done: counted.append(done), random_state=0).fit(
            X, age, site=site
        )
        for n_jobs in (None, 2)
    )
    assert counted == [(done, 5) for done in range(6)] * 2
    for name in ("oof_prediction_", "oof_corrected_gap_", "fold_"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    np.testing.assert_array_equal(there.gap(X, age, site=site), here.gap(X, age, site=site))
    rows = []
    network = PNNRegressor(max_epochs=1, n_members=2, callbacks=[rows.append], random_state=0)
    GapModel(network, n_folds=2, n_jobs=2, random_state=0).fit(X, age)
    assert len(rows) == 2


def test_the_bias_is_gone_on_rows_that_took_no_part(drawn, ridge, fitted):
    age = drawn.age.iloc[drawn.controls]
    assert np.corrcoef(fitted.oof_gap_, age)[0, 1] < -0.2
    assert abs(np.corrcoef(fitted.oof_corrected_gap_, age)[0, 1]) < 0.05
    many = people(4000, shift=0.0, seed=0)
    learned, new = slice(0, 400), slice(400, None)
    model = GapModel(ridge, random_state=0).fit(many.X[learned], many.age[learned])
    assert np.corrcoef(model.gap(many.X[new], many.age[new]), many.age[new])[0, 1] < -0.2
    assert abs(np.corrcoef(model.corrected_gap(many.X[new], many.age[new]), many.age[new])[0, 1]) < 0.05


def test_new_rows_get_one_predictor_each_whatever_stands_beside_them(drawn, fitted):
    new = drawn.X[drawn.dx == "patient"]
    fold, prediction = fitted.deal(new), fitted.predict(new)
    assert set(fold) == set(range(5))
    for i in (0, 7, 20):
        assert fitted.deal(new.iloc[[i]])[0] == fold[i]
        assert prediction[i] == pytest.approx(fitted.regressors_[fold[i]].predict(new.iloc[[i]])[0])
        assert prediction[i] == pytest.approx(fitted.predict(new.iloc[[i]])[0])
    whose = np.repeat(["a", "b"], len(new) // 2)
    assert len(set(fitted.deal(new, whose)[: len(new) // 2])) == 1


def test_controls_and_patients_are_treated_alike(drawn, fitted):
    """A control that is handed in as a new row of its own fold gets its out-of-fold gap, corrected in the same way."""
    own = drawn.controls
    dealt = fitted.deal(drawn.X.iloc[own])
    same = dealt == fitted.fold_
    assert 10 < same.sum() < len(own)
    rows = own[same]
    np.testing.assert_allclose(
        fitted.corrected_gap(drawn.X.iloc[rows], drawn.age.iloc[rows]), fitted.oof_corrected_gap_[same]
    )


def test_a_planted_shift_is_found(drawn, fitted):
    patient = drawn.dx == "patient"
    found = fitted.corrected_gap(drawn.X[patient], drawn.age[patient])
    error = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - fitted.oof_corrected_gap_.mean() - 4.0) < 3 * error


def test_rows_outside_training_change_nothing_fitted(drawn, ridge):
    """Leakage: patients changed leave folds, predictions and corrections as they are, to the last bit."""
    own = drawn.controls
    changed = drawn.X.copy()
    changed[drawn.dx == "patient"] = changed[drawn.dx == "patient"] * 10 + 3
    one, other = (GapModel(ridge, random_state=0).fit(X.iloc[own], drawn.age.iloc[own]) for X in (drawn.X, changed))
    np.testing.assert_array_equal(one.oof_corrected_gap_, other.oof_corrected_gap_)
    assert [(c.intercept, c.slope) for c in one.corrections_] == [(c.intercept, c.slope) for c in other.corrections_]


def test_intervals_hold_zero_for_the_share_of_controls_that_they_say(drawn, ridge):
    many = people(1800, shift=0.0, seed=1)
    model = GapModel(ridge, random_state=0).fit(many.X[:300], many.age[:300])
    for corrected in (True, False):
        ends = model.gap_interval(many.X[300:], many.age[300:], coverage=0.9, corrected=corrected)
        held = np.mean((ends[:, 0] <= 0) & (ends[:, 1] >= 0))
        assert 0.85 < held < 0.95


def test_people_are_never_split(drawn, ridge):
    own = drawn.controls
    whose = np.arange(len(own)) // 2
    model = GapModel(ridge, random_state=0).fit(drawn.X.iloc[own], drawn.age.iloc[own], whose)
    assert all(len(set(model.fold_[whose == person])) == 1 for person in range(len(own) // 2))


def test_folds_are_alike_in_site_and_target_and_none_has_a_whole_site(rng):
    y, site = rng.uniform(20, 80, 203), rng.choice(["a", "b", "c", "d"], size=203, p=[0.5, 0.3, 0.18, 0.02])
    for seed in range(5):
        fold = outer_folds(y, 5, np.random.default_rng(seed), site=site)
        sizes = np.bincount(fold)
        assert sizes.max() - sizes.min() <= 1
        for name in "abcd":
            counts = np.bincount(fold[site == name], minlength=5)
            assert counts.max() - counts.min() <= 1
            assert (counts < (site == name).sum()).all()
        assert max(abs(y[fold == k].mean() - y.mean()) for k in range(5)) < 3.0
    assert not np.array_equal(*(outer_folds(y, 5, np.random.default_rng(seed)) for seed in (0, 1)))


def test_combat_works_out_of_fold(drawn):
    """By hand: ComBat fitted on the training rows of each fold, with their sites."""
    own = drawn.controls
    X, age, site = drawn.X.iloc[own], drawn.age.iloc[own], drawn.site.iloc[own]
    model = GapModel(make_pipeline(ComBat(), StandardScaler(), Ridge()), random_state=0).fit(X, age, site=site)
    for k in range(5):
        out = model.fold_ == k
        combat = ComBat().fit(X[~out], site=site[~out])
        plain = make_pipeline(StandardScaler(), Ridge())
        plain.fit(combat.transform(X[~out], site=site[~out]), age[~out])
        np.testing.assert_allclose(model.oof_prediction_[out], plain.predict(combat.transform(X[out], site=site[out])))
    patient = drawn.dx == "patient"
    assert model.corrected_gap(drawn.X[patient], drawn.age[patient], site=drawn.site[patient]).shape == (80,)


def test_covariates_reach_the_step_that_asks_for_them(drawn):
    own = drawn.controls
    sex = drawn.sex.to_frame().iloc[own]
    model = GapModel(make_pipeline(CovariateRegression(), Ridge()), random_state=0)
    model.fit(drawn.X.iloc[own], drawn.age.iloc[own], covariates=sex)
    assert model.regressors_[0][0].covariate_names_ == ["sex=M"]
    with pytest.raises(InputError, match="covariates has 3 rows"):
        model.fit(drawn.X.iloc[own], drawn.age.iloc[own], covariates=sex[:3])


class Records(RegressorMixin, BaseEstimator):
    """Keeps what it was given."""

    def fit(self, X, y, groups=None):
        self.groups_, self.mean_ = groups, float(np.mean(y))
        self.coef_ = np.linalg.lstsq(np.asarray(X) - np.mean(X, axis=0), y - self.mean_, rcond=None)[0]
        self.at_ = np.mean(np.asarray(X), axis=0)
        return self

    def predict(self, X):
        return self.mean_ + (np.asarray(X) - self.at_) @ self.coef_


def test_groups_reach_a_regressor_that_takes_them(drawn):
    own = drawn.controls
    whose = pd.Series(np.arange(len(own)) // 2)
    model = GapModel(Records(), random_state=0).fit(drawn.X.iloc[own].to_numpy(), drawn.age.iloc[own], whose)
    assert set(model.regressors_[0].groups_) == set(whose[model.fold_ != 0])


def test_it_is_an_estimator(drawn, ridge, fitted):
    assert clone(fitted).get_params()["n_folds"] == 5
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    new = drawn.X[drawn.dx == "patient"]
    np.testing.assert_array_equal(again.predict(new), fitted.predict(new))
    seen = []
    GapModel(ridge, on_fit=lambda *count: seen.append(count)).set_params(n_folds=3).fit(drawn.X, drawn.age)
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    arrays = GapModel(ridge, random_state=0).fit(drawn.X.to_numpy(), drawn.age.tolist())
    assert arrays.n_features_in_ == 8
    assert not hasattr(arrays, "feature_names_in_")


def test_the_default_is_the_network(monkeypatch):
    """Where no regressor is given; with fewer and shorter networks than by default."""
    short = {"n_members": 1, "max_epochs": 12, "validation_fraction": 0.2}
    monkeypatch.setattr("precisionnet.estimators.PNNRegressor", lambda **given: PNNRegressor(**given, **short))
    few = people(60)
    model = GapModel(n_folds=2, random_state=0).fit(few.X, few.age)
    assert [type(one) for one in model.regressors_] == [PNNRegressor] * 2
    assert model.regressors_[0].random_state is not None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y": ["old"] * 240}, "y must hold numbers"),
        ({"y": [1.0] * 3}, r"y has shape \(3,\) and X has 240 rows"),
        ({"X": [1.0] * 240}, "X must be a table"),
        ({"groups": [0] * 240}, "1 people are too few to learn a gap from"),
        ({"site": ["a"]}, "site has 1 rows and X has 240"),
        ({"y": [np.nan] * 240}, "y holds missing"),
    ],
)
def test_bad_input(drawn, ridge, change, sentence):
    given = {"X": drawn.X, "y": drawn.age, **change}
    with pytest.raises(InputError, match=sentence):
        GapModel(ridge).fit(**given)


def test_bad_parameters(drawn, ridge):
    for parameters, sentence in (
        ({"n_folds": 1}, "n_folds must be a whole number, at least 2"),
        ({"correction": "scale"}, "correction must be one of .*did you mean 'scaled'"),
    ):
        with pytest.raises(InputError, match=sentence):
            GapModel(ridge, **parameters).fit(drawn.X, drawn.age)
    with pytest.raises(InputError, match="index of X in another order"):
        GapModel(ridge).fit(drawn.X, drawn.age[::-1])


def test_the_fold_of_a_new_row_depends_on_its_values_alone(drawn, ridge):
    whole = drawn.X.round()
    model = GapModel(ridge, random_state=0).fit(whole, drawn.age)
    dealt = model.deal(whole)
    np.testing.assert_array_equal(model.deal(whole.astype(int)), dealt)
    np.testing.assert_array_equal(model.deal(whole[whole.columns[::-1]]), dealt)


def test_missing_people_are_refused(drawn, ridge):
    groups = [None, *range(len(drawn.age) - 1)]
    with pytest.raises(InputError, match="missing entries"):
        GapModel(ridge).fit(drawn.X, drawn.age, groups=groups)
