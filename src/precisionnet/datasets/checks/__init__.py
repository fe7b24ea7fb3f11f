"""What a careful colleague would point out about a data set before a fit."""

from precisionnet.datasets.checks.check_dataset import check_dataset, same_rows
from precisionnet.datasets.checks.finding import LEVELS, Finding, LevelName

__all__ = ["LEVELS", "Finding", "LevelName", "check_dataset", "same_rows"]
