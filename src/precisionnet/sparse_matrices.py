r"""Symmetric sparse matrices that share a support: the pattern once, the values of every member beside it.

A matrix on a support has one value per slot. The first n slots are the diagonal, the others the edges i < j, so that it
is symmetric by construction. Products (``sparse_kernels``) run on the rows of the whole matrix (CSR), each entry of
which knows its slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from precisionnet.types import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True)
class Support:
    """Which entries of a symmetric matrix may differ from zero; the diagonal always may.

    Parameters
    ----------
    n : int
        Rows and columns.
    first : ndarray of int of shape (n_edges,)
        One end of each edge, the smaller number.
    second : ndarray of int of shape (n_edges,)
        Its other end.

    Examples
    --------
    >>> import numpy as np
    >>> support = Support(3, np.array([0]), np.array([2]))
    >>> support.matrix(np.array([1.0, 2.0, 3.0, 0.5])).toarray().tolist()
    [[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [0.5, 0.0, 3.0]]
    """

    n: int
    first: IndexArray
    second: IndexArray

    @classmethod
    def of(cls, matrix: Any) -> Support:
        """Return the support of a symmetric matrix.

        Parameters
        ----------
        matrix : scipy.sparse array or ndarray of shape (n, n)
            The matrix; entries that are stored as zeros do not count.

        Returns
        -------
        Support
            Edges in the order of their rows.
        """
        upper = sparse.triu(sparse.csr_array(matrix), k=1, format="csr")
        upper.eliminate_zeros()
        upper.sort_indices()
        coo = upper.tocoo()
        return cls(upper.shape[0], coo.coords[0].astype(np.int64), coo.coords[1].astype(np.int64))

    @property
    def n_edges(self) -> int:
        """Pairs that may be joined."""
        return len(self.first)

    @property
    def n_slots(self) -> int:
        """Values that a matrix has: its diagonal and its edges."""
        return self.n + len(self.first)

    @cached_property
    def keys(self) -> IndexArray:
        """One number per edge, by which edges of two supports are compared."""
        return self.first * np.int64(self.n) + self.second

    @cached_property
    def entries(self) -> tuple[IndexArray, IndexArray, IndexArray]:
        """The whole matrix row by row: where rows begin, the column and the slot of each entry."""
        diagonal, edge = np.arange(self.n), self.n + np.arange(self.n_edges)
        row = np.concatenate([diagonal, self.first, self.second])
        column = np.concatenate([diagonal, self.second, self.first])
        slot = np.concatenate([diagonal, edge, edge])
        order = np.lexsort((column, row))
        start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=self.n))])
        return start.astype(np.int64), column[order].astype(np.int32), slot[order].astype(np.int32)

    def matrix(self, values: FloatArray) -> sparse.csr_array:
        """Return the matrix with these values.

        Parameters
        ----------
        values : ndarray of shape (n_slots,)
            One number per slot.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n)
            Symmetric, without stored zeros.
        """
        start, column, slot = self.entries
        whole = sparse.csr_array((values[slot], column, start), shape=(self.n, self.n), copy=True)
        whole.eliminate_zeros()
        return whole

    def values_of(self, matrix: Any) -> FloatArray:
        """Read a symmetric matrix on this support.

        Parameters
        ----------
        matrix : scipy.sparse array of shape (n, n)
            What is outside the support is left out.

        Returns
        -------
        ndarray of shape (n_slots,)
            One number per slot.
        """
        found, csr = Support.of(matrix), sparse.csr_array(matrix)
        values = np.zeros(self.n_slots)
        values[: self.n] = csr.diagonal()
        place = self.places(found.keys)
        here = place >= 0
        values[self.n + place[here]] = entries_at(csr, found.first[here], found.second[here])
        return values

    def places(self, keys: IndexArray) -> IndexArray:
        """Find edges by their keys.

        Parameters
        ----------
        keys : ndarray of int
            ``keys`` of another support of as many nodes.

        Returns
        -------
        ndarray of int
            Position of each among the edges; -1 where it is none.
        """
        if not self.n_edges:
            return np.full(len(keys), -1)
        order = np.argsort(self.keys, kind="stable")
        place = order[np.minimum(np.searchsorted(self.keys, keys, sorter=order), self.n_edges - 1)]
        return np.where(self.keys[place] == keys, place, -1)

    def holds(self, first: IndexArray, second: IndexArray) -> BoolArray:
        """Tell which pairs (first < second) are edges of the support.

        Parameters
        ----------
        first, second : ndarray of int
            Ends of the pairs.

        Returns
        -------
        ndarray of bool
            One answer per pair.
        """
        found: BoolArray = self.places(first * np.int64(self.n) + second) >= 0
        return found


@dataclass(frozen=True)
class SparseStack:
    """The matrices of several members on one support; indexed by members as an (members, n, n) array would be.

    Parameters
    ----------
    support : Support
        Shared by all members.
    values : ndarray of shape (members, n_slots)
        Each member's values.

    Examples
    --------
    >>> import numpy as np
    >>> stack = SparseStack(Support(2, np.array([0]), np.array([1])), np.array([[1.0, 1.0, 0.5], [3.0, 1.0, 0.0]]))
    >>> stack.mean(axis=0).toarray().tolist()
    [[2.0, 0.25], [0.25, 1.0]]
    """

    support: Support
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, members: Any) -> Any:
        """One member's matrix (scipy.sparse), or the stack of several members."""
        if isinstance(members, int | np.integer):
            return self.support.matrix(self.values[members])
        return SparseStack(self.support, self.values[members])

    def __truediv__(self, scale: float) -> SparseStack:
        return SparseStack(self.support, self.values / scale)

    @property
    def shape(self) -> tuple[int, int, int]:
        """That of the array it stands for."""
        return len(self.values), self.support.n, self.support.n

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(self.values.nbytes)

    def mean(self, axis: int = 0) -> sparse.csr_array:
        """Return the members' mean matrix.

        Parameters
        ----------
        axis : int, default=0
            The members' axis; there is no other.

        Returns
        -------
        scipy.sparse.csr_array of shape (n, n)
            The mean.
        """
        return self.support.matrix(self.values.mean(axis=axis))


MatrixStack = Any
"""Matrices of several members: an array (members, n, n), or a ``SparseStack``."""

Matrix = Any
"""One matrix: an array (n, n), or a scipy.sparse array."""


def is_sparse(matrix: Matrix) -> bool:
    """Tell whether a matrix is a scipy.sparse one.

    Parameters
    ----------
    matrix : ndarray or scipy.sparse array
        One matrix.

    Returns
    -------
    bool
        False for an array.
    """
    return bool(sparse.issparse(matrix))


def as_array(matrix: Matrix) -> FloatArray:
    """Return a matrix with all its pairs.

    Parameters
    ----------
    matrix : ndarray or scipy.sparse array
        One matrix.

    Returns
    -------
    ndarray
        Itself where it is one.
    """
    found: FloatArray = matrix.toarray() if is_sparse(matrix) else matrix
    return found


def entries_at(matrix: Matrix, rows: IndexArray, columns: IndexArray) -> FloatArray:
    """Read some entries of a matrix.

    Parameters
    ----------
    matrix : ndarray or scipy.sparse.csr_array of shape (n, n)
        The matrix.
    rows, columns : ndarray of int
        Where they stand.

    Returns
    -------
    ndarray
        One number per place.
    """
    if not len(rows):  # of no place scipy makes no array
        return np.zeros(0)
    return np.asarray(matrix[rows, columns], dtype=np.float64)


def concatenated(parts: Sequence[MatrixStack]) -> MatrixStack:
    """Put the members of several stacks one after the other.

    Parameters
    ----------
    parts : sequence of ndarray or SparseStack
        All of one kind, sparse ones on one support.

    Returns
    -------
    ndarray or SparseStack
        With the members of all.
    """
    if isinstance(parts[0], SparseStack):
        return SparseStack(parts[0].support, np.concatenate([part.values for part in parts]))
    return np.concatenate(parts)


def with_means(matrices: MatrixStack, n_more: int) -> MatrixStack:
    """Add members that have the mean matrix of the others.

    Parameters
    ----------
    matrices : ndarray of shape (members, n, n), or SparseStack
        Of the members that there are.
    n_more : int
        Members to add.

    Returns
    -------
    ndarray or SparseStack
        With ``n_more`` more members.
    """
    if isinstance(matrices, SparseStack):
        mean = np.repeat(matrices.values.mean(axis=0)[None], n_more, axis=0)
        return SparseStack(matrices.support, np.concatenate([matrices.values, mean]))
    return np.concatenate([matrices, np.repeat(matrices.mean(axis=0)[None], n_more, axis=0)])


def on_common_support(matrices: FloatArray, most: float) -> MatrixStack:
    """Return symmetric matrices on the support that they have together, where that is sparse.

    Parameters
    ----------
    matrices : ndarray of shape (members, n, n)
        Symmetric matrices.
    most : float
        Share of entries up to which it is worth it.

    Returns
    -------
    SparseStack or ndarray
        The matrices as they came where too many entries are not zero.
    """
    used = matrices[0] != 0
    for matrix in matrices[1:]:
        if np.count_nonzero(used) > most * used.size:
            return matrices
        used |= matrix != 0
    if np.count_nonzero(used) > most * used.size or any(not np.array_equal(one, one.T) for one in matrices):
        return matrices
    support = Support.of(used)
    values = [np.concatenate([np.diag(one), one[support.first, support.second]]) for one in matrices]
    return SparseStack(support, np.stack(values))


def numbers_of(matrices: MatrixStack | Matrix) -> FloatArray:
    """Return the numbers that are stored.

    Parameters
    ----------
    matrices : ndarray, SparseStack or scipy.sparse array
        One matrix or several.

    Returns
    -------
    ndarray
        All entries, or the stored ones.
    """
    if isinstance(matrices, SparseStack):
        return matrices.values
    found: FloatArray = matrices.data if is_sparse(matrices) else matrices
    return found


EIGENVALUE_TOL, DENSE_EIGENVALUES = 1e-3, 500


def extreme_eigenvalues(matrix: Matrix) -> tuple[float, float]:
    """Compute the smallest and the largest eigenvalue of a symmetric matrix.

    Parameters
    ----------
    matrix : ndarray or scipy.sparse array of shape (n, n)
        Symmetric.

    Returns
    -------
    tuple of float
        To three digits where a sparse matrix has more than 500 rows.
    """
    n = matrix.shape[0]
    if not is_sparse(matrix) or n <= DENSE_EIGENVALUES:
        values = np.linalg.eigvalsh(as_array(matrix))
        return float(values[0]), float(values[-1])
    begin = np.random.default_rng(0).standard_normal(n)
    diagonal = matrix.diagonal()
    others = abs(matrix).sum(axis=1) - np.abs(diagonal)
    ends = []
    bounds: dict[Literal["SA", "LA"], float] = {"SA": (diagonal - others).min(), "LA": (diagonal + others).max()}
    for which, bound in bounds.items():
        try:
            found = eigsh(matrix, 1, which=which, v0=begin, tol=EIGENVALUE_TOL, return_eigenvectors=False)[0]
        except ArpackNoConvergence:  # many eigenvalues close together: Gershgorin's bound
            found = bound
        ends.append(float(found))
    return ends[0], ends[1]
