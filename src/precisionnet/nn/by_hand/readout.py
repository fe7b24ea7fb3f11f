"""The readout's perceptron forward and backward; samples are the last axis."""

from __future__ import annotations

import torch
from torch import Tensor

from precisionnet.nn.by_hand.workspace import Workspace

Tensors = dict[str, Tensor]


class Perceptron:
    """One hidden layer with ReLU, or none. Forward once, then backward once."""

    def __init__(self, weights: Tensors, workspace: Workspace) -> None:
        self._room = workspace.room
        self._names = sorted({name.split(".")[0] for name in weights})
        self._weights = weights

    def forward(self, x: Tensor) -> Tensor:
        """(members, inputs, batch) -> (members, outputs, batch)."""
        self._inputs = [x]
        for name in self._names:
            bias, weight = self._weights[f"{name}.bias"], self._weights[f"{name}.weight"]
            x = torch.baddbmm(bias.unsqueeze(-1), weight, x)
            if name != self._names[-1]:
                self._inputs.append(x.relu_())
        return x

    def backward(self, d: Tensor, gradients: Tensors | None) -> Tensor:
        """The input's gradient; those of the weights go into ``gradients`` where they are asked for."""
        for name, x in zip(reversed(self._names), reversed(self._inputs), strict=True):
            if gradients is not None:
                gradients[f"{name}.weight"] = torch.bmm(d, x.mT)
                gradients[f"{name}.bias"] = d.sum(dim=2)
            shape = len(d), x.shape[1], d.shape[2]
            d = torch.bmm(self._weights[f"{name}.weight"].mT, d, out=self._room(f"readout {name}", shape, d))
            if name != self._names[0]:
                d = torch.ops.aten.threshold_backward(d, x, 0)
        return d
