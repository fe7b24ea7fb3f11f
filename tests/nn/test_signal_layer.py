"""The first layer with its normalisation folded into the coefficients is the layer written out."""

import pytest
import torch

from precisionnet.nn import PrecisionNetwork
from precisionnet.nn.network import FilterLayer
from precisionnet.nn.signal_layer import SignalLayer


def twins(batch_norm: bool = True, activation: str = "relu") -> tuple[PrecisionNetwork, PrecisionNetwork]:
    """The same network with the fast first layer and with the ordinary one."""
    options = {"n_layers": 2, "order": 3, "readout": "mean", "activation": activation, "batch_norm": batch_norm}
    fast = PrecisionNetwork(7, **options).double()
    plain = PrecisionNetwork(7, **options).double()
    plain.layers[0] = FilterLayer(1, 8, 3, activation, batch_norm).double()
    plain.load_state_dict(fast.state_dict())
    assert isinstance(fast.layers[0], SignalLayer)
    return fast, plain


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_equal_to_the_ordinary_layer(batch_norm: bool, activation: str, offset: float) -> None:
    generator = torch.Generator().manual_seed(0)
    fast, plain = twins(batch_norm, activation)
    x = torch.randn(30, 7, 1, generator=generator, dtype=torch.float64) + offset
    shift = torch.randn(7, 7, generator=generator, dtype=torch.float64)
    shift = (shift + shift.T) / 10
    found = []
    for network in (fast, plain):
        leaf = shift.clone().requires_grad_()
        network.train()
        output = network(x, leaf)
        output.square().sum().backward()
        gradients = [leaf.grad, *(p.grad for p in network.parameters())]
        network.eval()
        found.append([output, network(x, shift), *gradients, *network.buffers()])
    for ours, theirs in zip(*found, strict=True):
        scale = max(1.0, float(theirs.detach().abs().max()))
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9 * scale)


def test_known_taps_give_the_same() -> None:
    fast, _ = twins()
    x, shift = torch.randn(5, 7, 1, dtype=torch.float64), torch.eye(7, dtype=torch.float64)
    fast.eval()
    assert torch.equal(fast(x, shift), fast(x, shift, fast.first_taps(x, shift)))


def test_refuses_what_does_not_fit() -> None:
    fast, _ = twins()
    with pytest.raises(ValueError, match=r"x must have shape \(batch, nodes, 1\)"):
        fast(torch.zeros(5, 7, 2), torch.eye(7))
    with pytest.raises(ValueError, match=r"shift must have shape \(7, 7\)"):
        fast(torch.zeros(5, 7, 1), torch.eye(6))
