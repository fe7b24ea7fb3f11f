"""One choice of hyper-parameters in training: what every search, exhaustive or budgeted, works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from precisionnet.types import TaskName

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Rows of one side of a split."""

    X: pd.DataFrame
    y: np.ndarray[Any, Any]
    groups: np.ndarray[Any, Any] | None = None


@dataclass(frozen=True)
class Sides:
    """What a candidate may see: rows to learn from, rows to be judged on. Test rows are not here."""

    train: Part
    validation: Part
    task: TaskName
    seed: int


class Candidate(Protocol):
    """A fit that can be advanced, judged on the validation rows, and given up."""

    parameters: Parameters
    max_epochs: int
    """1 for a model that is fitted in one go."""
    epochs: int
    """Trained so far."""
    seconds: float
    """Spent on it so far."""

    def advance(self, to_epoch: int) -> float:
        """Train up to that epoch; the best validation score so far (MAE, or log loss of classes: lower is better)."""
        ...

    @property
    def done(self) -> bool:
        """Whether training has ended, at the last epoch or because it stopped getting better."""
        ...

    def model(self) -> Any:
        """The fitted estimator at its best epoch: ``predict``, for classes ``predict_proba`` and ``classes_``."""
        ...
