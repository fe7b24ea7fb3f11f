"""A model carried to a table of other columns: the same weights on a matrix that is estimated anew."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from precisionnet import PNNClassifier, PNNRegressor, load
from precisionnet.datasets import fetch_abide, make_gaussian_regression
from precisionnet.errors import InputError
from precisionnet.nn import PrecisionNetwork

FEW = {"readout": "mean", "n_members": 2, "max_epochs": 3, "random_state": 0}
PAPER = {"readout": "mean", "recipe": "paper", "max_epochs": 3, "weight_steps": 5, "random_state": 0}
FIXED = ("glasso", "sample", "vnn")


@pytest.fixture(scope="module")
def other():
    """Rows of another table, with eleven columns."""
    return make_gaussian_regression(n_samples=90, n_features=11, sparsity=0.3, random_state=1)


@pytest.fixture(scope="module")
def vnn(gaussian):
    return PNNRegressor("vnn", **FEW).fit(gaussian.X, gaussian.y)


def weights(model):
    return [{name: value.clone() for name, value in network.state_dict().items()} for network in model.networks_]


def same_weights(one, two) -> bool:
    return all(a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("settings", [FEW, PAPER], ids=["standard", "paper"])
@pytest.mark.parametrize("method", FIXED)
def test_on_its_own_rows_a_model_stays_what_it_was(gaussian, method, settings):
    """The paper's recipe sets rows aside to choose an epoch, so its own rows are those that it learned from."""
    settings = settings | ({"validation_fraction": 0.0} if settings is PAPER else {})
    model = PNNRegressor(method, **settings).fit(gaussian.X, gaussian.y)
    again = model.transfer(gaussian.X)
    np.testing.assert_allclose(again.predict(gaussian.X), model.predict(gaussian.X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(again.task_graph_, model.task_graph_, atol=1e-4)


def test_other_columns_need_no_labels(vnn, other):
    before, said = weights(vnn), vnn.predict(make_gaussian_regression(5, 8, random_state=2).X)
    moved = vnn.transfer(other.X)
    assert same_weights(weights(moved), before)
    assert moved.n_features_in_ == 11
    assert list(moved.feature_names_in_) == list(other.X.columns)
    assert moved.predict(other.X).shape == (90,)
    correlation = np.corrcoef(other.X.T)
    np.testing.assert_allclose(moved.shifts_[0], correlation / np.linalg.norm(correlation, 2), atol=1e-12)
    assert np.isnan(moved.oob_mae_)
    with pytest.raises(InputError, match="How far this model is off is not known"):
        moved.predict_interval(other.X)
    # The model that was carried is as it was.
    np.testing.assert_array_equal(vnn.predict(make_gaussian_regression(5, 8, random_state=2).X), said)


@pytest.mark.parametrize("method", FIXED)
def test_the_order_of_columns_does_not_matter(gaussian, other, method):
    model = PNNRegressor(method, **FEW).fit(gaussian.X, gaussian.y)
    turned = other.X.iloc[:, ::-1]
    np.testing.assert_allclose(
        model.transfer(turned).predict(turned), model.transfer(other.X).predict(other.X), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("kind", [PNNRegressor, PNNClassifier])
def test_a_monotone_model_keeps_the_moments_of_its_normalisation(gaussian, kind):
    y = gaussian.y if kind is PNNRegressor else gaussian.y > gaussian.y.median()
    model = kind(**PAPER | {"max_epochs": 8}, monotone=True).fit(gaussian.X, y)
    moved = model.transfer(gaussian.X, y)
    assert same_weights(weights(moved), weights(model))
    score, before = moved.score(gaussian.X, y), model.score(gaussian.X, y)
    assert score > before - 0.05
    assert (np.diff(moved.history_["objective"]) <= 0).all()


@pytest.mark.parametrize("method", ["joint", "naive"])
@pytest.mark.parametrize("settings", [FEW, PAPER], ids=["standard", "paper"])
def test_what_the_task_wants_of_the_matrix_is_learned_from_labels(gaussian, other, method, settings):
    model = PNNRegressor(method, **settings).fit(gaussian.X, gaussian.y)
    moved = model.transfer(other.X, other.y)
    assert same_weights(weights(moved), weights(model))
    theta = PNNRegressor("glasso", **settings | {"max_epochs": 1}).fit(other.X, other.y).precision_
    assert np.abs(moved.task_precision_ - theta).max() > 1e-4  # the task has moved it
    assert moved.history_["train_loss"].iloc[-1] <= moved.history_["train_loss"].iloc[0]
    assert moved.n_features_in_ == 11
    if settings is FEW:
        assert np.isfinite(moved.oob_mae_)
        assert moved.predict_interval(other.X).shape == (90, 2)


@pytest.mark.parametrize("method", ["vnn", "joint"])
@pytest.mark.parametrize("settings", [FEW, PAPER], ids=["standard", "paper"])
def test_carried_models_are_saved_and_read_again(gaussian, other, method, settings, tmp_path):
    """Also where the table became smaller, and the history speaks of a larger graph."""
    model = PNNRegressor(method, **settings).fit(other.X, other.y)
    moved = model.transfer(gaussian.X, gaussian.y if method == "joint" else None)
    moved.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(gaussian.X), moved.predict(gaussian.X))
    back = again.transfer(other.X, other.y if method == "joint" else None)
    assert back.n_features_in_ == 11


def test_classes(gaussian, classes, other):
    settings = FEW | {"readout": "average", "n_filters": 6}
    fixed = PNNClassifier("vnn", **settings).fit(gaussian.X, classes)
    moved = fixed.transfer(other.X)
    assert list(moved.classes_) == ["low", "mid", "top"]
    np.testing.assert_allclose(moved.predict_proba(other.X).sum(axis=1), 1.0)
    labels = np.where(other.y > 0, "top", "low")  # one class is not among them
    joint = PNNClassifier("joint", **FEW).fit(gaussian.X, classes)
    assert joint.transfer(other.X, labels).predict_proba(other.X).shape == (90, 3)
    with pytest.raises(InputError, match="y_new holds classes that the model has not: 'none'"):
        joint.transfer(other.X, np.where(other.y > 0, "top", "none"))


def test_a_logarithm_stays_one(gaussian, other):
    settings = FEW | {"target_scale": "log"}
    y, labels = np.exp(gaussian.y / 10), np.exp(other.y / 10)
    moved = PNNRegressor("vnn", **settings).fit(gaussian.X, y).transfer(other.X)
    assert (moved.predict(other.X) > 0).all()
    joint = PNNRegressor("joint", **settings).fit(gaussian.X, y)
    assert (joint.transfer(other.X, labels).predict(other.X) > 0).all()
    with pytest.raises(InputError, match="needs a target above 0"):
        joint.transfer(other.X, labels - 2)


def test_missing_values_have_medians_of_the_new_rows(gaussian, other):
    model = PNNRegressor("vnn", missing="median", **FEW).fit(gaussian.X, gaussian.y)
    gaps = other.X.mask(np.random.default_rng(0).random(other.X.shape) < 0.05)
    moved = model.transfer(gaps)
    np.testing.assert_allclose(moved.medians_, gaps.median())
    assert np.isfinite(moved.predict(gaps)).all()


@pytest.mark.parametrize(
    ("settings", "arguments", "sentence"),
    [
        ({"n_members": 4}, 1, "readout='several' has weights that belong to its columns.*fit it with readout='mean'"),
        ({"readout": "both", "n_members": 2}, 1, "readout='both' has weights"),
        ({"recipe": "paper", "readout": "mlp"}, 1, "readout='mlp' has weights"),
        ({"method": "joint", **FEW}, 1, "method='joint' has a part that the task decides: pass y_new"),
        ({"method": "vnn", **FEW}, 2, "y_new has no effect with method='vnn'"),
        ({"network": lambda nodes, outputs: PrecisionNetwork(readout="mean"), "n_members": 1}, 1, "of your own"),
    ],
)
def test_what_cannot_be_carried_is_refused(gaussian, other, settings, arguments, sentence):
    model = PNNRegressor(**{"max_epochs": 1, "random_state": 0} | settings).fit(gaussian.X, gaussian.y)
    with pytest.raises(InputError, match=sentence):
        model.transfer(*(other.X, other.y)[:arguments])


@pytest.mark.parametrize("X", [5, None, "rows", [[1.0, 2.0]], np.full((9, 3), np.nan)])
def test_rows_are_checked_as_those_of_a_fit(vnn, X):
    with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn's own, and ours
        vnn.transfer(X)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(("method", "most"), [("vnn", 1.05), ("glasso", 1.08), ("sample", 1.05), ("joint", 1.08)])
def test_from_68_regions_to_62(data_folder, method, most):
    """What is lost beside a model that is fitted to the 62 regions."""
    wide, narrow = fetch_abide(data_folder, regions="all"), fetch_abide(data_folder)
    order = np.random.default_rng(0).permutation(len(wide))
    train, test = order[:700], order[700:]
    y = narrow.y
    settings = {"readout": "mean", "random_state": 0}
    model = PNNRegressor(method, **settings).fit(wide.X.iloc[train], y.iloc[train])
    moved = model.transfer(narrow.X.iloc[train], y.iloc[train] if method == "joint" else None)
    own = PNNRegressor(method, **settings).fit(narrow.X.iloc[train], y.iloc[train])
    carried, fitted = (np.abs(one.predict(narrow.X.iloc[test]) - y.iloc[test]).mean() for one in (moved, own))
    assert carried <= most * fitted
