r"""The adaptive graphical lasso: the penalty of an edge falls with how strong the edge already is.

    penalty_ij = l1_penalty * w_ij,    w_ij = 1 / (1 + |rho_ij| / floor)

with rho the partial correlations of the round before (Candes, Wakin and Boyd 2008; Fan, Feng and Wu 2009).

Regime: a few strong edges among many absent ones, which the plain l1 norm shrinks as much as it shrinks noise.
How this differs from the textbook's 1 / (floor + |theta_ij|): partial correlations have no units, so one floor fits
every table; and no weight exceeds one, so an edge left out by the first round meets the same penalty again instead of a
larger one.
"""

from __future__ import annotations

import numpy as np

from precisionnet.errors import InputError
from precisionnet.precision.partial import partial_correlations
from precisionnet.precision.result import PrecisionResult
from precisionnet.precision.api import graphical_lasso
from precisionnet.types import FloatArray

FLOOR = 0.1


def edge_weights(precision: FloatArray, floor: float = FLOOR) -> FloatArray:
    """w above; ones on the diagonal, whose penalty is nobody's edge."""
    if not (np.isfinite(floor) and floor > 0):
        raise InputError(f"floor must be a number > 0, got {floor}.")
    weights = 1.0 / (1.0 + np.abs(partial_correlations(precision)) / floor)
    np.fill_diagonal(weights, 1.0)
    return weights


def adaptive_graphical_lasso(
    emp_cov: FloatArray,
    l1_penalty: float | FloatArray,
    *,
    n_reweights: int = 1,
    floor: float = FLOOR,
    first: PrecisionResult | None = None,
    tol: float = 1e-6,
    max_iter: int = 2000,
    **options: object,
) -> PrecisionResult:
    """The plain solution, then ``n_reweights`` rounds, each started at the one before.

    ``first`` is the plain solution where it is known; ``options`` are those of ``graphical_lasso``.
    """
    if n_reweights < 0:
        raise InputError(f"n_reweights must be at least 0, got {n_reweights}.")
    if first is None:
        first = graphical_lasso(emp_cov, l1_penalty, tol=tol, max_iter=max_iter, **options)  # type: ignore[arg-type]
    rounds = {**options, "init": None}
    for _ in range(n_reweights if np.any(l1_penalty) else 0):  # weights of no penalty change nothing
        weights = edge_weights(first.precision, floor)
        rounds["init"] = first.precision
        first = graphical_lasso(emp_cov, l1_penalty * weights, tol=tol, max_iter=max_iter, **rounds)  # type: ignore[arg-type]
    return first
