"""What a prediction rests on: exact sums, functions whose effects are known, units, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from torch import nn

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.estimators.explanation import task_effects
from precisionnet.precision.covariance import oas_share, shrink

SMALL = {"n_members": 2, "max_epochs": 3, "random_state": 0}


class Known(nn.Module):
    """A function of the columns that is not trained; the matrix is not looked at."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.idle = nn.Parameter(torch.zeros(1))

    def forward(self, x, shift):
        return self.function(x[..., 0]).unsqueeze(-1) + 0.0 * self.idle.to(x.dtype)


def known_model(function, X, y, **parameters):
    model = PNNRegressor(network=lambda n, k: Known(function), **{**SMALL, "n_members": 1, **parameters})
    return model.fit(X, y)


def correlated_rows(n_rows=400, n=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n)) @ (np.eye(n) + 0.4 * rng.normal(size=(n, n)))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"), index=[f"row {i}" for i in range(90)])
    return X, 10.0 + X["a"] * X["b"] + rng.normal(size=90)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"readout": "mlp"}, {"recipe": "paper", "n_members": None}, {"standardize": False}, {"n_layers": 2}],
)
def test_contributions_add_up_to_the_prediction(table, parameters):
    X, y = table
    model = PNNRegressor(**{**SMALL, **parameters}).fit(X, y)
    parts = model.contributions(X)
    assert parts.shape == X.shape
    assert list(parts.columns) == list(X.columns)
    assert parts.index.equals(X.index)
    np.testing.assert_allclose(parts.sum(axis=1) + parts.attrs["base"], model.predict(X), rtol=0, atol=1e-9)
    mean = X.mean().to_frame().T
    if model.n_rows_["validation"] == 0:
        assert parts.attrs["base"] == pytest.approx(model.predict(mean)[0], abs=1e-9)


def test_contributions_with_gaps_are_those_of_the_medians(table):
    X, y = table
    holes = X.mask(X > 1.2)
    model = PNNRegressor(missing="median", **SMALL).fit(holes, y)
    parts = model.contributions(holes)
    np.testing.assert_allclose(parts.sum(axis=1) + parts.attrs["base"], model.predict(holes), rtol=0, atol=1e-9)


@pytest.mark.parametrize("bundled", [load_wine, load_breast_cancer])
def test_contributions_to_classes_add_up_to_logits(bundled):
    X, y = bundled(return_X_y=True)
    X, y = X[::3], y[::3]
    model = PNNClassifier(**SMALL).fit(X, y)
    parts, logits = model.contributions(X), model.fitted.mean_output(X)
    if len(model.classes_) == 2:
        np.testing.assert_allclose(
            parts[1].sum(axis=1) + parts.attrs["base"][1], logits[:, 1] - logits[:, 0], atol=1e-9
        )
        odds = np.log(model.predict_proba(X))
        np.testing.assert_allclose(parts[1].sum(axis=1) + parts.attrs["base"][1], odds[:, 1] - odds[:, 0], atol=1e-6)
    else:
        for i, name in enumerate(model.classes_):
            np.testing.assert_allclose(parts[name].sum(axis=1) + parts.attrs["base"][name], logits[:, i], atol=1e-9)
        assert (model.task_graph_ >= 0).all()
    assert model.task_graph_.shape == (X.shape[1], X.shape[1])


def test_a_linear_function_has_its_coefficients_and_no_edges():
    X, weights = correlated_rows(), torch.tensor([2.0, -1.0, 0.0, 0.5, 0.0], dtype=torch.float64)
    model = known_model(lambda x: x @ weights.to(x.dtype), X, X[:, 0], input_noise=0.0)
    scale, unit = model.fitted.scaler.scale, float(model.fitted.target.scaler.scale)
    parts = model.contributions(X)
    expected = unit * weights.numpy() * (X - X.mean(axis=0)) / scale
    np.testing.assert_allclose(parts, expected, atol=1e-9)
    correlation = np.corrcoef(X.T)
    shrunk = shrink(correlation, oas_share(correlation, len(X)))
    values, vectors = np.linalg.eigh(shrunk)
    np.testing.assert_allclose(model.task_nodes_, unit * (vectors * np.sqrt(values)) @ vectors.T @ weights.numpy())
    np.testing.assert_allclose(model.task_graph_, 0.0, atol=1e-9)
    # The squared effects of nodes are the variance of the prediction, but for the shrinkage.
    assert (model.task_nodes_**2).sum() == pytest.approx(model.predict(X).var(), rel=0.05)


def test_a_product_is_an_edge_and_nothing_else():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    model = known_model(lambda x: x[:, 0] * x[:, 1] - 0.5 * x[:, 2] ** 2, X, X[:, 0])
    unit = float(model.fitted.target.scaler.scale)
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = unit
    np.testing.assert_allclose(model.task_graph_, expected, atol=0.12 * unit)
    np.testing.assert_allclose(model.task_nodes_, 0.0, atol=0.12 * unit)


def test_effects_are_in_the_targets_units_whatever_the_columns_units(table):
    X, y = table
    plain = PNNRegressor(**SMALL).fit(X, y)
    scaled = PNNRegressor(**SMALL).fit(X * [1.0, 16.0, 0.25, 2.0] + 3.0, 8.0 * y - 5.0)
    np.testing.assert_allclose(scaled.task_graph_, 8.0 * plain.task_graph_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(scaled.task_nodes_, 8.0 * plain.task_nodes_, rtol=1e-3, atol=1e-4)


def test_a_column_that_only_goes_along_contributes_next_to_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    X[:, 1] = 0.9 * X[:, 0] + np.sqrt(1 - 0.81) * X[:, 1]
    y = 2 * X[:, 0] + X[:, 3] - X[:, 4] + 0.5 * rng.normal(size=200)
    model = PNNRegressor(n_members=2, max_epochs=30, random_state=0).fit(X, y)
    size = model.contributions(X).abs().mean().to_numpy()
    assert size[1] < 0.2 * size[0]
    assert size[1] < 0.4 * min(size[3], size[4])


def test_the_graph_is_symmetric_without_a_diagonal_and_survives_a_file(table, tmp_path):
    X, y = table
    model = PNNRegressor(**SMALL).fit(X, y)
    assert np.array_equal(model.task_graph_, model.task_graph_.T)
    assert not np.diag(model.task_graph_).any()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.task_graph_, model.task_graph_)
    np.testing.assert_array_equal(again.task_nodes_, model.task_nodes_)
    pd.testing.assert_frame_equal(again.contributions(X), model.contributions(X))


def test_a_network_that_looks_at_nothing_owes_nothing(table):
    X, y = table
    model = known_model(lambda x: torch.zeros(len(x), dtype=x.dtype), X, y)
    assert not model.task_graph_.any()
    assert not model.task_nodes_.any()
    assert not model.contributions(X).to_numpy().any()


def test_weights_count_as_rows(table):
    X, y = table
    model = PNNRegressor(**SMALL).fit(X, y)
    values, weight = X.to_numpy(), np.r_[np.full(30, 2.0), np.ones(60)]
    doubled = task_effects(model.fitted, np.vstack([values[:30], values]))
    weighted = task_effects(model.fitted, values, weight)
    np.testing.assert_allclose(weighted.edges, doubled.edges, atol=1e-10)
    np.testing.assert_allclose(weighted.nodes, doubled.nodes, atol=1e-10)


def test_a_long_table_is_read_in_part():
    X = np.random.default_rng(0).normal(size=(9000, 3))
    model = known_model(lambda x: x[:, 0] * x[:, 1], X, X[:, 0], max_epochs=1)
    few = task_effects(model.fitted, X)
    assert few.edges[0, 1] == pytest.approx(float(model.fitted.target.scaler.scale), rel=0.1)
