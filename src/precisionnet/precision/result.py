"""What a solver returns: the matrix, the proof of how good it is, and what is read off it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite, nan
from typing import Literal

import numpy as np

from precisionnet.linalg import inverse_from_cholesky, log_det_from_cholesky, try_cholesky
from precisionnet.types import FloatArray

Status = Literal["optimal", "max_iter", "ill_conditioned", "unbounded", "indefinite"]

MESSAGES: dict[Status, str] = {
    "optimal": "solved: {distance} after {n_iter} iterations",
    "max_iter": (
        "stopped after {n_iter} iterations, {distance}, not {tol:.0e}: raise max_iter, raise the l1 penalty, or accept "
        "the gap"
    ),
    "ill_conditioned": (
        "stopped, {distance}, not {tol:.0e}: the answer is so nearly singular that float64 carries it no further; "
        "raise the l1 penalty, drop duplicated columns, or shrink the covariance"
    ),
    "unbounded": (
        "there is no minimiser: the covariance is singular and nothing holds the answer back; raise the l1 penalty, "
        "set a spectral_bound, or shrink the covariance (the matrix returned is a regularised inverse)"
    ),
    "indefinite": (
        "emp_cov is not a covariance: eigenvalue {eigenvalue:.2g}, where a covariance has none below 0; stopped after "
        "{n_iter} iterations, {distance}; check how the matrix was made, or raise the l1 penalty"
    ),
}


@dataclass(frozen=True)
class PrecisionResult:
    """A precision matrix with the proof of how good it is.

    Parameters
    ----------
    precision : ndarray of shape (n_features, n_features)
        The solution ``theta``: symmetric, positive definite and finite, its zeros exact.
    without_log_det : float
        The loss at ``precision`` without its log-determinant, minus ``log_det``.
    log_det : float or None
        The log-determinant, where it was computed: a large precision matrix whose diagonal proves it positive definite
        is not factorised before ``objective`` is asked for.
    gap : float
        Proved bound on ``objective`` minus the optimum, divided by ``max(n_features, abs(objective))`` or by less;
        infinite where nothing could be proved.
    residual : float
        Zero at the optimum. Block descent: the largest entry of ``theta K - I``, ``K`` the certificate's dual point.
        Newton: the largest entry of the subgradient times the largest of ``theta``. ADMM: the relative distance of its
        two halves.
    status : {"optimal", "max_iter", "ill_conditioned", "unbounded", "indefinite"}
        How the solver ended; ``message`` says it in a sentence.
    bound_active : bool
        Whether an eigenvalue lies at 0 or at the spectral bound.
    n_iter : int
        Sweeps of block descent, steps of Newton's method or iterations of ADMM.
    seconds : float
        Time the solve took.
    tol : float
        The tolerance that ``gap`` was asked to reach.
    eigenvalue : float, default=nan
        Smallest eigenvalue of the covariance, where ``status`` is "indefinite".

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import graphical_lasso
    >>> result = graphical_lasso(np.array([[1.0, 0.5], [0.5, 1.0]]), 0.1)
    >>> result.converged, result.status
    (True, 'optimal')
    >>> result.covariance.round(2)
    array([[1. , 0.4],
           [0.4, 1. ]])
    """

    precision: FloatArray
    without_log_det: float
    log_det: float | None
    gap: float
    residual: float
    status: Status
    bound_active: bool
    n_iter: int
    seconds: float
    tol: float
    eigenvalue: float = nan

    @property
    def converged(self) -> bool:
        """Whether the gap is below the tolerance."""
        return self.status == "optimal"

    @property
    def message(self) -> str:
        """One sentence: what happened, and what to do if it is not what was wanted."""
        return MESSAGES[self.status].format(
            distance=distance_from_optimum(self.gap), tol=self.tol, n_iter=self.n_iter, eigenvalue=self.eigenvalue
        )

    @cached_property
    def objective(self) -> float:
        """The loss at ``precision``; of a large one its Cholesky factor is computed when first asked for."""
        if self.log_det is not None:
            return self.without_log_det - self.log_det
        factor = try_cholesky(self.precision)
        assert factor is not None, "precision is positive definite by construction"
        return self.without_log_det - log_det_from_cholesky(factor)

    @cached_property
    def covariance(self) -> FloatArray:
        """The inverse of ``precision``, computed when first asked for."""
        factor = try_cholesky(self.precision)
        assert factor is not None, "precision is positive definite by construction"
        return inverse_from_cholesky(factor)


def distance_from_optimum(gap: float) -> str:
    """A proved gap in words."""
    return f"within {gap:.1e} of the optimum (relative, proved)" if isfinite(gap) else "with nothing proved"


def count_edges(precision: FloatArray) -> int:
    """Count the edges of the graph of a precision matrix.

    Parameters
    ----------
    precision : ndarray of shape (n_features, n_features)
        Symmetric matrix.

    Returns
    -------
    int
        Pairs of columns whose entry is not exactly zero.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import count_edges
    >>> count_edges(np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]))
    1
    """
    return int(np.count_nonzero(np.triu(precision, k=1)))
