"""The models a user would pick instead of a network: how each is built, and the values a careful user would try.

Every model is given the features it works best with (medians for what is missing and standard units, learned from the
training rows; trees take them as they are) and a target in standard units where its penalties depend on them. Models
that are grown step by step, boosting and the perceptron, keep the step that did best on the validation rows, as the
networks do.

Each has a default as well, for comparisons in which nothing is tuned: what scikit-learn's class does with nothing set,
on the same features and the target as it is. Nothing is chosen on validation rows then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, RationalQuadratic, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from precisionnet.errors import InputError
from precisionnet.experiments.methods.candidate import Parameters, Part, Sides
from precisionnet.experiments.methods.early_stopping import fit_boosting, fit_perceptron

LARGEST_GP = 3000
"""Training rows; a Gaussian process takes the cube of their number in time and the square in memory."""


@dataclass(frozen=True)
class PlainModel:
    """One method: fitted on the training rows of ``sides``, the validation rows only to stop early."""

    fit: Callable[[Parameters, Sides], Any]
    fit_default: Callable[[Sides], Any]
    """Nothing set."""
    space: Mapping[str, Sequence[Any]]
    for_numbers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """What is tried besides where the target is a number."""


def _prepared(model: Any) -> Any:
    """On standard units, with the medians of the training rows where something is missing."""
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler(), model)


def _on_standard_target(model: Any) -> Any:
    return TransformedTargetRegressor(model, transformer=StandardScaler())


def _fit_ridge(parameters: Parameters, sides: Sides) -> Any:
    return _fitted(_prepared(Ridge(alpha=parameters["l2_penalty"])), sides.train)


def _fit_logistic(parameters: Parameters, sides: Sides) -> Any:
    return _fitted(_prepared(LogisticRegression(C=parameters["C"], max_iter=2000)), sides.train)


def _fit_svr(parameters: Parameters, sides: Sides) -> Any:
    machine = SVR(C=parameters["C"], gamma=_gamma(parameters, sides.train), epsilon=parameters["epsilon"])
    return _fitted(_prepared(_on_standard_target(machine)), sides.train)


def _fit_svc(parameters: Parameters, sides: Sides) -> Any:
    machine = SVC(C=parameters["C"], gamma=_gamma(parameters, sides.train))
    folds = _calibration_folds(sides)
    return _fitted(_prepared(CalibratedClassifierCV(machine, ensemble=False, cv=folds)), sides.train)


def _gamma(parameters: Parameters, train: Part) -> float:
    """In multiples of 1 / n_features, which is scikit-learn's "scale" where columns have unit variance."""
    return float(parameters["gamma_scale"] / train.X.shape[1])


def _calibration_folds(sides: Sides) -> list[tuple[Any, Any]]:
    """Splits of the training rows that calibrate an SVC's probabilities; whole people stay together."""
    train = sides.train
    people = np.arange(len(train.y)) if train.groups is None else train.groups
    per_class = [len(np.unique(people[train.y == label])) for label in np.unique(train.y)]
    if min(per_class) < 2:
        raise InputError(
            "Method svc needs two ids of each class among the training rows for its probabilities: merge the rare "
            "class with another, or leave svc out."
        )
    n_folds = min(5, *per_class)
    if len(np.unique(people)) == len(people):  # everyone once: classes can be dealt out evenly
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=sides.seed).split(train.X, train.y))
    return list(StratifiedGroupKFold(n_folds, shuffle=True, random_state=sides.seed).split(train.X, train.y, people))


def _fit_gp(parameters: Parameters, sides: Sides) -> Any:
    n_rows, n_features = sides.train.X.shape
    if n_rows > LARGEST_GP:
        raise InputError(
            f"Method gp is left out at {n_rows:,} training rows: its time grows with their cube, and {LARGEST_GP:,} "
            "is the most it takes; choose other methods or fewer rows."
        )
    kernel = ConstantKernel(1.0) * _kernel(parameters["kernel"], np.sqrt(n_features))
    if sides.task == "classification":
        return _fitted(_prepared(GaussianProcessClassifier(kernel, random_state=sides.seed)), sides.train)
    process = GaussianProcessRegressor(kernel + WhiteKernel(0.5), normalize_y=True, random_state=sides.seed)
    return _fitted(_prepared(process), sides.train)


def _kernel(name: str, length: float) -> Kernel:
    """One length for all columns, started at the typical distance of two rows."""
    bounds = (0.01 * length, 1000 * length)
    if name == "rational_quadratic":
        return RationalQuadratic(length, length_scale_bounds=bounds)
    return RBF(length, bounds) if name == "rbf" else Matern(length, bounds, nu=1.5)


def _fit_guess(parameters: Parameters, sides: Sides) -> Any:
    guess = DummyRegressor(strategy="median") if sides.task == "regression" else DummyClassifier(strategy="prior")
    return _fitted(guess, sides.train)


def _default_perceptron(sides: Sides) -> Any:
    """All components; 100 hidden units, alpha=1e-4, learning_rate_init=1e-3, max_iter=200."""
    kind = MLPRegressor if sides.task == "regression" else MLPClassifier
    return _fitted(_prepared(make_pipeline(PCA(), kind(random_state=sides.seed))), sides.train)


def _default_ridge(sides: Sides) -> Any:
    """alpha=1."""
    return _fitted(_prepared(Ridge()), sides.train)


def _default_logistic(sides: Sides) -> Any:
    """C=1."""
    return _fitted(_prepared(LogisticRegression()), sides.train)


def _default_svr(sides: Sides) -> Any:
    """C=1, gamma="scale", epsilon=0.1, on the target in its own units."""
    return _fitted(_prepared(SVR()), sides.train)


class _OwnDecisions(CalibratedClassifierCV):  # type: ignore[misc]
    """Classes as the machine decides, probabilities, which it has none of, by calibration."""

    def predict(self, X: Any) -> Any:
        return self.calibrated_classifiers_[0].estimator.predict(X)


def _default_svc(sides: Sides) -> Any:
    """C=1, gamma="scale"."""
    machine = _OwnDecisions(SVC(), ensemble=False, cv=_calibration_folds(sides))
    return _fitted(_prepared(machine), sides.train)


def _default_gp(sides: Sides) -> Any:
    """The one that is not scikit-learn's: its fixed kernel without noise predicts 0 wherever there are many columns."""
    return _fit_gp({"kernel": "rbf"}, sides)


def _default_boosting(sides: Sides) -> Any:
    """learning_rate=0.1, 100 trees of 31 leaves; columns of NaN, which it cannot bin, are left out."""
    kind = HistGradientBoostingRegressor if sides.task == "regression" else HistGradientBoostingClassifier
    trees = kind(random_state=sides.seed)
    empty = sides.train.X.columns[sides.train.X.isna().all()]
    return _fitted(make_pipeline(FunctionTransformer(_without, kw_args={"columns": empty}), trees), sides.train)


def _without(X: Any, columns: Any) -> Any:
    return X.drop(columns=columns)


def _default_guess(sides: Sides) -> Any:
    return _fit_guess({}, sides)


def _fitted(model: Any, train: Part) -> Any:
    return model.fit(train.X, train.y)


PLAIN_MODELS: dict[str, PlainModel] = {
    "pca_mlp": PlainModel(
        fit_perceptron,
        _default_perceptron,
        {
            "variance": [0.8, 0.95, 0.999],
            "hidden": [[64], [64, 64]],
            "l2_penalty": [0.01, 1.0, 10.0],
            "learning_rate": [0.001, 0.01],
        },
    ),
    "ridge": PlainModel(_fit_ridge, _default_ridge, {"l2_penalty": np.logspace(-2, 4, 25).tolist()}),
    "logistic": PlainModel(_fit_logistic, _default_logistic, {"C": np.logspace(-4, 2, 13).tolist()}),
    "svr": PlainModel(
        _fit_svr,
        _default_svr,
        {"C": [0.3, 1.0, 3.0, 10.0, 30.0], "gamma_scale": [0.1, 0.3, 1.0, 3.0], "epsilon": [0.03, 0.1, 0.3]},
    ),
    "svc": PlainModel(
        _fit_svc,
        _default_svc,
        {"C": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0], "gamma_scale": [0.03, 0.1, 0.3, 1.0, 3.0]},
    ),
    "gp": PlainModel(_fit_gp, _default_gp, {"kernel": ["rbf", "matern", "rational_quadratic"]}),
    "hist_gb": PlainModel(
        fit_boosting,
        _default_boosting,
        {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [8, 31], "max_features": [0.3, 1.0], "l2_penalty": [1.0]},
        for_numbers={"loss": ["squared_error", "absolute_error"]},
    ),
    "median": PlainModel(_fit_guess, _default_guess, {}),
    "majority": PlainModel(_fit_guess, _default_guess, {}),
}
