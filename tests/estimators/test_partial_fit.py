"""Going on with rows that came later: moments of all rows, networks that learn on, honest out-of-fold values."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.errors import InputError
from precisionnet.estimators import combination, continuation
from precisionnet.estimators.targets import ClassTarget

FEW = {"n_members": 2, "max_epochs": 6, "random_state": 0}


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 4)) + [0.0, 5.0, 0.0, -2.0], columns=list("abcd"))
    X["b"] += 0.5 * X["a"]
    return X, X["a"] - 2 * X["b"] + np.abs(X["c"]) + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def first():
    return PNNRegressor(**FEW).partial_fit(*draw(300, 0))


def again(model):
    return PNNRegressor(**FEW).keep(model.fitted)


def test_the_first_call_is_a_fit(first):
    X, y = draw(300, 0)
    np.testing.assert_array_equal(first.predict(X), PNNRegressor(**FEW).fit(X, y).predict(X))


def test_moments_are_those_of_all_rows(first):
    model = again(first).partial_fit(*draw(250, 1))
    both = pd.concat([draw(300, 0)[0], draw(250, 1)[0]]).to_numpy()
    scale = model.fitted.scaler.scale
    np.testing.assert_allclose(model.covariance_ * np.outer(scale, scale), np.cov(both.T, bias=True), atol=1e-10)
    np.testing.assert_allclose(model.fitted.scaler.inverse(model.fitted.center), both.mean(axis=0), atol=1e-10)
    np.testing.assert_array_equal(scale, first.fitted.scaler.scale)  # the networks know no other units
    assert model.n_rows_["training"] == 550
    assert model.l1_penalty_ == pytest.approx(np.sqrt(np.log(4) / 550))


def test_out_of_fold_values_are_those_of_the_new_rows(first, tmp_path):
    X, y = draw(250, 1)
    model = again(first).partial_fit(X, y)
    known = model.oob_folds_ >= 0
    assert len(model.oob_row_ids_) == 250
    assert 0 < known.sum() < 250
    assert model.oob_mae_ == pytest.approx(np.abs(model.oob_prediction_ - y)[known].mean())
    assert len(model.calibration_.residual) == known.sum()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


def test_a_few_rows_change_little_and_keep_what_was_measured(first):
    X, y = draw(500, 2)
    model = again(first).partial_fit(*draw(5, 1))
    errors = [np.abs(one.predict(X) - y).mean() for one in (first, model)]
    assert errors[1] < 1.1 * errors[0]
    np.testing.assert_array_equal(model.calibration_.residual, first.calibration_.residual)
    np.testing.assert_array_equal(model.task_graph_, first.task_graph_)


def test_linear_networks_end_where_all_rows_would_have_brought_them():
    """Recursive least squares is exact; the penalties of few rows are small here."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.standard_normal(300)
    model = PNNRegressor(n_members=4, max_epochs=1, kernel_rows=0, random_state=0)
    for begin in range(0, 300, 100):
        model.partial_fit(X[begin : begin + 100], y[begin : begin + 100])
    assert model.kind_weights_ == {"linear": 1.0}
    design = np.column_stack([np.ones(300), X])
    best = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert np.abs(model.predict(X) - best).max() < 0.02
    known = model.oob_folds_ >= 0
    assert known.all()
    assert len(model.oob_row_ids_) == 100  # those of the last call
    assert model.oob_mae_ == pytest.approx(np.abs(model.oob_prediction_ - y[200:]).mean())
    before = model.calibration_.residual
    model.partial_fit(X + 1.0, y + 3.0 * rng.standard_normal(300))  # rows enough to measure anew
    assert len(model.calibration_.residual) == 300 > len(before)
    assert model.oob_mae_ > 1.0
    assert model.l1_penalty_ == pytest.approx(np.sqrt(np.log(4) / 600))


def test_classes_are_named_in_the_first_call():
    X, y = draw(240, 0)
    labels = np.where(y > -9, "high", "low")
    names = ["high", "low", "unseen"]
    model = PNNClassifier(**FEW).partial_fit(X, labels, classes=names)
    assert model.classes_.tolist() == names
    more, numbers = draw(240, 1)
    model.partial_fit(more, np.where(numbers > -9, "high", "low"))
    assert model.score(X, labels) > 0.7
    before = model.predict_proba(X)
    with pytest.raises(InputError, match="'middle'"):
        model.partial_fit(X, np.full(240, "middle"))
    with pytest.raises(InputError, match="classes must be those"):
        model.partial_fit(X, labels, classes=["high", "middle"])
    np.testing.assert_array_equal(model.predict_proba(X), before)  # what failed has left the model alone


def test_refusals_leave_the_model_as_it_was(first):
    X, y = draw(100, 1)
    model = again(first)
    for change, rows, said in (
        ({}, X.drop(columns="d"), "d"),
        ({}, X.assign(b=np.nan), "'b'"),
        ({"n_members": 4}, X, "other parameters"),
        ({"recipe": "paper", "n_members": None}, X, "no attribute 'partial_fit'"),
    ):
        with pytest.raises((ValueError, AttributeError), match=said):
            model.set_params(**change).partial_fit(rows, y)
        assert model.fitted is first.fitted
        model.set_params(**FEW, recipe="standard")


def test_a_weight_that_all_rows_share_changes_no_mean(first):
    """A weight of 3 on every row of both calls is no weight."""
    X, y = draw(300, 0)
    thrice = PNNRegressor(**FEW).fit(X, y, np.full(300, 3.0))
    more, numbers = draw(100, 1)
    ours = again(thrice).partial_fit(more + 1.0, numbers, np.full(100, 3.0))
    usual = again(first).partial_fit(more + 1.0, numbers)
    assert (thrice.fitted.weight, ours.fitted.weight, usual.fitted.weight) == (900.0, 1200.0, 400.0)
    np.testing.assert_allclose(ours.fitted.center, usual.fitted.center, atol=1e-10)
    np.testing.assert_allclose(ours.covariance_, usual.covariance_, atol=1e-10)


def test_the_step_of_two_classes_is_newtons():
    """Without old rows, and from zero: the outputs' difference moves as in a logistic regression."""
    rng = np.random.default_rng(0)
    x, y, weight = rng.standard_normal((50, 2)), rng.integers(0, 2, 50), rng.random(50)
    nothing = SimpleNamespace(
        weight=1e-12, center=np.zeros(2), covariance=np.eye(2), target=ClassTarget(np.array([0, 1]))
    )
    change = continuation._step(np.zeros((2, 3)), x, y, weight, nothing, np.arange(2))
    design = np.column_stack([np.ones(50), x])
    newton = np.linalg.solve((design.T * (weight / 4)) @ design, design.T @ (weight * (y - 0.5)))
    np.testing.assert_allclose(change[1] - change[0], newton, rtol=1e-6)


@pytest.mark.parametrize("n_new", [20, 100, 260])
def test_a_lasso_keeps_its_columns(n_new):
    """It came in because rows were few; more rows change its numbers and neither its columns nor its part."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 60))
    y = X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(400)
    model = PNNRegressor(max_epochs=2, kernel_rows=0, random_state=0).fit(X[:100], y[:100])
    assert model.kind_weights_["lasso"] > 0.5
    before = lasso_weights(model)
    error = np.abs(model.predict(X[360:]) - y[360:]).mean()
    model.partial_fit(X[100 : 100 + n_new], y[100 : 100 + n_new])
    after = lasso_weights(model)
    assert model.kind_weights_["lasso"] > 0.5
    assert ((before == 0) == (after == 0)).all()
    assert (before != after).any()
    assert np.abs(model.predict(X[360:]) - y[360:]).mean() < 1.02 * error


def lasso_weights(model):
    fitted = model.fitted
    lassos = [network for network, kind in zip(fitted.networks, fitted.member_kinds, strict=True) if kind == "lasso"]
    return np.stack([network.readout.perceptron[0].weight.detach().numpy() for network in lassos])


@pytest.mark.parametrize("estimator", [PNNRegressor, PNNClassifier])
def test_solved_networks_go_on_beside_trained_ones(estimator, monkeypatch):
    """All of them know the old rows: linear ones take a step from their weights, a kernel machine keeps its rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((260, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(260)
    if estimator is PNNClassifier:
        y = (y > 0).astype(int)
    with monkeypatch.context() as patched:  # every kind counts
        patched.setattr(combination, "_shares", lambda outputs, *_: np.full(len(outputs), 1.0 / len(outputs)))
        model = estimator(max_epochs=2, random_state=0).fit(X[:240], y[:240])
    before, shares = model.fitted, model.kind_weights_
    assert {"mean", "linear", "kernel"} <= set(shares)
    model.partial_fit(X[240:], y[240:])
    after = model.fitted
    assert model.kind_weights_ == pytest.approx(shares)
    assert after.member_kinds == before.member_kinds
    for old, new, kind in zip(before.networks, after.networks, before.member_kinds, strict=True):
        if kind == "kernel":
            assert len(old.readout.anchors) < len(new.readout.anchors) <= len(old.readout.anchors) + 20
        elif kind == "linear":
            weights = [one.readout.perceptron[0].weight.detach().numpy() for one in (old, new)]
            assert 0 < np.abs(weights[1] - weights[0]).max() < 0.25 * np.abs(weights[0]).max()
