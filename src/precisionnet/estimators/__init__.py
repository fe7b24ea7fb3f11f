"""scikit-learn's face of the method. Names are imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "EdgeTensors": "interop",
    "GraphicalLasso": "graphical_lasso",
    "GraphicalLassoCV": "graphical_lasso_cv",
    "PNNClassifier": "classifier",
    "PNNRegressor": "regressor",
    "SparsityCurve": "sparsity",
    "load": "files",
    "sparsity_curve": "sparsity",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"precisionnet.estimators.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
