"""Models measured on rows they have not seen: one split beside plain predictors, or every method compared fairly."""

from precisionnet.experiments.comparing import compare
from precisionnet.experiments.holdout import HoldOut, Predictions, measure, split_rows
from precisionnet.experiments.metrics import METRIC_LABELS, score

__all__ = ["METRIC_LABELS", "HoldOut", "Predictions", "compare", "measure", "score", "split_rows"]
