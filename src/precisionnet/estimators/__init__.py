"""scikit-learn's face of the method."""

from precisionnet.estimators.classifier import PNNClassifier
from precisionnet.estimators.files import load
from precisionnet.estimators.interop import EdgeTensors, partial_correlations
from precisionnet.estimators.regressor import PNNRegressor

__all__ = ["EdgeTensors", "PNNClassifier", "PNNRegressor", "load", "partial_correlations"]
