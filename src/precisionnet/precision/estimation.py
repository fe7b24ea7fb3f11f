r"""Turn rows into a covariance, and the covariance into a sparse precision matrix.

    ranks (nonparanormal)  ->  mean and covariance (complete, pairs, EM)  ->  sine transform or shrinkage
    ->  graphical lasso, reweighted where asked

Any kind of covariance goes with any treatment of missing values: ranks take the place of values, pairs or EM fill in
for the sample covariance, and shrinkage comes last. Complete rows give the same whatever the treatment.

``EstimationPlan`` is the whole way with its settings, for a fit, a fold of a cross-validation and a subsample alike.
With ``scale_free`` the penalty is l1_penalty * d_i d_j, d the standard deviations: the correlation matrix is solved
with l1_penalty and the units are put back, theta = D^-1 phi D^-1, which is the same problem. A result's gap is then
that of the correlations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError, some
from precisionnet.precision.api import graphical_lasso, graphical_lasso_path
from precisionnet.precision.covariance import (
    NormalScores,
    column_ranks,
    entry_variances,
    ledoit_wolf_share,
    oas_share,
    pair_counts,
    shrink,
    skeptic,
    to_correlation,
)
from precisionnet.precision.em import em_covariance
from precisionnet.precision.missing import pairwise_covariance, present_values
from precisionnet.precision.penalties import adaptive_graphical_lasso, l1_max, penalty_grid
from precisionnet.precision.problem import normal_form
from precisionnet.precision.result import PrecisionResult
from precisionnet.precision.streaming_moments import StreamingMoments
from precisionnet.types import BoolArray, FloatArray

COVARIANCES = ("empirical", "ledoit_wolf", "oas", "nonparanormal")
MISSING = ("error", "pairwise", "em")


@dataclass(frozen=True)
class CovarianceEstimate:
    """A covariance, and what is needed to look at other rows in its units.

    Parameters
    ----------
    location : ndarray of shape (n_features,)
        Mean of the columns.
    emp_cov : ndarray of shape (n_features, n_features)
        Their covariance.
    n_samples : int
        Rows behind it.
    scores : NormalScores, default=None
        How a row becomes normal scores, where the covariance is that of such scores.
    moments : StreamingMoments, default=None
        Where more rows can be merged in: what they are merged into.
    note : str, default=""
        What a user should know, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import estimate_covariance
    >>> estimate_covariance(np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 3.0]])).n_samples
    3
    """

    location: FloatArray
    emp_cov: FloatArray
    n_samples: int
    scores: NormalScores | None = None
    moments: StreamingMoments | None = None
    note: str = ""

    def in_units(self, X: FloatArray) -> FloatArray:
        """Bring rows into the units of the covariance.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows; NaN stays NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Normal scores where the covariance is that of such scores, else ``X`` itself.
        """
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
    """Estimate a covariance from rows, with or without missing values.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows, NaN where a value is missing.
    covariance : {"empirical", "ledoit_wolf", "oas", "nonparanormal"}, default="empirical"
        Sample covariance, shrunk towards a multiple of the identity in one of two ways, or from ranks.
    missing : {"error", "pairwise", "em"}, default="error"
        Refuse missing values, use the rows that each pair shares, or maximise the likelihood.
    assume_centered : bool, default=False
        Whether the columns have mean zero.
    scale_free : bool, default=False
        Whether correlations are shrunk instead of covariances, so that the columns' units do not matter.
    names : sequence of str, default=None
        Names of the columns for error messages; None uses their positions.

    Returns
    -------
    CovarianceEstimate
        ``location``, ``emp_cov``, ``n_samples`` and what else is known.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import estimate_covariance
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> estimate_covariance(X, "ledoit_wolf").emp_cov.shape
    (4, 4)
    """
    X = masked_as_missing(X)
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
    moments: StreamingMoments,
    covariance: str = "empirical",
    *,
    assume_centered: bool = False,
    scale_free: bool = False,
    names: Sequence[Any] | None = None,
) -> CovarianceEstimate:
    """``estimate_covariance`` for batches of complete rows; ``covariance`` is "empirical" or "oas"."""
    estimate = _of_moments(moments, assume_centered, range(len(moments.mean)) if names is None else names)
    if covariance == "oas":
        return replace(estimate, emp_cov=_oas(estimate.emp_cov, moments.n, scale_free))
    return estimate


def _of_moments(moments: StreamingMoments, assume_centered: bool, names: Sequence[Any]) -> CovarianceEstimate:
    location = np.zeros(len(moments.mean)) if assume_centered else moments.mean
    emp_cov = moments.second_moment if assume_centered else moments.covariance
    refuse_constant(location, np.diag(emp_cov), names)
    return CovarianceEstimate(location, emp_cov, int(moments.n), moments=moments)


def _in_units(emp_cov: FloatArray, scale_free: bool) -> tuple[FloatArray, FloatArray]:
    """Return the units in which the covariance is shrunk, and the covariance in them."""
    deviation = np.sqrt(np.diag(emp_cov)) if scale_free else np.ones(len(emp_cov))
    return deviation, emp_cov / np.outer(deviation, deviation)


def _oas(emp_cov: FloatArray, n_samples: float, scale_free: bool) -> FloatArray:
    deviation, unit_cov = _in_units(emp_cov, scale_free)
    return shrink(unit_cov, oas_share(unit_cov, n_samples)) * np.outer(deviation, deviation)


def _moments(
    X: FloatArray, present: BoolArray, missing: str, assume_centered: bool, names: Sequence[Any]
) -> CovarianceEstimate:
    if present.all():
        return _of_moments(StreamingMoments.empty(X.shape[1]).update(X), assume_centered, names)
    n_samples = int(present.any(axis=1).sum())
    location = np.zeros(X.shape[1]) if assume_centered else np.nanmean(X, axis=0)
    refuse_constant(location, np.nanmean((X - location) ** 2, axis=0), names)
    if missing == "pairwise":
        emp_cov = pairwise_covariance(X, assume_centered=assume_centered, names=names)
        return CovarianceEstimate(location, emp_cov, n_samples)
    result = em_covariance(X, assume_centered=assume_centered)
    return CovarianceEstimate(result.mean, result.covariance, n_samples, note=result.note)


def refuse_constant(location: FloatArray, variance: FloatArray, names: Sequence[Any]) -> None:
    """Refuse columns whose spread is no more than rounding, eps * |mean|."""
    flat = np.flatnonzero(np.sqrt(variance) <= 16 * np.finfo(float).eps * np.abs(location))
    if len(flat):
        listed = some([names[int(i)] for i in flat])
        raise InputError(
            f"Column {listed} is constant: a constant has no precision; drop it, or bring rows in which it varies."
        )


@dataclass(frozen=True)
class EstimationPlan:
    """How rows become a precision matrix: everything but the rows and the penalty."""

    covariance: str = "empirical"
    missing: str = "error"
    assume_centered: bool = False
    scale_free: bool = False
    known_zeros: BoolArray | None = None
    penalize_diagonal: bool = False
    n_reweights: int = 0
    tol: float = 1e-6
    max_iter: int = 2000

    def estimate(self, X: FloatArray, names: Sequence[Any] | None = None, where: str = "") -> CovarianceEstimate:
        """Estimate the covariance of rows; ``where`` names them in a refusal ("the training rows of fold 2")."""
        try:
            return estimate_covariance(
                X,
                self.covariance,
                self.missing,
                assume_centered=self.assume_centered,
                scale_free=self.scale_free,
                names=names,
            )
        except InputError as error:
            if not where:
                raise
            sentence = str(error)
            raise InputError(f"In {where}, {sentence[0].lower()}{sentence[1:]}") from None

    def check(self, emp_cov: FloatArray) -> None:
        """Refuse a covariance or a mask that no solver takes, before anything is built on them."""
        normal_form(emp_cov, 1.0, known_zeros=self.known_zeros, penalize_diagonal=self.penalize_diagonal)

    def solve(self, emp_cov: FloatArray, l1_penalty: float, init: FloatArray | None = None) -> PrecisionResult:
        """Solve for one penalty."""
        unit, matrix = self._units(emp_cov)
        start = None if init is None else init * np.outer(unit, unit)
        result = graphical_lasso(matrix, l1_penalty, init=start, **self._options)
        return self._finish(result, matrix, l1_penalty, unit)

    def path(self, emp_cov: FloatArray, l1_penalties: FloatArray) -> list[PrecisionResult]:
        """Solve for each penalty, starting each solve at its neighbour's solution."""
        unit, matrix = self._units(emp_cov)
        results = graphical_lasso_path(matrix, l1_penalties, **self._options)
        return [self._finish(result, matrix, float(l1), unit) for result, l1 in zip(results, l1_penalties, strict=True)]

    def path_of_rows(
        self, X: FloatArray, l1_penalties: FloatArray, names: Sequence[Any] | None = None
    ) -> list[PrecisionResult]:
        """Estimate the covariance of rows, then solve for each penalty."""
        return self.path(self.estimate(X, names, f"a subsample of {len(X)} rows").emp_cov, l1_penalties)

    def l1_max(self, emp_cov: FloatArray) -> float:
        """Return the smallest penalty whose graph is empty."""
        return l1_max(self._units(emp_cov)[1], self.known_zeros)

    def grid(self, emp_cov: FloatArray, n_penalties: int) -> FloatArray:
        """Penalties from ``l1_max`` downwards."""
        matrix = self._units(emp_cov)[1]
        if self.known_zeros is not None:
            matrix = np.where(np.asarray(self.known_zeros, dtype=bool), 0.0, matrix)
        return penalty_grid(matrix, n_penalties)

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "known_zeros": self.known_zeros,
            "penalize_diagonal": self.penalize_diagonal,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }

    def _units(self, emp_cov: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Standard deviations that were divided out, and what is left."""
        return to_correlation(emp_cov) if self.scale_free else (np.ones(len(emp_cov)), emp_cov)

    def _finish(
        self, result: PrecisionResult, matrix: FloatArray, l1_penalty: float, unit: FloatArray
    ) -> PrecisionResult:
        if self.n_reweights:
            result = adaptive_graphical_lasso(
                matrix, l1_penalty, n_reweights=self.n_reweights, first=result, **self._options
            )
        if not self.scale_free:
            return result
        shift = 2.0 * float(np.log(unit).sum())
        return replace(
            result,
            precision=result.precision / np.outer(unit, unit),
            log_det=None if result.log_det is None else result.log_det - shift,
        )
