"""What a solver returns: the matrix, the proof of how good it is, and a sentence about what happened."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Literal

from precisionnet.linalg import inverse_from_cholesky, try_cholesky
from precisionnet.types import FloatArray

Status = Literal["optimal", "max_iter", "ill_conditioned", "unbounded"]

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
}


@dataclass(frozen=True)
class PrecisionResult:
    """A solved problem. ``precision`` is always symmetric, positive definite and finite, with exact zeros."""

    precision: FloatArray
    objective: float
    """The loss at ``precision``."""
    gap: float
    """Proved bound on objective - optimum, over max(N, |objective|); infinite where nothing could be proved."""
    residual: float
    """Zero at the optimum. Block descent: the largest entry of theta K - I, K the certificate's dual point. Newton: the
    largest entry of the subgradient times the largest of theta. Splitting: the relative distance of its two halves."""
    status: Status
    bound_active: bool
    """Whether an eigenvalue lies at 0 or at the spectral bound."""
    n_iter: int
    seconds: float
    tol: float

    @property
    def converged(self) -> bool:
        """The gap is below the tolerance."""
        return self.status == "optimal"

    @property
    def message(self) -> str:
        """One sentence: what happened, and what to do if it is not what was wanted."""
        proved = isfinite(self.gap)
        distance = f"within {self.gap:.1e} of the optimum (relative, proved)" if proved else "with nothing proved"
        return MESSAGES[self.status].format(distance=distance, tol=self.tol, n_iter=self.n_iter)

    @cached_property
    def covariance(self) -> FloatArray:
        """The inverse of ``precision``, computed when first asked for."""
        factor = try_cholesky(self.precision)
        assert factor is not None, "precision is positive definite by construction"
        return inverse_from_cholesky(factor)
