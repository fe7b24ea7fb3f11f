"""The gap between predicted and true age: out of fold, without its age bias, compared between groups."""

from precisionnet.gap.model import GapModel
from precisionnet.gap.study import GapStudy, gap_study

__all__ = ["GapModel", "GapStudy", "gap_study"]
