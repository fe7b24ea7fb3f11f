"""Sparse precision matrices: the graphical-lasso loss and its solvers. No torch here."""

from precisionnet.precision.covariance import sample_covariance, sample_precision, spectral_bound
from precisionnet.precision.listing import listing_passes
from precisionnet.precision.objective import LossTerms, graphical_lasso_terms, min_norm_subgradient
from precisionnet.precision.solver import PrecisionResult, graphical_lasso

__all__ = [
    "LossTerms",
    "PrecisionResult",
    "graphical_lasso",
    "graphical_lasso_terms",
    "listing_passes",
    "min_norm_subgradient",
    "sample_covariance",
    "sample_precision",
    "spectral_bound",
]
