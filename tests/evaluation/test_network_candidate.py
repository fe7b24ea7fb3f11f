"""A candidate in a search is the public estimator's fit, whatever was shared and however often it paused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from precisionnet.evaluation.network_candidate import NetworkCandidate
from precisionnet.evaluation.protocol import FitData
from precisionnet.joint.problem import GlassoCache, GraphTerms
from precisionnet.parameters import BY_NAME, RECIPES

SMALL = {"n_layers": 2, "n_filters": 3, "order": 2, "l1_scale": 0.5}
PARAMETERS = {
    "standard": SMALL | {"max_epochs": 3, "n_members": 2, "batch_size": 16, "readout": "mean"},
    "paper": SMALL | {"recipe": "paper", "max_epochs": 4, "weight_steps": 5},
}


def parameters_of(method: str, recipe: str) -> dict[str, object]:
    """Those that have an effect: two methods have no graphical lasso."""
    given = PARAMETERS[recipe]
    return given if method not in ("sample", "vnn") else {k: v for k, v in given.items() if k != "l1_scale"}


def sides(task: str = "regression", seed: int = 3, gap: bool = False) -> FitData:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(60, 5)), columns=list("abcde"))
    y = X["a"] - X["b"] + 0.3 * rng.normal(size=60)
    y = y.to_numpy() if task == "regression" else np.where(y > 0, "high", "low")
    if gap:
        X.iloc[2, 1] = np.nan
    data = Dataset(X, pd.Series(y, name="y"))
    return FitData(data.take(range(40)), data.take(range(40, 60)), task, seed)


@pytest.mark.parametrize("method", ["joint", "naive", "glasso", "sample", "vnn"])
@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_candidate_is_the_public_fit_to_the_bit(method, task, recipe):
    rows, parameters = sides(task), parameters_of(method, recipe)
    candidate = NetworkCandidate(method, parameters, rows)
    assert candidate.max_epochs == parameters["max_epochs"]
    for epoch in range(1, candidate.max_epochs + 1):
        score = candidate.advance(epoch)
    model = candidate.model()
    kind = PNNRegressor if task == "regression" else PNNClassifier
    public = kind(method, **parameters, random_state=rows.seed).fit(
        rows.train.X, rows.train.y, X_val=rows.validation.X, y_val=rows.validation.y
    )
    np.testing.assert_array_equal(model.precision_, public.precision_)
    said, expected = (
        (m.predict(rows.validation.X) if task == "regression" else m.predict_proba(rows.validation.X))
        for m in (model, public)
    )
    np.testing.assert_array_equal(said, expected)
    kept = public.history_.set_index("epoch").loc[public.best_epoch_]
    assert score == kept["validation_metric" if task == "regression" else "validation_loss"]
    assert candidate.epochs == len(public.history_)
    assert candidate.done


@pytest.mark.parametrize("method", ["joint", "vnn"])
def test_a_flat_readout_is_the_method_with_that_readout(method):
    rows, parameters = sides(), parameters_of(method, "standard")
    said = []
    for name, given in ((f"{method}_mlp", {"readout": "mean"}), (method, {"readout": "mlp"}), (method, {})):
        candidate = NetworkCandidate(name, parameters | given, rows)
        candidate.advance(3)
        said.append(candidate.model().predict(rows.validation.X))
    np.testing.assert_array_equal(said[0], said[1])
    assert not np.allclose(said[0], said[2])


def test_epochs_nobody_set_are_the_recipes():
    assert NetworkCandidate("glasso", {"n_members": 1}, sides()).max_epochs == BY_NAME["max_epochs"].of("standard")
    assert NetworkCandidate("glasso", {"recipe": "paper"}, sides()).max_epochs == BY_NAME["max_epochs"].of("paper")


def test_missing_values_are_filled_from_the_training_rows():
    candidate = NetworkCandidate("glasso", PARAMETERS["standard"], sides(gap=True))
    assert np.isfinite(candidate.advance(2))
    assert candidate.model().medians_ is not None


def test_a_shared_start_is_solved_once_and_changes_nothing(monkeypatch):
    solved, solve = [], GraphTerms.solve
    monkeypatch.setattr(GraphTerms, "solve", lambda *given, **named: solved.append(1) or solve(*given, **named))
    rows, shared = sides(), GlassoCache()
    given = {"X_val": rows.validation.X, "y_val": rows.validation.y}
    models = [
        PNNRegressor(method, l1_scale=scale, max_epochs=1, n_members=2, random_state=0)
        for method in ("joint", "glasso", "naive")
        for scale in (0.3, 1.0)
    ]
    runs = [model.start_training(rows.train.X, rows.train.y, **given, cache=shared) for model in models]
    assert len(solved) == 2  # two penalties, three methods that start there
    runs[2].advance()
    alone = PNNRegressor("glasso", l1_scale=0.3, max_epochs=1, n_members=2, random_state=0)
    alone.fit(rows.train.X, rows.train.y, **given)
    np.testing.assert_array_equal(models[2].keep(runs[2].finish()).precision_, alone.precision_)


def test_given_validation_rows_choose_the_epoch_and_train_nothing():
    rows = sides()
    first = PNNRegressor(max_epochs=3, n_members=2, random_state=0)
    first.fit(rows.train.X, rows.train.y, X_val=rows.validation.X, y_val=rows.validation.y)
    assert first.n_rows_ == {"training": 40, "validation": 20}
    other = PNNRegressor(max_epochs=3, n_members=2, random_state=0)
    other.fit(rows.train.X, rows.train.y, X_val=rows.validation.X, y_val=rows.validation.y + 100.0)
    np.testing.assert_array_equal(first.history_["train_loss"], other.history_["train_loss"])
    assert not np.allclose(first.history_["validation_loss"], other.history_["validation_loss"])


def test_validation_rows_that_do_not_fit_are_refused():
    rows = sides("classification")
    with pytest.raises(InputError, match="y_val holds classes that y has not: 'other'"):
        PNNClassifier().fit(rows.train.X, rows.train.y, X_val=rows.validation.X, y_val=["other"] * 20)
    with pytest.raises(InputError, match="X_val and y_val belong together"):
        PNNClassifier().fit(rows.train.X, rows.train.y, X_val=rows.validation.X)
    with pytest.raises(ValueError, match="feature names"):
        PNNClassifier().fit(rows.train.X, rows.train.y, X_val=rows.validation.X[["a", "b"]], y_val=rows.validation.y)
