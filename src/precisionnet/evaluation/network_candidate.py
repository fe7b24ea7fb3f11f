"""A network in training: the public estimator, advanced epoch by epoch.

This is the only module of the package that drives the training of a network from outside.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from precisionnet.errors import PrecisionNetWarning
from precisionnet.estimators import PNNClassifier, PNNRegressor
from precisionnet.evaluation.methods import METHODS
from precisionnet.evaluation.protocol import FitData, target_of
from precisionnet.evaluation.tuning import Parameters
from precisionnet.joint import GlassoCache
from precisionnet.preprocessing.column_kinds import columns_of_labels

GLASSO_CACHE = GlassoCache()
"""One per process: candidates and methods on the same training rows start from the same few graphical lassos."""


class NetworkCandidate:
    """``PNNRegressor(method, **parameters)`` on these rows, to the bit what its ``fit`` makes of them.

    ``joint_mlp`` is ``joint`` with the readout that the registry fixes, whatever the parameters say.
    The score is that of the epoch the model would keep: the one with the lowest validation loss.
    """

    def __init__(self, method: str, parameters: Parameters, data: FitData) -> None:
        self.parameters, self.epochs, self.seconds = parameters, 0, 0.0
        kind = PNNRegressor if data.task == "regression" else PNNClassifier
        spec = METHODS[method]
        labels = bool(columns_of_labels(data.train.X))
        missing = "indicator" if labels else "median"  # as the encoder of the baselines does with labels
        model = kind(spec.runs, **{**parameters, **spec.fixed}, missing=missing, random_state=data.seed)
        self._model = model
        self.max_epochs: int = model.settings.n_epochs
        self._score = "validation_metric" if data.task == "regression" else "validation_loss"
        train, validation = data.train, data.validation
        started = time.perf_counter()
        with warnings.catch_warnings():
            # A comparison says once what is wrong with a table, not in each of some hundred fits.
            warnings.simplefilter("ignore", PrecisionNetWarning)
            self._run = model.start_training(
                train.X, target_of(train), X_val=validation.X, y_val=target_of(validation), cache=GLASSO_CACHE
            )
        self.seconds += time.perf_counter() - started

    def advance(self, to_epoch: int) -> float:
        """Train up to that epoch; return the score of the epoch that would be kept."""
        started = time.perf_counter()
        with self._run.threads():
            while self.epochs < to_epoch and not self._run.done:
                self._run.advance()
                self.epochs += 1
        self.seconds += time.perf_counter() - started
        return self._run.kept_row[self._score]

    @property
    def done(self) -> bool:
        """Whether training is at its last epoch, or out of patience."""
        return self._run.done

    def model(self) -> Any:
        """Return the fitted estimator."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionNetWarning)
            return self._model.keep(self._run.finish())
