"""From node features to a prediction.

``mlp``      flattens the nodes; its weights belong to one set of nodes.
``mean``     averages over the nodes, then a perceptron: invariant to the order and number of nodes.
``average``  averages over nodes and features; nothing is learnt, as in the published covariance networks.

A readout of your own is an ``nn.Module`` that maps (batch, nodes, features) to (batch, outputs).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from precisionnet.errors import InputError


class Linear(nn.Linear):
    """``nn.Linear`` that also takes a stack: weight (members, out, in), x (members, batch, in)."""

    def forward(self, x: Tensor) -> Tensor:
        """Multiply and add.

        Parameters
        ----------
        x : Tensor of shape (batch, in_features)
            Inputs.

        Returns
        -------
        Tensor of shape (batch, out_features)
            Outputs.
        """
        if self.weight.ndim == 2 and x.ndim != 2:  # one network, inside a user-defined readout
            return super().forward(x)
        # As (W x' + b)': signals lie batch last in memory, and stay so.
        product = torch.addmm if x.ndim == 2 else torch.baddbmm
        return product(self.bias.unsqueeze(-1), self.weight, x.mT).mT


class Readout(nn.Module):
    """A perceptron with one hidden layer over a summary of the nodes; subclasses say which summary.

    Parameters
    ----------
    summary_features : int
        Numbers in the summary.
    width : int
        Hidden units; 0 makes it linear.
    n_outputs : int
        Outputs.

    Examples
    --------
    >>> import torch
    >>> class MaxReadout(Readout):
    ...     def summary(self, x):
    ...         return x.amax(dim=-2)
    >>> from precisionnet.nn import PrecisionNetwork
    >>> network = PrecisionNetwork(readout=lambda nodes, features, outputs: MaxReadout(features, 16, outputs))
    >>> network(torch.ones(3, 5, 1), torch.eye(5)).shape
    torch.Size([3, 1])
    """

    def __init__(self, summary_features: int, width: int, n_outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [Linear(summary_features, width), nn.ReLU()] if width else []
        self.perceptron = nn.Sequential(*layers, Linear(width or summary_features, n_outputs))

    def summary(self, x: Tensor) -> Tensor:
        """Summarise the nodes.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, features)
            Node features.

        Returns
        -------
        Tensor of shape (batch, summary_features)
            Summary of each sample.
        """
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Predict from node features.

        Parameters
        ----------
        x : Tensor of shape (batch, nodes, features)
            Node features.

        Returns
        -------
        Tensor of shape (batch, n_outputs)
            Predictions.
        """
        output: Tensor = self.perceptron(self.summary(x))
        return output


class FlattenReadout(Readout):
    """Every node has weights of its own; see ``Readout`` for the parameters."""

    def __init__(self, n_nodes: int, n_features: int, width: int, n_outputs: int) -> None:
        super().__init__(n_nodes * n_features, width, n_outputs)

    def summary(self, x: Tensor) -> Tensor:
        """Put all node features side by side, feature by feature, as they lie in memory."""
        return torch.flatten(x.transpose(-1, -2), start_dim=-2)


class MeanReadout(Readout):
    """The average node, any number of nodes; see ``Readout`` for the parameters."""

    def summary(self, x: Tensor) -> Tensor:
        """Average over the nodes."""
        return x.sum(dim=-2) / x.shape[-2]  # the division on the small side: mean() divides the large gradient


class AverageReadout(nn.Module):
    """Average over nodes and features; nothing is learnt.

    Parameters
    ----------
    n_features : int
        Features of a node, a multiple of ``n_outputs``: each output averages an equal share of them.
    n_outputs : int
        Outputs.
    """

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        if n_features % n_outputs:
            raise InputError(
                f'readout="average" shares the {n_features} features of a node between {n_outputs} outputs: set '
                f"n_filters of the last layer to a multiple of {n_outputs}."
            )
        self.n_outputs = n_outputs

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, nodes, features) to (batch, n_outputs)."""
        return x.mean(dim=-2).reshape(*x.shape[:-3], x.shape[-3], self.n_outputs, -1).mean(dim=-1)
