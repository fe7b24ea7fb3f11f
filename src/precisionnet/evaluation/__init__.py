"""Models measured on rows they have not seen: every row beside baselines, or every method compared fairly.

Names are imported when they are first used: to read rows needs no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from precisionnet.lazy_names import lazy_names

if TYPE_CHECKING:
    from precisionnet.evaluation.comparison import compare
    from precisionnet.evaluation.cross_validation import Measured, Predictions, measure
    from precisionnet.evaluation.folds import Folds, group_folds, people_folds, time_folds
    from precisionnet.evaluation.metrics import METRIC_LABELS, score
    from precisionnet.evaluation.recalibration import Recalibration, recalibrate
    from precisionnet.evaluation.shift import Shift, compare_rows
    from precisionnet.evaluation.statistics import paired, summarise
    from precisionnet.evaluation.tuning import Tuning

_HOMES = {
    "METRIC_LABELS": "metrics",
    "Folds": "folds",
    "Measured": "cross_validation",
    "Predictions": "cross_validation",
    "Recalibration": "recalibration",
    "Shift": "shift",
    "Tuning": "tuning",
    "compare": "comparison",
    "compare_rows": "shift",
    "group_folds": "folds",
    "measure": "cross_validation",
    "paired": "statistics",
    "people_folds": "folds",
    "recalibrate": "recalibration",
    "score": "metrics",
    "summarise": "statistics",
    "time_folds": "folds",
}

__all__ = [
    "METRIC_LABELS",
    "Folds",
    "Measured",
    "Predictions",
    "Recalibration",
    "Shift",
    "Tuning",
    "compare",
    "compare_rows",
    "group_folds",
    "measure",
    "paired",
    "people_folds",
    "recalibrate",
    "score",
    "summarise",
    "time_folds",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
