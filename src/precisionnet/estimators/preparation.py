"""From what a user gives to ``fit`` to training data: checked, canonical, split and scaled.

Everything that a fit learns of the rows before training starts is here, and comes from the training rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, get_tags
from sklearn.utils.validation import validate_data

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError
from precisionnet.estimators.checks import (
    MIN_ROWS,
    check_split,
    group_codes,
    names_of,
    refuse_bad_values,
    refuse_complex,
    refuse_empty_columns,
    refuse_no_logarithm,
    refuse_text_columns,
    warn_about_columns,
    warn_about_left_out,
    warn_about_scale,
)
from precisionnet.estimators.networks import linear_solutions
from precisionnet.estimators.rows import LEAST_SHARE, Scaler, Table, canonical, medians, moments, split_validation
from precisionnet.estimators.targets import (
    ClassTarget,
    NumberTarget,
    Target,
    all_classes,
    class_numbers,
    classes_of,
    learns_logarithm,
)
from precisionnet.kinds import Kind, kinds_for
from precisionnet.linalg import LARGEST
from precisionnet.parameters import BY_NAME, Settings
from precisionnet.precision import sample_covariance
from precisionnet.preprocessing.column_kinds import needs_encoder
from precisionnet.preprocessing.table_encoder import TableEncoder, encoder_for
from precisionnet.sparse_matrices import Matrix
from precisionnet.types import BoolArray, FloatArray, IndexArray, TaskName

if TYPE_CHECKING:
    from precisionnet.estimators.windows import TableWindows  # which reads files: only large tables need it

SKEWED = 1.0
"""Skewness of a target from which on its logarithm is tried."""
BETTER_BY = 0.05
"""Share of the error that it has to save: networks bend by themselves, and gain less by it than linear ones do."""


@dataclass(frozen=True)
class WholeTable:
    """What is known of all rows where ``TrainingData.training`` has only some of them.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Of the features.
    weight : float
        Sum of the weights.
    target_range : ndarray of shape (2,)
        The least and the largest target; of classes without meaning.
    folds : tuple of ndarray
        Rows of ``training`` in each fold.
    windows : TableWindows or None
        What networks learn from; None where that is ``training``.
    """

    mean: FloatArray
    weight: float
    target_range: FloatArray
    folds: tuple[IndexArray, ...]
    windows: TableWindows | None = None

    def learned_windows(self, target: Target) -> TableWindows | None:
        """Return the windows with the target as networks learn it."""
        return None if self.windows is None else self.windows.learning(target)


@dataclass(frozen=True)
class TrainingData:
    """All that training sees of a table."""

    training: Table
    """Canonical rows to learn from, encoded and gaps filled, in the table's units."""
    validation: Table | None
    """Rows to choose the epoch on, where some were set aside."""
    target: Target
    scaler: Scaler
    """Of the features."""
    emp_cov: Matrix
    """Covariance of the scaled training rows; of a sparse support the variances alone, scipy.sparse."""
    column_names: tuple[str, ...] | None
    """Of the nodes: the table's own, where it had any and they are numbers."""
    target_name: str | None
    row_ids: Any
    """Index of the rows given to fit."""
    places: IndexArray
    """Which canonical row each given row became; -1 for a row without weight."""
    medians: FloatArray | None
    n_missing: IndexArray
    n_rows: dict[str, int]
    """Rows given to fit on each side."""
    rng: np.random.RandomState
    """Generator of the fit, with the draws of the split behind it."""
    encoder: TableEncoder | None
    """What makes nodes of the table's columns; None where each column is a node."""
    whole: WholeTable | None = None
    """Where ``training`` is a sample of a larger table, or came after other rows."""
    sparse: bool = False
    """Whether matrices live on a sparse support."""

    @property
    def weight(self) -> float:
        """Sum of the weights of all rows to learn from."""
        return float(self.training.weight.sum()) if self.whole is None else self.whole.weight

    @property
    def mean(self) -> FloatArray:
        """Mean of all rows to learn from."""
        rows = self.training
        return np.average(rows.X, axis=0, weights=rows.weight) if self.whole is None else self.whole.mean

    @property
    def targets(self) -> FloatArray:
        """Targets that are known: of the rows, and the least and largest of all others."""
        return self.training.y if self.whole is None else np.concatenate([self.training.y, self.whole.target_range])


def prepare(
    estimator: Any,
    task: TaskName,
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    X_val: Any = None,
    y_val: Any = None,
    groups: Any = None,
    random_state: Any = None,
    classes: Any = None,
) -> TrainingData:
    """Check, order, split and scale what was given to ``fit``; ``estimator`` only tells its tags.

    ``classes`` are all labels that there are, where the rows may not have all of them.
    """
    if (X_val is None) != (y_val is None):
        raise InputError("X_val and y_val belong together: give both, or neither.")
    target_name = str(y.name) if isinstance(y, pd.Series) and y.name is not None else None
    row_ids = X.index.to_numpy() if isinstance(X, pd.DataFrame) else None
    encoder = None
    if needs_encoder(X, settings.missing):  # learned from the rows given to fit; X_val is only encoded
        encoder = _encoder(X, settings, sample_weight)
        X, X_val = encoder.transform(X), None if X_val is None else encoder.transform(X_val)
    # What scikit-learn's checks note the columns on: a fit that fails leaves nothing on the estimator.
    tags = get_tags(estimator)
    notes = type(type(estimator).__name__, (BaseEstimator,), {"__sklearn_tags__": lambda _: tags})()
    values, labels = _checked(notes, X, y, task, settings, reset=True)
    weight = np.ones(len(values)) if sample_weight is None else _checked_weight(sample_weight, values)
    if task == "classification":
        classes = classes_of(labels, weight) if classes is None else all_classes(labels, weight, classes)
    encoded = labels if classes is None else class_numbers(labels, classes, weight)
    owners = None if groups is None else group_codes(groups, len(values))
    table, places = canonical(values, encoded, weight, owners)
    if len(table) < MIN_ROWS:
        called = "different rows" if sample_weight is None else "different rows with weight"
        raise InputError(f"Got n_samples={len(table)} {called}: at least {MIN_ROWS} are needed to fit.")
    rng = check_random_state(random_state)
    validation: Table | None
    if X_val is None:
        strata = None if classes is None else table.y
        training, validation = split_validation(table, settings.validation_fraction, strata, rng)
    else:
        others, other_labels = _checked(notes, X_val, y_val, task, settings, reset=False)
        coded = other_labels if classes is None else class_numbers(other_labels, classes)
        training, validation = table, canonical(others, coded, np.ones(len(others)))[0]
    check_split(len(training), 0 if validation is None else len(validation), settings.validation_fraction)
    n_training = int(np.isin(places, training.place).sum())
    n_validation = len(X_val) if X_val is not None else int((places >= 0).sum()) - n_training
    names = getattr(notes, "feature_names_in_", None)
    column_names = None if names is None else tuple(str(name) for name in names)
    shown_names = names_of(column_names, values.shape[1])
    middle = None
    if settings.missing != "error":
        refuse_empty_columns(
            np.flatnonzero(np.isnan(training.X).all(axis=0)), shown_names, f"{len(training)} training rows"
        )
        middle = medians(training.X, training.weight)
        training = training.filled(middle)
        validation = None if validation is None else validation.filled(middle)
    scaler = Scaler.fit(training.X, training.weight, settings.standardize)
    target: Target
    if classes is None:
        logarithm = settings.target_scale == "log"
        if logarithm:
            refuse_no_logarithm(table.y if validation is None else np.concatenate([table.y, validation.y]))
        target = NumberTarget.of(training.y, training.weight, settings, logarithm=logarithm)
    else:
        target = ClassTarget(classes)
    on_support = settings.on_sparse_support(
        values.shape[1], own_network=getattr(estimator, "network", None) is not None
    )
    emp_cov: Matrix
    if on_support and settings.ridge != BY_NAME["ridge"].default:
        raise InputError(
            f"ridge={settings.ridge:g} has no part on a sparse support, which {values.shape[1]} columns get: leave it "
            "out, or set support='dense'."
        )
    if on_support:
        emp_cov = _variances(training, scaler, shown_names, settings)
    else:
        whole = sample_covariance(scaler.transform(training.X), training.weight)
        is_constant = moments(training.X, training.weight)[2]
        emp_cov = usable_covariance(whole, is_constant, len(training), shown_names, settings)
    return TrainingData(
        training,
        validation,
        target,
        scaler,
        emp_cov,
        column_names,
        target_name,
        np.arange(len(values)) if row_ids is None else row_ids,
        places,
        middle,
        np.isnan(values).sum(axis=0),
        {"training": n_training, "validation": n_validation},
        rng,
        encoder,
        sparse=on_support,
    )


def kinds_of(data: TrainingData, settings: Settings) -> tuple[Kind, ...]:
    """Return the kinds of an ensemble of several; none keeps rows of a table that is not in memory as a whole.

    Parameters
    ----------
    data : TrainingData
        What training sees of the table.
    settings : Settings
        With ``kernel_rows``.

    Returns
    -------
    tuple of Kind
        In the order of the members.
    """
    rows = data.training.X
    kept = settings.kernel_rows if data.whole is None else 0
    return kinds_for(len(rows), rows.shape[1], settings.widest, sparse=data.sparse, kernel_rows=kept)


def learned_target(
    data: TrainingData, folds: Sequence[IndexArray], settings: Settings, before: Target | None = None
) -> Target:
    """Return whether networks learn the target or its logarithm.

    Ages, prices and durations often grow by factors: the logarithm is nearer to a sum of what the columns contribute,
    and its errors are more alike. With the absolute error nothing is lost by it, as the median of a logarithm is the
    logarithm of the median. A target above zero that is skewed to the right is tried both ways by linear networks,
    which takes milliseconds; the rows that these left out decide (``docs/decisions/0014-target-scale.md``).

    Parameters
    ----------
    data : TrainingData
        What training sees of the table.
    folds : sequence of ndarray
        Training rows that the networks of each fold leave out.
    settings : Settings
        With ``target_scale="auto"`` and members of several kinds there is a choice.
    before : Target, optional
        Of the model that training goes on from: its choice stays.

    Returns
    -------
    Target
        ``data.target``, or one that learns the logarithm.
    """
    target, rows = data.target, data.training
    if not isinstance(target, NumberTarget) or settings.target_scale != "auto" or settings.readout != "several":
        return target
    if before is not None and data.whole is not None:
        return target  # in the units of before
    if before is not None:
        return NumberTarget.of(rows.y, rows.weight, settings, logarithm=learns_logarithm(before))
    known = data.targets if data.validation is None else np.concatenate([rows.y, data.validation.y])
    if not any(map(len, folds)) or known.min() <= 0.0 or _skewness(rows.y, rows.weight) < SKEWED:
        return target
    other = NumberTarget.of(rows.y, rows.weight, settings, logarithm=True)
    x = data.scaler.transform(rows.X)
    errors = [_linear_error(x, rows.y, rows.weight, folds, one) for one in (target, other)]
    return other if errors[1] < (1.0 - BETTER_BY) * errors[0] else target


def _skewness(y: FloatArray, weight: FloatArray) -> float:
    centred = y - np.average(y, weights=weight)
    spread = float(np.sqrt(np.average(centred**2, weights=weight)))
    return float(np.average((centred / spread) ** 3, weights=weight)) if spread > 0.0 else 0.0


def _linear_error(
    x: FloatArray, y: FloatArray, weight: FloatArray, folds: Sequence[IndexArray], target: NumberTarget
) -> float:
    """Return the mean absolute error, in the target's units, of linear networks on the rows that they left out."""
    solutions = linear_solutions(x, y, weight, folds, target)
    predicted, left_out = np.empty(len(y)), np.concatenate(folds)
    with np.errstate(over="ignore"):
        for (coefficients, constant), fold in zip(solutions, folds, strict=False):  # the last has left nothing out
            predicted[fold] = target.meaning(x[fold] @ coefficients.T + constant)
    return float(np.average(np.abs(predicted - y)[left_out], weights=weight[left_out]))


def _encoder(X: pd.DataFrame, settings: Settings, sample_weight: Any) -> TableEncoder:
    """Learn to encode the rows that have weight; weights that are no such thing are refused later."""
    weight = None if sample_weight is None else np.asarray(sample_weight)
    if weight is not None and (weight.shape != (len(X),) or weight.dtype.kind not in "fiub"):
        weight = None
    encoder = encoder_for(X, settings.missing, None if weight is None else weight.astype(np.float64))
    warn_about_left_out(encoder.left_out())
    return encoder


def _checked(
    estimator: Any, X: Any, y: Any, task: TaskName, settings: Settings, *, reset: bool
) -> tuple[FloatArray, Any]:
    """Return the features as float64, and the labels; of a regression as float64, too."""
    X, y = masked_as_missing(X), masked_as_missing(y)
    refuse_text_columns(X)
    refuse_complex(X, "X")
    refuse_complex(y, "y")
    X, y = validate_data(
        estimator, X, y, dtype=np.float64, ensure_all_finite=False, reset=reset, y_numeric=task == "regression"
    )
    names = getattr(estimator, "feature_names_in_", None)
    refuse_bad_values(X, names_of(names, X.shape[1]), settings.missing)
    if task == "classification":
        return X, y
    y = np.asarray(y, dtype=np.float64)
    if (np.abs(y) > LARGEST).any():
        raise InputError(f"The target holds values beyond {LARGEST:g}, whose squares cannot be added up: rescale it.")
    return X, y


def _checked_weight(sample_weight: Any, X: FloatArray) -> FloatArray:
    """Return one number >= 0 per row; what is nothing beside the largest is 0, so that rounding cannot make it all."""
    weight: FloatArray
    if np.isscalar(sample_weight):
        weight = np.full(len(X), float(sample_weight))  # type: ignore[arg-type]
    else:
        weight = check_array(
            masked_as_missing(sample_weight), ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
    if weight.ndim != 1:
        raise InputError(f"sample_weight must be 1D array or scalar, got shape {weight.shape}: one number per row.")
    check_consistent_length(X, weight)
    if not weight.any():
        raise InputError("Sample weights must contain at least one non-zero number: sample_weight is zero everywhere.")
    if (weight < 0).any():
        raise InputError("Negative values in data passed to `sample_weight`: a row counts 0 times or more.")
    return np.where(weight < LEAST_SHARE * weight.max(), 0.0, weight)


def usable_covariance(
    emp_cov: FloatArray, is_constant: BoolArray, n_rows: int, names: list[str], settings: Settings
) -> FloatArray:
    """Return the covariance of scaled rows with variances for constant columns; warn of what makes a poor graph."""
    # A constant column has no variance, or rounding's: as a node of ordinary variance it stays without edges.
    emp_cov, constant = emp_cov.copy(), np.flatnonzero(is_constant)
    others = np.delete(np.diag(emp_cov), constant)
    emp_cov[constant] = emp_cov[:, constant] = 0.0
    emp_cov[constant, constant] = others.mean() if len(others) else 1.0
    warn_about_columns(emp_cov, constant, names, n_rows)
    if not settings.standardize:
        warn_about_scale(emp_cov)
    return emp_cov


def _variances(training: Table, scaler: Scaler, names: list[str], settings: Settings) -> Matrix:
    """Return the diagonal of the covariance; what pairs have is computed where the support needs it."""
    scaled = scaler.transform(training.X)
    share = training.weight / training.weight.sum()
    variance = share @ (scaled - share @ scaled) ** 2
    constant = np.flatnonzero(moments(training.X, training.weight)[2])
    others = np.delete(variance, constant)
    variance[constant] = others.mean() if len(others) else 1.0
    emp_cov = sparse.diags_array(variance, format="csr")
    warn_about_columns(emp_cov, constant, names, len(training))
    if not settings.standardize:
        warn_about_scale(emp_cov)
    return emp_cov
