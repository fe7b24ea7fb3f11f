r"""Mean and covariance of a Gaussian from rows with missing values, by maximum likelihood.

    E:  x_m <- mu_m - C K_mo (x_o - mu_o),   K = Sigma^-1,  C = K_mm^-1 the covariance of the missing given the present
    M:  mu = mean of the completed rows,     Sigma = (their covariance + the average of C + ridge I) / (1 + ridge)

(Little and Rubin, "Statistical analysis with missing data", section 11.2), in units in which every column has variance
one. Regime: values missing at random (whether one is missing may depend on the values that are present).

With no more rows than columns the likelihood has no maximum: it grows without end as Sigma becomes singular. Then, and
wherever Sigma turns out singular, the ``ridge`` pulls towards independent columns. It is the same iteration for the
likelihood with a prior, -T ridge / 2 (log det Sigma + tr Sigma^-1), and the result says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from precisionnet.errors import InputError, some
from precisionnet.linalg import symmetrize
from precisionnet.precision.em_steps import Likelihood, groups_of
from precisionnet.precision.missing import present_values
from precisionnet.types import FloatArray

RIDGE = 0.1


@dataclass(frozen=True)
class EMResult:
    """The maximum, or where the iteration stopped on the way to it."""

    mean: FloatArray
    covariance: FloatArray
    n_iter: int
    converged: bool
    ridge: float
    """Weight of the pull towards independent columns; zero where there was none."""

    @property
    def note(self) -> str:
        """What a user should know, in a sentence; empty where all is well."""
        notes = []
        if self.ridge > 0.0:
            notes.append(
                "the rows do not determine a covariance (too few, or columns that follow from others), so it was "
                f"pulled towards independent columns with a ridge of {self.ridge:g}"
            )
        if not self.converged:
            notes.append(f"it stopped after {self.n_iter} iterations while the covariance still moved")
        return f"EM for the missing values: {'; '.join(notes)}." if notes else ""


def em_covariance(
    X: FloatArray,
    *,
    assume_centered: bool = False,
    tol: float = 1e-6,
    max_iter: int = 1000,
    ridge: float | None = None,
) -> EMResult:
    """Iterate until a step moves neither mean nor covariance by more than ``tol``, in units of the columns' deviations.

    ``ridge=None`` adds one only where it is needed. Complete rows give their sample covariance at once.
    """
    X = np.asarray(X, dtype=np.float64)
    if not (np.isfinite(tol) and tol > 0 and max_iter >= 1):
        raise InputError(f"em_covariance needs tol > 0 and max_iter >= 1, got {tol} and {max_iter}.")
    if ridge is not None and not (np.isfinite(ridge) and ridge >= 0):
        raise InputError(f"ridge must be None or a number >= 0, got {ridge}.")
    present = present_values(X)
    X, present = X[present.any(axis=1)], present[present.any(axis=1)]
    location = np.zeros(X.shape[1]) if assume_centered else np.nanmean(X, axis=0)
    scale = np.sqrt(np.nanmean((X - location) ** 2, axis=0))
    flat = np.flatnonzero(scale == 0.0)
    if len(flat):
        raise InputError(f"Column {some(flat.tolist())} is constant: it has no place in a likelihood; drop it.")
    Z = np.where(present, (X - location) / scale, 0.0)
    if present.all() and not ridge:
        return EMResult(location, symmetrize(Z.T @ Z / len(Z)) * np.outer(scale, scale), 1, True, 0.0)
    groups = groups_of(present)
    needed = RIDGE if len(X) <= X.shape[1] else 0.0
    for amount in (needed, RIDGE) if ridge is None else (ridge,):
        climbed = Likelihood(Z, groups, amount, assume_centered).climb(tol, max_iter)
        if climbed is not None:
            (mean, sigma), n_iter, converged = climbed
            return EMResult(location + scale * mean, sigma * np.outer(scale, scale), n_iter, converged, amount)
    raise InputError(f"EM met a singular covariance with ridge={ridge}: leave ridge=None, or raise it.")
