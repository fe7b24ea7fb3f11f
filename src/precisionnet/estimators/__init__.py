"""The method as scikit-learn estimators.

Names are imported when they are first used: the graphical lasso needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precisionnet.estimators.classifier import PNNClassifier
    from precisionnet.estimators.files import load
    from precisionnet.estimators.graphical_lasso import GraphicalLasso
    from precisionnet.estimators.graphical_lasso_cv import GraphicalLassoCV
    from precisionnet.estimators.interop import EdgeTensors
    from precisionnet.estimators.regressor import PNNRegressor
    from precisionnet.estimators.sparsity import SparsityCurve, sparsity_curve
    from precisionnet.estimators.stability import StabilityCurve, stability_curve

_MODULES = {
    "EdgeTensors": "precisionnet.estimators.interop",
    "GraphicalLasso": "precisionnet.estimators.graphical_lasso",
    "GraphicalLassoCV": "precisionnet.estimators.graphical_lasso_cv",
    "PNNClassifier": "precisionnet.estimators.classifier",
    "PNNRegressor": "precisionnet.estimators.regressor",
    "SparsityCurve": "precisionnet.estimators.sparsity",
    "StabilityCurve": "precisionnet.estimators.stability",
    "load": "precisionnet.estimators.files",
    "sparsity_curve": "precisionnet.estimators.sparsity",
    "stability_curve": "precisionnet.estimators.stability",
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


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
