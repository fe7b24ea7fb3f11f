r"""Translate results about nodes into results about the columns of the table.

A column of labels is several nodes under the networks (``preprocessing.TableEncoder``). A reader asks about the column,
so everything shown is shown of columns:

- contributions of a row are summed over the column's nodes;
- an effect on the prediction is the norm over them, ``sqrt(sum of squares)``: by the Hermite expansion of
  ``explanation`` that is the root of the variance that the column accounts for;
- an edge between columns I and J is the largest singular value of ``theta_II^(-1/2) theta_IJ theta_JJ^(-1/2)``: the
  largest partial correlation of any weighting of one column's nodes with any of the other's. It is at most 1, zero
  where the block is, the absolute partial correlation where both are single nodes, and the same whichever level is the
  reference. Between nodes of one column there is no edge.

Where both columns are single nodes everything is as without blocks. A number with a node that marks its gaps has the
sign of the number's own node; columns of several levels have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from precisionnet.linalg import partial_correlations
from precisionnet.sparse_matrices import Matrix, Support, entries_at, is_sparse
from precisionnet.types import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True)
class ColumnBlocks:
    """The nodes that belong to each column.

    Parameters
    ----------
    names : tuple of str
        The columns that have nodes.
    of_node : ndarray of shape (n_nodes,)
        Of each node the position of its column; the nodes of a column stand side by side.
    directed : ndarray of bool of shape (n_columns,), optional
        Columns whose first node has the column's direction; those of one node if not given.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = ColumnBlocks(("age", "city"), np.array([0, 1, 1]))
    >>> blocks.norms(np.array([-2.0, 3.0, 4.0])).tolist()
    [-2.0, 5.0]
    """

    names: tuple[str, ...]
    of_node: IndexArray
    directed: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def single(self) -> BoolArray:
        """Mask of the columns that are one node."""
        return np.bincount(self.of_node, minlength=len(self)) == 1

    @property
    def signed(self) -> BoolArray:
        """Mask of the columns that have a direction."""
        return self.single if self.directed is None else self.directed

    @property
    def trivial(self) -> bool:
        """Whether every column is one node."""
        return len(self.of_node) == len(self)

    def summed(self, parts: FloatArray) -> FloatArray:
        """Sum over the nodes of each column, along the last axis."""
        return parts if self.trivial else np.add.reduceat(parts, self.first, axis=-1)

    @property
    def first(self) -> IndexArray:
        """The first node of each column."""
        return np.searchsorted(self.of_node, np.arange(len(self)))

    @property
    def unsigned(self) -> tuple[str, ...]:
        """Columns without a direction: their edges and effects have a size and no sign."""
        return tuple(name for name, has_sign in zip(self.names, self.signed, strict=True) if not has_sign)

    def norms(self, values: FloatArray) -> FloatArray:
        """Return one number per column: the node's own, or the norm over several, with a sign where there is one."""
        if self.trivial:
            return values
        sizes = np.sqrt(self.summed(values**2))
        return np.where(self.signed, np.copysign(sizes, values[self.first]), sizes)

    def matrix_norms(self, matrix: Matrix) -> Matrix:
        """Return one number per pair of columns: the entry, or the Frobenius norm of the block; 0 on the diagonal."""
        if self.trivial:
            return matrix
        if is_sparse(matrix):
            return self._sparse_norms(matrix)
        sizes = self._with_signs(np.sqrt(self._both_summed(matrix**2)), matrix)
        np.fill_diagonal(sizes, 0.0)
        return sizes

    def partial_correlations(self, theta: FloatArray) -> FloatArray:
        """Return the largest partial correlation between each pair of columns, ones on the diagonal."""
        partial = partial_correlations(theta)
        if self.trivial:
            return partial
        nodes = [np.flatnonzero(self.of_node == i) for i in range(len(self))]
        roots = [_inverse_root(theta[np.ix_(own, own)]) for own in nodes]
        found: FloatArray = np.eye(len(self))
        for i in range(len(self)):
            for j in range(i):
                if len(nodes[i]) == len(nodes[j]) == 1:
                    found[i, j] = found[j, i] = partial[nodes[i][0], nodes[j][0]]
                    continue
                block = theta[np.ix_(nodes[i], nodes[j])]
                if block.any():
                    found[i, j] = found[j, i] = min(float(np.linalg.norm(roots[i] @ block @ roots[j], 2)), 1.0)
        found = self._with_signs(found, partial)
        np.fill_diagonal(found, 1.0)
        return found

    def _sparse_norms(self, matrix: Any) -> sparse.csr_array:
        """Return the same norms of a sparse matrix, where the block has an entry."""
        entries = sparse.coo_array(matrix)
        i, j = (self.of_node[ends] for ends in entries.coords)
        between = i != j
        shape = (len(self), len(self))
        squares = sparse.csr_array((entries.data[between] ** 2, (i[between], j[between])), shape=shape)  # adds up
        found = sparse.coo_array(squares.sqrt())
        first = sparse.csr_array(matrix)[self.first][:, self.first]
        at = found.coords
        signs = np.where(self.signed[at[0]] & self.signed[at[1]] & (entries_at(first, *at) < 0), -1.0, 1.0)
        return sparse.csr_array((found.data * signs, at), shape=shape)

    def _with_signs(self, sizes: FloatArray, matrix: FloatArray) -> FloatArray:
        """Give sizes of pairs of columns the signs of their first nodes' entries, where both have a direction."""
        of_first = matrix[np.ix_(self.first, self.first)]
        return np.where(np.outer(self.signed, self.signed), np.copysign(sizes, of_first), sizes)

    def _both_summed(self, matrix: FloatArray) -> FloatArray:
        return self.summed(self.summed(matrix).T).T


def edge_frame(theta: Matrix, blocks: ColumnBlocks) -> pd.DataFrame:
    """Return the edges of a sparse precision as a table, one node per column, strongest first.

    Parameters
    ----------
    theta : ndarray or scipy.sparse array of shape (n_nodes, n_nodes)
        The sparse precision.
    blocks : ColumnBlocks
        Which nodes belong to which column.

    Returns
    -------
    pandas.DataFrame of shape (n_edges, 4)
        ``source``, ``target``, ``precision`` and ``partial_correlation``.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.estimators.columns import ColumnBlocks, edge_frame
    >>> blocks = ColumnBlocks(("a", "b"), np.array([0, 1]))
    >>> edge_frame(np.array([[2.0, -1.0], [-1.0, 2.0]]), blocks)["partial_correlation"].tolist()
    [0.5]
    """
    names = np.array(blocks.names, dtype=object)
    if is_sparse(theta):
        norms = blocks.matrix_norms(theta)
        edges = Support.of(norms)
        rows, cols = edges.first, edges.second
        entry = edges.values_of(norms)[edges.n :]
        correlation = _pair_correlations(theta, blocks, rows, cols)
    else:
        entries, partial = blocks.matrix_norms(theta), blocks.partial_correlations(theta)
        rows, cols = np.nonzero(np.triu(entries, k=1))
        entry, correlation = entries[rows, cols], partial[rows, cols]
    frame = pd.DataFrame(
        {
            "source": names[rows],
            "target": names[cols],
            "precision": entry,
            "partial_correlation": correlation,
        }
    )
    order = frame["partial_correlation"].abs().sort_values(ascending=False, kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _pair_correlations(theta: Any, blocks: ColumnBlocks, rows: IndexArray, cols: IndexArray) -> FloatArray:
    """Return ``ColumnBlocks.partial_correlations`` of some pairs of columns alone."""
    theta, first, diagonal = sparse.csr_array(theta), blocks.first, theta.diagonal()
    i, j = first[rows], first[cols]
    found: FloatArray = 0.0 - entries_at(theta, i, j) / np.sqrt(diagonal[i] * diagonal[j])  # no negative zeros
    several = np.flatnonzero(~(blocks.single[rows] & blocks.single[cols]))
    ends = np.append(first, len(blocks.of_node))
    roots: dict[int, FloatArray] = {}
    for edge in several:
        own, other = (slice(ends[column], ends[column + 1]) for column in (rows[edge], cols[edge]))
        for column, nodes in ((rows[edge], own), (cols[edge], other)):
            if column not in roots:
                roots[column] = _inverse_root(theta[nodes, nodes].toarray())
        block = roots[rows[edge]] @ theta[own, other].toarray() @ roots[cols[edge]]
        size = min(float(np.linalg.norm(block, 2)), 1.0)
        directed = blocks.signed[rows[edge]] and blocks.signed[cols[edge]]
        found[edge] = np.copysign(size, found[edge]) if directed else size
    return found


def _inverse_root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))) @ vectors.T
