"""The derivatives written out against autograd through the network itself."""

from copy import deepcopy

import pytest
import torch
from precisionnet.nn.by_hand import Taps, Workspace, eval_output, train_output
from torch.func import functional_call, stack_module_state

from precisionnet.nn import PrecisionNetwork

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
    {"order": 0},
    {"order": 0, "n_layers": 2},
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
        shifts.append(torch.zeros_like(leaf) if leaf.grad is None else leaf.grad)  # of order 0, a shift does nothing
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


@pytest.mark.parametrize("n_layers", [1, 2])
def test_gradients_of_a_part_are_those_of_the_whole(n_layers):
    networks = [network(seed, {"n_layers": n_layers}) for seed in range(MEMBERS)]
    x, shift = batch()
    weights, statistics = stack_module_state(networks)

    def gradients(*, of_weights: bool, of_shift: bool):
        leaf = shift.clone().requires_grad_(of_shift)
        leaves = {name: value.detach().clone().requires_grad_(of_weights) for name, value in weights.items()}
        train_output(networks[0], leaves, statistics, x, leaf).sum().backward()
        return leaf.grad, {name: value.grad for name, value in leaves.items()}

    whole_shift, whole_weights = gradients(of_weights=True, of_shift=True)
    only_shift, nothing = gradients(of_weights=False, of_shift=True)
    none, only_weights = gradients(of_weights=True, of_shift=False)
    assert none is None
    assert set(nothing.values()) == {None}
    assert torch.equal(only_shift, whole_shift)
    assert all(torch.equal(value, whole_weights[name]) for name, value in only_weights.items())


REUSED = [{}, {"n_layers": 3}, {"n_layers": 3, "readout": "mean"}, {"batch_norm": False}]


@pytest.mark.parametrize("shape", REUSED, ids=str)
def test_a_workspace_is_used_again_without_a_trace(shape):
    """Other rows, other weights, another size of batch: as if in fresh memory."""
    workspace = Workspace()
    for seed, n_rows in ((0, BATCH), (5, BATCH), (9, BATCH - 2), (3, BATCH)):
        networks = [network(seed + i, shape) for i in range(MEMBERS)]
        x, shift = batch()
        x = x[:, :n_rows] * (1 + seed)
        found = []
        for room in (workspace, None):
            weights, statistics = stack_module_state(deepcopy(networks))
            leaf = shift.clone().requires_grad_()
            leaves = {name: value.detach().requires_grad_() for name, value in weights.items()}
            output = train_output(networks[0], leaves, statistics, x, leaf, workspace=room)
            output.square().sum().backward()
            found.append([output, leaf.grad, *(value.grad for value in leaves.values()), *statistics.values()])
        assert all(torch.equal(ours, fresh) for ours, fresh in zip(*found, strict=True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_evaluation_is_the_modules(shape):
    networks = [network(seed, shape).eval() for seed in range(MEMBERS)]
    for one in networks:
        for name, value in one.named_buffers():
            if value.is_floating_point():
                value.copy_(torch.rand_like(value) + 0.5 * ("var" in name))
    x, shift = batch()
    weights, statistics = stack_module_state(networks)
    before = {name: value.clone() for name, value in statistics.items()}
    output = eval_output(networks[0], weights, statistics, x, shift)
    assert not output.requires_grad
    known = torch.stack([one(rows, matrix) for one, rows, matrix in zip(networks, x, shift, strict=True)])
    torch.testing.assert_close(output, known.detach(), rtol=1e-10, atol=1e-12)
    assert all(torch.equal(value, before[name]) for name, value in statistics.items())


def test_large_means_do_not_eat_the_digits_of_the_variance():
    networks = [network(seed, {}) for seed in range(MEMBERS)]
    x, shift = batch()
    weights, statistics = stack_module_state(networks)
    known, *_ = by_autograd(networks, x + 1e5, shift, torch.ones(MEMBERS, BATCH, 1, dtype=torch.float64))
    output = train_output(networks[0], weights, statistics, x + 1e5, shift)
    torch.testing.assert_close(output.detach(), known, rtol=1e-5, atol=1e-6)


def test_a_node_carries_one_number():
    networks = [network(seed, {}) for seed in range(MEMBERS)]
    weights, statistics = stack_module_state(networks)
    x, shift = batch()
    with pytest.raises(ValueError, match=r"x must have shape \(members, batch, nodes, 1\)"):
        train_output(networks[0], weights, statistics, x.expand(-1, -1, -1, 2), shift)
