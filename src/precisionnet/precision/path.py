"""A whole path of penalties, largest first, each solved from its neighbour."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from precisionnet.errors import InputError
from precisionnet.precision.problem import checked_matrix, normal_form
from precisionnet.precision.result import PrecisionResult
from precisionnet.precision.api import check_stopping, solve
from precisionnet.types import BoolArray, FloatArray


def l1_max(emp_cov: FloatArray, known_zeros: BoolArray | None = None) -> float:
    """The smallest penalty whose graph is empty: the largest off-diagonal |C_ij| that is not a known zero."""
    off_diagonal = np.abs(checked_matrix("emp_cov", emp_cov))
    np.fill_diagonal(off_diagonal, 0.0)
    if known_zeros is not None:
        off_diagonal[np.asarray(known_zeros, dtype=bool)] = 0.0
    return float(off_diagonal.max())


def penalty_grid(emp_cov: FloatArray, n_penalties: int = 20, smallest: float = 0.01) -> FloatArray:
    """Penalties evenly spaced on a log scale from ``l1_max`` down to ``smallest`` times it."""
    largest = l1_max(emp_cov)
    if largest == 0.0:  # no covariance anywhere: every penalty gives the same, empty graph
        largest = float(np.diag(emp_cov).max())
    return np.geomspace(largest, smallest * largest, n_penalties)


def graphical_lasso_path(
    emp_cov: FloatArray,
    l1_penalties: Sequence[float] | FloatArray,
    *,
    tol: float = 1e-6,
    max_iter: int = 2000,
    **options: object,
) -> list[PrecisionResult]:
    """One result a penalty, in the order given; ``options`` are those of ``graphical_lasso`` (not ``init``)."""
    check_stopping(tol, max_iter)
    try:
        penalties = np.asarray(l1_penalties, dtype=np.float64)
    except (TypeError, ValueError):
        penalties = np.empty(0)
    if penalties.ndim != 1 or len(penalties) == 0:
        raise InputError("l1_penalties must be a list of numbers, at least one.")
    if "init" in options:
        raise InputError("a path starts each penalty at its neighbour: init is for graphical_lasso.")
    results: list[PrecisionResult | None] = [None] * len(penalties)
    start = None
    for position in np.argsort(-penalties, kind="stable"):
        started = time.perf_counter()
        problem = normal_form(emp_cov, float(penalties[position]), **options)  # type: ignore[arg-type]
        results[position], start = solve(problem, start, tol=tol, max_iter=max_iter, started=started, keep_dual=True)
    return [result for result in results if result is not None]
