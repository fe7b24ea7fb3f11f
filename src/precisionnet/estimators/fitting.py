"""A fit that goes on epoch by epoch: ``fit`` runs it to the end, a search may put it aside or give it up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from precisionnet.errors import InputError
from precisionnet.estimators.checks import check_split, column_names, refuse_empty_columns
from precisionnet.estimators.rows import Scaler, Table, medians, split_validation
from precisionnet.joint import METHODS, HistoryRow, Schedule, Starts, Stopping, Training, threads_for

if TYPE_CHECKING:
    from precisionnet.estimators.base import BasePNN

FROM_GLASSO = ("joint", "naive", "glasso")


class Fitting:
    """The rows checked, split and scaled, and the training on them.

    ``starts`` is shared by fits on the same rows, so that they solve each graphical lasso once.
    """

    def __init__(
        self,
        model: BasePNN,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: Any = None,
        starts: Starts | None = None,
    ) -> None:
        self._model = model
        if (X_val is None) != (y_val is None):
            raise InputError("X_val and y_val belong together: give both, or neither.")
        table, rng = model._checked_table(X, y, sample_weight, groups)
        self._size = table.X.size * model.n_filters
        with threads_for(self._size):
            if X_val is None:
                strata = table.y if model._n_outputs > 1 else None
                training, validation = split_validation(table, model.validation_fraction, strata, rng)
            else:
                training, validation = table, model._checked_validation(X_val, y_val)
            check_split(len(training), 0 if validation is None else len(validation), model.validation_fraction)
            training, validation = self._prepared(training, validation)
            problem = model._problem(training, seed=int(rng.randint(2**31 - 1)))
            if starts is not None and model.method in FROM_GLASSO:
                problem = replace(problem, start=starts.of(problem))
            self._problem = problem
            self._rows = (len(training), 0 if validation is None else len(validation))
            self._training = Training(
                problem,
                METHODS[model.method],  # type: ignore[index]
                Schedule(model.learning_rate, model.theta_steps, model.task_steps, model.weight_steps, model.step1),  # type: ignore[arg-type]
                Stopping(model.max_epochs, model.patience, sparse=model._on_sparse),
                model._metric,
                None if validation is None else model._rows(validation),
            )

    def _prepared(self, training: Table, validation: Table | None) -> tuple[Table, Table | None]:
        """Gaps filled and scales taken from the training rows alone."""
        model = self._model
        model.medians_ = None
        if model.missing == "median":
            refuse_empty_columns(training.X, column_names(model))
            model.medians_ = medians(training.X, training.weight)
            training = training.filled(model.medians_)
            validation = None if validation is None else validation.filled(model.medians_)
        model._x_scaler = Scaler.fit(training.X, training.weight, model.standardize)
        model._fit_target_scaler(training)
        return training, validation

    @property
    def done(self) -> bool:
        """Whether training has ended."""
        return self._training.done

    def advance(self) -> HistoryRow:
        """One epoch more."""
        with threads_for(self._size):
            return self._training.advance()

    def finish(self) -> BasePNN:
        """The model, fitted at its best epoch so far."""
        self._model._keep(self._problem, self._training.result(), *self._rows)
        return self._model
