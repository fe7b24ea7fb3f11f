r"""Mean and covariance of rows that arrive in batches (Chan, Golub and LeVeque 1983).

    n = n_a + n_b,   delta = mean_b - mean_a
    mean    = mean_a + delta n_b / n
    scatter = scatter_a + scatter_b + delta delta' n_a n_b / n        with scatter = sum_t (x_t - mean)(x_t - mean)'

Regime: any number of batches of any size, here or on other machines (``merge``). The merge is exact algebra, so that
the order and the sizes of the batches leave only rounding behind. A row of weight w counts w times: n is the sum of
weights. How this differs from the textbook: means are kept relative to that of the first batch, so that columns far
from zero (1e8 with a spread of 1) lose no digits in delta.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError
from precisionnet.linalg import symmetrize
from precisionnet.precision.covariance import refuse_covariance_without_room
from precisionnet.types import FloatArray


@dataclass(frozen=True)
class StreamingMoments:
    """Mean and covariance of the rows so far; ``update`` returns the next state and leaves this one as it is.

    Parameters
    ----------
    n : int or float
        Number of rows; the sum of their weights where they have any.
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

    n: float
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
        refuse_covariance_without_room(n_features)
        zeros = np.zeros(n_features)
        return cls(0, zeros, zeros, np.zeros((n_features, n_features)))

    def update(self, X: FloatArray, weight: FloatArray | None = None) -> StreamingMoments:
        """Take in another batch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete rows, any number of them.
        weight : ndarray of shape (n_samples,), optional
            How often each row counts, above zero; once if not given.

        Returns
        -------
        StreamingMoments
            The moments of all rows so far.
        """
        X = np.asarray(masked_as_missing(X), dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.offset):
            raise InputError(f"a batch has shape {X.shape}: it must have {len(self.offset)} columns, as the others.")
        if len(X) == 0:
            return self
        n_new: float = len(X) if weight is None else float(weight.sum())
        origin = _mean(X, weight) if self.n == 0 else self.origin
        shifted = X - origin
        mean = _mean(shifted, weight)
        shifted -= mean
        scatter = symmetrize(shifted.T @ (shifted if weight is None else shifted * weight[:, None]))
        return self._plus(n_new, origin, mean, scatter)

    def merge(self, other: StreamingMoments) -> StreamingMoments:
        """Take in the moments of other rows.

        Parameters
        ----------
        other : StreamingMoments
            Of the same columns, from this machine or another.

        Returns
        -------
        StreamingMoments
            The moments of the rows of both.
        """
        if len(other.offset) != len(self.offset):
            raise InputError(f"moments of {len(other.offset)} and of {len(self.offset)} columns cannot be merged.")
        if other.n == 0 or self.n == 0:
            return self if other.n == 0 else other
        return self._plus(other.n, self.origin, other.origin - self.origin + other.offset, other.scatter)

    def _plus(self, n_new: float, origin: FloatArray, mean: FloatArray, scatter: FloatArray) -> StreamingMoments:
        """Add rows with this mean, less ``origin``, and this scatter."""
        if self.n == 0:
            return StreamingMoments(n_new, origin, mean, scatter)
        n = self.n + n_new
        delta = mean - self.offset
        return StreamingMoments(
            n,
            origin,
            self.offset + delta * (n_new / n),
            self.scatter + scatter + np.outer(delta, delta) * (self.n * (n_new / n)),
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


def _mean(X: FloatArray, weight: FloatArray | None) -> FloatArray:
    return np.asarray(X.mean(axis=0) if weight is None else weight @ X / weight.sum())
