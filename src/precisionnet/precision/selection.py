r"""Choosing a penalty by the extended Bayesian information criterion (Foygel and Drton 2010).

    eBIC(theta) = -T (log det theta - tr(C theta)) + E log T + 4 gamma E log N

with T rows, N columns and E edges. Regime: a graph is wanted rather than a prediction; gamma = 0 is the ordinary BIC,
gamma = 0.5 guards against the many graphs that N columns have. The likelihood is that of the penalised solution itself,
as in R's qgraph and huge, not of a refit on its edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from precisionnet.errors import InputError
from precisionnet.linalg import log_det_from_cholesky, try_cholesky
from precisionnet.precision.partial import count_edges
from precisionnet.precision.result import PrecisionResult
from precisionnet.types import FloatArray


@dataclass(frozen=True)
class EBICChoice:
    """The position of the smallest eBIC, and all of them."""

    index: int
    scores: FloatArray


def ebic(precision: FloatArray, emp_cov: FloatArray, n_samples: int, gamma: float = 0.5) -> float:
    """The criterion above; smaller is better."""
    if not n_samples >= 1:
        raise InputError(f"n_samples must be at least 1, got {n_samples}.")
    if not 0.0 <= gamma <= 1.0:
        raise InputError(f"gamma must be between 0 and 1, got {gamma}.")
    factor = try_cholesky(precision)
    if factor is None:
        raise InputError("precision is not positive definite: it has no likelihood.")
    fit = n_samples * (log_det_from_cholesky(factor) - float(np.vdot(emp_cov, precision)))
    return count_edges(precision) * float(np.log(n_samples) + 4.0 * gamma * np.log(len(precision))) - fit


def select_by_ebic(
    path: Sequence[PrecisionResult], emp_cov: FloatArray, n_samples: int, gamma: float = 0.5
) -> EBICChoice:
    """The best result of a path; of equals, the first."""
    scores = np.array([ebic(result.precision, emp_cov, n_samples, gamma) for result in path])
    return EBICChoice(int(np.argmin(scores)), scores)
