"""Phi(x, shift, h) of the paper: L filter layers with batch normalisation and activation, then a readout.

On the precision matrix it is a PNN, on the covariance the same network is a VNN. This is the only definition: training
and prediction call it, for one network or for a stack of members.

Plain ``PrecisionNetwork`` objects of one shape become one network whose tensors are stacked, members along the first
axis, so that a product serves all of them. Everything else, a foreign network or a foreign part of one, is called
member by member.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock

import torch
from torch import Tensor, nn

from precisionnet.nn.filter import FeatureNorm, FilterLayer, PolynomialFilter
from precisionnet.nn.readout import AverageReadout, FlattenReadout, Linear, MeanReadout, QuantileLink
from precisionnet.parameters import BY_NAME

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}
"""Activations by name. A name of your own can be added, for networks that you make (``network=``)."""

Tensors = dict[str, Tensor]
"""A state dictionary."""


class PrecisionNetwork(nn.Module):
    """Graph-convolutional network on a symmetric matrix, called as ``network(x, shift)``.

    Layers, filters and order are by default those of the paper's recipe; the readout is the flattened one.

    Parameters
    ----------
    n_nodes : int, optional
        Number of nodes N. Only the ``mlp`` readout needs it; other networks take any number.
    in_features : int, default=1
        Features a node carries (1 for a table: a node is a column).
    n_outputs : int, default=1
        1 for regression, the number of classes for classification.
    n_layers : int, default=1
        Filter layers, L of the paper; ignored where ``n_filters`` or ``order`` lists them.
    n_filters : int or sequence of int, default=8
        Features of a node after each layer, F of the paper; one number, or one per layer.
    order : int or sequence of int, default=2
        Degree of the polynomials, K of the paper; one number, or one per layer.
    readout : {"mlp", "mean", "average"} or callable, default="mlp"
        Flattened nodes, the average node under a perceptron, or the plain average; or a function
        ``readout(n_nodes, n_features, n_outputs)`` that returns an ``nn.Module`` from (batch, nodes, features) to
        (batch, outputs).
    readout_width : int, default=64
        Hidden units of the readout; 0 makes it linear.
    activation : str or callable, default="relu"
        A name in ``ACTIVATIONS``, or a function without arguments that returns an ``nn.Module``.
    batch_norm : bool, default=True
        Normalise each layer's features over samples and nodes; without it the filters have a bias.
    link : bool, default=False
        End in a ``QuantileLink``, for one output.

    Examples
    --------
    >>> import torch
    >>> network = PrecisionNetwork(readout="mean", n_layers=2)
    >>> network(torch.ones(3, 5, 1), torch.eye(5)).shape
    torch.Size([3, 1])
    """

    def __init__(
        self,
        n_nodes: int | None = None,
        *,
        in_features: int = 1,
        n_outputs: int = 1,
        n_layers: int = BY_NAME["n_layers"].of("paper"),
        n_filters: int | Sequence[int] = BY_NAME["n_filters"].of("paper"),
        order: int | Sequence[int] = BY_NAME["order"].of("paper"),
        readout: str | Callable[[int | None, int, int], nn.Module] = "mlp",
        readout_width: int = BY_NAME["readout_width"].of("paper"),
        activation: str | Callable[[], nn.Module] = "relu",
        batch_norm: bool = True,
        link: bool = False,
    ) -> None:
        super().__init__()
        widths, orders = per_layer(n_layers, n_filters, order)
        if isinstance(activation, str) and activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"activation must be one of {known} or a function, got {activation!r}.")
        make = ACTIVATIONS[activation] if isinstance(activation, str) else activation
        widths = [in_features, *widths]
        self.layers = nn.ModuleList(
            FilterLayer(w_in, w_out, k, make, batch_norm)
            for (w_in, w_out), k in zip(itertools.pairwise(widths), orders, strict=True)
        )
        self.readout: nn.Module
        if callable(readout):
            self.readout = readout(n_nodes, widths[-1], n_outputs)
        elif readout == "mean":
            self.readout = MeanReadout(widths[-1], readout_width, n_outputs)
        elif readout == "average":
            self.readout = AverageReadout(widths[-1], n_outputs)
        elif readout == "mlp":
            if n_nodes is None:
                raise ValueError('The "mlp" readout needs n_nodes; the others work for any number of nodes.')
            self.readout = FlattenReadout(n_nodes, widths[-1], readout_width, n_outputs)
        else:
            raise ValueError(f'readout must be "mlp", "mean", "average" or a function, got {readout!r}.')

        self.link = QuantileLink() if link else None

    @property
    def filters(self) -> list[PolynomialFilter]:
        """The filter banks, first layer first."""
        return [module for module in self.modules() if isinstance(module, PolynomialFilter)]

    def node_features(self, x: Tensor, shift: Tensor) -> Tensor:
        """Compute the last layer's output, equivariant to a permutation of the nodes.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, in_features)
            Signals.
        shift : Tensor of shape (nodes, nodes)
            Symmetric matrix.

        Returns
        -------
        Tensor of shape (batch, nodes, n_filters)
            Node features.
        """
        for layer in self.layers:
            x = layer(x, shift)
        return x

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """Predict.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, in_features)
            Signals.
        shift : Tensor of shape (nodes, nodes)
            Symmetric matrix.

        Returns
        -------
        Tensor of shape (batch, n_outputs)
            Predictions.
        """
        output: Tensor = self.readout(self.node_features(x, shift))
        return output if self.link is None else self.link(output)


def per_layer(n_layers: int, n_filters: int | Sequence[int], order: int | Sequence[int]) -> tuple[list[int], list[int]]:
    """Widths and orders, one per layer; lists must agree in length, and a number stands for every layer."""
    lengths = {len(value) for value in (n_filters, order) if not isinstance(value, int)} or {n_layers}
    if len(lengths) > 1:
        raise ValueError(f"n_filters lists {len(n_filters)} layers and order {len(order)}: give one each per layer.")  # type: ignore[arg-type]
    (length,) = lengths
    widths = [n_filters] * length if isinstance(n_filters, int) else list(n_filters)
    return widths, [order] * length if isinstance(order, int) else list(order)


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


_LOCK = RLock()


def _new_lock() -> None:
    global _LOCK
    _LOCK = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Let layers draw first weights and dropout from ``seed`` inside the block, on the CPU and on ``device``.

    They draw from the process's generator. It is borrowed, by one user at a time, and given back as it was.
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with _LOCK, torch.random.fork_rng(devices=devices):
        if device is None or device.type == "cpu":
            torch.default_generator.manual_seed(seed)  # torch's function notes the call stack, too
        else:
            torch.manual_seed(seed)
        yield
