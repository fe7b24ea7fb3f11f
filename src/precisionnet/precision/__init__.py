"""Sparse precision matrices: the graphical-lasso loss and its solvers. No torch here."""

from precisionnet.precision.covariance import sample_covariance, sample_precision, spectral_bound
from precisionnet.precision.listing import listing_passes
from precisionnet.precision.objective import LossTerms, graphical_lasso_terms, min_norm_subgradient
from precisionnet.precision.path import graphical_lasso_path, l1_max, penalty_grid
from precisionnet.precision.result import PrecisionResult
from precisionnet.precision.solver import graphical_lasso

__all__ = [
    "LossTerms",
    "PrecisionResult",
    "graphical_lasso",
    "graphical_lasso_path",
    "graphical_lasso_terms",
    "l1_max",
    "listing_passes",
    "min_norm_subgradient",
    "penalty_grid",
    "sample_covariance",
    "sample_precision",
    "spectral_bound",
]
