"""scikit-learn's own checks, whole, and the tools its users put around an estimator."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from precisionnet import PNNClassifier, PNNRegressor
from tests.cheap import without_slow

FEW = {
    "standard": {"n_members": 2, "max_epochs": 3},
    "paper": {
        "recipe": "paper",
        "readout": "mlp",
        "max_epochs": 6,
        "task_steps": 1,
        "weight_steps": 8,
        "learning_rate": 0.02,
    },
}
"""Small enough to be checked in a moment, large enough to learn the tables of the checks."""


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([PNNRegressor(**FEW["standard"]), PNNClassifier(**FEW["paper"])])
def test_check_estimator(request, estimator, check):
    """Each estimator and each recipe once: what they share is the same code.

    Of three checks of training, which differ in the memory and the type of the same rows, the last is enough: rows that
    cannot be written to, of 32 bits. ``test_check_estimator_in_other_variants`` has all three.
    """
    training = getattr(check, "func", check).__name__ in ("check_classifiers_train", "check_regressors_train")
    if training and "X_dtype" not in getattr(check, "keywords", {}) and without_slow(request):
        return
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        PNNRegressor(**FEW["paper"]),
        PNNClassifier(**FEW["standard"]),
        PNNRegressor(**FEW["standard"], missing="median"),
        PNNRegressor(),
        PNNClassifier(),
    ]
)
def test_check_estimator_in_other_variants(estimator, check):
    """The other recipe, gaps allowed, and every default."""
    check(estimator)


@pytest.mark.parametrize("few", FEW.values(), ids=FEW)
def test_pipeline_and_grid_search(gaussian, few):
    pipeline = make_pipeline(RobustScaler(), PNNRegressor(**few, random_state=0))
    grid = GridSearchCV(pipeline, {"pnnregressor__order": [1, 2]}, cv=2)
    grid.fit(gaussian.X, gaussian.y)
    assert grid.best_score_ > 0.3
    assert grid.best_estimator_[-1].precision_.shape == (8, 8)


@pytest.mark.slow
@pytest.mark.parametrize("few", FEW.values(), ids=FEW)
def test_cross_val_predict_is_the_same_in_one_process_and_in_two(gaussian, few):
    model = PNNRegressor(**few, random_state=0)
    alone = cross_val_predict(model, gaussian.X, gaussian.y, cv=3)
    together = cross_val_predict(model, gaussian.X, gaussian.y, cv=3, n_jobs=2)
    np.testing.assert_array_equal(alone, together)
    assert np.corrcoef(alone, gaussian.y)[0, 1] > 0.6


@pytest.mark.parametrize(
    ("load", "few"),
    [
        (load_iris, {"n_members": 2, "max_epochs": 20}),
        (load_breast_cancer, {"recipe": "paper", "max_epochs": 5, "task_steps": 2, "learning_rate": 0.02}),
        pytest.param(load_breast_cancer, {"n_members": 4, "max_epochs": 40}, marks=pytest.mark.slow),
        pytest.param(load_iris, {"recipe": "paper"}, marks=pytest.mark.slow),
    ],
)
def test_classifies_real_tables(load, few):
    X, y = load(return_X_y=True, as_frame=True)
    model = PNNClassifier(**few, random_state=0)
    proba = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (proba.argmax(axis=1) == y).mean() > 0.9


def test_clone_keeps_every_parameter():
    model = PNNRegressor("glasso", l1_penalty=0.3, coupling=2.5, dtype="float64")
    assert clone(model).get_params() == model.get_params()


@pytest.mark.slow
def test_the_check_that_needs_scipys_array_interface_passes_too():
    """scikit-learn skips it unless SciPy is imported with its array API switched on: a process of its own."""
    command = [sys.executable, "-m", "pytest", __file__, "-k", "check_array_api_input", "-m", "not slow"]
    command += ["-p", "no:cacheprovider"]
    done = subprocess.run(command, env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout
