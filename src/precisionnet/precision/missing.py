r"""Rows with missing values (NaN): a covariance from pairs, and the likelihood of what is present.

    C_ij = sum_{t in T_ij} (x_ti - m_ij)(x_tj - m_ji) / |T_ij|,    T_ij the rows in which i and j are both present,

with m_ij the mean of column i over T_ij. Regime: values missing completely at random; ``em.py`` needs less. Every entry
uses all it can, so no single set of rows stands behind C and it may have negative eigenvalues. Then it is replaced by
D R D, with R the nearest correlation matrix to D^-1 C D^-1 and D the standard deviations of the columns over all their
own values: the variances, which are the best known entries, stay exactly as they are, and the answer does not depend on
the columns' units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError, some
from precisionnet.linalg import log_det_from_cholesky, symmetrize, try_cholesky
from precisionnet.precision.covariance import nearest_correlation, pair_counts
from precisionnet.types import BoolArray, FloatArray, IndexArray


def pairwise_covariance(
    X: FloatArray, *, assume_centered: bool = False, names: Sequence[Any] | None = None
) -> FloatArray:
    """Estimate a covariance from rows with missing values, each entry from the rows that its pair shares.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, NaN where a value is missing; values are missing completely at random.
    assume_centered : bool, default=False
        Whether the columns have mean zero.
    names : sequence of str, default=None
        Names of the columns for error messages; None uses their positions.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        The covariance or, where that has negative eigenvalues, the nearest one without, with the same variances.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import pairwise_covariance
    >>> X = np.array([[1.0, 2.0], [-1.0, -2.0], [3.0, np.nan], [np.nan, 4.0]])
    >>> pairwise_covariance(X, assume_centered=True).round(2)
    array([[3.67, 2.  ],
           [2.  , 8.  ]])
    """
    X = np.asarray(masked_as_missing(X), dtype=np.float64)
    present = present_values(X, names)
    counts = pair_counts(present)
    _refuse_pairs_without_rows(counts, range(X.shape[1]) if names is None else names)
    location = np.zeros(X.shape[1]) if assume_centered else np.nanmean(X, axis=0)
    centred = np.where(present, X - location, 0.0)
    covariance = symmetrize(centred.T @ centred / counts)
    if not assume_centered:
        mean = centred.T @ present.astype(np.float64) / counts  # m_ij, less the column's own mean
        covariance = symmetrize(covariance - mean * mean.T)
    deviation = np.sqrt(np.diag(covariance))
    if not (deviation > 0.0).all():  # a constant column has no correlation; the caller refuses it
        return covariance
    scale = np.outer(deviation, deviation)
    correlation = covariance / scale
    np.fill_diagonal(correlation, 1.0)
    nearest = nearest_correlation(correlation)
    return covariance if nearest is correlation else nearest * scale


def present_values(X: FloatArray, names: Sequence[Any] | None = None) -> BoolArray:
    """Mask of the values that are there; a column without any is refused by name."""
    present = ~np.isnan(X)
    empty = np.flatnonzero(~present.any(axis=0))
    if len(empty):
        listed = some([int(i) if names is None else names[int(i)] for i in empty])
        raise InputError(f"Column {listed} has no value at all: drop it.")
    return present


def _refuse_pairs_without_rows(counts: FloatArray, names: Sequence[Any]) -> None:
    single = np.flatnonzero(np.diag(counts) < 2)
    if len(single):
        raise InputError(f"Column {some([names[int(i)] for i in single])} has only one value: drop it.")
    pairs = np.argwhere(np.triu(counts < 2))
    if not len(pairs):
        return
    i, j = pairs[0]
    more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
    together = "never have a value in the same row" if counts[i, j] == 0 else "have values together in only one row"
    raise InputError(
        f"Columns {names[i]!r} and {names[j]!r} {together}{more}: their covariance cannot be read off pairs; drop one "
        "of them, or use EM (missing='em'), which goes through the other columns."
    )


def patterns(present: BoolArray) -> Iterator[tuple[IndexArray, IndexArray]]:
    """The rows that miss the same columns: (rows, missing columns) for each pattern with something missing."""
    if present.all():
        return
    unique, which = np.unique(present, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    bounds = np.cumsum(np.bincount(which.ravel()))[:-1]
    for row, members in zip(unique, np.split(order, bounds), strict=True):
        if not row.all():
            yield members, np.flatnonzero(~row)


def squared_distances(X: FloatArray, location: FloatArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mahalanobis distance squared of what is present in each row, and the log-determinant of its marginal precision.

    With o present and m missing, that precision is K_oo - K_om K_mm^-1 K_mo: only blocks of K itself are factored.
    """
    X = np.asarray(masked_as_missing(X), dtype=np.float64)
    present = ~np.isnan(X)
    z = np.where(present, X - location, 0.0)
    factor = try_cholesky(precision)
    assert factor is not None, "a precision matrix is positive definite"
    product = z @ precision
    distance = np.einsum("ti,ti->t", product, z)
    log_det = np.full(len(X), log_det_from_cholesky(factor))
    for rows, absent in patterns(present):
        inner = try_cholesky(precision[np.ix_(absent, absent)])
        assert inner is not None, "a block of a positive definite matrix is positive definite"
        right = product[np.ix_(rows, absent)]
        distance[rows] -= np.einsum("ti,it->t", right, cho_solve((inner, True), right.T))
        log_det[rows] -= log_det_from_cholesky(inner)
    return np.maximum(distance, 0.0), log_det


def gaussian_score(X: FloatArray, location: FloatArray, precision: FloatArray) -> float:
    """Mean over the rows of the Gaussian log-likelihood of what is present; rows without any value do not count."""
    rows = ~np.isnan(X).all(axis=1)
    if not rows.any():
        raise InputError("There is no value to score: every row is empty.")
    distance, log_det = squared_distances(X[rows], location, precision)
    n_present = (~np.isnan(X[rows])).sum(axis=1)
    return float(np.mean(log_det - distance - n_present * np.log(2.0 * np.pi)) / 2.0)
