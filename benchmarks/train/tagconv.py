"""The reference with PyTorch Geometric's TAGConv in the place of its filter.

TAGConv(normalize=False) is the paper's filter over a list of edges. Once theta_task moves it has no zeros, so every
pair of nodes is an edge, and its gradient flows through ``edge_weight``. Rows are given to it in the two ways that
PyTorch Geometric knows: as a batch of graphs, and as many signals on one graph. Where the graph stays as it is the
edges are few and may be a sparse matrix, which PyTorch Geometric multiplies with far faster: the case TAGConv is for.
"""

from __future__ import annotations

import warnings
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import TAGConv

from benchmarks.train.reference import Network
from benchmarks.train.task import Shape

# PyTorch says with every first sparse matrix that these are new, and that nothing checks them.
warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")

Layout = Literal["batch", "signals", "sparse matrix"]


class TagFilter(nn.Module):
    """TAGConv, called as the reference's filter is: with a dense shift, whose edges it looks up."""

    def __init__(self, in_features: int, out_features: int, order: int, edges: Tensor, layout: Layout) -> None:
        super().__init__()
        self.conv = TAGConv(in_features, out_features, order, bias=False, normalize=False)
        self.edges, self.layout = edges, layout
        self._of_rows: dict[int, Tensor] = {}

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """(batch, nodes, in_features) -> (batch, nodes, out_features)."""
        source, goal = self.edges
        weight = shift[goal, source]
        if self.layout == "signals":
            return self.conv(x, self.edges, weight)
        rows, nodes = x.shape[:2]
        if rows not in self._of_rows:  # made once, as a data loader would
            made = self._matrix(weight, rows, nodes) if self.layout == "sparse matrix" else self._copies(rows, nodes)
            self._of_rows[rows] = made
        graph, signals = self._of_rows[rows], x.flatten(0, 1)
        output = (
            self.conv(signals, graph)
            if self.layout == "sparse matrix"
            else self.conv(signals, graph, weight.repeat(rows))
        )
        return output.view(rows, nodes, -1)

    def _copies(self, rows: int, nodes: int) -> Tensor:
        """The edges of ``rows`` graphs side by side."""
        first = (torch.arange(rows) * nodes).repeat_interleave(self.edges.shape[1])
        return self.edges.repeat(1, rows) + first

    def _matrix(self, weight: Tensor, rows: int, nodes: int) -> Tensor:
        """The same as one sparse matrix; it is kept, so this is for a shift that does not change."""
        n = rows * nodes
        matrix = torch.sparse_coo_tensor(self._copies(rows, nodes), weight.repeat(rows), (n, n))
        return matrix.coalesce().to_sparse_csr()


def tag_network(n_nodes: int, shape: Shape, like: Network, layout: Layout, graph: Tensor | None = None) -> Network:
    """The reference ``like`` with its filters replaced, coefficients and all the rest copied.

    The edges are the entries of ``graph`` that are not zero; all pairs without it.
    """
    network = Network(n_nodes, shape)
    network.load_state_dict(like.state_dict())
    edges = (torch.ones(n_nodes, n_nodes) if graph is None else graph).nonzero().T.contiguous()
    for i, old in enumerate(like.filters):
        order, in_features, out_features = old.weight.shape[0] - 1, *old.weight.shape[1:]
        new = TagFilter(in_features, out_features, order, edges, layout)
        with torch.no_grad():
            for linear, weight in zip(new.conv.lins, old.weight, strict=True):
                linear.weight.copy_(weight.T)
        network.filters[i] = new
    return network
