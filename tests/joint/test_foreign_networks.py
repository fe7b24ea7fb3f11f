"""People's own activations, readouts and networks: training and prediction are the same function."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.errors import InputError
from precisionnet.nn import ACTIVATIONS, PolynomialFilter, PrecisionNetwork
from tests.nn.test_stack import MaxReadout, Spread, Trivial, Weighted
from tests.recipes import QUICK, of_method

FEW = {"standard": {"max_epochs": 2}, "paper": {"max_epochs": 2, "weight_steps": 6}}
both_recipes = pytest.mark.parametrize("quick", [QUICK[name] | FEW[name] for name in QUICK], ids=QUICK)


def softsign(n_nodes, n_outputs):
    return PrecisionNetwork(n_nodes, n_outputs=n_outputs, activation=nn.Softsign, readout="mean")


def named_softsign(n_nodes, n_outputs):
    return PrecisionNetwork(n_nodes, n_outputs=n_outputs, activation="softsign", readout="mean")


def max_readout(n_nodes, n_outputs):
    return PrecisionNetwork(n_nodes, n_outputs=n_outputs, readout=MaxReadout)


def own_summary(n_nodes, n_outputs):
    def readout(nodes, features, outputs):
        return Weighted(nodes, features, 4, outputs)

    return PrecisionNetwork(n_nodes, n_outputs=n_outputs, n_layers=2, readout=readout)


def spread(n_nodes, n_outputs):
    return PrecisionNetwork(n_nodes, n_outputs=n_outputs, readout=Spread)


class Foreign(nn.Module):
    """Its own parameters, dropout, torch's batch normalisation, a buffer that is not kept, a tied and a frozen weight."""

    def __init__(self, n_nodes, n_outputs):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(n_nodes, 1))
        self.filter = PolynomialFilter(1, 4, 2, bias=True)
        self.norm, self.dropout = nn.BatchNorm1d(4), nn.Dropout(0.2)
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, n_outputs)
        self.again = self.first
        self.frozen = nn.Parameter(torch.full((4,), 0.5), requires_grad=False)
        self.register_buffer("ones", torch.ones(4), persistent=False)

    def forward(self, x, shift):
        features = self.filter(self.gain * x, shift).amax(dim=1) * self.ones
        return self.last(self.dropout(self.again(self.first(self.norm(features)).tanh() + self.frozen)))


class Perceptron(nn.Sequential):
    """Does not look at the matrix at all."""

    def __init__(self, n_nodes, n_outputs):
        super().__init__(nn.Linear(n_nodes, 8), nn.ReLU(), nn.Linear(8, n_outputs))

    def forward(self, x, shift):
        return super().forward(x[..., 0])


FACTORIES = [softsign, max_readout, own_summary, spread, Foreign, Perceptron]
DIGITS = {"float64": 1e-10, "float32": 1e-5}


def held_out_loss(model, X, y) -> float:
    """Loss on validation rows of what was fitted, by hand."""
    x = torch.from_numpy(model.standard_units(X)).unsqueeze(-1)
    with torch.no_grad():
        pairs = zip(model.networks_, model.shifts_, strict=True)
        output = torch.stack([network(x, torch.from_numpy(shift)) for network, shift in pairs]).mean(dim=0)
    target = model.fitted.target
    known = np.asarray(y, dtype=float) if isinstance(model, PNNRegressor) else np.searchsorted(model.classes_, y)
    return float(target.task_loss(output, target.tensor(known), torch.ones(len(known), dtype=torch.float64)))


@pytest.mark.parametrize("factory", FACTORIES)
@both_recipes
def test_training_and_prediction_are_the_same_function(gaussian, quick, factory):
    """The loss that training recorded is that of the fitted networks; a fit and its twin are the same to the last bit."""
    X, y = gaussian.X.iloc[:90], gaussian.y.iloc[:90]
    rows = {"X_val": gaussian.X.iloc[90:], "y_val": gaussian.y.iloc[90:]}
    model, twin = (PNNRegressor(network=factory, dtype="float64", **quick).fit(X, y, **rows) for _ in range(2))
    assert all(type(network) is type(factory(8, 1)) for network in model.networks_)
    recorded = model.history_["validation_loss"].iloc[model.best_epoch_ - 1]
    assert held_out_loss(model, rows["X_val"], rows["y_val"]) == pytest.approx(recorded, rel=1e-10)
    np.testing.assert_array_equal(model.predict(X), twin.predict(X))
    assert model.history_.equals(twin.history_)
    learned = model.network_.state_dict()
    moved = {name for name, value in factory(8, 1).named_parameters() if value.requires_grad}
    assert "frozen" not in learned or torch.equal(learned["frozen"], torch.full((4,), 0.5, dtype=torch.float64))
    assert moved <= set(learned)


@pytest.mark.parametrize("factory", [max_readout, Foreign])
@both_recipes
def test_classes_as_well(gaussian, classes, quick, factory):
    rows = {"X_val": gaussian.X.iloc[90:], "y_val": classes.iloc[90:]}
    model = PNNClassifier(network=factory, **quick).fit(gaussian.X.iloc[:90], classes.iloc[:90], **rows)
    recorded = model.history_["validation_loss"].iloc[model.best_epoch_ - 1]
    assert held_out_loss(model, rows["X_val"], rows["y_val"]) == pytest.approx(recorded, rel=1e-5)


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize("method", ["joint", "naive", "glasso"])
@both_recipes
def test_one_by_one_is_the_same_as_stacked(gaussian, quick, method, dtype):
    """A trivial subclass is run member by member and comes to what the stack comes to."""
    settings = of_method(method, quick) | {"dtype": dtype}
    fitted = [
        PNNRegressor(
            network=lambda nodes, outputs, kind=kind: kind(nodes, n_outputs=outputs, n_layers=2), **settings
        ).fit(gaussian.X, gaussian.y)
        for kind in (PrecisionNetwork, Trivial)
    ]
    assert [type(model.network_) for model in fitted] == [PrecisionNetwork, Trivial]
    digits = {"rtol": DIGITS[dtype], "atol": 10 * DIGITS[dtype]}
    np.testing.assert_allclose(fitted[0].predict(gaussian.X), fitted[1].predict(gaussian.X), **digits)
    np.testing.assert_allclose(fitted[0].shifts_, fitted[1].shifts_, **digits)
    np.testing.assert_allclose(fitted[0].history_, fitted[1].history_, **digits)


@both_recipes
def test_a_name_added_to_the_activations(gaussian, quick, monkeypatch):
    monkeypatch.setitem(ACTIVATIONS, "softsign", nn.Softsign)
    models = [PNNRegressor(network=make, **quick).fit(gaussian.X, gaussian.y) for make in (softsign, named_softsign)]
    assert type(models[1].network_.layers[0].activation) is nn.Softsign
    np.testing.assert_array_equal(models[0].predict(gaussian.X), models[1].predict(gaussian.X))


@both_recipes
def test_dropout_leaves_the_random_state_of_the_process_alone(gaussian, quick):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    PNNRegressor(network=Foreign, **quick).fit(gaussian.X, gaussian.y)
    assert torch.equal(before, torch.get_rng_state())


def test_members_of_a_foreign_kind_learn_from_other_rows_and_weights(gaussian):
    model = PNNRegressor(network=Foreign, n_members=6, max_epochs=2, random_state=0).fit(gaussian.X, gaussian.y)
    assert len({network.last.weight.sum().item() for network in model.networks_}) == 6
    assert np.isfinite(model.fitted.out_of_fold.prediction).any()


@both_recipes
def test_a_warm_start_goes_on_with_it(gaussian, quick):
    model = PNNRegressor(network=Perceptron, warm_start=True, **quick).fit(gaussian.X, gaussian.y)
    first = model.history_["train_loss"].iloc[0]
    assert model.fit(gaussian.X, gaussian.y).history_["train_loss"].iloc[0] < first


class Flat(Perceptron):
    def forward(self, x, shift):
        return super().forward(x, shift)[:, 0]


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (lambda nodes, outputs: "network", "must return a torch.nn.Module, got str"),
        (Flat, r"must map x of shape \(batch, 8, 1\) .* to \(batch, 1\)"),
        (lambda nodes, outputs: Perceptron(nodes, 2), r"made \(2, 2\) in place of \(2, 1\)"),
    ],
)
@both_recipes
def test_what_is_no_network_is_refused(gaussian, quick, factory, sentence):
    with pytest.raises(InputError, match=sentence):
        PNNRegressor(network=factory, **quick).fit(gaussian.X, gaussian.y)
