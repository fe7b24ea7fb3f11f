"""A fit that goes on epoch by epoch: ``fit`` runs it to the end, a search may put it aside or give it up."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from precisionnet.errors import InputError
from precisionnet.estimators.checks import check_split, column_names, refuse_empty_columns
from precisionnet.estimators.intervals import Unseen
from precisionnet.estimators.keeping import keep_members, keep_one, keep_unseen
from precisionnet.estimators.members import left_out_rows, member_readouts
from precisionnet.estimators.rows import Scaler, Table, medians, split_validation
from precisionnet.estimators.settings import Settings
from precisionnet.joint import (
    METHODS,
    EnsembleState,
    HistoryRow,
    Member,
    MixedTraining,
    Plan,
    Rows,
    Schedule,
    Starts,
    Stopping,
    Training,
    threads_for,
)
from precisionnet.types import IndexArray

if TYPE_CHECKING:
    from precisionnet.estimators.base import BasePNN

FROM_GLASSO = ("joint", "naive", "glasso")


class Fitting:
    """The rows checked, split and scaled, and the training on them.

    ``starts`` is shared by fits on the same rows, so that they solve each graphical lasso once. ``begin_from`` is a
    fit of the same networks to the same rows, with another penalty, that this one goes on from.
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
        begin_from: Fitting | None = None,
    ) -> None:
        self._model = model
        if (X_val is None) != (y_val is None):
            raise InputError("X_val and y_val belong together: give both, or neither.")
        settings = model.settings
        settings.refuse_contradictions()
        table, self._places, rng = model._checked_table(X, y, sample_weight, groups)
        self._size = table.X.size * settings.n_filters
        with threads_for(self._size):
            strata = table.y if model._n_outputs > 1 else None
            if X_val is None:
                training, validation = split_validation(table, settings.validation_fraction, strata, rng)
            else:
                training, validation = table, model._checked_validation(X_val, y_val)
            check_split(len(training), 0 if validation is None else len(validation), settings.validation_fraction)
            training, validation = self._prepared(training, validation)
            seed = int(rng.randint(2**31 - 1))
            problem = model._problem(training, seed)
            if starts is not None and model.method in FROM_GLASSO:
                problem = replace(problem, start=starts.of(problem))
            self._problem = problem
            self._n_rows = {"training": len(training), "validation": 0 if validation is None else len(validation)}
            held_out = None if validation is None else model._rows(validation)
            self._training: Training | MixedTraining
            self._unseen = Unseen.validation(training, validation)
            if settings.recipe == "paper":
                self._training = self._algorithm(settings, held_out)
            else:
                known = None if begin_from is None else begin_from.state
                self._training = self._ensemble(settings, training, held_out, seed, known)

    def _algorithm(self, settings: Settings, validation: Rows | None) -> Training:
        """Algorithm 1."""
        return Training(
            self._problem,
            METHODS[settings.method],
            Schedule(
                settings.learning_rate,
                settings.theta_steps,
                settings.task_steps,
                settings.weight_steps,
                settings.step1,
            ),
            Stopping(settings.max_epochs, settings.patience, sparse=settings.sparse),
            self._model._metric,
            validation,
        )

    def _ensemble(
        self,
        settings: Settings,
        training: Table,
        validation: Rows | None,
        seed: int,
        begin_from: list[EnsembleState] | None,
    ) -> MixedTraining:
        """The standard recipe. A member's seeds do not depend on how many others there are."""
        sources = np.random.SeedSequence(seed).spawn(settings.n_members)
        if settings.n_members == 1 and validation is not None:
            left_out: list[IndexArray] = [np.array([], dtype=np.intp)]
        else:
            strata = training.y if self._model._n_outputs > 1 else None
            dealer = np.random.RandomState(np.random.MT19937(np.random.SeedSequence([seed, 1])))
            left_out = left_out_rows(training, settings.n_members, strata, dealer)
            self._unseen = Unseen.left_out(training, left_out)
        shapes: dict[str, list[Member]] = {}
        for source, rows, readout in zip(sources, left_out, member_readouts(settings), strict=True):
            first_weights, order = source.generate_state(2)
            kept = np.setdiff1d(np.arange(len(training)), rows)
            network = self._model._new_network(int(first_weights), readout)
            shapes.setdefault(readout, []).append(Member(network, kept, rows, int(order)))
        plan = Plan(
            settings.learning_rate,
            settings.batch_size,
            settings.n_epochs,
            settings.theta_every,
            settings.input_noise,
            sparse=settings.sparse,
        )
        return MixedTraining(
            self._problem, settings.method, list(shapes.values()), plan, self._model._metric, validation, begin_from
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

    def threads(self) -> AbstractContextManager[None]:
        """As many as pay; setting them takes milliseconds, so somebody with many epochs does it once for all."""
        return threads_for(self._size)

    @property
    def done(self) -> bool:
        """Whether training has ended."""
        return self._training.done

    def advance(self) -> HistoryRow:
        """One epoch more."""
        with self.threads():
            return self._training.advance()

    @property
    def kept_row(self) -> HistoryRow:
        """The history's row of the epoch that would be kept."""
        return self._training.kept_row

    @property
    def state(self) -> list[EnsembleState]:
        """Weights and matrices of the epoch that would be kept, for each shape of network."""
        if isinstance(self._training, Training):
            raise InputError("Only fits of the standard recipe can be gone on from: leave recipe at standard.")
        return self._training.kept

    def finish(self) -> BasePNN:
        """The model, fitted at its best epoch so far."""
        with self.threads():
            self._model.n_rows_ = self._n_rows
            if isinstance(self._training, Training):
                keep_one(self._model, self._problem, self._training.result())
            else:
                keep_members(self._model, self._problem, self._training.result())
            keep_unseen(self._model, self._unseen, self._places)
        return self._model
