"""What the regressor and the classifier share: parameters and their documentation, the fit, and files."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from torch import nn

from precisionnet.errors import InputError, shown
from precisionnet.estimators.attributes import FittedAttributes
from precisionnet.estimators.fitted import Fitted
from precisionnet.estimators.forecast import (
    Forecast,
    forecast,
    refuse_no_room,
    refuse_pairs_without_room,
    refuse_too_many_numbers,
)
from precisionnet.estimators.networks import NetworkFactory
from precisionnet.estimators.preparation import TrainingData, prepare
from precisionnet.estimators.table_fits import TableFits
from precisionnet.estimators.training import TrainingRun, train
from precisionnet.joint import Callback, GlassoCache, HistoryRow
from precisionnet.parameters import BY_NAME, PARAMETERS, Parameter, Settings, settings_of
from precisionnet.threads import limited_threads
from precisionnet.types import TaskName

Estimator = TypeVar("Estimator", bound=type)


class BasePNN(FittedAttributes, TableFits, BaseEstimator):  # type: ignore[misc]
    """A Precision Neural Network as a scikit-learn estimator; subclasses say what is predicted."""

    _task: ClassVar[TaskName]

    def __init__(
        self,
        method: str = BY_NAME["method"].initial,
        *,
        recipe: str = BY_NAME["recipe"].initial,
        n_members: int | None = BY_NAME["n_members"].initial,
        n_layers: int = BY_NAME["n_layers"].initial,
        n_filters: int | Sequence[int] = BY_NAME["n_filters"].initial,
        order: int | Sequence[int] | None = BY_NAME["order"].initial,
        readout: str | None = BY_NAME["readout"].initial,
        readout_width: int | None = BY_NAME["readout_width"].initial,
        batch_norm: bool = BY_NAME["batch_norm"].initial,
        activation: str = BY_NAME["activation"].initial,
        l1_scale: float = BY_NAME["l1_scale"].initial,
        l1_penalty: float | None = BY_NAME["l1_penalty"].initial,
        covariance_threshold: str | None = BY_NAME["covariance_threshold"].initial,
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
        step2: str = BY_NAME["step2"].initial,
        monotone: bool = BY_NAME["monotone"].initial,
        validation_fraction: float | None = BY_NAME["validation_fraction"].initial,
        patience: int = BY_NAME["patience"].initial,
        keep_epoch: str = BY_NAME["keep_epoch"].initial,
        missing: str = BY_NAME["missing"].initial,
        standardize: bool = BY_NAME["standardize"].initial,
        standardize_target: bool | None = BY_NAME["standardize_target"].initial,
        target_scale: str = BY_NAME["target_scale"].initial,
        scale_shift: bool | None = BY_NAME["scale_shift"].initial,
        predict_on: str = BY_NAME["predict_on"].initial,
        support: str = BY_NAME["support"].initial,
        kernel_rows: int = BY_NAME["kernel_rows"].initial,
        dtype: str = BY_NAME["dtype"].initial,
        device: str = BY_NAME["device"].initial,
        network: NetworkFactory | None = None,
        callbacks: Sequence[Callback] | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int | bool = False,
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
        self.batch_norm = batch_norm
        self.activation = activation
        self.l1_scale = l1_scale
        self.l1_penalty = l1_penalty
        self.covariance_threshold = covariance_threshold
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
        self.step2 = step2
        self.monotone = monotone
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.keep_epoch = keep_epoch
        self.missing = missing
        self.standardize = standardize
        self.standardize_target = standardize_target
        self.target_scale = target_scale
        self.scale_shift = scale_shift
        self.predict_on = predict_on
        self.support = support
        self.kernel_rows = kernel_rows
        self.dtype = dtype
        self.device = device
        self.network = network
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def settings(self) -> Settings:
        """Every parameter's value as a fit uses it, checked."""
        return settings_of(self.get_params(deep=False), self._task, own_network=self.network is not None)

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None, groups: Any = None
    ) -> Self:
        """Learn the precision matrix and the networks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; a data frame keeps its column names.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts; 2 is the same as the row standing there twice, so the sum of the weights is the
            number of rows that the l1 penalty sees.
        X_val : array-like of shape (n_validation, n_features), optional
            Rows to choose the epoch on; by default ``validation_fraction`` of the rows is set aside.
        y_val : array-like of shape (n_validation,), optional
            Their target.
        groups : array-like of shape (n_samples,), optional
            Whose row it is, one label per row; rows of one group never face each other across a split.

        Returns
        -------
        self
            The fitted estimator.
        """
        before = self.__dict__.pop("_fitted", None)  # a fit that fails leaves no model, and none of another table
        settings, data, callbacks = self._prepared(X, y, sample_weight, X_val=X_val, y_val=y_val, groups=groups)
        refuse_no_room(data, settings, own_network=self.network is not None)
        resume = before if self.warm_start else None
        self._fitted = train(
            data, settings, network=self.network, callbacks=callbacks, n_jobs=self.n_jobs, resume=resume
        )
        return self

    def forecast(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Forecast:
        """Estimate how long ``fit`` will take with these rows and how much memory it needs, within a factor of two.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As for ``fit``; so are the others.
        y : array-like of shape (n_samples,)
            The target.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.
        groups : array-like of shape (n_samples,), optional
            Whose row it is.

        Returns
        -------
        Forecast
            ``seconds``, ``memory`` in bytes, whether the support is ``sparse``, and a ``sentence``.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit will say them
            settings, data, _ = self._prepared(X, y, sample_weight, X_val=None, groups=groups)
        return forecast(data, settings)

    def start_training(
        self,
        X: Any,
        y: Any,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
        cache: GlassoCache | None = None,
        resume: Fitted | None = None,
        keep: Literal["best", "last"] = "best",
        other_targets: Sequence[Any] = (),
    ) -> TrainingRun:
        """Prepare a fit that goes on epoch by epoch; ``keep`` takes what it came to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As for ``fit``; so are ``y``, ``X_val``, ``y_val`` and ``groups``.
        y : array-like of shape (n_samples,)
            The target.
        X_val : array-like of shape (n_validation, n_features), optional
            Rows to choose the epoch on.
        y_val : array-like of shape (n_validation,), optional
            Their target.
        groups : array-like of shape (n_samples,), optional
            Whose row it is.
        cache : GlassoCache, optional
            Shared by fits on the same rows, which then solve each graphical lasso once.
        resume : Fitted, optional
            A fitted model of the same networks and rows, with another penalty, that this one goes on from.
        keep : {"best", "last"}, default="best"
            Which epoch ``finish`` returns: the one that is best on rows not learned from, or the last one, so that
            fits to different targets take the same steps.
        other_targets : sequence of array-like of shape (n_samples,), default=()
            More targets of the same rows, each fitted with networks of its own in the same run, which keeps the last
            epoch; ``TrainingRun.effects`` tells what each rests on.

        Returns
        -------
        TrainingRun
            To be advanced.
        """
        settings, data, callbacks = self._prepared(X, y, None, X_val=X_val, y_val=y_val, groups=groups)
        others = [self._prepared(X, other, None, X_val=None, groups=groups)[1] for other in other_targets]
        return TrainingRun(
            data,
            settings,
            network=self.network,
            callbacks=callbacks,
            n_jobs=self.n_jobs,
            resume=resume,
            cache=cache,
            keep=keep,
            others=others,
        )

    def keep(self, fitted: Fitted) -> Self:
        """Become the fitted model.

        Parameters
        ----------
        fitted : Fitted
            What ``TrainingRun.finish`` returned, or what was read from a file.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._fitted = fitted
        return self

    def _prepared(
        self, X: Any, y: Any, sample_weight: Any, **rows: Any
    ) -> tuple[Settings, TrainingData, list[Callback]]:
        """Check every parameter and prepare the rows."""
        settings, callbacks = self._checked()
        fraction = settings.validation_fraction
        if rows["X_val"] is not None and fraction != BY_NAME["validation_fraction"].of(settings.recipe):
            raise InputError(f"validation_fraction={fraction:g} has no effect where X_val is given: leave one out.")
        refuse_too_many_numbers(X)
        shape = getattr(X, "shape", ())
        if isinstance(shape, tuple) and len(shape) == 2:
            refuse_pairs_without_room(shape[1], settings, own_network=self.network is not None)
        with limited_threads(1):
            data = prepare(self, self._task, settings, X, y, sample_weight, random_state=self.random_state, **rows)
        return settings, data, callbacks

    def _checked(self) -> tuple[Settings, list[Callback]]:
        """Check every parameter, those that are no settings one by one; return the settings and what follows epochs."""
        settings = self.settings
        if self.network is not None and (not callable(self.network) or isinstance(self.network, nn.Module)):
            raise InputError(
                "network must be a function of (n_nodes, n_outputs) that returns a torch.nn.Module, got "
                f"{shown(self.network)}: pass a function that makes the module."
            )
        n_jobs: Any = self.n_jobs
        if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
            raise InputError(f"n_jobs must be a whole number other than 0, or None, got {shown(n_jobs)}.")
        if not isinstance(self.warm_start, bool | np.bool_):
            raise InputError(f"warm_start must be True or False, got {self.warm_start!r}.")
        verbose: Any = self.verbose
        if not isinstance(verbose, Integral | np.bool_):
            raise InputError(f"verbose must be True, False or a whole number, got {shown(verbose)}.")
        if callable(self.callbacks):
            raise InputError("callbacks must be a list of functions: put the one function into a list.")
        callbacks = list(self.callbacks or ())
        wrong = [callback for callback in callbacks if not callable(callback)]
        if wrong:
            raise InputError(f"callbacks must be functions of one argument, the epoch's row, got {wrong[0]!r}.")
        return settings, [*callbacks, _print_row] if verbose else callbacks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing in ("median", "indicator")
        return tags

    def transfer(self, X_new: Any, y_new: Any = None) -> Self:
        """Carry the networks to a table of other columns: the same weights on a matrix that is estimated anew.

        For models whose weights belong to no column: ``readout="mean"`` or ``"average"``. The target keeps its units.
        Where the matrix follows from the rows alone, no label is needed; there are no intervals then. The part of a
        matrix that the task decides is learned from labels, with all weights as they are.

        Parameters
        ----------
        X_new : array-like of shape (n_samples, n_new_features)
            Rows of the new table, to estimate means, scales and the matrix from.
        y_new : array-like of shape (n_samples,), optional
            Their target, needed with ``method="joint"`` and ``"naive"``, and refused with the others.

        Returns
        -------
        PNNRegressor or PNNClassifier
            A new fitted model, for the new columns. Its ``history_`` is that of the fit which learned last: of the
            matrix, or else of the weights.
        """
        from precisionnet.estimators.transfer import transfer

        return transfer(self, X_new, y_new)

    def save(self, folder: str | Path) -> None:
        """Write the fitted model into a folder, in one step: a reader finds the old model or the new one.

        Parameters
        ----------
        folder : str or Path
            Where the model goes; it is made where it is missing.
        """
        from precisionnet.estimators.files import save

        save(self, folder)


def _print_row(row: HistoryRow) -> None:
    """Print one line per epoch, for ``verbose``."""
    held_out = row["validation_loss"]
    shown = "" if np.isnan(held_out) else f", held-out loss {held_out:.4g}"
    print(f"epoch {int(row['epoch'])}: training loss {row['train_loss']:.4g}{shown}", file=sys.stdout, flush=True)


RUNNING = """network : callable, default=None
    ``network(n_nodes, n_outputs)`` returns a torch module called as ``module(x, shift)``, x of shape (batch, nodes, 1);
    it is trained in place of a ``PrecisionNetwork``.
callbacks : sequence of callable, default=None
    Called after each epoch with its row of ``history_``, a dictionary; with workers, some epochs at a time. One that
    returns True ends the training; the best epoch so far is kept.
warm_start : bool, default=False
    Start ``fit`` at the networks and matrices of the fit before.
n_jobs : int, default=None
    Workers that share the members, as joblib counts them; the result is the same to the last bit.
verbose : bool or int, default=False
    Print one line per epoch.
random_state : int, RandomState instance or None, default=None
    Seed of the splits, the first weights, the order of rows and the noise."""


def documented(kind: Estimator) -> Estimator:
    """Put every parameter into the class's docstring, from the one table of them."""
    lines = "\n".join(_documentation(parameter) for parameter in PARAMETERS) + "\n" + RUNNING
    indented = "\n".join(f"    {line}" if line else line for line in lines.splitlines())
    assert kind.__doc__ is not None
    kind.__doc__ = kind.__doc__.replace("    {parameters}", indented)
    return kind


def _documentation(parameter: Parameter) -> str:
    kinds = {int: "int", float: "float", bool: "bool", str: "str"}
    kind = f"{{{', '.join(map(repr, parameter.choices))}}}" if parameter.choices else kinds[parameter.kind]
    kind += " or sequence of int" if parameter.listed else ""
    text = parameter.help
    if parameter.by_recipe:
        text += f" None: {parameter.default!r}, in the paper's recipe {parameter.paper!r}."
    if parameter.needs:
        text += f" Only for {parameter.where()}."
    return f"{parameter.name} : {kind}, default={parameter.initial!r}\n    {text}"
