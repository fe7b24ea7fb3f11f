"""Targets that are learned as their logarithm."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from precisionnet import PNNRegressor, load
from precisionnet.errors import InputError
from precisionnet.estimators import training
from precisionnet.estimators.explanation import mean_gradients
from precisionnet.estimators.preparation import learned_target

SHORT = {"max_epochs": 5, "n_members": 4, "random_state": 0}


def table(seed=0, n_rows=160, n_columns=5):
    """Rows, a target that grows by factors, and one that is as skewed because a column is."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, 0] = np.exp(1.2 * X[:, 0])
    noise = 0.2 * rng.normal(size=n_rows)
    by_factors = np.exp(X[:, 1:] @ np.linspace(0.8, -0.6, n_columns - 1) + noise)
    by_a_column = 5.0 + X[:, 0] + noise
    return X, by_factors, by_a_column


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = table()
    return X, y, PNNRegressor(**SHORT).fit(X, y)


def test_the_logarithm_is_learned_where_a_target_grows_by_factors_and_nowhere_else(fitted):
    X, y, model = fitted
    assert model.target_scale_ == "log"
    _, _, by_a_column = table()
    targets = {"skewed by a column": by_a_column, "not skewed": np.log(y) + 20.0, "not above zero": y - y.min()}
    for name, other in targets.items():
        assert PNNRegressor(**(SHORT | {"max_epochs": 1})).fit(X, other).target_scale_ == "linear", name
    assert PNNRegressor(target_scale="linear", **SHORT).fit(X, y).target_scale_ == "linear"


def test_a_unit_of_the_target_changes_predictions_by_itself_alone(fitted):
    X, y, model = fitted
    scaled = PNNRegressor(**SHORT).fit(X, 1000.0 * y)
    np.testing.assert_allclose(scaled.predict(X), 1000.0 * model.predict(X), rtol=1e-3)


def test_a_target_beyond_single_precision(fitted):
    X, y, model = fitted
    huge = PNNRegressor(**SHORT).fit(X, 1e43 * y)
    assert huge.target_scale_ == "log"
    np.testing.assert_allclose(
        huge.history_["validation_metric"], 1e43 * model.history_["validation_metric"], rtol=0.01
    )


def test_the_choice_is_made_with_one_thread(fitted, monkeypatch):
    """Small products on all threads take many times the processor's time, and round otherwise in a worker."""
    X, y, _ = fitted
    threads = []

    def chosen(*arguments):
        threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return learned_target(*arguments)

    monkeypatch.setattr(training, "learned_target", chosen)
    PNNRegressor(**SHORT | {"max_epochs": 1}).fit(X, y)
    assert set(threads) == {1}


def test_errors_predictions_and_intervals_are_in_the_targets_units(fitted):
    X, y, model = fitted
    rows = ~np.isnan(model.oob_prediction_)
    assert model.oob_mae_ == pytest.approx(np.abs(model.oob_prediction_ - y)[rows].mean())
    assert model.history_["validation_metric"].min() < 3 * model.oob_mae_
    low, high = model.predict_interval(X).T
    assert (low >= 0).all()
    assert ((low <= y) & (y <= high)).mean() > 0.85


def test_slopes_are_those_of_the_prediction(fitted):
    X, _, model = fitted
    scaler = model.fitted.scaler
    x = scaler.transform(X[:6])
    (_, slopes), *_ = mean_gradients(model.fitted, x)
    step = 1e-6
    for column in range(X.shape[1]):
        ahead, behind = x.copy(), x.copy()
        ahead[:, column] += step
        behind[:, column] -= step
        rise = model.predict(scaler.inverse(ahead)) - model.predict(scaler.inverse(behind))
        np.testing.assert_allclose(slopes[0, :, column], rise / (2 * step), rtol=1e-3, atol=1e-6)
    parts = model.contributions(X)
    np.testing.assert_allclose(parts.attrs["base"] + parts.sum(axis=1), model.predict(X), rtol=1e-9)


def test_a_saved_model_keeps_it_and_training_goes_on_with_it(fitted, tmp_path):
    X, y, model = fitted
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.target_scale_ == "log"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    more = PNNRegressor(warm_start=True, **SHORT).fit(X, y)
    more.fit(X, y)
    assert more.target_scale_ == "log"
    more.fit(X, y - 1.0)  # has no logarithm: starts anew
    assert more.target_scale_ == "linear"


def test_targets_without_a_logarithm_are_refused():
    X, y, _ = table()
    with pytest.raises(InputError, match="3 rows have none"):
        PNNRegressor(target_scale="log", **SHORT).fit(X, np.where(np.arange(len(y)) < 3, 0.0, y))
    with pytest.raises(InputError, match="target_scale"):
        PNNRegressor(recipe="paper", target_scale="log").fit(X, y)
    assert PNNRegressor(target_scale="log", readout="both", **SHORT).fit(X, y).target_scale_ == "log"
