"""The models a user would pick instead of a network, each defined once: for ``compare``, and for a single hold-out.

Every model is given the features it works best with (medians for what is missing and standard units, learned from the
training rows; trees take them as they are) and a target in standard units where its penalties depend on them. Models
that are grown step by step, boosting and the perceptron, keep the step that did best on the validation rows, as the
networks do. ``methods.METHODS`` says which values of their parameters are tried.

Each has a default as well, for comparisons in which nothing is tuned: what scikit-learn's class does with nothing set,
on the same features and the target as it is. Nothing is chosen on validation rows then.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, RationalQuadratic, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from precisionnet.datasets import Dataset
from precisionnet.errors import FitDivergedError, InputError
from precisionnet.evaluation.early_stopping import fit_boosting, fit_perceptron
from precisionnet.evaluation.methods import METHODS, RIVALS
from precisionnet.evaluation.metrics import judge
from precisionnet.evaluation.protocol import FitData, target_of
from precisionnet.evaluation.rivals import FITS as RIVAL_FITS
from precisionnet.evaluation.tuning import Parameters, search_grid
from precisionnet.preprocessing import TableEncoder
from precisionnet.preprocessing.column_kinds import columns_of_labels
from precisionnet.types import TaskName

LARGEST_GP = 3000
"""Training rows; a Gaussian process takes the cube of their number in time and the square in memory."""
CHOSEN_ON = 0.25
"""Share of the training rows on which ``tuned_baseline`` chooses parameters."""


@dataclass(frozen=True)
class Baseline:
    """How one baseline is fitted on training rows; validation rows only stop early.

    ``fit`` takes a choice of parameters, ``fit_default`` sets none.
    """

    fit: Callable[[Parameters, FitData], Any]
    fit_default: Callable[[FitData], Any]


class Encoded:
    """A fitted model behind the encoder of its training rows."""

    def __init__(self, encoder: TableEncoder, model: Any) -> None:
        self.encoder, self.model = encoder, model
        self.classes_ = getattr(model, "classes_", None)

    def predict(self, X: Any) -> Any:
        """Return numbers, or the likeliest classes."""
        return self.model.predict(self.encoder.transform(X))

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities, one column per class."""
        return self.model.predict_proba(self.encoder.transform(X))


def fit_baseline(method: str, parameters: Parameters, data: FitData) -> Any:
    """Fit a baseline with these parameters, or with its defaults where there are none.

    Labels and dates are encoded as the networks encode them, by an encoder that has seen the training rows alone.
    """
    encoder, data = _encoded(method, data)
    model = _fitted_or_diverged(method, parameters, data)
    return model if encoder is None else Encoded(encoder, model)


def _encoded(method: str, data: FitData) -> tuple[TableEncoder | None, FitData]:
    """Return rows as numbers, and what made them so; a table of numbers as it is."""
    if METHODS[method].family == "group" or not columns_of_labels(data.train.X):
        return None, data
    encoder = TableEncoder().fit(data.train.X)
    train, validation = (replace(rows, X=encoder.transform(rows.X)) for rows in (data.train, data.validation))
    return encoder, replace(data, train=train, validation=validation)


def _fitted_or_diverged(method: str, parameters: Parameters, data: FitData) -> Any:
    baseline = BASELINES[method]
    # As scikit-learn says that its solver broke down; other packages say it in their own ways.
    broken = (Exception,) if method in RIVALS else (np.linalg.LinAlgError, ValueError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a poor choice may not converge: its score tells
            return baseline.fit(parameters, data) if parameters else baseline.fit_default(data)
    except InputError:
        raise
    except broken as error:
        raise FitDivergedError(f"{method} could not be fitted: {error}") from error


def tuned_baseline(method: str, train: Dataset, task: TaskName, seed: int = 0) -> Any:
    """Fit a baseline where there are no validation rows: choose on a quarter of the training rows, then fit on all.

    The grid and the model are those of ``compare``. Whole people are on one side of the split, alike in the target.
    Where a class has too few rows for a split the model has its defaults.
    """
    rows, held_out, _ = train.split_rows((1.0 - CHOSEN_ON, CHOSEN_ON, 0.0), seed, stratify="target")
    everything = FitData(train, train, task, seed)
    space = METHODS[method].space(task, {})
    learnt_from = FitData(train.take(rows), train.take(held_out), task, seed)
    if not space or not len(held_out) or (task == "classification" and _lost_class(learnt_from)):
        return fit_baseline(method, {}, everything)
    _, learnt_from = _encoded(method, learnt_from)  # once for all choices
    with config_context(assume_finite=True, skip_parameter_validation=True):  # rows were checked, and checks are most
        best = search_grid(lambda parameters: BaselineCandidate(method, parameters, learnt_from), space, {}).best
    return fit_baseline(method, best.parameters, everything)


class BaselineCandidate:
    """One choice of parameters of a baseline, its defaults without any; equal data make equal models."""

    max_epochs = 1

    def __init__(self, method: str, parameters: Parameters, data: FitData) -> None:
        self.method = method
        self.parameters = parameters
        self.data = data
        self.epochs = 0
        self.seconds = 0.0
        self._model: Any = None
        self._validation = float("inf")

    def advance(self, to_epoch: int) -> float:
        """Fit, the first time; return the MAE, or the log loss of classes, on the validation rows."""
        if not self.done and to_epoch >= 1:
            begun = time.perf_counter()
            self._model = fit_baseline(self.method, self.parameters, self.data)
            self._validation = self._judged()
            self.epochs = 1
            self.seconds += time.perf_counter() - begun
        return self._validation

    @property
    def done(self) -> bool:
        """Whether it is fitted."""
        return self.epochs == 1

    def model(self) -> Any:
        """Return the fitted model."""
        return self._model

    def _judged(self) -> float:
        rows, model = self.data.validation, self._model
        predicted, probabilities = predict_rows(model, rows, self.data.task)
        if probabilities is None:
            return judge(target_of(rows), predicted)
        return judge(target_of(rows), probabilities, model.classes_)


class GroupGuess:
    """Guess by the group of a row (``Dataset.site``) alone: its median, or the shares of its classes.

    A group without training rows has the guess for all rows. Shares of classes are those of the group and of one row
    that is spread over the classes of all rows, so that no class is impossible.
    """

    def __init__(self, data: FitData) -> None:
        y, group = target_of(data.train), _groups_of(data.train)
        self.task = data.task
        self.classes_ = None if data.task == "regression" else np.unique(y)
        self._all = self._guess(y, None)
        self._by_group = {name: self._guess(y[group == name], self._all) for name in np.unique(group)}

    def predict_rows(self, rows: Dataset) -> Any:
        """Return one number per row, or one column of probabilities per class."""
        return np.array([self._by_group.get(name, self._all) for name in _groups_of(rows)])

    def _guess(self, y: Any, whole: Any) -> Any:
        if self.classes_ is None:
            return float(np.median(y))
        counts = (y[:, None] == self.classes_[None, :]).sum(axis=0)
        return counts / len(y) if whole is None else (counts + whole) / (len(y) + 1)


def _groups_of(rows: Dataset) -> Any:
    if rows.site is None:
        raise InputError("Guessing by group needs groups: name the column that says which group a row belongs to.")
    return rows.site.astype(str).to_numpy()


def predict_rows(model: Any, rows: Dataset, task: TaskName) -> tuple[Any, Any]:
    """Return predictions, and probabilities of classes (None for numbers); a guess by group is told the groups."""
    if isinstance(model, GroupGuess):
        said = model.predict_rows(rows)
        return (said, None) if model.classes_ is None else (model.classes_[said.argmax(axis=1)], said)
    return model.predict(rows.X), None if task == "regression" else model.predict_proba(rows.X)


def _lost_class(data: FitData) -> bool:
    """Whether a class has no row left to learn from."""
    return bool(set(map(str, target_of(data.validation))) - set(map(str, target_of(data.train))))


def _prepared(model: Any) -> Any:
    """Put standard units and the medians of the training rows for what is missing before a model."""
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler(), model)


def _on_standard_target(model: Any) -> Any:
    return TransformedTargetRegressor(model, transformer=StandardScaler())


def _fit_ridge(parameters: Parameters, data: FitData) -> Any:
    return _fitted(_prepared(Ridge(alpha=parameters["l2_penalty"])), data.train)


def _fit_logistic(parameters: Parameters, data: FitData) -> Any:
    return _fitted(_prepared(LogisticRegression(C=parameters["C"], max_iter=2000)), data.train)


def _fit_svr(parameters: Parameters, data: FitData) -> Any:
    machine = SVR(C=parameters["C"], gamma=_gamma(parameters, data.train), epsilon=parameters["epsilon"])
    return _fitted(_prepared(_on_standard_target(machine)), data.train)


def _fit_svc(parameters: Parameters, data: FitData) -> Any:
    machine = SVC(C=parameters["C"], gamma=_gamma(parameters, data.train))
    folds = _calibration_folds(data)
    return _fitted(_prepared(CalibratedClassifierCV(machine, ensemble=False, cv=folds)), data.train)


def _gamma(parameters: Parameters, train: Dataset) -> float:
    """Return gamma in multiples of 1 / n_features, scikit-learn's "scale" where columns have unit variance."""
    return float(parameters["gamma_scale"] / train.X.shape[1])


def _calibration_folds(data: FitData) -> list[tuple[Any, Any]]:
    """Split the training rows to calibrate an SVC's probabilities; whole people stay together."""
    X, y, groups = data.train.X, target_of(data.train), data.train.groups
    people = np.arange(len(y)) if groups is None else np.asarray(groups)
    per_class = [len(np.unique(people[y == label])) for label in np.unique(y)]
    if min(per_class) < 2:
        raise InputError(
            "Method svc needs two ids of each class among the training rows for its probabilities: merge the rare "
            "class with another, or leave svc out."
        )
    n_folds = min(5, *per_class)
    if len(np.unique(people)) == len(people):  # everyone once: classes can be dealt out evenly
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=data.seed).split(X, y))
    return list(StratifiedGroupKFold(n_folds, shuffle=True, random_state=data.seed).split(X, y, people))


def _fit_gp(parameters: Parameters, data: FitData) -> Any:
    n_rows, n_features = data.train.X.shape
    if n_rows > LARGEST_GP:
        raise InputError(
            f"Method gp is left out at {n_rows:,} training rows: its time grows with their cube, and {LARGEST_GP:,} "
            "is the most it takes; choose other methods or fewer rows."
        )
    kernel = ConstantKernel(1.0) * _kernel(parameters["kernel"], np.sqrt(n_features))
    if data.task == "classification":
        return _fitted(_prepared(GaussianProcessClassifier(kernel, random_state=data.seed)), data.train)
    process = GaussianProcessRegressor(kernel + WhiteKernel(0.5), normalize_y=True, random_state=data.seed)
    return _fitted(_prepared(process), data.train)


def _kernel(name: str, length: float) -> Kernel:
    """Make a kernel with one length for all columns, started at the typical distance of two rows."""
    bounds = (0.01 * length, 1000 * length)
    if name == "rational_quadratic":
        return RationalQuadratic(length, length_scale_bounds=bounds)
    return RBF(length, bounds) if name == "rbf" else Matern(length, bounds, nu=1.5)


def _fit_guess(parameters: Parameters, data: FitData) -> Any:
    guess = DummyRegressor(strategy="median") if data.task == "regression" else DummyClassifier(strategy="prior")
    return _fitted(guess, data.train)


def _fit_group_guess(parameters: Parameters, data: FitData) -> Any:
    return GroupGuess(data)


def _default_perceptron(data: FitData) -> Any:
    """Keep all components; 100 hidden units, alpha=1e-4, learning_rate_init=1e-3, max_iter=200."""
    kind = MLPRegressor if data.task == "regression" else MLPClassifier
    return _fitted(_prepared(make_pipeline(PCA(), kind(random_state=data.seed))), data.train)


def _default_ridge(data: FitData) -> Any:
    """alpha=1."""
    return _fitted(_prepared(Ridge()), data.train)


def _default_logistic(data: FitData) -> Any:
    """C=1."""
    return _fitted(_prepared(LogisticRegression()), data.train)


def _default_svr(data: FitData) -> Any:
    """C=1, gamma="scale", epsilon=0.1, on the target in its own units."""
    return _fitted(_prepared(SVR()), data.train)


class _OwnDecisions(CalibratedClassifierCV):  # type: ignore[misc]
    """Classes as the machine decides, probabilities, which it has none of, by calibration."""

    def predict(self, X: Any) -> Any:
        return self.calibrated_classifiers_[0].estimator.predict(X)


def _default_svc(data: FitData) -> Any:
    """C=1, gamma="scale"."""
    machine = _OwnDecisions(SVC(), ensemble=False, cv=_calibration_folds(data))
    return _fitted(_prepared(machine), data.train)


def _default_gp(data: FitData) -> Any:
    """Depart from scikit-learn: its fixed kernel without noise predicts 0 where there are many columns."""
    return _fit_gp({"kernel": "rbf"}, data)


def _default_boosting(data: FitData) -> Any:
    """learning_rate=0.1, 100 trees of 31 leaves; columns of NaN, which it cannot bin, are left out."""
    kind = HistGradientBoostingRegressor if data.task == "regression" else HistGradientBoostingClassifier
    trees = kind(random_state=data.seed)
    empty = data.train.X.columns[data.train.X.isna().all()]
    return _fitted(make_pipeline(FunctionTransformer(_without, kw_args={"columns": empty}), trees), data.train)


def _without(X: Any, columns: Any) -> Any:
    return X.drop(columns=columns)


def _default_guess(data: FitData) -> Any:
    return _fit_guess({}, data)


def _fitted(model: Any, train: Dataset) -> Any:
    return model.fit(train.X, target_of(train))


BASELINES: dict[str, Baseline] = {
    "pca_mlp": Baseline(fit_perceptron, _default_perceptron),
    "ridge": Baseline(_fit_ridge, _default_ridge),
    "logistic": Baseline(_fit_logistic, _default_logistic),
    "svr": Baseline(_fit_svr, _default_svr),
    "svc": Baseline(_fit_svc, _default_svc),
    "gp": Baseline(_fit_gp, _default_gp),
    "hist_gb": Baseline(fit_boosting, _default_boosting),
    "group_median": Baseline(_fit_group_guess, GroupGuess),
    "group_majority": Baseline(_fit_group_guess, GroupGuess),
    "median": Baseline(_fit_guess, _default_guess),
    "majority": Baseline(_fit_guess, _default_guess),
    **{name: Baseline(*fits) for name, fits in RIVAL_FITS.items()},
}
"""The baselines by name; their grids are in ``methods.METHODS``."""
