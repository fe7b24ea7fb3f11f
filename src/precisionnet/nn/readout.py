"""From node features to a prediction.

``mlp``   flattens the nodes: the paper's readout. Its weights belong to one set of nodes.
``mean``  averages over the nodes first: invariant to their order and number, so weights carry over to another graph.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Readout(nn.Module):
    """Base: a perceptron with one hidden layer (none for ``width`` 0) over a summary of the nodes."""

    def __init__(self, summary_features: int, width: int, n_outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(summary_features, width), nn.ReLU()] if width else []
        self.perceptron = nn.Sequential(*layers, nn.Linear(width or summary_features, n_outputs))

    def summary(self, x: Tensor) -> Tensor:
        """(batch, nodes, features) -> (batch, summary_features)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """(batch, nodes, features) -> (batch, n_outputs)."""
        output: Tensor = self.perceptron(self.summary(x))
        return output


class FlattenReadout(Readout):
    """The paper's: every node has its own weights."""

    def __init__(self, n_nodes: int, n_features: int, width: int, n_outputs: int) -> None:
        super().__init__(n_nodes * n_features, width, n_outputs)

    def summary(self, x: Tensor) -> Tensor:
        """All node features side by side, feature by feature, as training has them (``by_hand``)."""
        return torch.flatten(x.transpose(1, 2), start_dim=1)


class MeanReadout(Readout):
    """Size-agnostic: the average node."""

    def __init__(self, n_features: int, width: int, n_outputs: int) -> None:
        super().__init__(n_features, width, n_outputs)

    def summary(self, x: Tensor) -> Tensor:
        """The average over nodes."""
        return x.mean(dim=1)
