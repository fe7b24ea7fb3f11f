"""Tensors of a model's file, taken one after the other, each with its dtype, its shape and its range checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from precisionnet.estimators.document_fields import require
from precisionnet.estimators.rows import Scaler
from precisionnet.sparse_matrices import Support
from precisionnet.types import FloatArray, IndexArray

ROUNDING = 1e-8
"""Asymmetry, and eigenvalues below zero, that rounding may leave in a matrix, against its size."""


class CheckedTensors(dict[str, torch.Tensor]):
    """Tensors by name. What a method takes is gone: what is left at the end, no model has."""

    def take(self, name: str, dtype: torch.dtype, shape: tuple[int | None, ...]) -> Any:
        """Return a tensor as an array, and forget it; None in the shape is any length."""
        tensor = self.pop(name)
        alike = tensor.ndim == len(shape) and all(
            want in (None, got) for got, want in zip(tensor.shape, shape, strict=True)
        )
        require(tensor.dtype == dtype and alike, f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}")
        return tensor.numpy()

    def floats(self, name: str, shape: tuple[int | None, ...]) -> FloatArray:
        """Return finite numbers."""
        array: FloatArray = self.take(name, torch.float64, shape)
        require(bool(np.isfinite(array).all()), f"{name} is not finite")
        return array

    def integers(self, name: str, shape: tuple[int | None, ...], least: int, most: int) -> IndexArray:
        """Return whole numbers in their range."""
        array: IndexArray = self.take(name, torch.int64, shape)
        require(bool(((array >= least) & (array <= most)).all()), f"{name} is out of range")
        return array

    def scaler(self, name: str, shape: tuple[int, ...]) -> Scaler:
        """Return means and positive scales."""
        mean, scale = self.floats(f"{name}.mean", shape), self.floats(f"{name}.scale", shape)
        require(bool((scale > 0).all()), f"{name}.scale is not positive")
        return Scaler(mean, scale)

    def support(self, name: str, n_nodes: int) -> Support:
        """Return the pairs of nodes on which a matrix may differ from zero, in order."""
        first = self.integers(f"{name}.first", (None,), 0, n_nodes - 1)
        second = self.integers(f"{name}.second", first.shape, 0, n_nodes - 1)
        support = Support(n_nodes, first, second)
        ordered = bool((first < second).all()) and bool((np.diff(support.keys) > 0).all())
        require(ordered, f"the edges of {name} are not in order")
        return support

    def symmetric(self, name: str, n_nodes: int) -> FloatArray:
        """Return a symmetric matrix."""
        return refuse_asymmetric(self.floats(name, (n_nodes, n_nodes)), name)

    def semidefinite(self, name: str, n_nodes: int) -> FloatArray:
        """Return a symmetric matrix without negative eigenvalues."""
        matrix = self.symmetric(name, n_nodes)
        values = np.linalg.eigvalsh(matrix)
        below = values[0] < -ROUNDING * max(values[-1], np.finfo(float).tiny)
        require(not below and bool((np.diag(matrix) >= 0).all()), f"{name} is not positive semidefinite")
        return matrix

    def hollow(self, name: str, n_nodes: int) -> FloatArray:
        """Return a symmetric matrix with zeros on its diagonal."""
        matrix = self.symmetric(name, n_nodes)
        require(not np.diag(matrix).any(), f"{name} has a diagonal")
        return matrix


def refuse_asymmetric(matrix: FloatArray, name: str) -> FloatArray:
    """Return the matrix where rounding alone makes it asymmetric."""
    off = float(np.abs(matrix - matrix.T).max())
    require(off <= ROUNDING * float(np.abs(matrix).max()), f"{name} is not symmetric")
    return matrix
