"""The standard recipe with one decision taken otherwise.

Most are a parameter. What was tried and has no parameter, because it did not help, is built here: a bootstrap in place
of folds left out, a constant learning rate, a target made normal by its ranks, and a linear answer under the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.estimators import training
from precisionnet.joint.member_stack import Plan
from precisionnet.paper.readings import CONVENTIONS

MEMBERS = 2
"""One with each readout: fewer than the default's eight, to make the study affordable."""

PARAMETERS: dict[str, dict[str, Any]] = {
    "standard": {},
    "members: 1, mean": {"n_members": 1, "readout": "mean"},
    "members: 4": {"n_members": 4},
    "readout: mean": {"readout": "mean"},
    "readout: mlp": {"readout": "mlp"},
    "readout: linear": {"readout_width": 0},
    "loss: squared": {"loss": "squared"},
    "loss: huber": {"loss": "huber"},
    "order: 2": {"order": 2},
    "layers: 2": {"n_layers": 2},
    "noise: 0": {"input_noise": 0.0},
    "noise: 0.1": {"input_noise": 0.1},
    "noise: 0.5": {"input_noise": 0.5},
    "batch: 256": {"batch_size": 256},
    "epochs: 25": {"max_epochs": 25},
    "epochs: 100": {"max_epochs": 100},
    "coupling: 1": {"coupling": 1.0},
    "coupling: 10": {"coupling": 10.0},
    "Step 1 every epoch": {"theta_every": 1},
    "l1 scale: 5": {"l1_scale": 5.0},
    "matrix: graphical lasso": {"method": "glasso"},
    "sparse at prediction": {"predict_on": "sparse", "l1_scale": 2.0},
    "recipe: paper": {"recipe": "paper", "n_members": 1, **CONVENTIONS["flattened"]},
}
FOR_NUMBERS = ("loss: squared", "loss: huber", "target: ranks", "linear answer under it")


class OnRidge(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression, and a network on what it leaves."""

    def __init__(self, network: Any) -> None:
        self.network = network

    def fit(self, X: Any, y: Any) -> OnRidge:
        """The line first."""
        self.line_ = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 25))).fit(X, y)
        self.network.fit(X, y - self.line_.predict(X))
        return self

    def predict(self, X: Any) -> Any:
        """Their sum."""
        return self.line_.predict(X) + self.network.predict(X)


@contextmanager
def _bootstrap() -> Iterator[None]:
    def left_out(table: Any, n_members: int, strata: Any, rng: Any) -> list[Any]:
        everyone = np.arange(len(table))
        return [np.setdiff1d(everyone, rng.randint(len(table), size=len(table))) for _ in range(n_members)]

    with patch.object(training, "left_out_rows", left_out):
        yield


@contextmanager
def _constant_rate() -> Iterator[None]:
    with patch.object(Plan, "rate", lambda plan, progress: plan.learning_rate):
        yield


def _ranks(network: Any) -> Any:
    normal = QuantileTransformer(n_quantiles=100, output_distribution="normal")
    return TransformedTargetRegressor(network, transformer=normal)


CIRCUMSTANCES: dict[str, Callable[[], Any]] = {
    "rows: bootstrap": _bootstrap,
    "rate: constant": _constant_rate,
}
WRAPPERS: dict[str, Callable[[Any], Any]] = {"target: ranks": _ranks, "linear answer under it": OnRidge}
VARIANTS = (*PARAMETERS, *CIRCUMSTANCES, *WRAPPERS)


def fitted(variant: str, classes: bool, X: Any, y: Any, seed: int) -> Any:
    """The variant's model of these rows."""
    kind = PNNClassifier if classes else PNNRegressor
    network = kind(**{"n_members": MEMBERS, **PARAMETERS.get(variant, {})}, random_state=seed)
    model = WRAPPERS[variant](network) if variant in WRAPPERS else network
    with CIRCUMSTANCES.get(variant, nullcontext)():
        return model.fit(X, y)
