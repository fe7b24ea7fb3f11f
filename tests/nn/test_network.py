"""The whole network: equivariance, readouts, statistics."""

from __future__ import annotations

import inspect

import pytest
import torch

from precisionnet.nn import PrecisionNetwork
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
    with pytest.raises(ValueError, match='"mlp" or "mean"'):
        PrecisionNetwork(5, readout="sum")


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
    for name in ("n_layers", "n_filters", "order", "readout", "readout_width", "activation"):
        assert defaults[name].default == BY_NAME[name].of("paper")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_passes_through(dtype):
    network = PrecisionNetwork(4, n_layers=2).to(dtype)
    assert network(torch.ones(2, 4, 1, dtype=dtype), torch.eye(4, dtype=dtype)).dtype == dtype
