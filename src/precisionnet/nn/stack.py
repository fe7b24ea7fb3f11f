"""Several networks as one module, members along the first axis of every tensor.

Plain :class:`PrecisionNetwork` objects of one shape become one network whose tensors are stacked, so that a product
serves all members. Everything else, a foreign network or a foreign part of one, is called member by member.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from precisionnet.nn.filter import PolynomialFilter
from precisionnet.nn.network import FeatureNorm, FilterLayer, PrecisionNetwork, seeded
from precisionnet.nn.readout import AverageReadout, FlattenReadout, Linear, MeanReadout, QuantileLink

Tensors = dict[str, Tensor]
"""A state dictionary."""

STACKABLE = frozenset(
    {
        PrecisionNetwork,
        FilterLayer,
        PolynomialFilter,
        FeatureNorm,
        FlattenReadout,
        MeanReadout,
        AverageReadout,
        Linear,
        QuantileLink,
        nn.ModuleList,
        nn.Sequential,
        nn.ReLU,
        nn.LeakyReLU,
        nn.Tanh,
    }
)
"""Modules that work on any number of leading axes. A subclass is not among them: it may not support a leading axis."""


class NetworkStack(nn.Module):
    """Networks of one shape as one module.

    Parameters
    ----------
    networks : sequence of nn.Module
        The members; their tensors are copied.

    Examples
    --------
    >>> import torch
    >>> from precisionnet.nn import PrecisionNetwork
    >>> stack = NetworkStack([PrecisionNetwork(readout="mean") for _ in range(4)])
    >>> stack(torch.ones(4, 3, 5, 1), torch.eye(5).repeat(4, 1, 1)).shape
    torch.Size([4, 3, 1])
    """

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.n_members = len(networks)
        self.whole = _stacked(networks)
        self.one_by_one = self.whole is None
        self.members = nn.ModuleList([copy.deepcopy(one) for one in networks] if self.one_by_one else [])

    def forward(self, x: Tensor, shift: Tensor, seeds: Sequence[int] | None = None) -> Tensor:
        """Predict with every member.

        Parameters
        ----------
        x : Tensor of shape (members, batch, nodes, 1)
            Each member's signals.
        shift : Tensor of shape (members, nodes, nodes)
            Each member's matrix.
        seeds : sequence of int, optional
            What random layers such as dropout draw from, of each member that is called one by one.

        Returns
        -------
        Tensor of shape (members, batch, outputs)
            Predictions.
        """
        if self.whole is not None:
            output: Tensor = self.whole(x, shift)
            return output
        if seeds is None:
            return torch.stack([member(x[i], shift[i]) for i, member in enumerate(self.members)])
        outputs = []
        for i, (member, seed) in enumerate(zip(self.members, seeds, strict=True)):
            with seeded(seed, x.device):
                outputs.append(member(x[i], shift[i]))
        return torch.stack(outputs)

    def penalised(self) -> Iterator[Tensor]:
        """List the tensors under the l2 penalty: matrices, but neither biases nor normalisation's scales.

        Returns
        -------
        iterator of Tensor
            Coefficients and weight matrices that are trained.
        """
        least = 3 if self.whole is not None else 2
        return (value for value in self.parameters() if value.ndim >= least and value.requires_grad)

    def member_states(self, *, copied: bool = True) -> list[Tensors]:
        """List each member's tensors by the names they have in a network of its own.

        Parameters
        ----------
        copied : bool, default=True
            Copy the tensors, so that later steps of training do not write into them.

        Returns
        -------
        list of dict
            One state dictionary per member.
        """
        if self.whole is None:
            states = [dict(member.state_dict()) for member in self.members]
            return [{name: t.clone() for name, t in state.items()} if copied else state for state in states]
        whole = self.whole.state_dict()
        return [
            {name: tensor[i].clone() if copied else tensor[i] for name, tensor in whole.items()}
            for i in range(self.n_members)
        ]

    def load_member_states(self, states: Sequence[Tensors]) -> None:
        """Set every member's tensors.

        Parameters
        ----------
        states : sequence of dict
            What ``member_states`` returned.
        """
        if self.whole is None:
            for member, state in zip(self.members, states, strict=True):
                member.load_state_dict(state)
        else:
            self.whole.load_state_dict({name: torch.stack([state[name] for state in states]) for name in states[0]})


def is_plain(network: nn.Module) -> bool:
    """Whether it is a ``PrecisionNetwork`` whose every part can be stacked; it then draws no random numbers either."""
    return type(network) is PrecisionNetwork and all(type(module) in STACKABLE for module in network.modules())


def _stacked(networks: Sequence[nn.Module]) -> nn.Module | None:
    """Return one network with the tensors of all; None where they are not plain, or not alike."""
    if not all(map(is_plain, networks)):
        return None
    # What is printed holds what no tensor does, such as the slope of a leaky ReLU.
    kinds = [
        (str(network), [(name, t.shape, t.requires_grad) for name, t in network.state_dict(keep_vars=True).items()])
        for network in networks
    ]
    if any(kind != kinds[0] for kind in kinds):
        return None
    whole = copy.deepcopy(networks[0])
    for path, module in whole.named_modules():
        twins = [network.get_submodule(path) for network in networks]
        for name, value in module._parameters.items():
            if value is not None:
                tensors = [getattr(twin, name).detach() for twin in twins]
                module._parameters[name] = nn.Parameter(torch.stack(tensors), value.requires_grad)
        for name, value in module._buffers.items():
            if value is not None:
                module._buffers[name] = torch.stack([getattr(twin, name) for twin in twins])
    return whole
