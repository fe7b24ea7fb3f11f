"""One split, one model, and the plain predictors beside it on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet.estimators import PNNClassifier, PNNRegressor
from precisionnet.experiments.metrics import score
from precisionnet.joint import HistoryRow
from precisionnet.types import IndexArray, TaskName


@dataclass(frozen=True)
class Predictions:
    """What one model said of the held-out rows."""

    predicted: NDArray[Any]
    probabilities: NDArray[Any] | None = None


@dataclass(frozen=True)
class HoldOut:
    """A fitted model and how it did on held-out rows, next to the plain predictors."""

    model: Any
    task: TaskName
    target: str
    training: IndexArray
    """Rows the model saw (its own validation rows among them)."""
    test: IndexArray
    y_test: NDArray[Any]
    predictions: Predictions
    scores: pd.DataFrame
    """One row a model (the fitted one first), one column a metric."""
    notes: list[str] = field(default_factory=list)


def split_rows(
    y: pd.Series[Any], task: TaskName, test_fraction: float, seed: int, groups: Any = None
) -> tuple[IndexArray, IndexArray]:
    """Training and test rows: by group where ids repeat, stratified by class for classification."""
    kind: Any = StratifiedShuffleSplit if task == "classification" else ShuffleSplit
    if groups is not None and pd.Series(groups).duplicated().any():
        kind = GroupShuffleSplit
    else:
        groups = None
    splitter = kind(n_splits=1, test_size=test_fraction, random_state=seed)
    training, test = next(splitter.split(np.zeros(len(y)), y, groups))
    return np.sort(training), np.sort(test)


def plain_models(task: TaskName) -> dict[str, Any]:
    """What a fit must beat to be worth it, by the name the tables show."""
    if task == "regression":
        ridge = RidgeCV(alphas=np.logspace(-2, 4, 25))
        return {"ridge": make_pipeline(StandardScaler(), ridge), "median": DummyRegressor(strategy="median")}
    logistic = GridSearchCV(LogisticRegression(max_iter=500), {"C": np.logspace(-3, 2, 6)}, cv=3)
    return {"logistic": make_pipeline(StandardScaler(), logistic), "majority": DummyClassifier(strategy="prior")}


def measure(
    X: pd.DataFrame,
    y: pd.Series[Any],
    task: TaskName,
    parameters: dict[str, Any],
    *,
    seed: int = 0,
    test_fraction: float = 0.2,
    groups: Any = None,
    on_epoch: Callable[[HistoryRow], object] | None = None,
) -> HoldOut:
    """Fit on the training rows, predict the test rows, and the same for the plain predictors."""
    training, test = split_rows(y, task, test_fraction, seed, groups)
    kind = PNNRegressor if task == "regression" else PNNClassifier
    model = kind(**parameters, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X.iloc[training], y.iloc[training], on_epoch=on_epoch)
    rows, own = {}, None
    y_test = y.iloc[test].to_numpy()
    for name, candidate in {model.method: model, **plain_models(task)}.items():
        if candidate is not model:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a plain model's convergence is not the user's business here
                candidate.fit(X.iloc[training], y.iloc[training])
        said = _predict(candidate, X.iloc[test], task)
        own = own or said
        rows[name] = score(y_test, said.predicted, said.probabilities, getattr(candidate, "classes_", None))
    assert own is not None
    notes = list(dict.fromkeys(str(w.message) for w in caught))
    scores = pd.DataFrame.from_dict(rows, orient="index")
    return HoldOut(model, task, str(y.name), training, test, y_test, own, scores, notes)


def _predict(model: Any, X: pd.DataFrame, task: TaskName) -> Predictions:
    if task == "regression":
        return Predictions(model.predict(X))
    return Predictions(model.predict(X), model.predict_proba(X))
