"""How far predictions move when the matrix is estimated from fewer rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNClassifier, PNNRegressor, stability_curve
from precisionnet.datasets import make_gaussian_regression
from precisionnet.errors import InputError
from precisionnet.estimators.stability import _on_rows, _task_parts, fitted_slope
from precisionnet.precision import graphical_lasso

METHODS = ("joint", "glasso", "sample", "vnn")
FEW = {"readout": "mean", "n_members": 2, "max_epochs": 4, "dtype": "float64", "random_state": 0}


@pytest.fixture(scope="module")
def pool():
    return make_gaussian_regression(n_samples=3200, n_features=6, sparsity=0.4, random_state=0)


@pytest.fixture(scope="module", params=METHODS)
def model(request, pool):
    return PNNRegressor(request.param, **FEW).fit(pool.X[:200], pool.y[:200])


def test_slopes_beside_the_truth(model, pool):
    """The rate of many rows, -1/2, and a bound that is kept."""
    truth = np.linalg.inv(pool.theta_true)
    curve = stability_curve(model, pool.X, [100, 400, 1600, 3200], n_draws=4, covariance=truth)
    assert -0.75 < curve.slope < -0.3
    assert curve.standard_error < 0.2
    frame = curve.frame
    assert list(frame["effective_rows"]) == list(frame["n_rows"])
    assert (frame["difference"] > 0).all()
    assert (frame["difference"] <= frame["bound"]).all()


def test_beside_all_rows_the_rest_of_them_counts(model, pool):
    rows = pool.X[:400]
    curve = stability_curve(model, rows, [50, 100, 200, 399], n_draws=4)
    frame = curve.frame
    np.testing.assert_allclose(frame["effective_rows"], 1 / (1 / frame["n_rows"] - 1 / 400))
    assert -1.0 < curve.slope < -0.25
    nearly_all = frame[frame["n_rows"] == 399]["difference"].max()
    assert nearly_all < 0.2 * frame[frame["n_rows"] == 50]["difference"].min()
    assert (frame["difference"] <= frame["bound"]).all()


def test_the_matrix_of_the_rows_that_were_learned_from_is_the_models_own(model, pool):
    rows = pool.X[:200]
    again = _on_rows(model, rows.to_numpy(), _task_parts(model.fitted))
    np.testing.assert_allclose(again.shifts, model.shifts_, atol=1e-6)


def test_the_estimate_of_a_draw_is_that_of_its_method(pool):
    model = PNNRegressor("glasso", **FEW | {"scale_shift": False}).fit(pool.X[:200], pool.y[:200])
    rows = pool.X[200:300].to_numpy()
    found = _on_rows(model, rows, _task_parts(model.fitted)).shifts[0]
    emp_cov = np.corrcoef(rows.T)
    wanted = graphical_lasso(emp_cov, np.sqrt(np.log(6) / 100), ridge=1e-4, tol=1e-10).precision
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_default_ensembles_and_classes(gaussian, classes):
    settings = {"max_epochs": 1, "random_state": 0}
    default = PNNRegressor(n_members=4, **settings).fit(gaussian.X, gaussian.y)
    curve = stability_curve(default, gaussian.X, n_draws=1)
    assert len(curve.frame) == 6
    assert (curve.frame["difference"] <= curve.frame["bound"]).all()
    assert np.isnan(curve.standard_error)
    classifier = PNNClassifier("vnn", n_members=1, readout="average", n_filters=3, **settings).fit(gaussian.X, classes)
    assert np.isfinite(stability_curve(classifier, gaussian.X, [20, 60], n_draws=1).slope)


def test_the_seed_decides(gaussian):
    model = PNNRegressor("vnn", **FEW).fit(gaussian.X, gaussian.y)
    one, two, three = (stability_curve(model, gaussian.X, [20, 60], n_draws=2, random_state=s).frame for s in (0, 0, 1))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(three)


def test_where_nothing_moves_there_is_no_slope():
    still = pd.DataFrame({"draw": [0, 0], "effective_rows": [1.0, 2.0], "difference": [0.0, 0.0]})
    assert np.isnan(fitted_slope(still)).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sizes": [20, 120]}, "sizes has 120, and X has 120 rows: name numbers up to 119"),
        ({"sizes": [3]}, "sizes must be a whole number, at least 4, got 3"),
        ({"sizes": []}, "sizes must be a list of numbers of rows"),
        ({"sizes": 20}, "sizes must be a list of numbers of rows"),
        ({"n_draws": 0}, "n_draws must be a whole number, at least 1"),
        ({"covariance": np.eye(3)}, "covariance must be a positive definite matrix of 8 columns, got shape .3, 3."),
        ({"covariance": "abc"}, "covariance must be a matrix of numbers for 8 columns, got 'abc'"),
        ({"random_state": "abc"}, "random_state must be a whole number"),
        ({"covariance": -np.eye(8)}, "covariance must be a positive definite matrix .* got one with an eigenvalue"),
        ({"covariance": np.triu(np.ones((8, 8)))}, "of 8 columns, got one that is not symmetric"),
        ({"covariance": np.diag([np.nan] * 8)}, "of 8 columns, got values that are missing or infinite"),
        ({"sizes": (n for n in (20, 30))}, "sizes must be a list of numbers of rows, got <generator"),
        ({"model": "m"}, "model must be a fitted PNNRegressor or PNNClassifier, got 'm'"),
    ],
)
def test_what_makes_no_sense_is_refused(gaussian, change, sentence):
    model = PNNRegressor("vnn", **FEW).fit(gaussian.X, gaussian.y)
    with pytest.raises(InputError, match=sentence):
        stability_curve(**{"model": model, "X": gaussian.X} | change)


@pytest.mark.parametrize(
    ("settings", "sentence"), [({"method": "naive"}, "naive"), ({"predict_on": "sparse"}, "sparse")]
)
def test_models_without_such_a_matrix_are_refused(gaussian, settings, sentence):
    model = PNNRegressor(**FEW | settings).fit(gaussian.X, gaussian.y)
    with pytest.raises(InputError, match=sentence):
        stability_curve(model, gaussian.X)
