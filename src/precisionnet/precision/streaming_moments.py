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
class StreamingMoments:
    """Mean and covariance of the rows so far; ``update`` returns the next state and leaves this one as it is.

    Parameters
    ----------
    n : int
        Number of rows.
    origin : ndarray of shape (n_features,)
        Mean of the first batch.
    offset : ndarray of shape (n_features,)
        Mean of all rows, less ``origin``.
    scatter : ndarray of shape (n_features, n_features)
        Sum of the outer products of the centred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import StreamingMoments
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> moments = StreamingMoments.empty(3)
    >>> for batch in np.split(X, 4):
    ...     moments = moments.update(batch)
    >>> bool(np.allclose(moments.covariance, np.cov(X.T, bias=True)))
    True
    """

    n: int
    origin: FloatArray
    offset: FloatArray
    scatter: FloatArray

    @classmethod
    def empty(cls, n_features: int) -> StreamingMoments:
        """Make the state before the first row.

        Parameters
        ----------
        n_features : int
            Number of columns.

        Returns
        -------
        StreamingMoments
            No rows, all moments zero.
        """
        zeros = np.zeros(n_features)
        return cls(0, zeros, zeros, np.zeros((n_features, n_features)))

    def update(self, X: FloatArray) -> StreamingMoments:
        """Take in another batch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete rows, any number of them.

        Returns
        -------
        StreamingMoments
            The moments of all rows so far.
        """
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
            return StreamingMoments(len(X), origin, mean, scatter)
        n = self.n + len(X)
        delta = mean - self.offset
        return StreamingMoments(
            n,
            origin,
            self.offset + delta * (len(X) / n),
            self.scatter + scatter + np.outer(delta, delta) * (self.n * (len(X) / n)),
        )

    @property
    def mean(self) -> FloatArray:
        """Mean of all rows so far."""
        return self.origin + self.offset

    @property
    def covariance(self) -> FloatArray:
        """Covariance of all rows so far, divided by their number."""
        if self.n == 0:
            raise InputError("no rows yet: call update with a batch first.")
        return self.scatter / self.n

    @property
    def second_moment(self) -> FloatArray:
        """Mean of ``x x'``: the covariance of rows whose mean is known to be zero."""
        return self.covariance + np.outer(self.mean, self.mean)
