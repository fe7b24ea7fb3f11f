"""Phi(x, shift, h) of the paper: L filter layers with batch normalisation and activation, then a readout.

On the precision matrix it is a PNN, on the covariance the same network is a VNN. This is the definition; training runs
the same network with its derivatives written out (``by_hand``).
"""

from __future__ import annotations

import itertools

from torch import Tensor, nn

from precisionnet.nn.filter import PolynomialFilter
from precisionnet.nn.readout import FlattenReadout, MeanReadout, Readout
from precisionnet.parameters import BY_NAME
from precisionnet.types import ReadoutName

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}


class FeatureNorm(nn.BatchNorm1d):
    """Batch normalisation a feature, over samples and nodes alike, so that node order and number do not matter."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x of shape (batch, nodes, features)."""
        nodes_first = x.transpose(0, 1)  # as the filter leaves it in memory; the order of rows is all the same here
        return super().forward(nodes_first.reshape(-1, x.shape[-1])).reshape(nodes_first.shape).transpose(0, 1)


class FilterLayer(nn.Module):
    """One layer of eq. (1): filter bank, batch normalisation, activation."""

    def __init__(self, in_features: int, out_features: int, order: int, activation: str, batch_norm: bool) -> None:
        super().__init__()
        self.filter = PolynomialFilter(in_features, out_features, order, bias=not batch_norm)
        self.norm = FeatureNorm(out_features) if batch_norm else nn.Identity()
        self.activation = ACTIVATIONS[activation]()

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """Apply the layer to x of shape (batch, nodes, in_features)."""
        output: Tensor = self.activation(self.norm(self.filter(x, shift)))
        return output


class PrecisionNetwork(nn.Module):
    """The whole network, called as ``network(x, shift)``; its defaults are the paper's.

    Parameters
    ----------
    n_nodes : number of nodes N. Only the ``mlp`` readout needs it; a ``mean`` network takes any number.
    in_features : features a node carries (1 for a table: a node is a column).
    n_outputs : 1 for regression, the number of classes for classification.
    n_layers, n_filters, order : L, F and K of the paper.
    readout : ``"mlp"`` (flattened nodes) or ``"mean"`` (node average).
    readout_width : hidden units of the readout; 0 makes it linear.
    """

    def __init__(
        self,
        n_nodes: int | None = None,
        *,
        in_features: int = 1,
        n_outputs: int = 1,
        n_layers: int = BY_NAME["n_layers"].of("paper"),
        n_filters: int = BY_NAME["n_filters"].of("paper"),
        order: int = BY_NAME["order"].of("paper"),
        readout: ReadoutName = "mlp",
        readout_width: int = BY_NAME["readout_width"].of("paper"),
        activation: str = BY_NAME["activation"].of("paper"),
        batch_norm: bool = True,
    ) -> None:
        super().__init__()
        self.activation, self.order = activation, order
        widths = [in_features] + [n_filters] * n_layers
        self.layers = nn.ModuleList(
            FilterLayer(w_in, w_out, order, activation, batch_norm) for w_in, w_out in itertools.pairwise(widths)
        )
        self.readout: Readout
        if readout == "mean":
            self.readout = MeanReadout(widths[-1], readout_width, n_outputs)
        elif readout == "mlp":
            if n_nodes is None:
                raise ValueError('The "mlp" readout needs n_nodes; only readout="mean" works for any number of nodes.')
            self.readout = FlattenReadout(n_nodes, widths[-1], readout_width, n_outputs)
        else:
            raise ValueError(f'readout must be "mlp" or "mean", got {readout!r}.')

    @property
    def filters(self) -> list[PolynomialFilter]:
        """The filter banks, first layer first."""
        return [module for module in self.modules() if isinstance(module, PolynomialFilter)]

    def node_features(self, x: Tensor, shift: Tensor) -> Tensor:
        """The last layer's output, (batch, nodes, n_filters); equivariant to a permutation of the nodes."""
        for layer in self.layers:
            x = layer(x, shift)
        return x

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """Predictions of shape (batch, n_outputs) for x of shape (batch, nodes, in_features)."""
        output: Tensor = self.readout(self.node_features(x, shift))
        return output
