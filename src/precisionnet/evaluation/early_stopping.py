"""Models that grow step by step, kept at the step that did best on the validation rows, as the networks are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet.datasets import Dataset
from precisionnet.evaluation.metrics import judge
from precisionnet.evaluation.protocol import FitData, target_of
from precisionnet.evaluation.tuning import Parameters
from precisionnet.types import FloatArray

MOST_TREES = 400
"""Trees at most; of each class, where there are more than two."""
MOST_PASSES = 300
"""Passes over the rows at most."""
PATIENCE = 30
"""Passes over the rows without a better validation score before the perceptron stops."""


class Boosting:
    """Gradient boosting, cut off behind a number of its trees."""

    def __init__(self, trees: Any, regression: bool) -> None:
        self.trees, self.regression = trees, regression
        self.columns: list[str] = []
        self.n_trees = 0

    def fit(self, train: Dataset, validation: Dataset) -> Boosting:
        """Grow all trees on the training rows; keep the number that did best on the validation rows."""
        self.columns = list(train.X.columns[train.X.notna().any()])  # scikit-learn cannot bin a column of NaN
        self.trees.fit(train.X[self.columns], target_of(train))
        classes = None if self.regression else self.classes_
        self.n_trees = (
            int(np.argmin([judge(target_of(validation), said, classes) for said in self._stages(validation.X)])) + 1
        )
        return self

    @property
    def classes_(self) -> Any:
        """Labels of the columns of ``predict_proba``."""
        return self.trees.classes_

    def predict(self, X: pd.DataFrame) -> Any:
        """Return numbers, or the likeliest classes."""
        said = self._said(X)
        return said if self.regression else self.classes_[said.argmax(axis=1)]

    def predict_proba(self, X: pd.DataFrame) -> FloatArray:
        """Return probabilities, one column per class."""
        return self._said(X)

    def _said(self, X: pd.DataFrame) -> FloatArray:
        return next(islice(self._stages(X), self.n_trees - 1, None))

    def _stages(self, X: pd.DataFrame) -> Iterator[FloatArray]:
        """Yield predictions after one tree, two trees, ...: numbers, or one column per class."""
        X = X[self.columns]
        return self.trees.staged_predict(X) if self.regression else self.trees.staged_predict_proba(X)


def fit_boosting(parameters: Parameters, data: FitData) -> Boosting:
    """Fit trees on the features as they are: neither units nor missing values matter to them."""
    regression = data.task == "regression"
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    trees = kind(
        learning_rate=parameters["learning_rate"],
        max_leaf_nodes=parameters["max_leaf_nodes"],
        max_features=parameters["max_features"],
        l2_regularization=parameters["l2_penalty"],
        max_iter=MOST_TREES,
        early_stopping=False,
        random_state=data.seed,
        **({"loss": parameters["loss"]} if regression else {}),
    )
    return Boosting(trees, regression).fit(data.train, data.validation)


class PcaPerceptron:
    """Principal components and a multi-layer perceptron on top."""

    def __init__(self, parameters: Parameters, data: FitData) -> None:
        self.components = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            StandardScaler(),
            PCA(parameters["variance"], svd_solver="full"),
        )
        self.target = StandardScaler()
        kind = MLPRegressor if data.task == "regression" else MLPClassifier
        self.perceptron = kind(
            hidden_layer_sizes=parameters["hidden"],
            alpha=parameters["l2_penalty"],
            learning_rate_init=parameters["learning_rate"],
            random_state=data.seed,
        )
        self.regression = data.task == "regression"

    def fit(self, train: Dataset, validation: Dataset) -> PcaPerceptron:
        """Make pass after pass over the training rows; keep the weights that did best on the validation rows."""
        inputs, held_out = self.components.fit_transform(train.X), self.components.transform(validation.X)
        y, y_held_out = target_of(train), target_of(validation)
        target = self.target.fit_transform(y[:, None])[:, 0] if self.regression else y
        more = {} if self.regression else {"classes": np.unique(y)}
        best, best_pass, kept = np.inf, 0, None
        for number in range(MOST_PASSES):
            self.perceptron.partial_fit(inputs, target, **more)
            score = judge(y_held_out, self._say(held_out), None if self.regression else self.classes_)
            if score < best:
                weights = self.perceptron.coefs_, self.perceptron.intercepts_
                best, best_pass, kept = score, number, [[array.copy() for array in arrays] for arrays in weights]
            elif number - best_pass >= PATIENCE:
                break
        if kept is not None:
            self.perceptron.coefs_, self.perceptron.intercepts_ = kept
        return self

    @property
    def classes_(self) -> Any:
        """Labels of the columns of ``predict_proba``."""
        return self.perceptron.classes_

    def predict(self, X: pd.DataFrame) -> Any:
        """Return numbers, or the likeliest classes."""
        inputs = self.components.transform(X)
        return self._say(inputs) if self.regression else self.perceptron.predict(inputs)

    def predict_proba(self, X: pd.DataFrame) -> FloatArray:
        """Return probabilities, one column per class."""
        return self._say(self.components.transform(X))

    def _say(self, inputs: FloatArray) -> FloatArray:
        """Return numbers in the target's units, or one column per class."""
        if self.regression:
            return self.target.inverse_transform(self.perceptron.predict(inputs)[:, None])[:, 0]
        return self.perceptron.predict_proba(inputs)


def fit_perceptron(parameters: Parameters, data: FitData) -> PcaPerceptron:
    """Fit the paper's PCA baseline, with its tuning."""
    return PcaPerceptron(parameters, data).fit(data.train, data.validation)
