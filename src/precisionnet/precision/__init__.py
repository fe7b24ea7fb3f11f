"""Sparse precision matrices: the graphical lasso with a proof of its accuracy, covariances and the choice of a penalty.

NumPy, SciPy and numba only. What is not listed here is for the other packages, which import it from its module.
"""

from precisionnet.linalg import partial_correlations
from precisionnet.precision.api import graphical_lasso, graphical_lasso_path
from precisionnet.precision.covariance import (
    nonparanormal_correlation,
    sample_covariance,
    sample_precision,
    spectral_bound,
)
from precisionnet.precision.em import EMResult, em_covariance
from precisionnet.precision.estimation import CovarianceEstimate, estimate_covariance
from precisionnet.precision.missing import pairwise_covariance
from precisionnet.precision.objective import LossTerms, graphical_lasso_terms
from precisionnet.precision.penalties import adaptive_graphical_lasso, l1_max, penalty_grid
from precisionnet.precision.result import PrecisionResult, count_edges
from precisionnet.precision.rows import SparsePrecisionResult, graphical_lasso_from_rows
from precisionnet.precision.selection import EBICChoice, StarsChoice, ebic, select_by_ebic, stars
from precisionnet.precision.streaming_moments import StreamingMoments

__all__ = [
    "CovarianceEstimate",
    "EBICChoice",
    "EMResult",
    "LossTerms",
    "PrecisionResult",
    "SparsePrecisionResult",
    "StarsChoice",
    "StreamingMoments",
    "adaptive_graphical_lasso",
    "count_edges",
    "ebic",
    "em_covariance",
    "estimate_covariance",
    "graphical_lasso",
    "graphical_lasso_from_rows",
    "graphical_lasso_path",
    "graphical_lasso_terms",
    "l1_max",
    "nonparanormal_correlation",
    "pairwise_covariance",
    "partial_correlations",
    "penalty_grid",
    "sample_covariance",
    "sample_precision",
    "select_by_ebic",
    "spectral_bound",
    "stars",
]
