"""The networks of an ensemble before training: by their kind, or by a function of the user's."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn

from precisionnet.errors import InputError
from precisionnet.kinds import Kind
from precisionnet.nn import PrecisionNetwork
from precisionnet.nn.network import seeded
from precisionnet.parameters import Settings

NetworkFactory = Callable[[int, int], nn.Module]
"""(n_nodes, n_outputs) -> a network called as ``network(x, shift)``, x of shape (batch, nodes, 1)."""


def new_network(
    settings: Settings,
    n_nodes: int,
    n_outputs: int,
    kind: Kind,
    factory: NetworkFactory | None = None,
    seed: int = 0,
) -> nn.Module:
    """Return an untrained network; its first weights depend on the seed alone."""
    if kind.linear:
        return linear_network(n_nodes, n_outputs)
    n_filters, order = settings.n_filters, settings.order
    if kind.deep and isinstance(n_filters, int) and isinstance(order, int):
        n_filters, order = [n_filters, max(n_filters // 2, 1)], [order, 1]
    with seeded(seed):
        if factory is None:
            return PrecisionNetwork(
                n_nodes,
                n_outputs=n_outputs,
                n_layers=settings.n_layers,
                n_filters=n_filters,
                order=order,
                readout=kind.readout,
                readout_width=settings.readout_width,
                activation=settings.activation,
                batch_norm=settings.batch_norm,
            )
        made = copy.deepcopy(factory(n_nodes, n_outputs))  # a factory may hand out the same module every time
        if not isinstance(made, nn.Module):
            raise InputError(f"network must return a torch.nn.Module, got {type(made).__name__}.")
        _refuse_other_outputs(made, n_nodes, n_outputs)
    return made


@torch.no_grad()
def _refuse_other_outputs(network: nn.Module, n_nodes: int, n_outputs: int) -> None:
    """Call a foreign network once: what has another shape would be spread over the rows without a word."""
    output = copy.deepcopy(network).float().eval()(torch.zeros(2, n_nodes, 1), torch.eye(n_nodes))
    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    if shape != (2, n_outputs):
        raise InputError(
            f"The network must map x of shape (batch, {n_nodes}, 1) and a matrix to (batch, {n_outputs}); of two rows "
            f"it made {shape} in place of (2, {n_outputs})."
        )


def linear_network(n_nodes: int, n_outputs: int) -> nn.Module:
    """Return a network that is linear in its input.

    Parameters
    ----------
    n_nodes : int
        Columns.
    n_outputs : int
        Outputs.

    Returns
    -------
    PrecisionNetwork
        Filters of degree 0, no activation, a linear readout.
    """
    return PrecisionNetwork(
        n_nodes,
        n_outputs=n_outputs,
        n_layers=1,
        n_filters=1,
        order=0,
        readout="mlp",
        readout_width=0,
        activation=nn.Identity,
        batch_norm=False,
    )
