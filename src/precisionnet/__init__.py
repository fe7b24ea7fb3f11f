"""Precision Neural Networks: learn a sparse precision matrix together with the network that runs on it.

>>> from precisionnet import PNNRegressor
>>> model = PNNRegressor(random_state=0).fit(X, y)  # doctest: +SKIP

Names are imported when they are first used: ``import precisionnet`` and ``precisionnet --help`` are quick, and
``GraphicalLasso`` needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precisionnet._version import __version__
from precisionnet.lazy_names import lazy_names

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

_HOMES = {
    "PUBLISHED_VNN": "parameters",
    "GraphicalLasso": "estimators",
    "GraphicalLassoCV": "estimators",
    "PNNClassifier": "estimators",
    "PNNRegressor": "estimators",
    "load": "estimators",
    "sparsity_curve": "estimators",
    "stability_curve": "estimators",
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

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
