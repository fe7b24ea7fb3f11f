"""Models measured on rows they have not seen: one split beside baselines, or every method compared fairly.

Names are imported when they are first used: to read rows needs no network.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precisionnet.evaluation.comparison import compare
    from precisionnet.evaluation.holdout import HoldOut, Predictions, measure, split_rows
    from precisionnet.evaluation.metrics import METRIC_LABELS, score
    from precisionnet.evaluation.statistics import paired, summarise
    from precisionnet.evaluation.tuning import Tuning

_HOME = {
    "METRIC_LABELS": "metrics",
    "HoldOut": "holdout",
    "Predictions": "holdout",
    "Tuning": "tuning",
    "compare": "comparison",
    "measure": "holdout",
    "paired": "statistics",
    "score": "metrics",
    "split_rows": "holdout",
    "summarise": "statistics",
}

__all__ = [
    "METRIC_LABELS",
    "HoldOut",
    "Predictions",
    "Tuning",
    "compare",
    "measure",
    "paired",
    "score",
    "split_rows",
    "summarise",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
