"""One step of EM, and the climb; ``em.py`` has the formulas.

How this differs from the textbook: rows that miss the same columns share one C, and all C of one size are computed at
once; and two steps are extrapolated to a third (SQUAREM, Varadhan and Roland 2008), which counts only where it does not
lower the likelihood: like the plain iteration, this one never goes down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from precisionnet.linalg import inverse_from_cholesky, log_det_from_cholesky, symmetrize, try_cholesky
from precisionnet.precision.missing import patterns
from precisionnet.types import BoolArray, FloatArray, IndexArray

SINGULAR = 1e-8
"""Variance left to a column given the others, in units of its own, below which Sigma counts as singular."""
MANY_ROWS, LARGEST_POOL = 8, 500_000
"""Patterns with fewer rows than the first are computed together, up to so many numbers at once."""


class State(NamedTuple):
    """What EM iterates on."""

    mean: FloatArray
    sigma: FloatArray

    def away(self, other: State) -> float:
        """Largest difference of any entry."""
        return max(float(np.abs(self.mean - other.mean).max()), float(np.abs(self.sigma - other.sigma).max()))


class Step(NamedTuple):
    """Where a step led to."""

    state: State
    value: float
    """Twice the log-likelihood, prior included and but for a constant, where the step began."""


class Group(NamedTuple):
    """Patterns that miss equally many columns."""

    absent: IndexArray
    """(patterns, columns missing)."""
    which: IndexArray
    """Which pattern each of the rows has."""
    rows: IndexArray
    sizes: FloatArray
    """Rows of each pattern."""


@dataclass(frozen=True)
class Likelihood:
    """What ``climb`` goes up on."""

    Z: FloatArray
    """Rows in standard units; their missing entries are working memory."""
    groups: list[Group]
    ridge: float
    centred: bool

    def climb(self, tol: float, max_iter: int) -> tuple[State, int, bool] | None:
        """From independent columns until a step moves by ``tol`` or less; None where Sigma becomes singular."""
        state, iteration, moved = State(np.zeros(self.Z.shape[1]), np.eye(self.Z.shape[1])), 0, np.inf
        before: State | None = None
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

    def step(self, state: State) -> Step | None:
        """One E and one M step; None where Sigma is singular."""
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
        return Step(State(mean, symmetrize((apart.T @ apart + uncertainty) / (n * (1.0 + self.ridge)))), value)


def _extrapolated(zero: State, first: State, second: State) -> State:
    """SQUAREM's third scheme, shortened until Sigma is positive definite."""
    r = [b - a for a, b in zip(zero, first, strict=True)]
    v = [c - b - d for b, c, d in zip(first, second, r, strict=True)]
    alpha = max(_norm(r) / max(_norm(v), np.finfo(float).tiny), 1.0)
    while True:
        mean, sigma = (a + 2.0 * alpha * d + alpha**2 * w for a, d, w in zip(zero, r, v, strict=True))
        if alpha == 1.0 or try_cholesky(sigma) is not None:
            return State(mean, sigma)
        alpha = max(1.0, 0.5 * alpha)


def _norm(parts: Sequence[FloatArray]) -> float:
    return float(np.sqrt(sum(float(np.vdot(part, part)) for part in parts)))


def groups_of(present: BoolArray) -> list[Group]:
    """The rows with something missing, gathered for ``Likelihood.step``."""
    pools: dict[int, list[tuple[IndexArray, IndexArray]]] = {}
    groups = []
    for rows, absent in patterns(present):
        if len(rows) >= MANY_ROWS:
            groups.append(_group([(rows, absent)]))  # one product with one C
            continue
        pool = pools.setdefault(len(absent), [])
        pool.append((rows, absent))
        if len(pool) * len(absent) ** 2 >= LARGEST_POOL:
            groups.append(_group(pools.pop(len(absent))))
    return groups + [_group(pool) for pool in pools.values()]


def _group(members: list[tuple[IndexArray, IndexArray]]) -> Group:
    return Group(
        np.array([absent for _, absent in members]),
        np.repeat(np.arange(len(members)), [len(rows) for rows, _ in members]),
        np.concatenate([rows for rows, _ in members]),
        np.array([float(len(rows)) for rows, _ in members]),
    )
