"""Covariates regressed out on training rows."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.preprocessing import CovariateRegression
from tests.preprocessing.conftest import make_study


def test_it_is_the_residual_of_a_linear_regression_about_the_mean(study):
    dummies = pd.get_dummies(study.people, columns=["sex", "dx"], drop_first=True, dtype=float)
    train, test = slice(0, 80), slice(80, None)
    regression = LinearRegression().fit(dummies[train], study.X[train])
    expected = study.X[test] - regression.predict(dummies[test]) + study.X[train].mean()
    model = CovariateRegression().fit(study.X[train], covariates=study.people[train])
    np.testing.assert_allclose(model.transform(study.X[test], covariates=study.people[test]), expected, atol=1e-10)
    assert model.covariate_names_ == ["sex=m", "dx=b", "dx=c", "age"]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_nothing_of_the_covariates_is_left_and_the_means_are_kept(seed):
    study = make_study({"a": 15, "b": 15}, n_features=3, seed=seed)
    out = CovariateRegression().fit_transform(study.X, covariates=study.people)
    np.testing.assert_allclose(out.mean(axis=0), study.X.mean())
    assert np.abs(np.corrcoef(study.people.age, out.T)[0, 1:]).max() < 1e-9
    by_sex = pd.DataFrame(out).groupby(study.people.sex.to_numpy()).mean()
    np.testing.assert_allclose(by_sex.max(), by_sex.min(), atol=1e-9)


def test_covariates_that_repeat_each_other(study):
    once = CovariateRegression().fit_transform(study.X, covariates=study.people)
    twice = study.people.assign(months=12 * study.people.age, flat=1.0)
    model = CovariateRegression().fit(study.X, covariates=twice)
    np.testing.assert_allclose(model.transform(study.X, covariates=twice), once, atol=1e-9)
    assert np.isfinite(model.coef_).all()


def test_a_row_is_transformed_by_itself_and_changes_no_fitted_number(study):
    model = CovariateRegression().fit(study.X[:80], covariates=study.people[:80])
    before = pickle.loads(pickle.dumps(model))  # noqa: S301
    whole = model.transform(study.X, covariates=study.people)
    for rows in ([3], [5, 90], list(range(109, -1, -1))):
        np.testing.assert_array_equal(
            model.transform(study.X.iloc[rows], covariates=study.people.iloc[rows]), whole[rows]
        )
    model.transform(study.X * 1e6, covariates=study.people)
    np.testing.assert_array_equal(model.coef_, before.coef_)
    np.testing.assert_array_equal(model.mean_, before.mean_)


def test_bad_input_gets_a_sentence(study):
    with pytest.raises(NotFittedError):
        CovariateRegression().transform(study.X, covariates=study.people)
    with pytest.raises(InputError, match="CovariateRegression.fit needs covariates"):
        CovariateRegression().fit(study.X)
    with pytest.raises(InputError, match="n_samples=4 rows for 4 covariate columns: more than 5"):
        CovariateRegression().fit(study.X[:4], covariates=np.arange(16.0).reshape(4, 4))
    with pytest.raises(InputError, match=r"contains NaN in 1 of 110 rows \(column 'roi1'\)"):
        CovariateRegression().fit(study.X.mask(study.X.iloc[4, 1] == study.X), covariates=study.people)
    model = CovariateRegression().fit(study.X, covariates=study.people)
    with pytest.raises(InputError, match="CovariateRegression.transform needs covariates"):
        model.transform(study.X)
    with pytest.raises(InputError, match="Covariate 'sex' has level 'x'"):
        model.transform(study.X, covariates=study.people.assign(sex="x"))
    with pytest.warns(PrecisionNetWarning, match="Covariate 'age' is the target y"):
        CovariateRegression().fit(study.X, study.people.age, covariates=study.people)


def test_names(study):
    out = CovariateRegression().set_output(transform="pandas").fit_transform(study.X, covariates=study.people)
    assert list(out) == list(study.X)
    assert out.index.equals(study.X.index)
