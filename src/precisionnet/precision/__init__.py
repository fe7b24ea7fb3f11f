"""Sparse precision matrices: the graphical-lasso loss and its solvers. No torch here."""

from precisionnet.precision.penalties import adaptive_graphical_lasso, edge_weights
from precisionnet.precision.correlation import nearest_correlation
from precisionnet.precision.covariance import sample_covariance, sample_precision, spectral_bound
from precisionnet.precision.em import EMResult, em_covariance
from precisionnet.precision.estimate import (
    COVARIANCES,
    MISSING,
    CovarianceEstimate,
    estimate_covariance,
    estimate_from_moments,
    refuse_constant,
)
from precisionnet.precision.folds import FoldPath, cross_validate
from precisionnet.precision.algorithm1_step1 import listing_passes
from precisionnet.precision.missing import gaussian_score, pairwise_covariance, squared_distances
from precisionnet.precision.objective import LossTerms, graphical_lasso_terms, min_norm_subgradient
from precisionnet.precision.partial import count_edges, partial_correlations
from precisionnet.precision.path import graphical_lasso_path, l1_max, penalty_grid
from precisionnet.precision.ranks import NormalScores, nonparanormal_correlation
from precisionnet.precision.estimation import Recipe
from precisionnet.precision.result import PrecisionResult
from precisionnet.precision.streaming_moments import RunningMoments
from precisionnet.precision.selection import EBICChoice, ebic, select_by_ebic
from precisionnet.precision.api import graphical_lasso
from precisionnet.precision.stability import StarsChoice, stars

__all__ = [
    "COVARIANCES",
    "MISSING",
    "CovarianceEstimate",
    "EBICChoice",
    "EMResult",
    "FoldPath",
    "LossTerms",
    "NormalScores",
    "PrecisionResult",
    "Recipe",
    "RunningMoments",
    "StarsChoice",
    "adaptive_graphical_lasso",
    "count_edges",
    "cross_validate",
    "ebic",
    "edge_weights",
    "em_covariance",
    "estimate_covariance",
    "estimate_from_moments",
    "gaussian_score",
    "graphical_lasso",
    "graphical_lasso_path",
    "graphical_lasso_terms",
    "l1_max",
    "listing_passes",
    "min_norm_subgradient",
    "nearest_correlation",
    "nonparanormal_correlation",
    "pairwise_covariance",
    "partial_correlations",
    "penalty_grid",
    "refuse_constant",
    "sample_covariance",
    "sample_precision",
    "select_by_ebic",
    "spectral_bound",
    "squared_distances",
    "stars",
]
