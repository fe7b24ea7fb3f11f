"""Partial correlations, rho_ij = -theta_ij / sqrt(theta_ii theta_jj): of two columns given all the others."""

from __future__ import annotations

import numpy as np

from precisionnet.types import FloatArray


def partial_correlations(precision: FloatArray) -> FloatArray:
    """Matrix of partial correlations, ones on the diagonal; exact zeros stay zero."""
    deviation = np.sqrt(np.diag(precision))
    result = -precision / np.outer(deviation, deviation) + 0.0  # + 0.0 turns -0.0 into 0.0
    np.fill_diagonal(result, 1.0)
    return result


def count_edges(precision: FloatArray) -> int:
    """Pairs of columns with a precision other than zero."""
    return int(np.count_nonzero(np.triu(precision, k=1)))
