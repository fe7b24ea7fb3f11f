"""One split, one network, and two baselines beside it on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from precisionnet.datasets import Dataset
from precisionnet.errors import InputError, PrecisionNetWarning, some
from precisionnet.estimators import PNNClassifier, PNNRegressor
from precisionnet.estimators.checks import MIN_ROWS
from precisionnet.evaluation.baselines import tuned_baseline
from precisionnet.evaluation.methods import LINEAR, TRIVIAL
from precisionnet.evaluation.metrics import score
from precisionnet.evaluation.protocol import target_of
from precisionnet.joint import Callback
from precisionnet.types import IndexArray, TaskName

FEW_TEST_ROWS = 10
"""With fewer test rows a note says that scores mean little."""


@dataclass(frozen=True)
class Predictions:
    """What one model predicts for the held-out rows.

    Parameters
    ----------
    predicted : array of shape (n_test,)
        Numbers or classes.
    probabilities : array of shape (n_test, n_classes), default=None
        Probabilities of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evaluation import Predictions
    >>> Predictions(np.array([1.0, 2.0])).probabilities is None
    True
    """

    predicted: NDArray[Any]
    probabilities: NDArray[Any] | None = None


@dataclass(frozen=True)
class HoldOut:
    """A fitted network and how it did on held-out rows, beside the baselines.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        The fitted network.
    task : {"regression", "classification"}
        What the target is.
    target : str
        Name of the target.
    training : array of int
        Positions of the rows the model saw, its own validation rows among them.
    test : array of int
        Positions of the held-out rows.
    y_test : array of shape (n_test,)
        Target of the held-out rows.
    predictions : Predictions
        What the network predicts for them.
    scores : DataFrame
        One row per model, the network first, one column per metric.
    notes : list of str, default=[]
        What a reader of the scores should know.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> data = make_gaussian_regression(80, 5, random_state=0)
    >>> result = measure(data, "regression", {"max_epochs": 2, "n_members": 2})
    >>> list(result.scores.columns), len(result.test)
    (['mae', 'rmse', 'r2', 'r'], 16)
    """

    model: Any
    task: TaskName
    target: str
    training: IndexArray
    test: IndexArray
    y_test: NDArray[Any]
    predictions: Predictions
    scores: pd.DataFrame
    notes: list[str] = field(default_factory=list)


def split_rows(data: Dataset, task: TaskName, test_fraction: float, seed: int) -> tuple[IndexArray, IndexArray]:
    """Split rows into training and test rows: whole people, alike in target.

    Parameters
    ----------
    data : Dataset
        Rows with a target.
    task : {"regression", "classification"}
        What the target is.
    test_fraction : float
        Share of the rows that is held out.
    seed : int
        Seed of the split.

    Returns
    -------
    training : array of int
        Positions of the training rows.
    test : array of int
        Positions of the test rows.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import split_rows
    >>> training, test = split_rows(make_gaussian_regression(100, 5, random_state=0), "regression", 0.2, seed=0)
    >>> len(training), len(test)
    (80, 20)
    """
    y = data.y
    assert y is not None
    training, _, test = data.split_rows((1.0 - test_fraction, 0.0, test_fraction), seed, stratify="target")
    if len(test) < 2 or len(training) < 2 * MIN_ROWS:
        people = len(y) if data.groups is None else data.groups.nunique()
        raise InputError(
            f"A test fraction of {test_fraction:g} splits {len(y)} rows ({people} ids) into {len(training)} to "
            f"learn from and {len(test)} to test: at least {2 * MIN_ROWS} and 2 are needed; change test_fraction or "
            "bring more rows."
        )
    lost = sorted(set(y.astype(str)) - set(y.iloc[training].astype(str))) if task == "classification" else []
    if lost:
        raise InputError(
            f"All rows of class {some(lost)} belong to ids that were held out: change seed or test_fraction, "
            "or merge classes."
        )
    return training, test


def measure(
    data: Dataset,
    task: TaskName,
    parameters: dict[str, Any],
    *,
    seed: int = 0,
    test_fraction: float = 0.2,
    callbacks: Sequence[Callback] = (),
) -> HoldOut:
    """Fit a network on training rows and score it on test rows, beside a linear model and a guess.

    The baselines are those of ``compare``: ``ridge`` or ``logistic``, its penalty chosen on a quarter of the training
    rows, and always guessing the median or the most frequent class.

    Parameters
    ----------
    data : Dataset
        Rows with a target.
    task : {"regression", "classification"}
        What the target is.
    parameters : dict
        Parameters of the network, such as ``{"method": "joint", "n_layers": 2}``.
    seed : int, default=0
        Seed of the split and of the fit.
    test_fraction : float, default=0.2
        Share of the rows that is held out.
    callbacks : sequence of callable, default=()
        Called with each epoch's row of the history.

    Returns
    -------
    HoldOut
        The fitted network, its predictions of the test rows, and the scores of all models.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> data = make_gaussian_regression(80, 5, random_state=0)
    >>> measure(data, "regression", {"max_epochs": 2, "n_members": 2}).scores.index.tolist()
    ['joint', 'ridge', 'median']
    """
    training, test = split_rows(data, task, test_fraction, seed)
    train, held_out = data.take(training), data.take(test)
    model = (PNNRegressor if task == "regression" else PNNClassifier)(**parameters, random_state=seed)
    model.set_params(callbacks=list(callbacks))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(train.X, train.y, groups=train.groups).set_params(callbacks=None)
    baselines = {name: tuned_baseline(name, train, task, seed) for name in (LINEAR[task], TRIVIAL[task])}
    models = {model.method: model, **baselines}
    said = {name: _predict(fitted, held_out.X, task) for name, fitted in models.items()}
    y_test = target_of(held_out)
    rows = {
        name: score(y_test, found.predicted, found.probabilities, getattr(models[name], "classes_", None))
        for name, found in said.items()
    }
    scores = pd.DataFrame.from_dict(rows, orient="index")
    warned = [str(w.message) for w in caught if issubclass(w.category, PrecisionNetWarning)]
    notes = list(dict.fromkeys(warned)) + _notes(scores, len(test), data.groups)
    target = str(train.y.name) if train.y is not None else ""
    return HoldOut(model, task, target, training, test, y_test, said[model.method], scores, notes)


def _notes(scores: pd.DataFrame, n_test: int, groups: pd.Series[Any] | None) -> list[str]:
    """Say what a reader of the scores should know."""
    notes = []
    if groups is not None and groups.duplicated().any():
        notes.append("Ids repeat: all rows of an id are on the same side of the test split.")
    if n_test < FEW_TEST_ROWS:
        notes.append(
            f"Only {n_test} rows were held out: the scores say little; bring more rows or raise test_fraction."
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
