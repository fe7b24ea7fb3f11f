"""scikit-learn's face of the method."""

from precisionnet.estimators.classifier import PNNClassifier
from precisionnet.estimators.files import load
from precisionnet.estimators.graphical_lasso import GraphicalLasso
from precisionnet.estimators.graphical_lasso_cv import GraphicalLassoCV
from precisionnet.estimators.interop import EdgeTensors
from precisionnet.estimators.regressor import PNNRegressor
from precisionnet.estimators.sparsity import SparsityCurve, sparsity_curve
from precisionnet.precision import partial_correlations

__all__ = [
    "EdgeTensors",
    "GraphicalLasso",
    "GraphicalLassoCV",
    "PNNClassifier",
    "PNNRegressor",
    "SparsityCurve",
    "load",
    "partial_correlations",
    "sparsity_curve",
]
