"""Sites and covariates travel through pipelines, cross-validation and searches with their rows."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet import PNNRegressor
from precisionnet.errors import InputError
from precisionnet.preprocessing import ComBat, CovariateRegression
from tests.preprocessing.test_combat import same_fit

pytestmark = pytest.mark.usefixtures("routing")
FOLDS = KFold(3, shuffle=True, random_state=0)


def by_hand(study, covariates=None):
    """Each fold's predictions, without any routing."""
    predicted = np.empty(len(study.X))
    for train, test in FOLDS.split(study.X):
        kept = [None if covariates is None else covariates.iloc[rows] for rows in (train, test)]
        combat = ComBat().fit(study.X.iloc[train], site=study.site.iloc[train], covariates=kept[0])
        model = make_pipeline(StandardScaler(), Ridge()).fit(
            combat.transform(study.X.iloc[train], site=study.site.iloc[train], covariates=kept[0]), study.y.iloc[train]
        )
        predicted[test] = model.predict(
            combat.transform(study.X.iloc[test], site=study.site.iloc[test], covariates=kept[1])
        )
    return predicted


SITES = {
    "series": lambda s: s,
    "list": lambda s: s.tolist(),
    "array": lambda s: s.to_numpy(),
    "category": lambda s: s.astype("category"),
    "numbers": lambda s: pd.factorize(s)[0].tolist(),
}
COVARIATES = {
    "none": lambda c: None,
    "frame": lambda c: c,
    "object array": lambda c: c.to_numpy(dtype=object),
    "list of rows": lambda c: c.to_numpy(dtype=object).tolist(),
}


@pytest.mark.parametrize(("site", "covariates"), list(zip(SITES, itertools.cycle(COVARIATES), strict=False)))
def test_cross_validation_slices_them_with_the_rows(study, site, covariates):
    model = make_pipeline(ComBat(), StandardScaler(), Ridge())
    params = {"site": SITES[site](study.site), "covariates": COVARIATES[covariates](study.people)}
    params = {name: value for name, value in params.items() if value is not None}
    expected = by_hand(study, study.people if "covariates" in params else None)
    scores = cross_validate(model, study.X, study.y, cv=FOLDS, params=params, error_score="raise")["test_score"]
    for (_, test), score in zip(FOLDS.split(study.X), scores, strict=True):
        left = np.sum((study.y.iloc[test] - expected[test]) ** 2)
        np.testing.assert_allclose(score, 1 - left / np.sum((study.y.iloc[test] - study.y.iloc[test].mean()) ** 2))


def test_a_scorer_by_name_gets_the_sentence(study):
    """scikit-learn's scorers and cross_val_predict call predict without metadata."""
    model = make_pipeline(ComBat(), Ridge())
    with pytest.raises(InputError, match="ComBat.transform needs site.* return_estimator"):
        cross_val_predict(model, study.X, study.y, params={"site": study.site})
    with pytest.raises(InputError, match="ComBat.transform needs site.* scoring=None"):
        cross_validate(model, study.X, study.y, params={"site": study.site}, scoring="r2", error_score="raise")


def test_predictions_of_every_fold(study):
    """The way around: the fitted estimators and their rows."""
    done = cross_validate(
        make_pipeline(ComBat(), StandardScaler(), Ridge()),
        study.X,
        study.y,
        cv=FOLDS,
        params={"site": study.site},
        return_estimator=True,
        return_indices=True,
    )
    predicted = np.empty(len(study.X))
    for model, rows in zip(done["estimator"], done["indices"]["test"], strict=True):
        predicted[rows] = model.predict(study.X.iloc[rows], site=study.site.iloc[rows])
    np.testing.assert_allclose(predicted, by_hand(study), atol=1e-9)


def test_forgetting_the_site_gets_the_sentence(study):
    with pytest.raises(InputError, match="ComBat.fit needs site"):
        make_pipeline(ComBat(), Ridge()).fit(study.X, study.y)


def test_aliases(study):
    model = make_pipeline(
        CovariateRegression().set_fit_request(covariates="nuisance").set_transform_request(covariates="nuisance"),
        ComBat().set_fit_request(site="scanner").set_transform_request(site="scanner"),
        Ridge(),
    )
    given = {"nuisance": study.people[["sex"]], "scanner": study.site, "covariates": study.people[["age"]]}
    model.fit(study.X, study.y, **given)
    assert model[0].covariate_names_ == ["sex=m"]
    assert model[1].covariate_names_ == ["age"]
    assert np.isfinite(model.predict(study.X, **given)).all()


def test_grid_search(study):
    model = make_pipeline(ComBat(), StandardScaler(), Ridge())
    grid = GridSearchCV(model, {"combat__empirical_bayes": [True, False], "ridge__alpha": [1.0, 100.0]}, cv=FOLDS)
    grid.fit(study.X, study.y, site=study.site, covariates=study.people)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert grid.best_score_ > 0.5
    assert grid.best_estimator_.predict(study.X[:4], site=study.site[:4], covariates=study.people[:4]).shape == (4,)
    raw = cross_validate(make_pipeline(StandardScaler(), Ridge()), study.X, study.y, cv=FOLDS)["test_score"].mean()
    assert grid.best_score_ > raw + 0.1  # harmonising was worth it


def test_a_network_at_the_end(study):
    model = make_pipeline(ComBat(), PNNRegressor(n_members=2, max_epochs=3, random_state=0))
    grid = GridSearchCV(model, {"pnnregressor__order": [1, 2]}, cv=2)
    grid.fit(study.X, study.y, site=study.site)
    assert grid.best_score_ > 0.3
    assert grid.score(study.X, study.y, site=study.site) > 0.3


def test_held_out_rows_change_no_fitted_number(study):
    """In every fold: the test rows thrown far away, their sites exchanged, their order turned around."""
    rng = np.random.default_rng(0)
    model = make_pipeline(ComBat().set_output(transform="pandas"), StandardScaler(), Ridge())

    def fits(X, y, site, people, folds):
        params = {"site": site, "covariates": people}
        return cross_validate(model, X, y, cv=folds, params=params, return_estimator=True)["estimator"]

    for train, test in FOLDS.split(study.X):
        (plain,) = fits(study.X, study.y, study.site, study.people, [(train, test)])
        turned = np.arange(len(study.X))
        turned[test] = test[::-1]
        X, people, site = study.X.iloc[turned].copy(), study.people.iloc[turned].copy(), study.site.iloc[turned].copy()
        X.iloc[test] *= -1e3
        people.iloc[test, 2] += 1e3
        site.iloc[test] = rng.permutation(site.iloc[test])
        (other,) = fits(X, study.y.iloc[turned] * 1.0, site, people, [(train, test)])
        assert same_fit(plain[0], other[0])
        np.testing.assert_array_equal(plain[1].mean_, other[1].mean_)
        np.testing.assert_array_equal(plain[2].coef_, other[2].coef_)


def test_shuffled_labels_score_at_chance(study):
    model = make_pipeline(ComBat(), StandardScaler(), Ridge(10.0))
    rng = np.random.default_rng(0)
    scores = [
        cross_validate(model, study.X, rng.permutation(study.y), cv=FOLDS, params={"site": study.site})[
            "test_score"
        ].mean()
        for _ in range(5)
    ]
    assert np.mean(scores) < 0.05
