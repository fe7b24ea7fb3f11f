"""A network in training: the estimator of the public face, advanced epoch by epoch."""

from __future__ import annotations

import time
import warnings
from typing import Any

from precisionnet.errors import PrecisionNetWarning
from precisionnet.estimators import PNNClassifier, PNNRegressor
from precisionnet.estimators.fitting import Fitting
from precisionnet.experiments.methods.candidate import Parameters, Sides
from precisionnet.experiments.methods.registry import METHODS
from precisionnet.joint import Starts

STARTS = Starts()
"""One a process: every candidate and every method on the same training rows starts from the same few matrices."""


class NetworkCandidate:
    """``PNNRegressor(method, **parameters)`` on these rows, to the bit what its ``fit`` makes of them.

    ``joint_mlp`` is ``joint`` with the readout that the registry fixes, whatever the parameters say.
    The score is that of the epoch the model would keep: the one with the lowest validation loss.
    """

    def __init__(self, method: str, parameters: Parameters, sides: Sides) -> None:
        self.parameters, self.epochs, self.seconds = parameters, 0, 0.0
        kind = PNNRegressor if sides.task == "regression" else PNNClassifier
        spec = METHODS[method]
        model = kind(spec.runs, **{**parameters, **spec.fixed}, missing="median", random_state=sides.seed)
        self.max_epochs: int = model.settings.n_epochs
        self._score = "validation_metric" if sides.task == "regression" else "validation_loss"
        train, validation = sides.train, sides.validation
        started = time.perf_counter()
        with warnings.catch_warnings():
            # A comparison says once what is wrong with a table, not in each of some hundred fits.
            warnings.simplefilter("ignore", PrecisionNetWarning)
            self._fitting = Fitting(model, train.X, train.y, X_val=validation.X, y_val=validation.y, starts=STARTS)
        self.seconds += time.perf_counter() - started

    def advance(self, to_epoch: int) -> float:
        """Train up to that epoch; the score of the one that would be kept."""
        started = time.perf_counter()
        with self._fitting.threads():
            while self.epochs < to_epoch and not self._fitting.done:
                self._fitting.advance()
                self.epochs += 1
        self.seconds += time.perf_counter() - started
        return self._fitting.kept_row[self._score]

    @property
    def done(self) -> bool:
        """At the last epoch, or out of patience."""
        return self._fitting.done

    def model(self) -> Any:
        """The fitted estimator."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionNetWarning)
            return self._fitting.finish()
