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

from precisionnet.errors import InputError, PrecisionNetWarning, some
from precisionnet.estimators import PNNClassifier, PNNRegressor
from precisionnet.estimators.checks import MIN_ROWS
from precisionnet.experiments.metrics import score
from precisionnet.joint import HistoryRow
from precisionnet.types import IndexArray, TaskName

FEW_TEST_ROWS = 10


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
    n_classes, n_groups = y.nunique(), len(y) if groups is None else pd.Series(groups).nunique()
    try:
        training, test = next(splitter.split(np.zeros(len(y)), y, groups))
    except ValueError as error:
        what = f"{n_classes} classes" if kind is StratifiedShuffleSplit else f"{n_groups} different ids"
        raise InputError(
            f"A test fraction of {test_fraction:g} cannot be held out from {len(y)} rows with {what}: bring more rows, "
            f"merge classes, or change --test-fraction."
        ) from error
    if len(test) < 2 or len(training) < 2 * MIN_ROWS:
        raise InputError(
            f"A test fraction of {test_fraction:g} splits {len(y)} rows into {len(training)} to learn from and "
            f"{len(test)} to test: at least {2 * MIN_ROWS} and 2 are needed; change --test-fraction or bring more rows."
        )
    lost = sorted(set(y.astype(str)) - set(y.iloc[training].astype(str))) if task == "classification" else []
    if lost:
        raise InputError(
            f"All rows of class {some(lost)} belong to ids that were held out: change --seed or --test-fraction, "
            "or merge classes."
        )
    return np.sort(training), np.sort(test)


def plain_models(task: TaskName, smallest_class: int = 3) -> dict[str, Any]:
    """What a fit must beat to be worth it, by the name the tables show."""
    if task == "regression":
        ridge = RidgeCV(alphas=np.logspace(-2, 4, 25))
        return {"ridge": make_pipeline(StandardScaler(), ridge), "median": DummyRegressor(strategy="median")}
    logistic: Any = LogisticRegression(max_iter=500)
    if smallest_class > 1:  # with a class of one row there is nothing to tune on
        logistic = GridSearchCV(logistic, {"C": np.logspace(-3, 2, 6)}, cv=min(3, smallest_class))
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
    smallest_class = int(y.iloc[training].value_counts().min())
    for name, candidate in {model.method: model, **plain_models(task, smallest_class)}.items():
        if candidate is not model:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a plain model's convergence is not the user's business here
                candidate.fit(X.iloc[training], y.iloc[training])
        said = _predict(candidate, X.iloc[test], task)
        own = own or said
        rows[name] = score(y_test, said.predicted, said.probabilities, getattr(candidate, "classes_", None))
    assert own is not None
    scores = pd.DataFrame.from_dict(rows, orient="index")
    warned = [str(w.message) for w in caught if issubclass(w.category, PrecisionNetWarning)]
    notes = list(dict.fromkeys(warned)) + _notes(scores, len(test), groups)
    return HoldOut(model, task, str(y.name), training, test, y_test, own, scores, notes)


def _notes(scores: pd.DataFrame, n_test: int, groups: Any) -> list[str]:
    """What a reader of the scores should know."""
    notes = []
    if groups is not None and pd.Series(groups).duplicated().any():
        notes.append("Ids repeat: all rows of an id are on the same side of the test split.")
    if n_test < FEW_TEST_ROWS:
        notes.append(
            f"Only {n_test} rows were held out: the scores say little; bring more rows or raise --test-fraction."
        )
    first, trivial = scores.iloc[0], scores.iloc[-1]
    worse = first["mae"] >= trivial["mae"] if "mae" in scores else first["accuracy"] < trivial["accuracy"]
    if worse:
        notes.append(
            f"{scores.index[0]} does no better here than always guessing the {scores.index[-1]}: do not use this "
            "model; look for outliers and missing-value codes, or change its parameters."
        )
    return notes


def _predict(model: Any, X: pd.DataFrame, task: TaskName) -> Predictions:
    if task == "regression":
        return Predictions(model.predict(X))
    return Predictions(model.predict(X), model.predict_proba(X))
