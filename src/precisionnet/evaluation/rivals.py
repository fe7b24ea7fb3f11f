"""What people pick for a table in 2026: CatBoost, RealMLP, xRFM and TabICL, each as its authors ship it.

    pip install 'precisionnet[rivals]'

They are no part of a comparison until they are named, and one that cannot run here is skipped with the reason
(``why_not``). Nothing is downloaded: TabICL predicts with weights that its authors trained, and runs only where the
environment variable ``PRECISIONNET_TABICL`` names the file with them (its authors publish one for numbers and one for
classes; name the one for the task, or both, separated by the system's path separator).

============ =============== ==========================================================================================
method       package         differs from its authors' defaults in
============ =============== ==========================================================================================
catboost     catboost        the number of trees, the best on the validation rows; also trained on absolute errors
realmlp      pytabkit        the epoch that is kept, the best by MAE or cross-entropy; no smoothed labels where
                             probabilities count, as its authors advise
xrfm         xrfm            standard units of columns and target; the metric of its iterations, MAE or log loss
tabicl       tabicl          nothing
============ =============== ==========================================================================================

Where nothing is tuned, what needs validation rows to stop is given the last fifth of the training rows, drawn by seed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet.datasets import Dataset
from precisionnet.errors import InputError
from precisionnet.evaluation.methods import METHODS, RIVALS
from precisionnet.evaluation.protocol import FitData, target_of
from precisionnet.evaluation.tuning import Parameters
from precisionnet.types import FloatArray, TaskName

CHECKPOINT = "PRECISIONNET_TABICL"
"""Environment variable that names the file, or the two files, with TabICL's weights."""
STOPPED_ON = 0.2
"""Share of the training rows that tells a rival when to stop, where nothing is tuned."""


def why_not(rival: str) -> str | None:
    """Say why a rival cannot run here; None where it can."""
    package = RIVALS[rival]
    if find_spec(package) is None:
        return f"{package} is not installed; run pip install 'precisionnet[rivals]'."
    if rival == "tabicl":
        named = _checkpoints()
        if not named:
            return f"it needs trained weights, and nothing is downloaded: set {CHECKPOINT} to its checkpoint file."
        lost = [str(path) for path in named if not path.is_file()]
        if lost:
            return f"{CHECKPOINT} names {lost[0]!r}, which is not a file."
    return None


def able(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Divide methods into those that can run here, and a sentence for each that cannot; refuse where none is left."""
    reasons = {name: why_not(name) if name in RIVALS else None for name in names}
    left = [name for name, reason in reasons.items() if reason is None]
    skipped = [f"{METHODS[name].label} is left out: {reason}" for name, reason in reasons.items() if reason is not None]
    if not left:
        raise InputError(" ".join(skipped))
    return left, skipped


class Rival:
    """A fitted model of another package, with the columns and the target it was given.

    ``fit`` learns medians and standard units from the training rows alone.
    """

    def __init__(self, model: Any, task: TaskName, *, scaled: bool) -> None:
        self.model, self.task = model, task
        steps = [SimpleImputer(strategy="median", keep_empty_features=True), *([StandardScaler()] if scaled else [])]
        self._columns = make_pipeline(*steps)
        self._scaled = scaled and task == "regression"
        self._mean, self._spread = 0.0, 1.0
        self.classes_: Any = None

    def fit(self, train: Dataset, fit: Callable[..., Any], validation: Dataset | None = None) -> Rival:
        """Call ``fit(X, y)``, or ``fit(X, y, X_validation, y_validation)``."""
        y = target_of(train)
        if self.task == "classification":
            self.classes_ = np.unique(y)
        elif self._scaled:
            self._mean, self._spread = float(np.mean(y)), float(np.std(y)) or 1.0
        rows = [self._columns.fit_transform(train.X), self._coded(y)]
        if validation is not None:
            rows += [self._columns.transform(validation.X), self._coded(target_of(validation))]
        fit(*rows)
        return self

    def predict(self, X: pd.DataFrame) -> Any:
        """Return numbers, or the likeliest classes."""
        if self.task == "classification":
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        said = np.asarray(self.model.predict(self._columns.transform(X)), dtype=float).ravel()
        return said * self._spread + self._mean

    def predict_proba(self, X: pd.DataFrame) -> FloatArray:
        """Return probabilities, one column per class."""
        said = np.asarray(self.model.predict_proba(self._columns.transform(X)), dtype=float)
        return said.reshape(len(X), -1)

    def _coded(self, y: Any) -> Any:
        """Classes by their number, numbers in the units of the fit."""
        if self.task == "classification":
            return np.searchsorted(self.classes_, y)
        return (np.asarray(y, dtype=float) - self._mean) / self._spread


def _fit_catboost(parameters: Parameters, data: FitData) -> Any:
    model = _catboost(data, **parameters)
    rival = Rival(model, data.task, scaled=False)

    def fit(X: Any, y: Any, X_validation: Any, y_validation: Any) -> None:
        model.fit(X, y, eval_set=(X_validation, y_validation))

    return rival.fit(data.train, fit, data.validation)


def _default_catboost(data: FitData) -> Any:
    """1000 trees of depth 6."""
    model = _catboost(data)
    return Rival(model, data.task, scaled=False).fit(data.train, model.fit)


def _catboost(data: FitData, **parameters: Any) -> Any:
    import catboost

    kind = catboost.CatBoostRegressor if data.task == "regression" else catboost.CatBoostClassifier
    return kind(random_seed=data.seed % 2**31, thread_count=1, verbose=False, allow_writing_files=False, **parameters)


def _fit_realmlp(parameters: Parameters, data: FitData) -> Any:
    logging.getLogger("pytorch_lightning.utilities.rank_zero").setLevel(logging.ERROR)
    import pytabkit

    if data.task == "regression":
        model = pytabkit.RealMLP_TD_Regressor(**_realmlp(data), val_metric_name="mae", **parameters)
    else:
        model = pytabkit.RealMLP_TD_Classifier(
            **_realmlp(data), val_metric_name="cross_entropy", use_ls=False, **parameters
        )
    return Rival(model, data.task, scaled=False).fit(data.train, model.fit, data.validation)


def _realmlp(data: FitData) -> dict[str, Any]:
    return {"device": "cpu", "random_state": data.seed % 2**31, "n_threads": 1, "verbosity": 0}


def _default_realmlp(data: FitData) -> Any:
    """RealMLP-TD, stopped on a fifth of the training rows, as it does by itself."""
    return _fit_realmlp({}, _stopped(data))


def _fit_xrfm(parameters: Parameters, data: FitData) -> Any:
    import xrfm

    metric = "mae" if data.task == "regression" else "logloss"
    model = xrfm.xRFM(device="cpu", tuning_metric=metric, n_threads=1, random_state=data.seed, verbose=False)
    model.rfm_params = deepcopy(model.rfm_params)  # the authors' values, which one of its other attributes shares
    for name, value in parameters.items():
        model.rfm_params["model" if name in model.rfm_params["model"] else "fit"][name] = value
    return Rival(model, data.task, scaled=True).fit(data.train, model.fit, data.validation)


def _default_xrfm(data: FitData) -> Any:
    """bandwidth=10, reg=1e-3, five iterations, of which the best on a fifth of the training rows is kept."""
    return _fit_xrfm({}, _stopped(data))


def _fit_tabicl(parameters: Parameters, data: FitData) -> Any:
    import tabicl

    kind = tabicl.TabICLRegressor if data.task == "regression" else tabicl.TabICLClassifier
    model = kind(
        model_path=_checkpoint(data.task),
        allow_auto_download=False,
        device="cpu",
        random_state=data.seed,
    )
    return Rival(model, data.task, scaled=False).fit(data.train, model.fit)


def _default_tabicl(data: FitData) -> Any:
    return _fit_tabicl({}, data)


def _checkpoint(task: TaskName) -> str:
    """Return the file with TabICL's weights: of two the one whose name has the task in it."""
    named = _checkpoints()
    if not named:
        raise InputError(f"TabICL needs trained weights: set {CHECKPOINT} to its checkpoint file.")
    word = "regress" if task == "regression" else "classif"
    return str(next((path for path in named if word in path.name), named[0]))


def _checkpoints() -> list[Path]:
    return [Path(part) for part in os.environ.get(CHECKPOINT, "").split(os.pathsep) if part]


def _stopped(data: FitData) -> FitData:
    """Put a fifth of the training rows in the place of the validation rows; whole people."""
    rows, held_out, _ = data.train.split_rows((1.0 - STOPPED_ON, STOPPED_ON, 0.0), data.seed, stratify="target")
    return FitData(data.train.take(rows), data.train.take(held_out), data.task, data.seed)


FITS: dict[str, tuple[Callable[[Parameters, FitData], Any], Callable[[FitData], Any]]] = {
    "catboost": (_fit_catboost, _default_catboost),
    "realmlp": (_fit_realmlp, _default_realmlp),
    "xrfm": (_fit_xrfm, _default_xrfm),
    "tabicl": (_fit_tabicl, _default_tabicl),
}
"""For each rival two functions: one fits it with given parameters, the other with its defaults."""
