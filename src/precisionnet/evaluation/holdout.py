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
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet.datasets import Dataset
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


def split_rows(data: Dataset, task: TaskName, test_fraction: float, seed: int) -> tuple[IndexArray, IndexArray]:
    """Training and test rows: whole people, alike in target."""
    y = data.y
    assert y is not None
    training, _, test = data.split_rows((1.0 - test_fraction, 0.0, test_fraction), seed, stratify="target")
    if len(test) < 2 or len(training) < 2 * MIN_ROWS:
        people = len(y) if data.groups is None else data.groups.nunique()
        raise InputError(
            f"A test fraction of {test_fraction:g} splits {len(y)} rows ({people} ids) into {len(training)} to "
            f"learn from and {len(test)} to test: at least {2 * MIN_ROWS} and 2 are needed; change --test-fraction or "
            "bring more rows."
        )
    lost = sorted(set(y.astype(str)) - set(y.iloc[training].astype(str))) if task == "classification" else []
    if lost:
        raise InputError(
            f"All rows of class {some(lost)} belong to ids that were held out: change --seed or --test-fraction, "
            "or merge classes."
        )
    return training, test


def plain_models(task: TaskName, smallest_class: int = 3) -> dict[str, Any]:
    """What a fit must beat to be worth it, by the name the tables show."""
    if task == "regression":
        ridge = RidgeCV(alphas=np.logspace(-2, 4, 25))
        return {"ridge": _prepared(ridge), "median": DummyRegressor(strategy="median")}
    logistic: Any = LogisticRegression(max_iter=500)
    if smallest_class > 1:  # with a class of one row there is nothing to tune on
        logistic = GridSearchCV(logistic, {"C": np.logspace(-3, 2, 6)}, cv=min(3, smallest_class))
    return {"logistic": _prepared(logistic), "majority": DummyClassifier(strategy="prior")}


def _prepared(model: Any) -> Any:
    """On standard units, with the medians of the training rows where something is missing."""
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), model)


def measure(
    data: Dataset,
    task: TaskName,
    parameters: dict[str, Any],
    *,
    seed: int = 0,
    test_fraction: float = 0.2,
    on_epoch: Callable[[HistoryRow], object] | None = None,
) -> HoldOut:
    """Fit on the training rows, predict the test rows, and the same for the plain predictors."""
    training, test = split_rows(data, task, test_fraction, seed)
    X, y, groups = data.X, data.y, data.groups
    assert y is not None
    kind = PNNRegressor if task == "regression" else PNNClassifier
    model = kind(**parameters, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        people = None if groups is None else groups.iloc[training]
        model.fit(X.iloc[training], y.iloc[training], groups=people, on_epoch=on_epoch)
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


def _notes(scores: pd.DataFrame, n_test: int, groups: pd.Series[Any] | None) -> list[str]:
    """What a reader of the scores should know."""
    notes = []
    if groups is not None and groups.duplicated().any():
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
