"""The loop around the steps: epochs, the row each leaves behind, the best state kept, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError as TorchLinAlgError  # type: ignore[attr-defined]

from precisionnet.joint.divergence import divergence, refuse_divergence
from precisionnet.joint.methods import Method
from precisionnet.joint.problem import JointState, Problem, Rows, objective_terms
from precisionnet.joint.steps import Schedule
from precisionnet.linalg import count_zeros, extreme_eigenvalues

HistoryRow = dict[str, float]
Metric = Callable[[Tensor, Tensor, Tensor], float]
"""(network output, target, sample weight) -> the number a user reads, in the target's own units."""


@dataclass(frozen=True)
class Stopping:
    """How long to train and which state to keep."""

    max_epochs: int
    patience: int
    """Epochs without a better validation loss before stopping."""
    sparse: bool
    """Validate on theta instead of theta_task, when that is what will predict."""


@dataclass(frozen=True)
class Result:
    """The kept state, and a row an epoch."""

    state: JointState
    history: list[HistoryRow]


class Training:
    """A run that goes on epoch by epoch, so that it can be watched, put aside and given up."""

    def __init__(
        self,
        problem: Problem,
        method: Method,
        schedule: Schedule,
        stopping: Stopping,
        metric: Metric,
        validation: Rows | None = None,
    ) -> None:
        self._problem, self._method, self._schedule = problem, method, schedule
        self._stopping, self._metric, self._validation = stopping, metric, validation
        self._state = self._best = method.init(problem)
        self._best_loss = np.inf
        self.history: list[HistoryRow] = []

    @property
    def _listing(self) -> bool:
        return self._schedule.step1 == "paper"

    @property
    def done(self) -> bool:
        """At the last epoch, or without a better validation loss for too long."""
        epoch = len(self.history)
        waited = epoch - self._best.epoch >= self._stopping.patience if epoch else False
        return waited or epoch >= self._stopping.max_epochs

    def advance(self) -> HistoryRow:
        """One epoch more; returns the row it leaves in the history."""
        epoch = len(self.history) + 1
        try:
            self._state = replace(self._method.update(self._state, self._problem, self._schedule), epoch=epoch)
        except (TorchLinAlgError, np.linalg.LinAlgError) as error:  # an eigenvalue solver met NaN on the way
            raise divergence(epoch, ["theta"], self._schedule.learning_rate, listing=self._listing) from error
        shown = self._method.result(self._state)
        validated = self._validation is not None
        row = _describe(self._problem, shown, self._stopping, self._metric, self._validation)
        refuse_divergence(
            shown.theta,
            shown.theta_task,
            shown.weights,
            row,
            self._schedule.learning_rate,
            validated=validated,
            listing=self._listing,
        )
        self.history.append(row)
        self._problem.workspace.clear()  # somebody who is put aside shall not hold on to it
        loss = row["validation_loss"] if validated else -epoch
        if loss < self._best_loss:
            self._best, self._best_loss = shown, loss  # states are never written into, so this is a copy, not an alias
        return row

    @property
    def kept_row(self) -> HistoryRow:
        """The row of the epoch that would be kept."""
        return self.history[self._best.epoch - 1]

    def result(self) -> Result:
        """The state with the best validation loss so far (the last one without validation rows)."""
        return Result(self._best, self.history)


def run(
    problem: Problem,
    method: Method,
    schedule: Schedule,
    stopping: Stopping,
    metric: Metric,
    validation: Rows | None = None,
    on_epoch: Callable[[HistoryRow], object] | None = None,
) -> Result:
    """Train to the end."""
    training = Training(problem, method, schedule, stopping, metric, validation)
    while not training.done:
        row = training.advance()
        if on_epoch is not None:
            on_epoch(row)
    return training.result()


def predict(problem: Problem, state: JointState, x: Tensor, *, sparse: bool) -> Tensor:
    """Network output in evaluation mode, on theta (``sparse``) or theta_task."""
    shift = torch.from_numpy(state.theta) if sparse else state.theta_task
    with torch.no_grad():
        return problem.output(state.weights, state.statistics, shift, x)


def _describe(
    problem: Problem, state: JointState, stopping: Stopping, metric: Metric, validation: Rows | None
) -> HistoryRow:
    def scores(rows: Rows) -> tuple[float, float]:
        output = predict(problem, state, rows.x, sparse=stopping.sparse)
        loss = float(problem.task_loss(output, rows.y, rows.weight))
        return loss, metric(output, rows.y, rows.weight)

    train_loss, train_metric = scores(problem.rows)
    task_loss = train_loss
    if stopping.sparse:  # the objective is that of problem (7), on theta_task, whatever will predict
        rows = problem.rows
        task_loss = float(problem.task_loss(predict(problem, state, rows.x, sparse=False), rows.y, rows.weight))
    val_loss, val_metric = scores(validation) if validation is not None else (np.nan, np.nan)
    finite = bool(np.isfinite(state.theta).all())
    smallest, largest = extreme_eigenvalues(state.theta) if finite else (np.nan, np.nan)
    return {
        "epoch": state.epoch,
        **objective_terms(problem, state, task_loss),
        "train_loss": train_loss,
        "train_metric": train_metric,
        "validation_loss": val_loss,
        "validation_metric": val_metric,
        "n_zeros": count_zeros(state.theta),
        "eigenvalue_min": smallest,
        "eigenvalue_max": largest,
    }
