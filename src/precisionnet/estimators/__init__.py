"""The method as scikit-learn estimators.

Names are imported when they are first used: the graphical lasso needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precisionnet.lazy_names import lazy_names

if TYPE_CHECKING:
    from precisionnet.estimators.classifier import PNNClassifier
    from precisionnet.estimators.files import load
    from precisionnet.estimators.graphical_lasso import GraphicalLasso
    from precisionnet.estimators.graphical_lasso_cv import GraphicalLassoCV
    from precisionnet.estimators.interop import EdgeTensors
    from precisionnet.estimators.regressor import PNNRegressor
    from precisionnet.estimators.sparsity import SparsityCurve, sparsity_curve
    from precisionnet.estimators.stability import StabilityCurve, stability_curve

_HOMES = {
    "EdgeTensors": "interop",
    "GraphicalLasso": "graphical_lasso",
    "GraphicalLassoCV": "graphical_lasso_cv",
    "PNNClassifier": "classifier",
    "PNNRegressor": "regressor",
    "SparsityCurve": "sparsity",
    "StabilityCurve": "stability",
    "load": "files",
    "sparsity_curve": "sparsity",
    "stability_curve": "stability",
}

__all__ = [
    "EdgeTensors",
    "GraphicalLasso",
    "GraphicalLassoCV",
    "PNNClassifier",
    "PNNRegressor",
    "SparsityCurve",
    "StabilityCurve",
    "load",
    "sparsity_curve",
    "stability_curve",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
