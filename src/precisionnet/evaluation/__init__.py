"""Models measured on rows they have not seen: one split beside plain predictors, or every method compared fairly.

Names are imported when they are first used: the runner and its status need no network.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precisionnet.experiments.comparing import compare
    from precisionnet.experiments.holdout import HoldOut, Predictions, measure, split_rows
    from precisionnet.experiments.metrics import METRIC_LABELS, score

_HOME = {
    "METRIC_LABELS": "metrics",
    "HoldOut": "holdout",
    "Predictions": "holdout",
    "compare": "comparing",
    "measure": "holdout",
    "score": "metrics",
    "split_rows": "holdout",
}

__all__ = ["METRIC_LABELS", "HoldOut", "Predictions", "compare", "measure", "score", "split_rows"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
