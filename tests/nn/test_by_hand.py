"""The derivatives written out against autograd through the network itself."""

import pytest
import torch
from torch.func import functional_call, stack_module_state

from precisionnet.nn import PrecisionNetwork
from precisionnet.nn.by_hand import Taps, train_output

MEMBERS, BATCH, NODES = 3, 7, 5
SHAPES = [
    {"n_layers": n_layers, "readout": readout, "activation": activation}
    for n_layers in (1, 2, 3)
    for readout in ("mean", "mlp")
    for activation in ("relu", "leaky_relu", "tanh")
]
SHAPES += [
    {"readout_width": 0},
    {"n_layers": 2, "readout_width": 0, "readout": "mean"},
    {"n_layers": 2, "n_outputs": 3},
    {"order": 1},
    {"order": 5, "n_layers": 2},
    {"batch_norm": False},
    {"batch_norm": False, "n_layers": 2, "readout": "mean"},
]


def network(seed: int, shape: dict) -> PrecisionNetwork:
    torch.manual_seed(seed)
    made = PrecisionNetwork(NODES, **({"n_filters": 4, "readout_width": 6} | shape)).double()
    with torch.no_grad():  # batch norm's as well, which start at one and zero
        for value in made.parameters():
            value.add_(torch.randn_like(value), alpha=0.3)
    return made


def batch(shift_symmetric: bool = True):
    generator = torch.Generator().manual_seed(9)
    x = torch.randn(MEMBERS, BATCH, NODES, 1, dtype=torch.float64, generator=generator) + 1.0
    shift = torch.randn(MEMBERS, NODES, NODES, dtype=torch.float64, generator=generator)
    return x, 0.3 * (shift + shift.mT) if shift_symmetric else 0.3 * shift


def by_autograd(networks, x, shift, d_output):
    """Member by member, through the module in training mode."""
    outputs, gradients, statistics, shifts = [], [], [], []
    for i, one in enumerate(networks):
        one.train()
        weights = {name: value.detach().clone().requires_grad_() for name, value in one.named_parameters()}
        buffers = {name: value.clone() for name, value in one.named_buffers()}
        leaf = shift[i].clone().requires_grad_()
        output = functional_call(one, {**weights, **buffers}, (x[i], leaf))
        output.backward(d_output[i])
        outputs.append(output.detach())
        gradients.append({name: value.grad for name, value in weights.items()})
        statistics.append(buffers)
        shifts.append(leaf.grad)
    stacked = [{name: torch.stack([one[name] for one in many]) for name in many[0]} for many in (gradients, statistics)]
    return torch.stack(outputs), stacked[0], stacked[1], torch.stack(shifts)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("known_taps", [False, True], ids=["", "known taps"])
def test_output_gradients_and_statistics_are_autograds(shape, known_taps):
    networks = [network(seed, shape) for seed in range(MEMBERS)]
    x, shift = batch()
    weights, statistics = stack_module_state(networks)
    weights = {name: value.detach().requires_grad_() for name, value in weights.items()}
    d_output = torch.randn(MEMBERS, BATCH, shape.get("n_outputs", 1), dtype=torch.float64)
    leaf = shift.clone().requires_grad_()
    taps = Taps(x, shift, networks[0].order) if known_taps else None
    output = train_output(networks[0], weights, statistics, x, leaf, taps)
    output.backward(d_output)
    known_output, known_weights, known_statistics, known_shift = by_autograd(networks, x, shift, d_output)
    close = {"rtol": 1e-9, "atol": 1e-11}
    torch.testing.assert_close(output.detach(), known_output, **close)
    torch.testing.assert_close(leaf.grad, known_shift, **close)
    for name, value in weights.items():
        torch.testing.assert_close(value.grad, known_weights[name], msg=lambda text, n=name: f"{n}: {text}", **close)
    assert statistics.keys() == known_statistics.keys()
    for name, value in statistics.items():
        torch.testing.assert_close(value, known_statistics[name], **close)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_shift_need_not_be_symmetric(n_layers):
    shape = {"n_layers": n_layers}
    networks = [network(seed, shape) for seed in range(MEMBERS)]
    x, shift = batch(shift_symmetric=False)
    weights, statistics = stack_module_state(networks)
    leaf = shift.clone().requires_grad_()
    d_output = torch.ones(MEMBERS, BATCH, 1, dtype=torch.float64)
    train_output(networks[0], weights, statistics, x, leaf).backward(d_output)
    torch.testing.assert_close(leaf.grad, by_autograd(networks, x, shift, d_output)[3], rtol=1e-9, atol=1e-11)


def test_only_what_is_asked_for_has_a_gradient():
    networks = [network(seed, {}) for seed in range(MEMBERS)]
    x, shift = batch()
    weights, statistics = stack_module_state(networks)
    fixed = {name: value.detach() for name, value in weights.items()}
    leaf = shift.clone().requires_grad_()
    train_output(networks[0], fixed, statistics, x, leaf).sum().backward()
    assert all(value.grad is None for value in fixed.values())
    learned = {name: value.detach().requires_grad_() for name, value in weights.items()}
    train_output(networks[0], learned, statistics, x, shift).sum().backward()
    assert all(value.grad is not None for value in learned.values())
    assert leaf.grad is not None
    assert shift.grad is None
