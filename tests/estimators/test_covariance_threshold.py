"""The covariance under a VNN made sparse, and the published covariance network."""

from __future__ import annotations

import numpy as np
import pytest

from precisionnet import PUBLISHED_VNN, PNNRegressor, load
from precisionnet.errors import InputError

FEW = {"readout": "mean", "n_members": 1, "max_epochs": 1, "dtype": "float64", "random_state": 0}


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_the_threshold_follows_its_rule(gaussian, kind, scale):
    model = PNNRegressor("vnn", covariance_threshold=kind, l1_scale=scale, **FEW).fit(gaussian.X, gaussian.y)
    threshold = scale * np.sqrt(np.log(8) / 120)
    assert model.l1_penalty_ == pytest.approx(threshold)
    C, found = model.covariance_, model.task_precision_
    off = ~np.eye(8, dtype=bool)
    small = off & (np.abs(C) <= threshold)
    assert small.any()
    assert (off & ~small).any()
    assert (C[off & ~small] < 0).any()  # entries of both signs
    assert (found[small] == 0).all()
    np.testing.assert_allclose(np.diag(found), np.diag(C))
    moved = C[off & ~small] - found[off & ~small]
    np.testing.assert_allclose(moved, 0.0 if kind == "hard" else threshold * np.sign(C[off & ~small]), atol=1e-12)


def test_a_penalty_of_its_own_is_the_threshold(gaussian):
    model = PNNRegressor("vnn", covariance_threshold="hard", l1_penalty=5.0, **FEW).fit(gaussian.X, gaussian.y)
    np.testing.assert_array_equal(model.task_precision_, np.diag(np.diag(model.covariance_)))


def test_without_a_threshold_nothing_changes(gaussian):
    model = PNNRegressor("vnn", **FEW).fit(gaussian.X, gaussian.y)
    np.testing.assert_allclose(model.task_precision_, model.covariance_, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"method": "joint", "covariance_threshold": "hard"},
            "covariance_threshold='hard' has no effect.*set method='vnn'",
        ),
        ({"method": "sample", "covariance_threshold": "soft"}, "has no effect with method='sample'"),
        ({"method": "vnn", "covariance_threshold": "firm"}, "must be one of hard, soft, got 'firm'"),
        ({"method": "vnn", "l1_scale": 2.0}, "l1_scale=2.0 has no effect with method='vnn'"),
        (
            {"method": "vnn", "covariance_threshold": "hard", "l1_scale": 2.0, "l1_penalty": 0.1},
            "l1_scale=2.0 has no effect with l1_penalty=0.1: leave it out, or leave l1_penalty out",
        ),
    ],
)
def test_where_it_has_no_effect_it_is_refused(gaussian, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        PNNRegressor(**settings).fit(gaussian.X, gaussian.y)


def test_it_is_saved_and_read_again(gaussian, tmp_path):
    model = PNNRegressor("vnn", covariance_threshold="soft", **FEW).fit(gaussian.X, gaussian.y)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.covariance_threshold == "soft"
    np.testing.assert_array_equal(again.predict(gaussian.X), model.predict(gaussian.X))


def test_the_published_network(gaussian):
    """Two layers of five filters with 6 and 10 taps and a bias; nothing is learnt in the readout."""
    model = PNNRegressor(**PUBLISHED_VNN, n_members=1, max_epochs=1, random_state=0).fit(gaussian.X, gaussian.y + 50)
    network = model.network_
    assert sum(value.numel() for value in network.parameters()) == 290
    assert [tuple(one.weight.shape) for one in network.filters] == [(6, 1, 5), (10, 5, 5)]
    assert all(layer.norm is None and type(layer.activation).__name__ == "ReLU" for layer in network.layers)
    assert (model.predict(gaussian.X) >= 0).all()
    assert model.transfer(gaussian.X.iloc[:, :5]).predict(gaussian.X.iloc[:, :5]).shape == (120,)
