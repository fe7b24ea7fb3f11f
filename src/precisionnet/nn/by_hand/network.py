"""The whole network as one function that autograd takes for a single operation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from precisionnet.nn.by_hand.layers import FeatureLayer, SignalLayer
from precisionnet.nn.by_hand.readout import Perceptron
from precisionnet.nn.by_hand.taps import Taps
from precisionnet.nn.by_hand.workspace import Workspace
from precisionnet.nn.network import PrecisionNetwork
from precisionnet.nn.readout import MeanReadout

Tensors = dict[str, Tensor]


def train_output(
    network: PrecisionNetwork,
    weights: Tensors,
    statistics: Tensors,
    x: Tensor,
    shift: Tensor,
    taps: Taps | None = None,
    workspace: Workspace | None = None,
) -> Tensor:
    """Outputs (members, batch, outputs) for x (members, batch, nodes, 1) on shift (members, nodes, nodes).

    A node carries one number, as in a table. ``network`` says the shape; ``weights`` and ``statistics`` are the
    members', stacked, and the running statistics are written into the latter. ``taps``, those of x and shift, spare
    their computation. ``workspace`` is for passes that follow each other: the backward one of this must be done before
    the next one begins.
    """
    one = _Pass(network, weights, statistics, x, taps, workspace or Workspace())
    output: Tensor = _Training.apply(one, shift, *weights.values())  # type: ignore[no-untyped-call]
    return output


@torch.no_grad()
def eval_output(network: PrecisionNetwork, weights: Tensors, statistics: Tensors, x: Tensor, shift: Tensor) -> Tensor:
    """The same in evaluation mode, with the running statistics and without a gradient."""
    return _Pass(network, weights, statistics, x, None, Workspace(), training=False).forward(shift)


class _Training(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, one: _Pass, shift: Tensor, *weights: Tensor) -> Tensor:
        ctx.one = one
        return one.forward(shift)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor) -> Any:
        _, for_shift, *for_weights = ctx.needs_input_grad
        d_shift, gradients = ctx.one.backward(d_output, for_shift=for_shift, for_weights=any(for_weights))
        return None, d_shift, *(gradients.get(name) for name in ctx.one.names)


class _Pass:
    """Forward once, then backward once; in between it holds what the second needs of the first."""

    def __init__(
        self,
        network: PrecisionNetwork,
        weights: Tensors,
        statistics: Tensors,
        x: Tensor,
        taps: Taps | None,
        workspace: Workspace,
        *,
        training: bool = True,
    ) -> None:
        if x.ndim != 4 or x.shape[-1] != 1:
            raise ValueError(f"x must have shape (members, batch, nodes, 1), got {tuple(x.shape)}.")
        self.names = list(weights)
        self._x, self._taps, self._order = x, taps, network.order
        self._workspace = workspace
        held = {name: value.detach() for name, value in weights.items()}
        self._layers = [
            (FeatureLayer if i else SignalLayer)(
                _part(held, f"layers.{i}."),
                _part(statistics, f"layers.{i}."),
                network.activation,
                workspace.layer(i),
                training=training,
            )
            for i in range(len(network.layers))
        ]
        self._perceptron = Perceptron(_part(held, READOUT), workspace)
        self._averages = isinstance(network.readout, MeanReadout)

    def forward(self, shift: Tensor) -> Tensor:
        self._shift = shift.detach()
        x: Any = Taps(self._x, self._shift, self._order, self._workspace) if self._taps is None else self._taps
        for layer in self._layers:
            x = layer.forward(x, self._shift)
        self._shape = x.shape
        return self._perceptron.forward(x.mean(dim=2) if self._averages else x.flatten(1, 2)).mT

    def backward(self, d_output: Tensor, *, for_shift: bool, for_weights: bool) -> tuple[Tensor | None, Tensors]:
        own: Tensors = {}
        d: Any = self._perceptron.backward(d_output.mT, own if for_weights else None)
        gradients = {f"{READOUT}{name}": value for name, value in own.items()}
        d = (d / self._shape[2]).unsqueeze(2).expand(self._shape) if self._averages else d.reshape(self._shape)
        d_shift = torch.zeros_like(self._shift) if for_shift else None
        for i, layer in reversed(list(enumerate(self._layers))):
            own = {}
            d = layer.backward(d, self._shift, own, d_shift)
            gradients |= {f"layers.{i}.{name}": value for name, value in own.items()}
        return d_shift, gradients if for_weights else {}


READOUT = "readout.perceptron."


def _part(tensors: Tensors, prefix: str) -> Tensors:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
