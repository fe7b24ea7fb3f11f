"""Models measured on rows they have not seen."""

from precisionnet.experiments.holdout import HoldOut, Predictions, measure, split_rows
from precisionnet.experiments.metrics import METRIC_LABELS, score

__all__ = ["METRIC_LABELS", "HoldOut", "Predictions", "measure", "score", "split_rows"]
