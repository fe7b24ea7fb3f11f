r"""Mean and covariance of a Gaussian from rows with missing values, by maximum likelihood.

    E:  x_m <- mu_m - C K_mo (x_o - mu_o),   K = Sigma^-1,  C = K_mm^-1 the covariance of the missing given the present
    M:  mu = mean of the completed rows,     Sigma = (their covariance + the average of C + ridge I) / (1 + ridge)

(Little and Rubin, "Statistical analysis with missing data", section 11.2), in units in which every column has variance
one. Regime: values missing at random (whether one is missing may depend on the values that are present).

With no more rows than columns the likelihood has no maximum: it grows without end as Sigma becomes singular. Then, and
wherever Sigma turns out singular, the ``ridge`` pulls towards independent columns. It is the same iteration for the
likelihood with a prior, -T ridge / 2 (log det Sigma + tr Sigma^-1), and the result says so.

How this differs from the textbook: rows that miss the same columns share one C, and all C of one size are computed at
once; and two steps are extrapolated to a third (SQUAREM, Varadhan and Roland 2008), which counts only where it does not
lower the likelihood: like the plain iteration, this one never goes down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError, some
from precisionnet.linalg import inverse_from_cholesky, log_det_from_cholesky, symmetrize, try_cholesky
from precisionnet.precision.missing import patterns, present_values
from precisionnet.types import BoolArray, FloatArray, IndexArray

RIDGE = 0.1
SINGULAR = 1e-8
"""Sigma counts as singular if the other columns leave less than this share of some column's variance."""
MANY_ROWS, LARGEST_POOL = 8, 500_000
"""Patterns with fewer than ``MANY_ROWS`` rows are computed together, up to ``LARGEST_POOL`` numbers at once."""


@dataclass(frozen=True)
class EMResult:
    """Mean and covariance of maximum likelihood, or the last iterate if the iteration stopped before.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Mean of the columns.
    covariance : ndarray of shape (n_features, n_features)
        Their covariance.
    n_iter : int
        Iterations it took.
    converged : bool
        Whether the last step was shorter than the tolerance.
    ridge : float
        Weight of the pull towards independent columns; zero where there was none.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import em_covariance
    >>> result = em_covariance(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0], [4.0, np.nan]]))
    >>> result.converged, result.note
    (True, '')
    """

    mean: FloatArray
    covariance: FloatArray
    n_iter: int
    converged: bool
    ridge: float

    @property
    def note(self) -> str:
        """What a user should know about the estimate, in a sentence; empty if there is nothing to say."""
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
    """Estimate mean and covariance from rows with missing values, by maximum likelihood (EM).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, NaN where a value is missing; values are missing at random. Complete rows give their sample covariance.
    assume_centered : bool, default=False
        Whether the columns have mean zero.
    tol : float, default=1e-6
        Largest change of any entry of mean and covariance, in units of the columns' deviations, at which it stops.
    max_iter : int, default=1000
        Largest number of iterations.
    ridge : float, default=None
        Weight of the pull towards independent columns; None adds one only where the rows determine no covariance.

    Returns
    -------
    EMResult
        ``mean``, ``covariance``, and a ``note`` about what a user should know.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import em_covariance
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[:20, 1] = np.nan
    >>> em_covariance(X).covariance.shape
    (3, 3)
    """
    X = np.asarray(masked_as_missing(X), dtype=np.float64)
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
        climbed = EMLikelihood(Z, groups, amount, assume_centered).climb(tol, max_iter)
        if climbed is not None:
            (mean, sigma), n_iter, converged = climbed
            return EMResult(location + scale * mean, sigma * np.outer(scale, scale), n_iter, converged, amount)
    raise InputError(f"EM met a singular covariance with ridge={ridge}: leave ridge=None, or raise it.")


class EMState(NamedTuple):
    """An iterate of EM: mean and covariance."""

    mean: FloatArray
    sigma: FloatArray

    def away(self, other: EMState) -> float:
        """Return the largest absolute difference of any entry."""
        return max(float(np.abs(self.mean - other.mean).max()), float(np.abs(self.sigma - other.sigma).max()))


class EMStep(NamedTuple):
    """The result of one step: the next iterate, and the likelihood of the one before it."""

    state: EMState
    value: float
    """Twice the log-likelihood at the iterate where the step began, with the prior and without constant terms."""


class PatternGroup(NamedTuple):
    """Patterns of missing values that all miss the same number of columns."""

    absent: IndexArray
    """Indices of the missing columns, (n_patterns, n_missing)."""
    which: IndexArray
    """The pattern of each of ``rows``."""
    rows: IndexArray
    sizes: FloatArray
    """The number of rows of each pattern."""


@dataclass(frozen=True)
class EMLikelihood:
    """The likelihood of rows with missing values, which ``climb`` maximises."""

    Z: FloatArray
    """Rows in standard units; their missing entries are overwritten in every step."""
    groups: list[PatternGroup]
    ridge: float
    centred: bool

    def climb(self, tol: float, max_iter: int) -> tuple[EMState, int, bool] | None:
        """Iterate from independent columns until a step moves by ``tol`` or less; None if Sigma becomes singular.

        Returns the last iterate, the number of iterations, and whether it converged.
        """
        state, iteration, moved = EMState(np.zeros(self.Z.shape[1]), np.eye(self.Z.shape[1])), 0, np.inf
        before: EMState | None = None
        while iteration < max_iter and moved > tol:
            step = self.step(state)
            if step is None:
                return None
            iteration += 1
            moved = step.state.away(state)
            if before is None or iteration == max_iter or moved <= tol:
                before, state = state, step.state
                continue
            leap = self.step(_extrapolated(before, state, step.state))
            iteration += 1
            state = step.state if leap is None or leap.value < step.value else leap.state
            before = None  # two plain steps before the next leap
        return state, iteration, moved <= tol

    def step(self, state: EMState) -> EMStep | None:
        """Take one E and one M step; return None if Sigma is singular."""
        factor = try_cholesky(state.sigma)
        if factor is None:
            return None
        K = inverse_from_cholesky(factor)
        if not (SINGULAR * np.diag(K) * np.diag(state.sigma) < 1.0).all():  # 1 / K_ii: the variance left to column i
            return None
        Z, n = self.Z, len(self.Z)
        value = -n * (1.0 + self.ridge) * log_det_from_cholesky(factor) - n * self.ridge * float(np.trace(K))
        uncertainty = self.ridge * n * np.eye(len(K))
        for absent, which, rows, sizes in self.groups:
            Z[rows[:, None], absent[which]] = state.mean[absent[which]]
            # K_mo (x_o - mu_o) is K (x - mu) at the missing entries, once these stand at their means.
            product = np.take_along_axis((Z[rows] - state.mean) @ K, absent[which], axis=1)
            block = absent[:, :, None], absent[:, None, :]
            C = np.linalg.inv(K[block])
            away = product @ C[0] if len(C) == 1 else np.einsum("tij,tj->ti", C[which], product)
            Z[rows[:, None], absent[which]] -= away
            np.add.at(uncertainty, block, C * sizes[:, None, None])
            value += float(sizes @ np.linalg.slogdet(C)[1])
        # At the completed rows the quadratic form is that of the present entries alone.
        completed = Z - state.mean
        value -= float(np.vdot(completed @ K, completed))
        mean = np.zeros(len(K)) if self.centred else Z.mean(axis=0)
        apart = Z - mean
        return EMStep(EMState(mean, symmetrize((apart.T @ apart + uncertainty) / (n * (1.0 + self.ridge)))), value)


def _extrapolated(zero: EMState, first: EMState, second: EMState) -> EMState:
    """Extrapolate from three iterates by SQUAREM's third scheme, shortened until Sigma is positive definite."""
    r = [b - a for a, b in zip(zero, first, strict=True)]
    v = [c - b - d for b, c, d in zip(first, second, r, strict=True)]
    alpha = max(_norm(r) / max(_norm(v), np.finfo(float).tiny), 1.0)
    while True:
        mean, sigma = (a + 2.0 * alpha * d + alpha**2 * w for a, d, w in zip(zero, r, v, strict=True))
        if alpha == 1.0 or try_cholesky(sigma) is not None:
            return EMState(mean, sigma)
        alpha = max(1.0, 0.5 * alpha)


def _norm(parts: Sequence[FloatArray]) -> float:
    return float(np.sqrt(sum(float(np.vdot(part, part)) for part in parts)))


def groups_of(present: BoolArray) -> list[PatternGroup]:
    """Group the rows with missing values by their patterns, as ``EMLikelihood.step`` needs them."""
    pools: dict[int, list[tuple[IndexArray, IndexArray]]] = {}
    groups = []
    for rows, absent in patterns(present):
        if len(rows) >= MANY_ROWS:
            groups.append(_group([(rows, absent)]))  # many rows share one C: one product does
            continue
        pool = pools.setdefault(len(absent), [])
        pool.append((rows, absent))
        if len(pool) * len(absent) ** 2 >= LARGEST_POOL:
            groups.append(_group(pools.pop(len(absent))))
    return groups + [_group(pool) for pool in pools.values()]


def _group(members: list[tuple[IndexArray, IndexArray]]) -> PatternGroup:
    return PatternGroup(
        np.array([absent for _, absent in members]),
        np.repeat(np.arange(len(members)), [len(rows) for rows, _ in members]),
        np.concatenate([rows for rows, _ in members]),
        np.array([float(len(rows)) for rows, _ in members]),
    )
