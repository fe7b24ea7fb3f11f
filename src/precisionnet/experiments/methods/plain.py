"""A plain model as a candidate: fitted in one go, judged on the validation rows."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from precisionnet.errors import FitDivergedError, InputError
from precisionnet.experiments.methods.candidate import Parameters, Sides
from precisionnet.experiments.methods.plain_models import PLAIN_MODELS
from precisionnet.experiments.metrics import judge


class PlainCandidate:
    """One choice of parameters of a plain method, its default without any; equal ``sides`` make equal models."""

    max_epochs = 1

    def __init__(self, method: str, parameters: Parameters, sides: Sides) -> None:
        self.method = method
        self.parameters = parameters
        self.sides = sides
        self.epochs = 0
        self.seconds = 0.0
        self._model: Any = None
        self._validation = float("inf")

    def advance(self, to_epoch: int) -> float:
        """Fit, the first time; MAE, or log loss of classes, on the validation rows."""
        if not self.done and to_epoch >= 1:
            begun = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # a poor choice may not: its score tells
                self._model = self._fitted()
            self._validation = self._judged()
            self.epochs = 1
            self.seconds += time.perf_counter() - begun
        return self._validation

    @property
    def done(self) -> bool:
        """Whether it is fitted."""
        return self.epochs == 1

    def model(self) -> Any:
        """The fitted model."""
        return self._model

    def _fitted(self) -> Any:
        try:
            model = PLAIN_MODELS[self.method]
            return model.fit(self.parameters, self.sides) if self.parameters else model.fit_default(self.sides)
        except InputError:
            raise
        except (np.linalg.LinAlgError, ValueError) as error:  # as scikit-learn says that its solver broke down
            raise FitDivergedError(f"{self.method} could not be fitted: {error}") from error

    def _judged(self) -> float:
        rows, model = self.sides.validation, self._model
        if self.sides.task == "regression":
            return judge(rows.y, model.predict(rows.X))
        return judge(rows.y, model.predict_proba(rows.X), model.classes_)
