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

from precisionnet.experiments.methods.candidate import Parameters, Part, Sides
from precisionnet.experiments.metrics import judge
from precisionnet.types import FloatArray

MOST_TREES = 400
"""Of each class, where there are more than two."""
MOST_PASSES = 300
PATIENCE = 30
"""Passes over the rows without a better validation score before the perceptron stops."""


class Boosting:
    """Gradient boosting, cut off behind a number of its trees."""

    def __init__(self, trees: Any, regression: bool) -> None:
        self.trees, self.regression = trees, regression
        self.columns: list[str] = []
        self.n_trees = 0

    def fit(self, train: Part, validation: Part) -> Boosting:
        """Grow all trees on the training rows; the number that did best on the validation rows stays, the fewest."""
        self.columns = list(train.X.columns[train.X.notna().any()])  # scikit-learn cannot bin a column of NaN
        self.trees.fit(train.X[self.columns], train.y)
        classes = None if self.regression else self.classes_
        self.n_trees = int(np.argmin([judge(validation.y, said, classes) for said in self._stages(validation.X)])) + 1
        return self

    @property
    def classes_(self) -> Any:
        """Labels of the columns of ``predict_proba``."""
        return self.trees.classes_

    def predict(self, X: pd.DataFrame) -> Any:
        """Numbers, or the likeliest classes."""
        said = self._said(X)
        return said if self.regression else self.classes_[said.argmax(axis=1)]

    def predict_proba(self, X: pd.DataFrame) -> FloatArray:
        """A column a class."""
        return self._said(X)

    def _said(self, X: pd.DataFrame) -> FloatArray:
        return next(islice(self._stages(X), self.n_trees - 1, None))

    def _stages(self, X: pd.DataFrame) -> Iterator[FloatArray]:
        """Numbers, or a column a class, after one tree, two trees, ..."""
        X = X[self.columns]
        return self.trees.staged_predict(X) if self.regression else self.trees.staged_predict_proba(X)


def fit_boosting(parameters: Parameters, sides: Sides) -> Boosting:
    """Trees on the features as they are: neither units nor missing values matter to them."""
    regression = sides.task == "regression"
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    trees = kind(
        learning_rate=parameters["learning_rate"],
        max_leaf_nodes=parameters["max_leaf_nodes"],
        max_features=parameters["max_features"],
        l2_regularization=parameters["l2_penalty"],
        max_iter=MOST_TREES,
        early_stopping=False,
        random_state=sides.seed,
        **({"loss": parameters["loss"]} if regression else {}),
    )
    return Boosting(trees, regression).fit(sides.train, sides.validation)


class Perceptron:
    """Principal components and a multi-layer perceptron on top."""

    def __init__(self, parameters: Parameters, sides: Sides) -> None:
        self.components = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            StandardScaler(),
            PCA(parameters["variance"], svd_solver="full"),
        )
        self.target = StandardScaler()
        kind = MLPRegressor if sides.task == "regression" else MLPClassifier
        self.perceptron = kind(
            hidden_layer_sizes=parameters["hidden"],
            alpha=parameters["l2_penalty"],
            learning_rate_init=parameters["learning_rate"],
            random_state=sides.seed,
        )
        self.regression = sides.task == "regression"

    def fit(self, train: Part, validation: Part) -> Perceptron:
        """Pass after pass over the training rows; the weights of the best one on the validation rows stay."""
        inputs, held_out = self.components.fit_transform(train.X), self.components.transform(validation.X)
        target = self.target.fit_transform(train.y[:, None])[:, 0] if self.regression else train.y
        more = {} if self.regression else {"classes": np.unique(train.y)}
        best, best_pass, kept = np.inf, 0, None
        for number in range(MOST_PASSES):
            self.perceptron.partial_fit(inputs, target, **more)
            score = judge(validation.y, self._say(held_out), None if self.regression else self.classes_)
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
        """Numbers, or the likeliest classes."""
        inputs = self.components.transform(X)
        return self._say(inputs) if self.regression else self.perceptron.predict(inputs)

    def predict_proba(self, X: pd.DataFrame) -> FloatArray:
        """A column a class."""
        return self._say(self.components.transform(X))

    def _say(self, inputs: FloatArray) -> FloatArray:
        """Numbers in the target's units, or a column a class."""
        if self.regression:
            return self.target.inverse_transform(self.perceptron.predict(inputs)[:, None])[:, 0]
        return self.perceptron.predict_proba(inputs)


def fit_perceptron(parameters: Parameters, sides: Sides) -> Perceptron:
    """The paper's PCA baseline, with its tuning."""
    return Perceptron(parameters, sides).fit(sides.train, sides.validation)
