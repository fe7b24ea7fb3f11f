r"""From rows to the covariance that a solver takes: every kind, with and without missing values.

    ranks (nonparanormal)  ->  mean and covariance (complete, pairs, EM)  ->  sine transform or shrinkage

Any kind goes with any treatment of missing values: ranks take the place of values, pairs or EM fill in for the sample
covariance, and shrinkage comes last. Complete rows give the same whatever the treatment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from precisionnet.errors import InputError, some
from precisionnet.precision.em import em_covariance
from precisionnet.precision.missing import pair_counts, pairwise_covariance, present_values
from precisionnet.precision.ranks import NormalScores, column_ranks, skeptic
from precisionnet.precision.streaming_moments import RunningMoments
from precisionnet.precision.shrinkage import entry_variances, ledoit_wolf_share, oas_share, shrink
from precisionnet.types import BoolArray, FloatArray

COVARIANCES = ("empirical", "ledoit_wolf", "oas", "nonparanormal")
MISSING = ("error", "pairwise", "em")


@dataclass(frozen=True)
class CovarianceEstimate:
    """A covariance, and what is needed to look at other rows in its units."""

    location: FloatArray
    emp_cov: FloatArray
    n_samples: int
    scores: NormalScores | None = None
    """Where the covariance is that of normal scores: how a row becomes them."""
    moments: RunningMoments | None = None
    """Where more rows can be merged in."""
    note: str = ""
    """What a user should know, in a sentence."""

    def in_units(self, X: FloatArray) -> FloatArray:
        """Rows as the covariance sees them."""
        return X if self.scores is None else self.scores.transform(X)


def estimate_covariance(
    X: FloatArray,
    covariance: str = "empirical",
    missing: str = "error",
    *,
    assume_centered: bool = False,
    scale_free: bool = False,
    names: Sequence[Any] | None = None,
) -> CovarianceEstimate:
    """Estimate from X (n_samples, n_features), NaN where a value is missing.

    ``scale_free`` shrinks correlations instead of covariances, so that the columns' units do not matter; ``names`` are
    the columns' names for error messages.
    """
    names = range(X.shape[1]) if names is None else names
    present = present_values(X, names)
    if not present.all() and missing == "error":
        listed = some([names[int(i)] for i in np.flatnonzero(~present.all(axis=0))])
        raise InputError(f"Column {listed} has missing values: set missing='pairwise' or missing='em'.")
    if covariance == "nonparanormal":
        ranked = _moments(column_ranks(X), present, missing, False, names)
        zeros = np.zeros(X.shape[1])
        return CovarianceEstimate(
            zeros, skeptic(ranked.emp_cov), ranked.n_samples, NormalScores.fit(X), note=ranked.note
        )
    plain = _moments(X, present, missing, assume_centered, names)
    if covariance == "empirical":
        return plain
    if covariance == "oas":
        return replace(plain, emp_cov=_oas(plain.emp_cov, float(np.mean(pair_counts(present))), scale_free))
    deviation, unit_cov = _in_units(plain.emp_cov, scale_free)
    variances = entry_variances(X / deviation, plain.location / deviation, unit_cov)
    shrunk = shrink(unit_cov, ledoit_wolf_share(unit_cov, variances)) * np.outer(deviation, deviation)
    return replace(plain, emp_cov=shrunk, moments=None)  # Ledoit and Wolf look at the rows: none can be merged in


def estimate_from_moments(
    moments: RunningMoments,
    covariance: str = "empirical",
    *,
    assume_centered: bool = False,
    scale_free: bool = False,
    names: Sequence[Any] | None = None,
) -> CovarianceEstimate:
    """The same for batches of complete rows; ``covariance`` is "empirical" or "oas"."""
    estimate = _of_moments(moments, assume_centered, range(len(moments.mean)) if names is None else names)
    if covariance == "oas":
        return replace(estimate, emp_cov=_oas(estimate.emp_cov, moments.n, scale_free))
    return estimate


def _of_moments(moments: RunningMoments, assume_centered: bool, names: Sequence[Any]) -> CovarianceEstimate:
    location = np.zeros(len(moments.mean)) if assume_centered else moments.mean
    emp_cov = moments.second_moment if assume_centered else moments.covariance
    refuse_constant(location, np.diag(emp_cov), names)
    return CovarianceEstimate(location, emp_cov, moments.n, moments=moments)


def _in_units(emp_cov: FloatArray, scale_free: bool) -> tuple[FloatArray, FloatArray]:
    """The units to shrink in, and the covariance in them."""
    deviation = np.sqrt(np.diag(emp_cov)) if scale_free else np.ones(len(emp_cov))
    return deviation, emp_cov / np.outer(deviation, deviation)


def _oas(emp_cov: FloatArray, n_samples: float, scale_free: bool) -> FloatArray:
    deviation, unit_cov = _in_units(emp_cov, scale_free)
    return shrink(unit_cov, oas_share(unit_cov, n_samples)) * np.outer(deviation, deviation)


def _moments(
    X: FloatArray, present: BoolArray, missing: str, assume_centered: bool, names: Sequence[Any]
) -> CovarianceEstimate:
    if present.all():
        return _of_moments(RunningMoments.empty(X.shape[1]).update(X), assume_centered, names)
    n_samples = int(present.any(axis=1).sum())
    location = np.zeros(X.shape[1]) if assume_centered else np.nanmean(X, axis=0)
    refuse_constant(location, np.nanmean((X - location) ** 2, axis=0), names)
    if missing == "pairwise":
        emp_cov = pairwise_covariance(X, assume_centered=assume_centered, names=names)
        return CovarianceEstimate(location, emp_cov, n_samples)
    result = em_covariance(X, assume_centered=assume_centered)
    return CovarianceEstimate(result.mean, result.covariance, n_samples, note=result.note)


def refuse_constant(location: FloatArray, variance: FloatArray, names: Sequence[Any]) -> None:
    """A spread of eps * |mean| is rounding, not a spread."""
    flat = np.flatnonzero(np.sqrt(variance) <= 16 * np.finfo(float).eps * np.abs(location))
    if len(flat):
        listed = some([names[int(i)] for i in flat])
        raise InputError(
            f"Column {listed} is constant: a constant has no precision; drop it, or bring rows in which it varies."
        )
