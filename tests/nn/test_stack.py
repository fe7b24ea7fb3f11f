"""A stack of members is its members one by one, whatever they are made of."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch import nn

from precisionnet.nn import ACTIVATIONS, NetworkStack, PrecisionNetwork, Readout
from precisionnet.nn.readout import FlattenReadout
from tests.devices import META, OneDevice

MEMBERS, BATCH, NODES = 3, 7, 5


def named(shape: dict[str, object]) -> str:
    """A name without addresses: workers of one run must collect the same tests."""
    return ",".join(f"{key}={getattr(value, '__name__', value)}" for key, value in shape.items()) or "default"


class MaxReadout(nn.Module):
    """Written for one network, with axes counted from the front: a stack must not be put through it."""

    def __init__(self, n_nodes, n_features, n_outputs):
        super().__init__()
        self.linear = nn.Linear(n_features, n_outputs)

    def forward(self, x):
        return self.linear(x.max(dim=1).values)


class Weighted(FlattenReadout):
    """A subclass with a summary of its own: the first node counts tenfold."""

    def summary(self, x):
        return super().summary(torch.cat([10.0 * x[:, :1], x[:, 1:]], dim=1))


class Spread(Readout):
    """The largest minus the smallest node."""

    def __init__(self, n_nodes, n_features, n_outputs):
        super().__init__(n_features, 4, n_outputs)

    def summary(self, x):
        return x.amax(dim=1) - x.amin(dim=1)


class Trivial(PrecisionNetwork):
    """A subclass might do anything, so it is run by itself."""


STACKED = [
    {"n_layers": n_layers, "readout": readout, "activation": activation}
    for n_layers, activation in ((1, "relu"), (2, "leaky_relu"), (3, "tanh"))
    for readout in ("mean", "mlp", "average")
]
STACKED += [
    {"readout_width": 0},
    {"n_layers": 2, "n_outputs": 2},
    {"order": 0, "n_layers": 2},
    {"n_filters": [3, 6], "order": [4, 1], "readout": "mean"},
    {"link": True},
    {"batch_norm": False},
    {"batch_norm": False, "n_layers": 2, "readout": "mean"},
]
ONE_BY_ONE = [
    {"activation": nn.Softsign},
    {"activation": lambda: nn.Dropout(0.5)},
    {"readout": MaxReadout},
    {"readout": Spread, "n_layers": 2},
    {"readout": lambda nodes, features, outputs: Weighted(nodes, features, 4, outputs)},
    {"readout": lambda nodes, features, outputs: nn.Sequential(nn.Flatten(), nn.Linear(nodes * features, outputs))},
]


def network(seed: int, shape: dict, kind: type = PrecisionNetwork) -> PrecisionNetwork:
    torch.manual_seed(seed)
    made = kind(NODES, **({"n_filters": 4, "readout_width": 6} | shape)).double()
    with torch.no_grad():  # those of normalisation as well, which start at one and zero
        for value in made.state_dict().values():
            if value.is_floating_point():
                value.add_(torch.rand_like(value), alpha=0.3)
    return made


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(9)
    x = torch.randn(MEMBERS, BATCH, NODES, 1, dtype=torch.float64, generator=generator) + 1.0
    return x, 0.3 * torch.randn(MEMBERS, NODES, NODES, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("shape", STACKED + ONE_BY_ONE[:1] + ONE_BY_ONE[2:], ids=named)
def test_a_stack_is_its_members_one_by_one(shape, training):
    """Outputs, gradients of weights and matrices (which need not be symmetric), running moments."""
    networks = [network(seed, shape).train(training) for seed in range(MEMBERS)]
    stack = NetworkStack(networks).train(training)
    assert stack.one_by_one == (shape not in STACKED)
    x, shift = batch()
    leaf = shift.clone().requires_grad_()
    output = stack(x, leaf)
    output.sin().sum().backward()
    digits = {"rtol": 1e-9, "atol": 1e-11}
    whole = stack.whole if stack.whole is not None else None
    for i, (one, state) in enumerate(zip(networks, stack.member_states(), strict=True)):
        own = shift[i].clone().requires_grad_()
        alone = one(x[i], own)
        alone.sin().sum().backward()
        torch.testing.assert_close(output[i], alone, **digits)
        known = torch.zeros_like(own) if own.grad is None else own.grad
        torch.testing.assert_close(torch.zeros_like(own) if leaf.grad is None else leaf.grad[i], known, **digits)
        member = None if whole is not None else stack.members[i]
        for name, value in one.named_parameters():
            gradient = whole.get_parameter(name).grad[i] if member is None else member.get_parameter(name).grad
            torch.testing.assert_close(gradient, value.grad, **digits)
        torch.testing.assert_close(state, dict(one.state_dict()), **digits)


def test_members_keep_their_own_tensors():
    networks = [network(seed, {}) for seed in range(MEMBERS)]
    before = [{name: t.clone() for name, t in one.state_dict().items()} for one in networks]
    stack = NetworkStack(networks)
    stack(*batch())
    states = stack.member_states()
    with torch.no_grad():
        for value in stack.parameters():
            value.zero_()
    for one, was, state in zip(networks, before, states, strict=True):
        assert all(torch.equal(value, was[name]) for name, value in one.state_dict().items())
        assert all(torch.equal(state[name], was[name]) for name, _ in one.named_parameters())


@pytest.mark.parametrize("shape", [{}, {"activation": nn.Softsign}], ids=["stacked", "one by one"])
def test_states_come_back(shape):
    networks = [network(seed, shape) for seed in range(MEMBERS)]
    stack = NetworkStack([network(seed + 7, shape) for seed in range(MEMBERS)]).eval()
    stack.load_member_states([dict(one.state_dict()) for one in networks])
    x, shift = batch()
    torch.testing.assert_close(stack(x, shift), NetworkStack(networks).eval()(x, shift))
    again = pickle.loads(pickle.dumps(stack))  # noqa: S301 - on its way to a worker
    assert torch.equal(again(x, shift), stack(x, shift))


@pytest.mark.parametrize("kind", [PrecisionNetwork, Trivial])
def test_only_matrices_that_are_trained_are_penalised(kind):
    networks = [network(seed, {"n_layers": 2}, kind) for seed in range(MEMBERS)]
    stack = NetworkStack(networks)
    assert stack.one_by_one == (kind is Trivial)
    total = sum(float(value.detach().square().sum()) for value in stack.penalised())
    known = [value for one in networks for value in one.parameters() if value.ndim > 1]
    assert total == pytest.approx(sum(float(value.detach().square().sum()) for value in known))
    for one in networks:
        one.filters[0].weight.requires_grad_(False)
    frozen = NetworkStack(networks)
    assert len(list(frozen.penalised())) < len(list(stack.penalised()))
    frozen(*batch()).sum().backward()
    assert sum(value.grad is None for value in frozen.parameters()) == (1 if kind is PrecisionNetwork else MEMBERS)


DIFFERENT = {
    "slopes": [lambda i: {"activation": lambda: nn.LeakyReLU(0.1 * (i + 1))}],
    "widths": [lambda i: {"readout_width": i + 1}],
    "activations": [lambda i: {"activation": ("relu", "tanh", "relu")[i]}],
}


@pytest.mark.parametrize("make", [make for (make,) in DIFFERENT.values()], ids=DIFFERENT)
def test_members_that_differ_in_more_than_weights_are_not_stacked(make):
    networks = [network(i, make(i)).eval() for i in range(MEMBERS)]
    stack = NetworkStack(networks).eval()
    assert stack.one_by_one
    x, shift = batch()
    torch.testing.assert_close(stack(x, shift), torch.stack([one(x[i], shift[i]) for i, one in enumerate(networks)]))


def test_a_name_added_to_the_activations_is_what_it_says(monkeypatch):
    monkeypatch.setitem(ACTIVATIONS, "softsign", nn.Softsign)
    x, shift = batch()
    by_name, by_class = ([network(i, {"activation": a}) for i in range(MEMBERS)] for a in ("softsign", nn.Softsign))
    output = NetworkStack(by_name)(x, shift)
    assert torch.equal(output, NetworkStack(by_class)(x, shift))
    for i, one in enumerate(by_name):
        layer = one.layers[0]
        layer.activation = nn.Identity()
        before = one.train().node_features(x[i], shift[i])
        assert torch.equal(one.readout(before / (1.0 + before.abs())), output[i])


def test_random_layers_draw_from_the_seeds_and_leave_the_process_alone():
    stack = NetworkStack([network(seed, ONE_BY_ONE[1]) for seed in range(MEMBERS)])
    x, shift = batch()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, again, other = (stack(x, shift, seeds) for seeds in ([1, 2, 3], [1, 2, 3], [1, 2, 4]))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first, again)
    assert torch.equal(first[:2], other[:2])
    assert not torch.equal(first[2], other[2])


@pytest.mark.parametrize("shape", [STACKED[0], STACKED[4], STACKED[-2], ONE_BY_ONE[2]], ids=named)
def test_forward_and_backward_stay_on_their_device(shape):
    stack = NetworkStack([network(seed, shape) for seed in range(MEMBERS)]).to(META)
    x, shift = (tensor.to(META).requires_grad_() for tensor in batch())
    with OneDevice():
        for training in (True, False):
            output = stack.train(training)(x, shift)
            assert output.device == META
            output.sum().backward()
    assert all(value.grad is not None and value.grad.device == META for value in stack.parameters())
    assert shift.grad.device == META


@pytest.mark.parametrize("shape", [STACKED[0], ONE_BY_ONE[2]], ids=named)
def test_a_tensor_left_on_another_device_is_noticed(shape):
    stack = NetworkStack([network(seed, shape) for seed in range(MEMBERS)]).to(META)
    x, shift = batch()
    for mixed in ((x.to(META), shift), (x, shift.to(META))):
        with OneDevice(), pytest.raises(RuntimeError, match="cpu.*meta"):
            stack(*mixed)
