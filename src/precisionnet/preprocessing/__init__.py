"""Preparation of features as scikit-learn transformers, fitted on the training rows alone.

Standardising is scikit-learn's own ``StandardScaler``; what it lacks is here. Names are imported when they are first
used: how a column becomes nodes can be read without scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precisionnet.lazy_names import lazy_names

if TYPE_CHECKING:
    from precisionnet.preprocessing.combat import ComBat
    from precisionnet.preprocessing.covariates import CovariateRegression
    from precisionnet.preprocessing.table_columns import EncodedColumn
    from precisionnet.preprocessing.table_encoder import TableEncoder

_HOMES = {
    "ComBat": "combat",
    "CovariateRegression": "covariates",
    "EncodedColumn": "table_columns",
    "TableEncoder": "table_encoder",
}

__all__ = ["ComBat", "CovariateRegression", "EncodedColumn", "TableEncoder"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
