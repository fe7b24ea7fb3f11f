"""How far a network's output can move when its matrix does."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from precisionnet.nn import PrecisionNetwork, frequency_response, output_change_bound
from precisionnet.nn.lipschitz import steepest_response
from tests.conftest import random_shift


def drawn_network(generator: torch.Generator, nodes: int, **shape) -> PrecisionNetwork:
    """Weights and moments of normalisation that nobody has tamed."""
    network = PrecisionNetwork(nodes, n_filters=3, readout_width=4, **shape).double()
    with torch.no_grad():
        for name, value in [*network.named_parameters(), *network.named_buffers()]:
            if value.is_floating_point():
                value.copy_(torch.randn(value.shape, generator=generator, dtype=value.dtype))
            if name.endswith("running_var"):
                value.abs_().add_(0.1)
    return network.eval()


@given(
    readout=st.sampled_from(["mean", "mlp", "average"]),
    n_layers=st.integers(1, 3),
    order=st.integers(0, 4),
    batch_norm=st.booleans(),
    activation=st.sampled_from(["relu", "leaky_relu", "tanh"]),
    apart=st.sampled_from([1e-4, 0.1, 3.0]),
    seed=st.integers(0, 2**31),
)
def test_no_output_moves_further_than_its_bound(readout, n_layers, order, batch_norm, activation, apart, seed):
    generator = torch.Generator().manual_seed(seed)
    network = drawn_network(
        generator, 6, readout=readout, n_layers=n_layers, order=order, batch_norm=batch_norm, activation=activation
    )
    x = torch.randn(5, 6, 1, generator=generator, dtype=torch.float64)
    shift = 2.0 * random_shift(6, generator)
    other = shift + apart * random_shift(6, generator)
    moved = (network(x, other) - network(x, shift)).norm(dim=1)
    assert (moved <= output_change_bound(network, x, shift, other) * (1 + 1e-9) + 1e-12).all()


def test_the_bound_is_reached_by_one_node():
    """One filter of degree 1 on one node, whose derivative is the same everywhere."""
    network = PrecisionNetwork(
        n_filters=1, order=1, readout="average", batch_norm=False, activation=nn.Identity
    ).double()
    x, shift, other = (torch.full(shape, value, dtype=torch.float64) for shape, value in
                       (((3, 1, 1), 2.0), ((1, 1), 0.5), ((1, 1), 1.25)))  # fmt: skip
    moved = (network(x, other) - network(x, shift)).norm(dim=1)
    torch.testing.assert_close(output_change_bound(network, x, shift, other), moved)


def test_what_does_not_look_at_the_matrix_does_not_move():
    network = PrecisionNetwork(n_filters=2, order=0, readout="mean").double().eval()
    x = torch.ones(2, 3, 1, dtype=torch.float64)
    shift = torch.eye(3, dtype=torch.float64)
    assert (output_change_bound(network, x, shift, 5 * shift) == 0).all()


def test_the_steepest_place_is_found_between_the_places_that_are_looked_at():
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(5, 2, 3, generator=generator, dtype=torch.float64)
    ends = torch.tensor([-1.5, 2.0], dtype=torch.float64)
    fine = torch.linspace(-1.5, 2.0, 100_003, dtype=torch.float64)
    degree = torch.arange(5, dtype=torch.float64)[:, None, None]
    largest = torch.linalg.matrix_norm(frequency_response((degree * weight)[1:], fine), 2).amax()
    assert largest <= steepest_response(weight, ends) <= 1.02 * largest


def test_parts_that_are_not_known_are_refused():
    x, shift = torch.ones(1, 3, 1), torch.eye(3)
    for network, name in (
        (PrecisionNetwork(readout="mean", activation=nn.SELU), "SELU"),
        (PrecisionNetwork(readout=lambda *_: nn.Flatten()), "Flatten"),
    ):
        with pytest.raises(ValueError, match=name):
            output_change_bound(network.eval(), x, shift, shift)
