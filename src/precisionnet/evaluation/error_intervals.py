"""How sure a cross-validated error is, and whether it differs from another on the same rows.

The mean loss over all rows that were predicted out of fold has the interval of Bayle, Bayle, Janson and Mackey
(*Cross-validation confidence intervals for test error*, NeurIPS 2020): mean +- t sd / sqrt(n), as if the losses were
independent, which they are nearly where leaving out a row changes a model little. It holds for the difference of two
methods as well. Rows of one person, of one group that was held out whole, or of one block of time are not independent:
the standard error is then the jackknife's over clusters, with as many degrees of freedom as there would be clusters of
equal size with the same sum of squared sizes, (sum n_g)^2 / sum n_g^2, less one. Where clusters are of one size that is
the usual interval; where one cluster holds most rows it is wide, as it should be.

It is the error of models fitted on this many rows of these people; it says nothing of other people.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from precisionnet.types import LEVEL

LEAST_FREEDOM = 1.0
"""Degrees of freedom where one cluster holds nearly all rows."""


class Estimate(NamedTuple):
    """A mean with its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float


def mean_interval(losses: Any, cluster: Any) -> Estimate:
    """Return the mean of losses with its interval.

    Parameters
    ----------
    losses : array-like of shape (n_rows,)
        One number per row.
    cluster : array-like of shape (n_rows,)
        Rows with the same label are not independent.

    Returns
    -------
    Estimate
        The mean and its 95 % interval; no interval where there are fewer than two clusters.

    Examples
    --------
    >>> from precisionnet.evaluation.error_intervals import mean_interval
    >>> estimate = mean_interval([1.0, 2.0, 3.0, 4.0], [0, 1, 2, 3])
    >>> round(estimate.low, 2), estimate.value, round(estimate.high, 2)
    (0.45, 2.5, 4.55)
    """
    losses = np.asarray(losses, dtype=float)
    mean, error, freedom = _clustered(losses, cluster)
    if freedom <= 0.0:
        return Estimate(mean, np.nan, np.nan)
    half = float(stats.t.ppf(0.5 + LEVEL / 2.0, freedom)) * error
    return Estimate(mean, mean - half, mean + half)


def share_interval(hits: Any, cluster: Any) -> Estimate:
    """Return the share of rows that are right with its interval, which stays within 0 and 1.

    Wilson's interval for as many independent rows as would have the same variance.

    Parameters
    ----------
    hits : array-like of bool of shape (n_rows,)
        Whether each row is right.
    cluster : array-like of shape (n_rows,)
        Rows with the same label are not independent.

    Returns
    -------
    Estimate
        The share and its 95 % interval.

    Examples
    --------
    >>> from precisionnet.evaluation.error_intervals import share_interval
    >>> share_interval([True] * 10, range(10)).high
    1.0
    """
    right = np.asarray(hits, dtype=float)
    share, error, freedom = _clustered(right, cluster)
    if freedom <= 0.0:
        return Estimate(share, np.nan, np.nan)
    size = share * (1.0 - share) / error**2 if error > 0.0 else freedom + 1.0
    z = float(stats.t.ppf(0.5 + LEVEL / 2.0, freedom))
    middle = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2)) / (1 + z**2 / size)
    return Estimate(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def _clustered(losses: Any, cluster: Any) -> tuple[float, float, float]:
    """Return the mean, its standard error by leaving out each cluster, and the degrees of freedom; 0 of one cluster."""
    _, place = np.unique(np.asarray(cluster), return_inverse=True)
    sizes = np.bincount(place.ravel())
    n_rows, mean = len(losses), float(losses.mean())
    if len(sizes) < 2:
        return mean, np.nan, 0.0
    # The mean without cluster g less the mean of all: -sum_g (loss - mean) / (n - n_g).
    moved = np.bincount(place.ravel(), weights=losses - mean) / (n_rows - sizes)
    variance = (1.0 - 1.0 / len(sizes)) * float(moved @ moved)
    return mean, float(np.sqrt(variance)), max(float(n_rows**2 / (sizes @ sizes)) - 1.0, LEAST_FREEDOM)
