"""Preparation of features as scikit-learn transformers, fitted on the training rows alone.

Standardising is scikit-learn's own ``StandardScaler``; what it lacks is here.
"""

from precisionnet.preprocessing.combat import ComBat
from precisionnet.preprocessing.covariates import CovariateRegression

__all__ = ["ComBat", "CovariateRegression"]
