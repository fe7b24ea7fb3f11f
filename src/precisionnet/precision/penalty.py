r"""Penalties as the kernels read them: one number, scaled by a unit a variable, or a whole matrix.

    penalty_ij = l1 * unit_i * unit_j      or      penalty_ij = matrix_ij   (infinity: a known zero)

A single number never becomes an N x N matrix: that would cost as much memory traffic as the covariance itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from precisionnet.precision.compiled import compiled
from precisionnet.types import FloatArray, IndexArray

NO_MATRIX = np.empty((0, 0))


class Penalty(NamedTuple):
    """Weights of the absolute off-diagonal entries; the diagonal carries none."""

    l1: float
    unit: FloatArray
    matrix: FloatArray

    @classmethod
    def of(cls, l1: float | FloatArray, n: int) -> Penalty:
        """From a number or a symmetric matrix."""
        if np.ndim(l1) == 0:
            return cls(float(l1), np.ones(n), NO_MATRIX)
        if not np.any(l1):
            return cls(0.0, np.ones(n), NO_MATRIX)
        return cls(1.0, np.ones(n), np.ascontiguousarray(l1, dtype=np.float64))

    @property
    def uniform(self) -> bool:
        """No matrix is stored."""
        return self.matrix.size == 0

    def rescaled(self, unit: FloatArray) -> Penalty:
        """The penalty of theta_ij / (unit_i unit_j)."""
        if self.uniform:
            return self._replace(unit=self.unit * unit)
        return self._replace(matrix=self.matrix * unit * unit[:, None])

    def block(self, members: IndexArray) -> Penalty:
        """The penalty among some of the variables."""
        matrix = self.matrix if self.uniform else np.ascontiguousarray(self.matrix[np.ix_(members, members)])
        return Penalty(self.l1, self.unit[members], matrix)

    def dense(self) -> FloatArray:
        """As an N x N matrix, diagonal zero."""
        full = self.l1 * np.outer(self.unit, self.unit) if self.uniform else self.matrix.copy()
        np.fill_diagonal(full, 0.0)
        return full

    def norm(self, theta: FloatArray) -> float:
        """sum_{i != j} penalty_ij |theta_ij|; a known zero that is zero costs nothing."""
        return float(_norm(theta, *self))


@compiled
def row_of(l1: float, unit: FloatArray, matrix: FloatArray, j: int, out: FloatArray) -> None:
    """Row j of the penalty; its diagonal entry is zero."""
    if matrix.shape[0] == 0:
        factor = l1 * unit[j]
        for i in range(len(out)):
            out[i] = factor * unit[i]
    else:
        for i in range(len(out)):
            out[i] = matrix[j, i]
    out[j] = 0.0


@compiled
def _norm(theta: FloatArray, l1: float, unit: FloatArray, matrix: FloatArray) -> float:
    row = np.empty(len(theta))
    total = 0.0
    for j in range(len(theta)):
        row_of(l1, unit, matrix, j, row)
        for i in range(len(theta)):
            if theta[j, i] != 0.0:
                total += row[i] * abs(theta[j, i])
    return total
