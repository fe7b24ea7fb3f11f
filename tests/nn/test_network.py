"""The whole network: equivariance, readouts, statistics."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn
from torch.func import functional_call

from precisionnet.nn import PrecisionNetwork
from precisionnet.nn.filter import FeatureNorm
from precisionnet.parameters import BY_NAME
from tests.conftest import random_shift


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("training", [True, False])
def test_node_features_follow_a_permutation_of_the_nodes(generator, training):
    network = PrecisionNetwork(7, n_layers=2, n_filters=4, order=2).double().train(training)
    shift = random_shift(7, generator)
    x = torch.randn(5, 7, 1, generator=generator, dtype=torch.float64)
    order = torch.randperm(7, generator=generator)
    moved = network.node_features(x[:, order], shift[order][:, order])
    torch.testing.assert_close(moved, network.node_features(x, shift)[:, order], rtol=0, atol=1e-12)


def test_mean_readout_does_not_see_node_order_or_number(generator):
    network = PrecisionNetwork(readout="mean", n_layers=2).double().eval()
    shift = random_shift(6, generator)
    x = torch.randn(3, 6, 1, generator=generator, dtype=torch.float64)
    order = torch.randperm(6, generator=generator)
    torch.testing.assert_close(network(x[:, order], shift[order][:, order]), network(x, shift), rtol=0, atol=1e-12)
    # The same weights on another graph: two copies of it, side by side, give the same average.
    twice = torch.block_diag(shift, shift)
    torch.testing.assert_close(network(torch.cat([x, x], dim=1), twice), network(x, shift), rtol=0, atol=1e-12)


def test_weights_of_a_mean_network_load_into_one_for_another_number_of_nodes():
    small, large = PrecisionNetwork(5, readout="mean"), PrecisionNetwork(9, readout="mean")
    large.load_state_dict(small.state_dict())
    assert large(torch.zeros(2, 9, 1), torch.eye(9)).shape == (2, 1)


def test_flattened_readout_belongs_to_its_nodes():
    network = PrecisionNetwork(5, n_outputs=3, readout="mlp")
    assert network(torch.randn(4, 5, 1), torch.eye(5)).shape == (4, 3)
    with pytest.raises(RuntimeError):
        network(torch.randn(4, 6, 1), torch.eye(6))
    with pytest.raises(ValueError, match="needs n_nodes"):
        PrecisionNetwork(readout="mlp")
    with pytest.raises(ValueError, match='must be "mlp", "mean", "average" or a function'):
        PrecisionNetwork(5, readout="sum")
    with pytest.raises(ValueError, match="activation must be one of relu"):
        PrecisionNetwork(5, activation="sine")


def test_average_readout_learns_nothing_and_shares_the_features(generator):
    network = PrecisionNetwork(readout="average", n_filters=6, n_outputs=3).double()
    x, shift = torch.randn(4, 5, 1, generator=generator, dtype=torch.float64), random_shift(5, generator)
    features = network.node_features(x, shift)
    assert not list(network.readout.parameters())
    expected = torch.stack([features[..., 2 * i : 2 * i + 2].mean(dim=(1, 2)) for i in range(3)], dim=1)
    torch.testing.assert_close(network(x, shift), expected, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="multiple of 3"):
        PrecisionNetwork(readout="average", n_filters=8, n_outputs=3)


def test_orders_and_widths_per_layer(generator):
    network = PrecisionNetwork(readout="mean", n_filters=[5, 2], order=[3, 1]).double()
    assert [(f.in_features, f.out_features, f.order) for f in network.filters] == [(1, 5, 3), (5, 2, 1)]
    alike = PrecisionNetwork(readout="mean", n_filters=[4, 4], order=2)
    assert str(alike) == str(PrecisionNetwork(readout="mean", n_filters=4, order=[2, 2]))
    x, shift = torch.randn(4, 5, 1, generator=generator, dtype=torch.float64), random_shift(5, generator)
    assert network(x, shift).shape == (4, 1)
    with pytest.raises(ValueError, match="n_filters lists 2 layers and order 3"):
        PrecisionNetwork(5, n_filters=[4, 4], order=[1, 1, 1])


SHAPES = [
    {},
    {"n_layers": 3},
    {"n_filters": [4, 2, 3]},
    {"order": 0},
    {"n_layers": 2, "order": [3, 1], "readout": "mean"},
    {"n_layers": 2, "readout": "average", "activation": "tanh"},
    {"n_layers": 2, "batch_norm": False},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_derivatives_of_weights_and_shift(generator, shape):
    """By differences, in training mode: normalisation takes part. Tanh, since ReLU has corners."""
    network = PrecisionNetwork(3, **{"n_filters": 2, "readout_width": 3, "activation": "tanh"} | shape).double()
    names = [name for name, _ in network.named_parameters()]
    weights = [value.detach().add(0.1).requires_grad_() for value in network.parameters()]
    x = torch.randn(4, 3, 1, generator=generator, dtype=torch.float64)
    shift = (0.5 * random_shift(3, generator)).requires_grad_()

    def run(shift, *weights):
        statistics = {name: value.clone() for name, value in network.named_buffers()}
        return functional_call(network, dict(zip(names, weights, strict=True)) | statistics, (x, shift))

    assert torch.autograd.gradcheck(run, (shift, *weights))


def reference_output(network: PrecisionNetwork, norms: list[nn.BatchNorm1d], x, shift):
    """The network with torch's own batch normalisation on what each filter gives."""
    for layer, norm in zip(network.layers, norms, strict=True):
        filtered = layer.filter(x, shift)
        x = layer.activation(norm(filtered.flatten(0, 1)).view_as(filtered))
    return network.readout(x)


@pytest.mark.parametrize("offset", [0.0, 1e5], ids=["", "large means"])
@pytest.mark.parametrize("shape", [{}, {"n_layers": 2}, {"n_filters": [3, 5, 2]}, {"order": 0}], ids=str)
def test_normalised_coefficients_are_batch_normalisation(generator, shape, offset):
    """Folded into the coefficients where a layer widens: output, gradients and running moments are torch's."""
    network = PrecisionNetwork(4, **{"n_filters": 3, "readout_width": 3} | shape).double()
    norms = [nn.BatchNorm1d(layer.filter.out_features).double() for layer in network.layers]
    with torch.no_grad():
        for layer, norm in zip(network.layers, norms, strict=True):
            for name, value in layer.norm.state_dict().items():
                if value.is_floating_point():
                    value.add_(torch.rand(value.shape, generator=generator, dtype=torch.float64))
                norm.state_dict()[name].copy_(value)
    digits = {"rtol": 1e-9, "atol": 1e-11} if not offset else {"rtol": 1e-4, "atol": 1e-5}
    tensors = [*network.parameters()]
    theirs = [*(p for norm in norms for p in norm.parameters())]
    mine = [*(p for layer in network.layers for p in layer.norm.parameters())]
    rest = [p for p in tensors if not any(p is m for m in mine)]
    for training in (True, True, False):
        x = offset + torch.randn(6, 4, 1, generator=generator, dtype=torch.float64)
        shift = random_shift(4, generator).requires_grad_()
        network.train(training)
        for norm in norms:
            norm.train(training)
        found = []
        for output, own in ((network(x, shift), mine), (reference_output(network, norms, x, shift), theirs)):
            wanted = [*rest, *own, *([shift] if network.filters[0].order else [])]
            found.append([output, *torch.autograd.grad(output.sin().sum(), wanted)])
        torch.testing.assert_close(found[0][0], found[1][0], **digits)
        if not offset:
            torch.testing.assert_close(found[0], found[1], **digits)
        for layer, norm in zip(network.layers, norms, strict=True):
            torch.testing.assert_close(dict(layer.norm.state_dict()), dict(norm.state_dict()), rtol=1e-9, atol=1e-9)


def test_a_layer_without_normalisation_has_a_bias(generator):
    network = PrecisionNetwork(4, n_filters=3, order=1, batch_norm=False).double()
    assert network.layers[0].norm is None
    assert not list(network.buffers())
    with torch.no_grad():
        network.filters[0].bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
    x, shift = torch.randn(5, 4, 1, generator=generator, dtype=torch.float64), random_shift(4, generator)
    h0, h1 = network.filters[0].weight
    expected = torch.relu(x @ h0 + (shift @ x) @ h1 + torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(network.node_features(x, shift), expected, rtol=0, atol=1e-12)


def test_output_is_the_equations_written_out(generator):
    """One layer by hand: filter, batch normalisation over rows and nodes, ReLU, linear readout."""
    network = PrecisionNetwork(4, n_filters=3, order=1, readout="mlp", readout_width=0).double().train()
    shift = random_shift(4, generator)
    x = torch.randn(6, 4, 1, generator=generator, dtype=torch.float64)
    h0, h1 = network.filters[0].weight
    z = x @ h0 + (shift @ x) @ h1
    z = (z - z.mean(dim=(0, 1))) / torch.sqrt(z.var(dim=(0, 1), correction=0) + 1e-5)
    linear = network.readout.perceptron[0]
    expected = torch.relu(z).transpose(1, 2).reshape(6, -1) @ linear.weight.T + linear.bias
    torch.testing.assert_close(network(x, shift), expected, rtol=0, atol=1e-12)


def test_the_defaults_are_those_of_the_paper():
    defaults = inspect.signature(PrecisionNetwork).parameters
    for name in ("n_layers", "n_filters", "order", "readout_width", "activation"):
        assert defaults[name].default == BY_NAME[name].of("paper")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_passes_through(dtype):
    network = PrecisionNetwork(4, n_layers=2).to(dtype)
    assert network(torch.ones(2, 4, 1, dtype=dtype), torch.eye(4, dtype=dtype)).dtype == dtype


def test_a_filter_or_norm_of_ones_own_is_called():
    """The layer folds normalisation into coefficients only for its own two classes."""

    class Loud(FeatureNorm):
        def forward(self, x):
            return super().forward(x) + 5.0

    network = PrecisionNetwork(readout="mean", n_filters=4).double()
    x, shift = torch.randn(6, 3, 1, dtype=torch.float64), torch.eye(3, dtype=torch.float64)
    network.layers[0].activation = torch.nn.Identity()
    plain = network.train().node_features(x, shift)
    network.layers[0].norm = Loud(4).double()
    torch.testing.assert_close(network.node_features(x, shift), plain + 5.0)
