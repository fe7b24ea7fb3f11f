"""Algorithm 1 of the paper, line by line: three pure steps over a frozen state, and the policy that repeats them.

How the default differs from the printed listing, and why (``docs/decisions/0002-step-one.md``):

- Step 1 minimises its problem as written, to tolerance, instead of 20 passes of fixed length;
- Step 2 takes the symmetric part of the gradient (``step2="plain"`` takes the gradient itself), shortens its step to
  1 / coupling where a longer one diverges (not at the paper's values), and on a scaled shift to a tenth of
  theta_task's own size;
- Step 3 carries Adam's moments from epoch to epoch, as one optimiser over the whole run would.

The naive method, problem (5), takes gradient steps on theta and the weights together: its running iterate lives in
``theta_task``, the thresholded copy that is returned and predicted with in ``theta``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from precisionnet.joint.matrices import naive_gradient, ridged_inverse, smallest_eigenvalue
from precisionnet.joint.problem import GraphTerms, JointProblem, Start, TensorRows, l2_norm_squared
from precisionnet.joint.trainer import Adam, HistoryRow, Snapshot, add_l2_gradient
from precisionnet.linalg import (
    clip_eigenvalues,
    count_zeros,
    extreme_eigenvalues,
    into_spectral_box,
    soft_threshold_off_diagonal,
    symmetrize,
)
from precisionnet.nn.network import Tensors, is_plain, seeded
from precisionnet.precision.algorithm1_step1 import listing_passes
from precisionnet.types import FloatArray, MethodName

LONGEST_MOVE = 0.1
"""Largest relative change of theta_task in one step of Step 2, where the shift is scaled."""


@dataclass(frozen=True)
class Schedule:
    """How many inner steps an epoch takes, how long they are, and when to stop."""

    learning_rate: float = 0.01
    theta_steps: int = 20
    task_steps: int = 20
    weight_steps: int = 20
    step1: Literal["exact", "paper"] = "exact"
    step2: Literal["symmetric", "plain"] = "symmetric"
    max_epochs: int = 10
    patience: int = 5
    sparse: bool = False
    """Validate on theta instead of theta_task, when that is what will predict."""


@dataclass(frozen=True)
class JointState:
    """The state of Algorithm 1. A step takes a state and returns a new one; it never changes the one it was given."""

    theta: FloatArray
    """Sparse precision, float64."""
    theta_task: Tensor
    """Task-aware precision, float64; what the network runs on."""
    weights: Tensors
    """h: every tensor of the network that is trained."""
    statistics: Tensors
    """The network's other tensors: running moments of batch normalisation, and frozen weights."""
    adam: Adam | None = None
    """Moments of Adam, carried from epoch to epoch."""
    note: str = ""
    """The message of the last Step 1, if it did not converge."""


State = TypeVar("State", bound=JointState)
"""A step returns the kind of state that it was given."""


def initial_state(problem: JointProblem, start: Start) -> JointState:
    """Return the state before the first epoch."""
    every = [*problem.network.named_parameters(), *problem.network.named_buffers()]
    tensors = {name: value.detach().clone() for name, value in every}
    trained = {name for name, value in every if value.requires_grad}
    return JointState(
        theta=start.theta,
        theta_task=torch.from_numpy(start.theta_task.copy()),
        weights={name: value for name, value in tensors.items() if name in trained},
        statistics={name: value for name, value in tensors.items() if name not in trained},
        note=start.note,
    )


def joint_step(state: JointState, problem: JointProblem, schedule: Schedule) -> JointState:
    """Run one epoch of Algorithm 1."""
    state = theta_step(state, problem, schedule)
    state = theta_task_step(state, problem, schedule)
    return weights_step(state, problem, schedule)


def theta_step(state: State, problem: JointProblem, schedule: Schedule) -> State:
    """Lines 3-8, Step 1: theta with theta_task fixed, problem (8)."""
    anchor, graph = symmetrize(state.theta_task.numpy()), problem.graph  # theta is as far from either
    if schedule.step1 == "paper":
        theta = listing_passes(
            state.theta,
            graph.emp_cov,
            anchor,
            l1_penalty=graph.l1_penalty,
            coupling=graph.coupling,
            bound=graph.spectral_bound,
            ridge=graph.ridge,
            step=schedule.learning_rate,
            n_passes=schedule.theta_steps,
        )
        return replace(state, theta=theta)
    solved = graph.solve(anchor, state.theta)
    return replace(state, theta=solved.precision, note="" if solved.converged else solved.message)


def theta_task_step(state: JointState, problem: JointProblem, schedule: Schedule) -> JointState:
    """Lines 9-11, Step 2: gradient steps on theta_task, problem (9); it stays symmetric, unless ``step2`` is "plain".

    The forward passes use the batch's own statistics and write the running ones into a copy that is thrown away.
    """
    graph, theta, theta_task = problem.graph, torch.from_numpy(state.theta), state.theta_task
    scratch = {name: value.clone() for name, value in state.statistics.items()}
    step = min(schedule.learning_rate, 1.0 / graph.coupling) if graph.coupling > 0 else schedule.learning_rate
    for _ in range(schedule.task_steps):
        leaf = theta_task.detach().requires_grad_()
        loss = graph.task_weight * training_loss(problem, state.weights, scratch, problem.shift(leaf))
        gradient = gradient_of(loss, leaf)
        if schedule.step2 == "symmetric":
            gradient = 0.5 * (gradient + gradient.T)
        gradient = gradient + graph.coupling * (theta_task - theta)
        length = step
        if problem.scale_shift:
            # The loss does not feel theta_task's size, so its gradient grows without bound as that shrinks: no step
            # moves it by more than a tenth of itself.
            longest = LONGEST_MOVE * float(torch.linalg.matrix_norm(theta_task) / torch.linalg.matrix_norm(gradient))
            length = min(step, longest)
        theta_task = theta_task - length * gradient
    return replace(state, theta_task=theta_task)


def weights_step(state: State, problem: JointProblem, schedule: Schedule) -> State:
    """Lines 12-14, Step 3: Adam on the network's weights, problem (10) with the l2 term of eq. (3)."""
    if not state.weights:
        return state
    weights, statistics, adam = _open_for_training(state)
    shift = problem.shift(state.theta_task)
    for _ in range(schedule.weight_steps):
        _descend(problem, weights, statistics, shift)
        adam.step(schedule.learning_rate)
    return _closed(state, weights, statistics, adam)


def naive_step(state: JointState, problem: JointProblem, schedule: Schedule) -> JointState:
    """Run one epoch of the naive method: simultaneous gradient steps, then a thresholded copy."""
    graph, theta = problem.graph, state.theta_task.numpy()
    weights, statistics, adam = _open_for_training(state)
    for _ in range(schedule.weight_steps):
        leaf = torch.from_numpy(theta).requires_grad_()
        _descend(problem, weights, statistics, problem.shift(leaf))
        gradient = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        theta = _naive_update(theta, symmetrize(gradient.numpy()), graph, schedule.learning_rate)
        adam.step(schedule.learning_rate)
    thresholded = soft_threshold_off_diagonal(theta, schedule.learning_rate * graph.l1_penalty)
    theta_sparse = into_spectral_box(thresholded, smallest_eigenvalue(graph), graph.spectral_bound)
    return replace(_closed(state, weights, statistics, adam), theta=theta_sparse, theta_task=torch.from_numpy(theta))


def training_loss(problem: JointProblem, weights: Tensors, statistics: Tensors, shift: Tensor) -> Tensor:
    """L_task on the training rows, with the batch's own statistics; the running ones go into ``statistics``."""
    rows, network = problem.rows, problem.network.train(bool(weights))  # what is not trained stays as it is
    output = functional_call(network, {**weights, **statistics}, (rows.x, shift))
    return problem.task_loss(output, rows.y, rows.weight)


@torch.no_grad()
def output_of(problem: JointProblem, state: JointState, x: Tensor, *, sparse: bool) -> Tensor:
    """Network output in evaluation mode, on theta (``sparse``) or theta_task."""
    shift = problem.shift(torch.from_numpy(state.theta) if sparse else state.theta_task)
    network = problem.network.eval()
    output: Tensor = functional_call(network, {**state.weights, **state.statistics}, (x, shift))
    return output


def network_state(problem: JointProblem, state: JointState) -> Tensors:
    """Return the network's state dictionary with the tensors of ``state``; a tied weight has all its names there."""
    network, tensors = problem.network, {**state.weights, **state.statistics}
    names = {id(value): name for name, value in [*network.named_parameters(), *network.named_buffers()]}
    return {name: tensors[names[id(value)]] for name, value in network.state_dict(keep_vars=True).items()}


UPDATES: dict[MethodName, Callable[[JointState, JointProblem, Schedule], JointState]] = {
    "joint": joint_step,
    "naive": naive_step,
    "glasso": weights_step,
    "sample": weights_step,
    "vnn": weights_step,
}
"""The step that an epoch of each method takes."""


class Algorithm1:
    """The paper's recipe as a policy of the trainer: one network, full batches."""

    def __init__(
        self,
        problem: JointProblem,
        method: MethodName,
        schedule: Schedule,
        start: Start,
        validation: TensorRows | None,
        seed: int = 0,
    ) -> None:
        self.problem, self.schedule, self._method = problem, schedule, method
        self._validation, self._seed = validation, seed
        self.state = initial_state(problem, start)
        self.max_epochs, self.patience = schedule.max_epochs, schedule.patience
        self.remedy = f"look for outliers in the table, or lower learning_rate (now {schedule.learning_rate:g})"
        if schedule.step1 == "paper":
            self.remedy += ', raise ridge, or use step1="exact", whose steps cannot diverge'

    def advance(self, epoch: int) -> tuple[HistoryRow, Snapshot]:
        """Run Steps 1 to 3 once."""
        with self._own_random_numbers(epoch):
            self.state = self.update()
        state = self.state
        if self._method == "naive":  # its model runs on the thresholded matrix: both matrices are that one
            state = replace(state, theta_task=torch.from_numpy(state.theta.copy()))
        networks = [network_state(self.problem, state)]
        snapshot = Snapshot(epoch, state.theta[None], state.theta_task.numpy()[None], networks)
        return self._row(epoch, state), snapshot

    def update(self) -> JointState:
        """Return the state after one epoch more."""
        return UPDATES[self._method](self.state, self.problem, self.schedule)

    def _own_random_numbers(self, epoch: int) -> AbstractContextManager[None]:
        """Let random layers of a foreign network draw from the fit's seed."""
        if is_plain(self.problem.network):
            return nullcontext()
        return seeded(self._seed + epoch, self.problem.rows.x.device)

    def may_keep(self, row: HistoryRow) -> bool:
        """Allow every epoch."""
        return True

    def conclude(self, kept: Snapshot) -> tuple[FloatArray, float, str]:
        """Return theta, and the norm of what the network runs on (theta or theta_task), 1 where it is not scaled."""
        if not self.problem.scale_shift:
            return kept.theta[0], 1.0, self.state.note
        shift = kept.theta[0] if self.schedule.sparse else kept.theta_task[0]
        norm = max(map(abs, extreme_eigenvalues(shift)))
        return kept.theta[0], max(norm, np.finfo(float).tiny), self.state.note

    def _row(self, epoch: int, state: JointState) -> HistoryRow:
        problem, sparse = self.problem, self.schedule.sparse

        def scores(rows: TensorRows) -> tuple[float, float]:
            output = output_of(problem, state, rows.x, sparse=sparse)
            return float(problem.task_loss(output, rows.y, rows.weight)), problem.metric(output, rows.y, rows.weight)

        train_loss, train_metric = scores(problem.rows)
        task_loss = train_loss
        if sparse:  # the objective is that of problem (7), on theta_task, whatever will predict
            rows = problem.rows
            output = output_of(problem, state, rows.x, sparse=False)
            task_loss = float(problem.task_loss(output, rows.y, rows.weight))
        held_out = scores(self._validation) if self._validation is not None else (np.nan, np.nan)
        finite = bool(np.isfinite(state.theta).all())
        smallest, largest = extreme_eigenvalues(state.theta) if finite else (np.nan, np.nan)
        l2 = l2_norm_squared(penalised(state.weights))
        return {
            "epoch": epoch,
            **problem.objective(state.theta, state.theta_task.numpy(), l2, task_loss),
            "train_loss": train_loss,
            "train_metric": train_metric,
            "validation_loss": held_out[0],
            "validation_metric": held_out[1],
            "n_zeros": count_zeros(state.theta),
            "eigenvalue_min": smallest,
            "eigenvalue_max": largest,
            "validated": self._validation is not None,
        }


def gradient_of(loss: Tensor, leaf: Tensor) -> Tensor:
    """Derivative with respect to ``leaf``, zero where the loss does not depend on it."""
    found = torch.autograd.grad(loss, leaf, allow_unused=True)[0] if loss.requires_grad else None
    return torch.zeros_like(leaf) if found is None else found


def penalised(weights: Tensors) -> list[Tensor]:
    """Coefficients and readout matrices; biases and the scales of batch normalisation are not penalised."""
    return [value for value in weights.values() if value.ndim > 1]


def _open_for_training(state: JointState) -> tuple[Tensors, Tensors, Adam]:
    """Copy the weights (as leaves) and statistics, and Adam as the last epoch left it."""
    weights = {name: value.clone().requires_grad_() for name, value in state.weights.items()}
    statistics = {name: value.clone() for name, value in state.statistics.items()}
    return weights, statistics, Adam.of(weights.values(), state.adam)


def _closed(state: State, weights: Tensors, statistics: Tensors, adam: Adam) -> State:
    detached = {name: value.detach() for name, value in weights.items()}
    return replace(state, weights=detached, statistics=statistics, adam=adam)


def _descend(problem: JointProblem, weights: Tensors, statistics: Tensors, shift: Tensor) -> None:
    """Leave the gradients of the weighted loss, l2 term included, on the leaves."""
    loss = problem.graph.task_weight * training_loss(problem, weights, statistics, shift)
    loss.backward()  # type: ignore[no-untyped-call]
    add_l2_gradient(penalised(weights), problem.l2_penalty)


def _naive_update(theta: FloatArray, task_gradient: FloatArray, graph: GraphTerms, learning_rate: float) -> FloatArray:
    """Step along the gradient of (5) in theta, as far as the log-determinant's curvature allows; stay in bounds."""
    inverse = ridged_inverse(theta, graph)
    gradient = naive_gradient(theta, inverse, task_gradient, graph)
    step = min(learning_rate, 1.0 / ((1.0 - graph.task_weight) * float(np.linalg.norm(inverse, 2)) ** 2))
    return clip_eigenvalues(theta - step * gradient, smallest_eigenvalue(graph), graph.spectral_bound)
