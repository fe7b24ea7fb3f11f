"""Precision Neural Networks: learn a sparse precision matrix together with the network that runs on it.

>>> from precisionnet import PNNRegressor
>>> model = PNNRegressor(random_state=0).fit(X, y)  # doctest: +SKIP

Names are imported when they are first used: ``import precisionnet`` and ``precisionnet --help`` are quick, and
``GraphicalLasso`` needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from precisionnet._version import __version__

if TYPE_CHECKING:
    from precisionnet.estimators import (
        GraphicalLasso,
        GraphicalLassoCV,
        PNNClassifier,
        PNNRegressor,
        load,
        sparsity_curve,
        stability_curve,
    )
    from precisionnet.parameters import PUBLISHED_VNN

_HOME = {
    "PUBLISHED_VNN": "precisionnet.parameters",
    "GraphicalLasso": "precisionnet.estimators",
    "GraphicalLassoCV": "precisionnet.estimators",
    "PNNClassifier": "precisionnet.estimators",
    "PNNRegressor": "precisionnet.estimators",
    "load": "precisionnet.estimators",
    "sparsity_curve": "precisionnet.estimators",
    "stability_curve": "precisionnet.estimators",
}

__all__ = [
    "PUBLISHED_VNN",
    "GraphicalLasso",
    "GraphicalLassoCV",
    "PNNClassifier",
    "PNNRegressor",
    "__version__",
    "load",
    "sparsity_curve",
    "stability_curve",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
