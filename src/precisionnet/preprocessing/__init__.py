"""Preparation of features as scikit-learn transformers, fitted on the training rows alone.

Standardising is scikit-learn's own ``StandardScaler``; what it lacks is here. Names are imported when they are first
used: how a column becomes nodes can be read without scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precisionnet.preprocessing.combat import ComBat
    from precisionnet.preprocessing.covariates import CovariateRegression
    from precisionnet.preprocessing.table_columns import EncodedColumn
    from precisionnet.preprocessing.table_encoder import TableEncoder

_MODULES = {
    "ComBat": "precisionnet.preprocessing.combat",
    "CovariateRegression": "precisionnet.preprocessing.covariates",
    "EncodedColumn": "precisionnet.preprocessing.table_columns",
    "TableEncoder": "precisionnet.preprocessing.table_encoder",
}

__all__ = ["ComBat", "CovariateRegression", "EncodedColumn", "TableEncoder"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
