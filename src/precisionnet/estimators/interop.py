"""The learned graph in other people's formats.

Partial correlations are read off the sparse precision: rho_ij = -theta_ij / sqrt(theta_ii theta_jj), the correlation of
two columns given all the others. They do not depend on the columns' units. NetworkX and torch are imported by
the methods that need them.
"""

from __future__ import annotations

import html
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from precisionnet.errors import InputError, printable
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.columns import ColumnBlocks, edge_frame
from precisionnet.sparse_matrices import Matrix, is_sparse

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from torch import Tensor


class EdgeTensors(NamedTuple):
    """A graph as PyTorch Geometric's layers take it: ``conv(x, *model.to_pyg())``.

    Parameters
    ----------
    edge_index : torch.Tensor of shape (2, n_entries)
        Row and column of each non-zero entry, the diagonal included.
    edge_weight : torch.Tensor of shape (n_entries,)
        The entries.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet import GraphicalLasso
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> edges = GraphicalLasso(l1_penalty=0.05).fit(X).to_pyg()
    >>> edges.edge_index.shape[1] == len(edges.edge_weight)
    True
    """

    edge_index: Tensor
    edge_weight: Tensor


class PlotsByName:
    """``model.plot``: pictures, which stand above the estimators, found by name when they are asked for.

    So no import goes up, and a model is fitted and saved where matplotlib is never imported.
    """

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        return importlib.import_module("precisionnet.plots").ModelPlots(model)


class GraphInterop:
    """Mixin for estimators with ``precision_``."""

    precision_: Matrix
    task_precision_: Matrix
    plot = PlotsByName()
    """Pictures: ``graph``, ``matrix``, ``nodes``, ``brain``, ``training``, ``prediction`` and ``sparsity``."""

    # How a notebook shows a fitted model. scikit-learn's own table of fitted attributes lists what stands in the
    # instance's dictionary; those of these estimators are properties. So IPython's two hooks are taken, and what
    # scikit-learn (1.6 to 1.9) shows there comes after a line of our own.

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._line_for_notebooks() + bundle["text/html"]
        return bundle

    def _repr_html_inner(self) -> str:
        return self._line_for_notebooks() + str(super()._repr_html_inner())  # type: ignore[misc]

    def _line_for_notebooks(self) -> str:
        if not hasattr(self, "_fitted"):
            return ""
        return f"<p>{html.escape(printable(' '.join(self._sentences())))}</p>"

    def _sentences(self) -> list[str]:
        """Say what was learned: the size of the graph."""
        n, n_edges = len(self._blocks()), len(self.to_edge_frame())
        pairs = n * (n - 1) // 2
        return [f"{n} columns, {n_edges} edges of {pairs} possible."]

    def _matrix(self, which: str) -> Matrix:
        check_is_fitted(self)
        if which not in ("sparse", "task"):
            raise InputError(f'which must be "sparse" or "task", got {which!r}.')
        return self.precision_ if which == "sparse" else self.task_precision_

    def _blocks(self) -> ColumnBlocks:
        """Return which nodes of the matrix belong to which column."""
        names = column_names(self)
        return ColumnBlocks(tuple(names), np.arange(len(names)))

    def _node_names(self) -> list[str]:
        return column_names(self)

    def precision_frame(self, which: str = "sparse") -> pd.DataFrame:
        """Return the precision matrix with the nodes' names on both sides: a column of labels is several nodes.

        Parameters
        ----------
        which : {"sparse", "task"}, default="sparse"
            The sparse precision, or the task's where the model has one.

        Returns
        -------
        pandas.DataFrame of shape (n_nodes, n_nodes)
            The matrix.
        """
        import pandas as pd

        matrix, names = self._matrix(which), self._node_names()
        if is_sparse(matrix):
            accessor: Any = pd.DataFrame.sparse
            frame: pd.DataFrame = accessor.from_spmatrix(matrix, index=names, columns=names)
            return frame
        return pd.DataFrame(matrix, index=names, columns=names)

    def to_edge_frame(self) -> pd.DataFrame:
        """Return the edges of the sparse graph as a table, one node per column.

        A column of labels, which is several nodes, has edges without a sign: the largest partial correlation of any
        weighting of its nodes, and the norm of their entries of the precision.

        Returns
        -------
        pandas.DataFrame of shape (n_edges, 4)
            ``source``, ``target``, ``precision`` and ``partial_correlation``, one row per edge, strongest first.
        """
        return edge_frame(self._matrix("sparse"), self._blocks())

    def to_networkx(self) -> nx.Graph[Any]:
        """Return the sparse graph for NetworkX.

        Returns
        -------
        networkx.Graph
            One node per column, also without edges; edges carry ``precision`` and ``partial_correlation``.
        """
        import networkx as nx

        graph: nx.Graph[Any] = nx.Graph()
        graph.add_nodes_from(self._blocks().names)
        for edge in self.to_edge_frame().itertuples(index=False):
            graph.add_edge(
                edge.source, edge.target, precision=edge.precision, partial_correlation=edge.partial_correlation
            )
        return graph

    def to_pyg(self, which: str = "sparse") -> EdgeTensors:
        """Return the matrix as PyTorch Geometric's layers take it.

        Parameters
        ----------
        which : {"sparse", "task"}, default="sparse"
            The sparse precision, or the task's where the model has one.

        Returns
        -------
        EdgeTensors
            ``edge_index`` and ``edge_weight``, the diagonal included.
        """
        import torch

        known = self._matrix(which)
        if is_sparse(known):
            entries = known.tocoo()
            row, column = (torch.from_numpy(part.astype(np.int64)) for part in entries.coords)
            return EdgeTensors(torch.stack([row, column]), torch.from_numpy(entries.data))
        matrix = torch.from_numpy(known)
        edge_index = matrix.nonzero().T.contiguous()
        return EdgeTensors(edge_index, matrix[edge_index[0], edge_index[1]])
