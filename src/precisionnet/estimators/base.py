"""What the regressor and the classifier share: checks, scaling, the fit and the forward pass."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor

from precisionnet.estimators.checks import (
    column_names,
    group_codes,
    refuse_bad_values,
    refuse_few_rows,
    refuse_text_columns,
    warn_about_columns,
    warn_about_scale,
)
from precisionnet.estimators.fitting import Fitting
from precisionnet.estimators.interop import GraphInterop
from precisionnet.estimators.intervals import Unseen
from precisionnet.estimators.members import member_readouts
from precisionnet.estimators.rows import Table, canonical, canonical_with_places, fill, is_constant
from precisionnet.estimators.settings import Settings
from precisionnet.joint import HistoryRow, Problem, Rows
from precisionnet.nn import PrecisionNetwork
from precisionnet.parameters import BY_NAME, PARAMETERS, Parameter, settled
from precisionnet.precision import sample_covariance, spectral_bound
from precisionnet.types import FloatArray, IndexArray

_PREDICT_ROWS = 8192
"""Rows a forward pass takes at once, so that memory does not grow with the table."""

_RNG_LOCK = Lock()
"""torch's layers draw their first weights from the process's generator, which is borrowed for that moment."""


def _constraint(parameter: Parameter) -> list[Any]:
    """The parameter's range in scikit-learn's words, for its uniform error sentence."""
    allowed: list[Any]
    if parameter.choices:
        allowed = [StrOptions(set(parameter.choices))]
    elif parameter.kind is bool:
        allowed = ["boolean"]
    else:
        number = Integral if parameter.kind is int else Real
        low, high = parameter.kind(parameter.low), None if np.isinf(parameter.high) else parameter.kind(parameter.high)
        allowed = [Interval(number, low, high, closed=parameter.closed)]
    return [*allowed, None] if parameter.optional or parameter.by_recipe else allowed


class BasePNN(GraphInterop, BaseEstimator):  # type: ignore[misc]
    """A Precision Neural Network behind scikit-learn's face.

    Subclasses say what a target is (``_encode_target``), what is lost on it (``_task_loss``, ``_metric``) and what an
    output means (``predict``).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{parameter.name: _constraint(parameter) for parameter in PARAMETERS},
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        method: str = BY_NAME["method"].initial,
        *,
        recipe: str = BY_NAME["recipe"].initial,
        n_members: int | None = BY_NAME["n_members"].initial,
        n_layers: int = BY_NAME["n_layers"].initial,
        n_filters: int = BY_NAME["n_filters"].initial,
        order: int | None = BY_NAME["order"].initial,
        readout: str | None = BY_NAME["readout"].initial,
        readout_width: int | None = BY_NAME["readout_width"].initial,
        activation: str = BY_NAME["activation"].initial,
        l1_scale: float = BY_NAME["l1_scale"].initial,
        l1_penalty: float | None = BY_NAME["l1_penalty"].initial,
        task_weight: float = BY_NAME["task_weight"].initial,
        coupling: float | None = BY_NAME["coupling"].initial,
        ridge: float = BY_NAME["ridge"].initial,
        spectral_bound: float | None = BY_NAME["spectral_bound"].initial,
        loss: str | None = BY_NAME["loss"].initial,
        l2_penalty: float | None = BY_NAME["l2_penalty"].initial,
        input_noise: float | None = BY_NAME["input_noise"].initial,
        learning_rate: float = BY_NAME["learning_rate"].initial,
        batch_size: int = BY_NAME["batch_size"].initial,
        max_epochs: int | None = BY_NAME["max_epochs"].initial,
        theta_every: int = BY_NAME["theta_every"].initial,
        theta_steps: int = BY_NAME["theta_steps"].initial,
        task_steps: int = BY_NAME["task_steps"].initial,
        weight_steps: int = BY_NAME["weight_steps"].initial,
        step1: str = BY_NAME["step1"].initial,
        validation_fraction: float | None = BY_NAME["validation_fraction"].initial,
        patience: int = BY_NAME["patience"].initial,
        missing: str = BY_NAME["missing"].initial,
        standardize: bool = BY_NAME["standardize"].initial,
        standardize_target: bool = BY_NAME["standardize_target"].initial,
        scale_shift: bool = BY_NAME["scale_shift"].initial,
        predict_on: str = BY_NAME["predict_on"].initial,
        dtype: str = BY_NAME["dtype"].initial,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.method = method
        self.recipe = recipe
        self.n_members = n_members
        self.n_layers = n_layers
        self.n_filters = n_filters
        self.order = order
        self.readout = readout
        self.readout_width = readout_width
        self.activation = activation
        self.l1_scale = l1_scale
        self.l1_penalty = l1_penalty
        self.task_weight = task_weight
        self.coupling = coupling
        self.ridge = ridge
        self.spectral_bound = spectral_bound
        self.loss = loss
        self.l2_penalty = l2_penalty
        self.input_noise = input_noise
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.theta_every = theta_every
        self.theta_steps = theta_steps
        self.task_steps = task_steps
        self.weight_steps = weight_steps
        self.step1 = step1
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.missing = missing
        self.standardize = standardize
        self.standardize_target = standardize_target
        self.scale_shift = scale_shift
        self.predict_on = predict_on
        self.dtype = dtype
        self.random_state = random_state

    medians_: FloatArray | None
    _oob_errors: ClassVar[tuple[str, ...]]
    """Names of the attributes with an error on rows left out."""
    networks_: list[PrecisionNetwork]
    """The fitted networks, one a member."""

    @property
    def settings(self) -> Settings:
        """Every parameter's value: what was set, and the recipe's where nothing was."""
        return Settings(**settled(self.get_params(deep=False)))

    @abstractmethod
    def _encode_target(self, y: Any, weight: FloatArray) -> FloatArray:
        """Check the target of the rows that carry weight; return it as numbers."""

    @abstractmethod
    def _encode_known_target(self, y: Any) -> FloatArray:
        """The target of other rows, as the same numbers."""

    @abstractmethod
    def _task_loss(self, output: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """L_task of the paper: weighted mean over rows."""

    @abstractmethod
    def _metric(self, output: Tensor, y: Tensor, weight: Tensor) -> float:
        """What the history shows beside the loss, in the target's own units."""

    @property
    @abstractmethod
    def _n_outputs(self) -> int: ...

    def _fit_target_scaler(self, table: Table) -> None:
        """Only a regression target is scaled."""

    def _target_tensor(self, y: FloatArray) -> Tensor:
        return torch.from_numpy(y)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
        on_epoch: Callable[[HistoryRow], object] | None = None,
    ) -> Self:
        """Learn the precision matrix and the network.

        Parameters
        ----------
        X : (n_samples, n_features) array or data frame of numbers.
        y : the target.
        sample_weight : how often each row counts; 2 is the same as the row standing there twice, so the sum of the
            weights is the number of rows that the l1 penalty sees.
        X_val, y_val : rows to choose the epoch on; by default ``validation_fraction`` of the rows is set aside.
        groups : whose row it is, one label a row; rows of one group never face each other across the validation split.
        on_epoch : called with each epoch's row of ``history_``, for a progress display.
        """
        try:
            fitting = Fitting(self, X, y, sample_weight, X_val=X_val, y_val=y_val, groups=groups)
            with fitting.threads():
                while not fitting.done:
                    row = fitting.advance()
                    if on_epoch is not None:
                        on_epoch(row)
            fitting.finish()
        except BaseException:
            self._forget()  # a failed fit leaves no half of a model behind
            raise
        return self

    def _forget(self) -> None:
        given = self.get_params(deep=False)
        fitted = [name for name in vars(self) if name.endswith("_") or name in ("_x_scaler", "_y_scaler")]
        for name in fitted:
            if name not in given:
                delattr(self, name)

    def _checked_table(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Table, IndexArray, np.random.RandomState]:
        """The canonical rows, which of them each given row became, and the generator of the fit."""
        refuse_text_columns(X)
        self.target_name_ = str(y.name) if isinstance(y, pd.Series) and y.name is not None else None
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False, **self._target_checks)
        refuse_bad_values(X, column_names(self), self.missing)
        self.n_missing_ = np.isnan(X).sum(axis=0)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        encoded = self._encode_target(y, weight)
        table, places = canonical_with_places(X, encoded, weight, group_codes(groups, len(X)))
        refuse_few_rows(len(table))
        return table, places, check_random_state(self.random_state)

    def _checked_validation(self, X: Any, y: Any) -> Table:
        refuse_text_columns(X)
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False, reset=False, **self._target_checks)
        refuse_bad_values(X, column_names(self), self.missing)
        return canonical(X, self._encode_known_target(y), np.ones(len(X)))

    _target_checks: ClassVar[dict[str, Any]] = {}

    def _problem(self, training: Table, seed: int) -> Problem:
        standard = self._x_scaler.transform(training.X)
        emp_cov = sample_covariance(standard, training.weight)
        # A constant column has no variance, or rounding's: as a node of ordinary variance it stays without edges.
        constant = np.flatnonzero(is_constant(training.X, training.weight))
        others = np.delete(np.diag(emp_cov), constant)
        emp_cov[constant] = emp_cov[:, constant] = 0.0
        emp_cov[constant, constant] = others.mean() if len(others) else 1.0
        warn_about_columns(emp_cov, constant, column_names(self), len(training))
        if not self.standardize:
            warn_about_scale(emp_cov)
        rate = float(np.sqrt(np.log(self.n_features_in_) / training.weight.sum()))
        settings = self.settings
        return Problem(
            network=self._new_network(seed, member_readouts(settings)[0]),
            rows=self._rows(training),
            task_loss=self._task_loss,
            emp_cov=emp_cov,
            l1_penalty=settings.l1_scale * rate if settings.l1_penalty is None else settings.l1_penalty,
            task_weight=settings.task_weight,
            coupling=settings.coupling if settings.method == "joint" else 0.0,  # the others have one matrix
            ridge=settings.ridge,
            spectral_bound=spectral_bound(emp_cov) if settings.spectral_bound is None else settings.spectral_bound,
            l2_penalty=settings.l2_penalty,
            scale_shift=settings.scale_shift,
        )

    def standard_units(self, X: Any) -> FloatArray:
        """Rows as the network sees them: with ``standardize``, in standard deviations from the training rows' mean."""
        check_is_fitted(self)
        return self._x_scaler.transform(np.asarray(X, dtype=np.float64))

    @property
    def precision_in_units_(self) -> FloatArray:
        """The sparse precision of the features as the table has them: theta_ij / (scale_i scale_j)."""
        check_is_fitted(self)
        scale = self._x_scaler.scale
        return self.precision_ / np.outer(scale, scale)

    def _new_network(self, seed: int, readout: str) -> PrecisionNetwork:
        settings = self.settings
        with _RNG_LOCK, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = PrecisionNetwork(
                self.n_features_in_,
                n_outputs=self._n_outputs,
                n_layers=settings.n_layers,
                n_filters=settings.n_filters,
                order=settings.order,
                readout=readout,  # type: ignore[arg-type]
                readout_width=settings.readout_width,
                activation=settings.activation,
            )
        return network.to(getattr(torch, self.dtype))

    def _rows(self, table: Table) -> Rows:
        dtype = getattr(torch, self.dtype)
        x = torch.from_numpy(self._x_scaler.transform(table.X)).to(dtype).unsqueeze(-1)
        y = self._target_tensor(table.y)
        return Rows(x, y.to(dtype) if y.is_floating_point() else y, torch.from_numpy(table.weight).to(dtype))

    @abstractmethod
    def _keep_out_of_bag(self, output: FloatArray, unseen: Unseen, places: IndexArray) -> None:
        """Out-of-bag predictions and errors, from the outputs on rows not seen in training."""

    @abstractmethod
    def _out_of_bag_errors(self, y: Any) -> FloatArray:
        """Of each row given to fit that a member left out."""

    @property
    def network_(self) -> PrecisionNetwork:
        """The fitted network; the first one of an ensemble."""
        check_is_fitted(self, "networks_")
        return self.networks_[0]

    @property
    def shift_(self) -> FloatArray:
        """The matrix the fitted network runs on, scaled as it uses it; the first member's of an ensemble."""
        check_is_fitted(self, "networks_")
        shift: FloatArray = self.shifts_[0]
        return shift

    def _member_outputs(self, X: Any) -> Tensor:
        """The networks' raw outputs for new rows, (members, rows, outputs), float64."""
        check_is_fitted(self)
        refuse_text_columns(X)
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False)
        refuse_bad_values(X, column_names(self), "error" if self.medians_ is None else "median")
        if self.medians_ is not None:
            X = fill(X, self.medians_)
        return torch.stack([self._forward(index, X) for index in range(len(self.networks_))])

    def _forward(self, index: int, X: FloatArray) -> Tensor:
        """One network's raw outputs for rows without gaps, (rows, outputs), float64."""
        network, shift = self.networks_[index], torch.from_numpy(self.shifts_[index])
        x = torch.from_numpy(self._x_scaler.transform(X)).unsqueeze(-1)
        with torch.no_grad():
            return torch.cat([network(part, shift) for part in torch.split(x, _PREDICT_ROWS)])

    def _output(self, X: Any) -> FloatArray:
        """The ensemble's raw output for new rows: the members' mean.

        Of classes that is the geometric mean of their probabilities, in which a member that is not sure has little say.
        """
        output: FloatArray = self._member_outputs(X).mean(dim=0).numpy()
        return output

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "median"
        return tags

    def save(self, folder: str | Path) -> None:
        """Write the fitted model to ``folder`` (``model.safetensors`` and ``model.json``), whole or not at all."""
        from precisionnet.estimators.files import save

        save(self, folder)
