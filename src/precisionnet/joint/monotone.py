r"""Algorithm 1 made monotone: no step raises objective (7), and under conditions it ends at a stationary point.

The objective is F(h, theta, theta_task), the head of ``problem.py``, with every training row in one batch. The three
steps are those of ``algorithm1.py``; each is taken only as far as F falls enough:

    Step 1  the exact minimiser in theta              F falls by  coupling / 4 * ||move||^2
    Step 2  gradient steps on theta_task              F falls by  c * rate * ||gradient||^2, each
    Step 3  a block of Adam, whole or cut short;      F falls by  c * learning_rate * ||gradient||^2
            where none of it will do, gradient steps  F falls by  c * rate * ||gradient||^2, each

with c = ``SUFFICIENT``. So F never rises, whatever the network is. Where F is smooth in h and theta_task (a smooth
activation, no batch normalisation, the shift not scaled) every limit point is stationary; where all weights are
penalised as well, there is one, and the residual goes to zero: ``docs/theory.md`` has the proof.

How this differs from ``algorithm1.py`` otherwise: batch normalisation's running moments are those of the whole batch
after every epoch, so that what predicts is what F speaks of; Adam's step is halved when a block of it is not accepted
as it stands, and doubled, up to ``learning_rate``, when one is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from precisionnet.errors import InputError
from precisionnet.joint import algorithm1
from precisionnet.joint.algorithm1 import Algorithm1, JointState, Schedule, initial_state, penalised, training_loss
from precisionnet.joint.problem import JointProblem, Start, TensorRows, l2_norm_squared
from precisionnet.joint.trainer import HistoryRow
from precisionnet.nn.filter import MOMENTUM
from precisionnet.nn.network import Tensors, is_plain

SUFFICIENT = 1e-4
"""Share of what the gradient promises by which the objective must fall, as Armijo has it."""
CUTS = 4
"""A block of Adam steps that does not lower the objective enough is cut to half its length at most so many times. After
that gradient steps replace it."""
HALVINGS = 40
"""A gradient step is halved at most so many times. If the shortest still does not lower the objective enough, what is
left to gain is below rounding, and the steps end."""
GROWTH, LONGEST = 4.0, 100.0
"""Largest ratio of a gradient step's length to that of the step before, and the largest length of all."""
SAME = 1e-6
"""Relative difference up to which two evaluations of the loss count as the same."""

Point = tuple[float, Tensor, Tensor]
"""The objective at a point, the part of it that depends on the point (a tensor with its autograd graph), and the point
itself (a leaf of that graph)."""
Field = Callable[[Tensor], Point]
"""The objective as a function of one block of variables, with the others held fixed."""


@dataclass(frozen=True)
class MonotoneState(JointState):
    """The state of the monotone variant: that of Algorithm 1, and two numbers."""

    value: float = np.inf
    """The objective, as it was computed when the state was accepted."""
    rate: float = 0.01
    """Adam's step length."""


def objective_of(problem: JointProblem, state: JointState) -> dict[str, float]:
    """Every term of objective (7) and their sum, the network run on all rows as one batch, as in training."""
    with torch.no_grad():
        task = training_loss(problem, state.weights, _scratch(state), problem.shift(state.theta_task))
    l2 = l2_norm_squared(penalised(state.weights))
    return problem.objective(state.theta, state.theta_task.numpy(), l2, float(task))


def stationarity(problem: JointProblem, state: JointState) -> float:
    r"""Measure how far a state is from a stationary point of (7): zero exactly at such a point.

    The norm of (grad_h F, grad_theta_task F, coupling * (theta - theta^+)), where theta^+ minimises F in theta. F is
    convex in theta, so the last part is zero exactly where no subgradient condition is violated; it is at most the
    norm of the smallest subgradient.
    """
    if not np.isfinite(state.theta).all():
        return np.nan
    task, weights = _task_field(problem, state), _weights_field(problem, state)
    gradients = [_gradient(task(state.theta_task)), _gradient(weights(_flat(state.weights)))]
    solved = problem.graph.solve(state.theta_task.numpy(), state.theta)
    away = problem.graph.coupling * float(np.linalg.norm(state.theta - solved.precision))
    return float(np.linalg.norm([away, *(float(torch.linalg.vector_norm(part)) for part in gradients)]))


def monotone_step(state: MonotoneState, problem: JointProblem, schedule: Schedule) -> MonotoneState:
    """Run one epoch."""
    for step in STEPS:
        state = step(state, problem, schedule)
    return own_statistics(state, problem)


def theta_step(state: MonotoneState, problem: JointProblem, schedule: Schedule) -> MonotoneState:
    """Step 1: move theta to its minimiser, unless rounding leaves nothing to gain."""
    moved = algorithm1.theta_step(state, problem, schedule)
    value = objective_of(problem, moved)["objective"]
    enough = 0.25 * problem.graph.coupling * float(np.linalg.norm(moved.theta - state.theta)) ** 2
    return replace(moved, value=value) if value <= state.value - enough else state


def theta_task_step(state: MonotoneState, problem: JointProblem, schedule: Schedule) -> MonotoneState:
    """Step 2: take gradient steps on theta_task, which stays symmetric."""
    first = min(schedule.learning_rate, 1.0 / max(problem.graph.coupling, np.finfo(float).tiny))
    field = _task_field(problem, state)
    theta_task, value = gradient_steps(field, state.theta_task, state.value, schedule.task_steps, first)
    return replace(state, theta_task=theta_task, value=value)


def weights_step(state: MonotoneState, problem: JointProblem, schedule: Schedule) -> MonotoneState:
    """Step 3: take a block of Adam steps, cut short until the objective falls enough, or else gradient steps."""
    if not state.weights:
        return state
    field, here = _weights_field(problem, state), _flat(state.weights)
    enough = SUFFICIENT * schedule.learning_rate * float(_gradient(field(here)).square().sum())
    adam = algorithm1.weights_step(state, problem, replace(schedule, learning_rate=state.rate))
    way = _flat(adam.weights) - here
    for cut in range(CUTS + 1):
        there = here + 0.5**cut * way
        value = field(there)[0]
        if value <= state.value - enough:
            break
    else:
        there, value = gradient_steps(field, here, state.value, schedule.weight_steps, schedule.learning_rate)
        cut = CUTS + 1
    moved = replace(adam, weights=_like(there, state.weights), value=value)
    if cut == 0:
        return replace(moved, rate=min(2.0 * state.rate, schedule.learning_rate))
    return replace(moved, rate=0.5 * state.rate, adam=None)  # Adam's moments are those of steps not taken


STEPS = (theta_step, theta_task_step, weights_step)
"""The steps of an epoch, in order."""


def gradient_steps(field: Field, x: Tensor, value: float, n_steps: int, first: float) -> tuple[Tensor, float]:
    """Take gradient steps, each halved until the objective falls enough (Armijo); return the end and its objective.

    ``value`` is the objective at ``x`` and ``first`` the first step that is tried; later ones try that of Barzilai and
    Borwein, the inverse of the curvature that the step before has met.
    """
    gradient, rate = _gradient(field(x)), first
    for _ in range(n_steps):
        found = _backtracked(field, x, value, gradient, rate)
        if found is None:
            break
        moved, point, rate = found
        value, after = point[0], _gradient(point)
        way = moved - x
        curvature = float((way * (after - gradient)).sum() / way.square().sum())
        longest = min(GROWTH * rate, LONGEST)
        rate = min(1.0 / curvature, longest) if curvature > 0 else longest
        x, gradient = moved, after
    return x, value


def _backtracked(
    field: Field, x: Tensor, value: float, gradient: Tensor, rate: float
) -> tuple[Tensor, Point, float] | None:
    """Return where the objective has fallen enough, the objective there and the step; None where no step will do."""
    square = float(gradient.square().sum())
    for _ in range(HALVINGS):
        moved = x - rate * gradient
        point = field(moved)
        if point[0] <= value - SUFFICIENT * rate * square and point[0] < value:
            return moved, point, rate
        rate *= 0.5
    return None


def _task_field(problem: JointProblem, state: JointState) -> Field:
    """Return F as a function of theta_task, with the rest of ``state`` fixed.

    Its gradient is symmetric if theta_task is.
    """
    scratch, theta = _scratch(state), torch.from_numpy(state.theta)
    l2 = l2_norm_squared(penalised(state.weights))

    def field(x: Tensor) -> Point:
        leaf = x.detach().requires_grad_()
        loss = training_loss(problem, state.weights, scratch, problem.shift(0.5 * (leaf + leaf.T)))
        value = problem.objective(state.theta, x.numpy(), l2, float(loss.detach()))["objective"]
        tie = 0.5 * problem.graph.coupling * (leaf - theta).square().sum()
        return value, problem.graph.task_weight * loss.to(tie) + tie, leaf

    return field


def _weights_field(problem: JointProblem, state: JointState) -> Field:
    """Return F as a function of all weights as one vector, with the rest of ``state`` fixed."""
    scratch, shift, theta_task = _scratch(state), problem.shift(state.theta_task), state.theta_task.numpy()

    def field(x: Tensor) -> Point:
        leaf = x.detach().requires_grad_()
        weights = _like(leaf, state.weights)
        loss = training_loss(problem, weights, scratch, shift)
        l2 = sum((weight.square().sum() for weight in penalised(weights)), leaf.new_zeros(()))
        value = problem.objective(state.theta, theta_task, float(l2.detach()), float(loss.detach()))["objective"]
        return value, problem.graph.task_weight * loss + problem.l2_penalty * l2, leaf

    return field


def _gradient(point: Point) -> Tensor:
    _, loss, leaf = point
    return algorithm1.gradient_of(loss, leaf)


def _scratch(state: JointState) -> Tensors:
    """Copy the running moments, for forward passes to write into; the objective does not depend on them."""
    return {name: value.clone() for name, value in state.statistics.items()}


def _flat(weights: Tensors) -> Tensor:
    return torch.cat([value.flatten() for value in weights.values()]) if weights else torch.zeros(0)


def _like(vector: Tensor, weights: Tensors) -> Tensors:
    parts = torch.split(vector, [value.numel() for value in weights.values()])
    return {name: part.view_as(value) for (name, value), part in zip(weights.items(), parts, strict=True)}


def own_statistics(state: MonotoneState, problem: JointProblem) -> MonotoneState:
    """Set the running moments of batch normalisation to those of the whole batch.

    They stay as they are where the network is the user's, and where its weights were carried from another table:
    moments are a part of what is carried.
    """
    if not is_plain(problem.network) or not state.weights:
        return state
    moments = [name for name in state.statistics if name.endswith(("running_mean", "running_var"))]
    statistics = _scratch(state)
    for name in moments:
        statistics[name].zero_()
    with torch.no_grad():
        training_loss(problem, state.weights, statistics, problem.shift(state.theta_task))
        for name in moments:  # from zero, one batch moves them by MOMENTUM of its moments
            statistics[name] /= MOMENTUM
    return replace(state, statistics=statistics)


class Monotone(Algorithm1):
    """The monotone variant as a policy of the trainer; its history has ``stationarity`` for every epoch."""

    def __init__(
        self, problem: JointProblem, schedule: Schedule, start: Start, validation: TensorRows | None, seed: int = 0
    ) -> None:
        super().__init__(problem, "joint", schedule, start, validation, seed)
        state = initial_state(problem, start)
        value = objective_of(problem, state)["objective"]
        self.state: MonotoneState = MonotoneState(**vars(state), value=value, rate=schedule.learning_rate)
        _refuse_random_layers(problem, self.state)

    def update(self) -> MonotoneState:
        """Return the state after one epoch more."""
        return monotone_step(self.state, self.problem, self.schedule)

    def _row(self, epoch: int, state: JointState) -> HistoryRow:
        """Add the objective, as the steps computed it, and the distance from a stationary point to the row."""
        terms = objective_of(self.problem, state) | {"objective": self.state.value}
        return super()._row(epoch, state) | terms | {"stationarity": stationarity(self.problem, state)}


def _refuse_random_layers(problem: JointProblem, state: JointState) -> None:
    """Refuse a network whose loss changes although its weights do not: such an objective cannot be made to fall."""
    if is_plain(problem.network):
        return
    first, again = (objective_of(problem, state)["task_term"] for _ in range(2))
    if abs(first - again) > SAME * max(abs(first), abs(again)):
        raise InputError(
            "monotone=True needs a network whose loss follows from its weights, and this one's changes from one pass "
            "to the next: leave out dropout and other random layers, or leave out monotone."
        )
