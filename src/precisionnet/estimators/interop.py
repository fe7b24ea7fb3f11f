"""The learned graph in other people's formats.

Partial correlations are read off the sparse precision: rho_ij = -theta_ij / sqrt(theta_ii theta_jj), the correlation of
two columns given all the others. They do not depend on the columns' units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from precisionnet.estimators.checks import column_names
from precisionnet.precision import partial_correlations
from precisionnet.types import FloatArray

if TYPE_CHECKING:
    import networkx as nx


class EdgeTensors(NamedTuple):
    """A graph as PyTorch Geometric's layers take it: ``conv(x, *model.to_pyg())``."""

    edge_index: Tensor
    edge_weight: Tensor


class GraphInterop:
    """Mixin for estimators with ``precision_``."""

    precision_: FloatArray
    task_precision_: FloatArray

    def _matrix(self, which: str) -> FloatArray:
        check_is_fitted(self)
        if which not in ("sparse", "task"):
            raise ValueError(f'which must be "sparse" or "task", got {which!r}.')
        return self.precision_ if which == "sparse" else self.task_precision_

    def precision_frame(self, which: str = "sparse") -> pd.DataFrame:
        """The precision with the columns' names on both sides."""
        matrix = self._matrix(which)
        names = column_names(self)
        return pd.DataFrame(matrix, index=names, columns=names)

    def to_edge_frame(self) -> pd.DataFrame:
        """One row an edge of the sparse graph, strongest first: source, target, precision, partial_correlation."""
        theta = self._matrix("sparse")
        names = np.array(column_names(self), dtype=object)
        rows, cols = np.nonzero(np.triu(theta, k=1))
        frame = pd.DataFrame(
            {
                "source": names[rows],
                "target": names[cols],
                "precision": theta[rows, cols],
                "partial_correlation": partial_correlations(theta)[rows, cols],
            }
        )
        order = frame["partial_correlation"].abs().sort_values(ascending=False, kind="stable").index
        return frame.loc[order].reset_index(drop=True)

    def to_networkx(self) -> nx.Graph[Any]:
        """The sparse graph; edges carry ``precision`` and ``partial_correlation``. Columns without edges are kept."""
        import networkx as nx

        graph: nx.Graph[Any] = nx.Graph()
        graph.add_nodes_from(column_names(self))
        for edge in self.to_edge_frame().itertuples(index=False):
            graph.add_edge(
                edge.source, edge.target, precision=edge.precision, partial_correlation=edge.partial_correlation
            )
        return graph

    def to_pyg(self, which: str = "sparse") -> EdgeTensors:
        """edge_index and edge_weight of the matrix, diagonal included, for PyTorch Geometric."""
        matrix = torch.from_numpy(self._matrix(which))
        edge_index = matrix.nonzero().T.contiguous()
        return EdgeTensors(edge_index, matrix[edge_index[0], edge_index[1]])
