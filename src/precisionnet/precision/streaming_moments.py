r"""Mean and covariance of rows that arrive in batches (Chan, Golub and LeVeque 1983).

    n = n_a + n_b,   delta = mean_b - mean_a
    mean    = mean_a + delta n_b / n
    scatter = scatter_a + scatter_b + delta delta' n_a n_b / n        with scatter = sum_t (x_t - mean)(x_t - mean)'

Regime: any number of batches of any size. The merge is exact algebra, so that the order and the sizes of the batches
leave only rounding behind. How this differs from the textbook: means are kept relative to that of the first batch, so
that columns far from zero (1e8 with a spread of 1) lose no digits in delta.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from precisionnet.errors import InputError
from precisionnet.linalg import symmetrize
from precisionnet.types import FloatArray


@dataclass(frozen=True)
class RunningMoments:
    """What is known after some batches; ``update`` returns the next state and leaves this one as it is."""

    n: int
    origin: FloatArray
    """The mean of the first batch."""
    offset: FloatArray
    """The mean of all rows, less ``origin``."""
    scatter: FloatArray

    @classmethod
    def empty(cls, n_features: int) -> RunningMoments:
        """Before the first row."""
        zeros = np.zeros(n_features)
        return cls(0, zeros, zeros, np.zeros((n_features, n_features)))

    def update(self, X: FloatArray) -> RunningMoments:
        """With the rows of X (n_samples, n_features) taken in."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.offset):
            raise InputError(f"a batch has shape {X.shape}: it must have {len(self.offset)} columns, as the others.")
        if len(X) == 0:
            return self
        origin = X.mean(axis=0) if self.n == 0 else self.origin
        shifted = X - origin
        mean = shifted.mean(axis=0)
        shifted -= mean
        scatter = symmetrize(shifted.T @ shifted)
        if self.n == 0:
            return RunningMoments(len(X), origin, mean, scatter)
        n = self.n + len(X)
        delta = mean - self.offset
        return RunningMoments(
            n,
            origin,
            self.offset + delta * (len(X) / n),
            self.scatter + scatter + np.outer(delta, delta) * (self.n * (len(X) / n)),
        )

    @property
    def mean(self) -> FloatArray:
        """Of all rows so far."""
        return self.origin + self.offset

    @property
    def covariance(self) -> FloatArray:
        """scatter / n, as ``sample_covariance`` of all rows at once."""
        if self.n == 0:
            raise InputError("no rows yet: call update with a batch first.")
        return self.scatter / self.n

    @property
    def second_moment(self) -> FloatArray:
        """sum_t x_t x_t' / n: the covariance of rows whose mean is known to be zero."""
        return self.covariance + np.outer(self.mean, self.mean)
