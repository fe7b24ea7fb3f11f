"""Algorithm 1 of the paper, line by line: three pure steps over a frozen state.

How the default differs from the printed listing, and why (``docs/decisions/0002-step-one.md``):

- Step 1 minimises its problem as written, to tolerance, instead of 20 passes of fixed length;
- Step 2 shortens its step to 1 / coupling, or to a tenth of theta_task's own size, where a longer one could diverge
  (not at the paper's values);
- Step 3 carries Adam's moments from epoch to epoch, as one optimiser over the whole run would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch

from precisionnet.joint.adam import Adam
from precisionnet.joint.problem import JointState, Problem, Tensors, add_l2_gradient
from precisionnet.precision import PrecisionResult, graphical_lasso
from precisionnet.precision.algorithm1_step1 import listing_passes
from precisionnet.types import BoolArray, FloatArray

PRECISION_TOL = 1e-10
"""Relative gap to which theta is solved: what the task moves in an epoch is small, and must not drown in its error."""
LONGEST_MOVE = 0.1
"""Largest relative change of theta_task in one step of Step 2; far from binding at the paper's values."""


@dataclass(frozen=True)
class Schedule:
    """How many inner steps an epoch takes, and how long they are."""

    learning_rate: float = 0.01
    theta_steps: int = 20
    task_steps: int = 20
    weight_steps: int = 20
    step1: Literal["exact", "paper"] = "exact"


def theta_step(state: JointState, problem: Problem, schedule: Schedule) -> JointState:
    """Lines 3-8, Step 1: theta with theta_task fixed, problem (8)."""
    anchor = state.theta_task.numpy()
    if schedule.step1 == "paper":
        theta = listing_passes(
            state.theta,
            problem.emp_cov,
            anchor,
            l1_penalty=problem.l1_penalty,
            coupling=problem.coupling,
            bound=problem.spectral_bound,
            ridge=problem.ridge,
            step=schedule.learning_rate,
            n_passes=schedule.theta_steps,
        )
        return replace(state, theta=theta)
    solved = solve_theta(problem, anchor, state.theta)
    return replace(state, theta=solved.precision, note="" if solved.converged else solved.message)


def solve_theta(
    problem: Problem,
    anchor: FloatArray,
    init: FloatArray,
    *,
    l1_penalty: float | None = None,
    known_zeros: BoolArray | None = None,
    tol: float = PRECISION_TOL,
) -> PrecisionResult:
    """Problem (8), minimised as written: the graphical lasso pulled towards ``anchor``."""
    return graphical_lasso(
        problem.emp_cov,
        problem.l1_penalty if l1_penalty is None else l1_penalty,
        anchor=anchor,
        coupling=problem.coupling / (1.0 - problem.task_weight),
        spectral_bound=problem.spectral_bound,
        ridge=problem.ridge,
        known_zeros=known_zeros,
        init=init,
        tol=tol,
    )


def theta_task_step(state: JointState, problem: Problem, schedule: Schedule) -> JointState:
    """Lines 9-11, Step 2: gradient descent on theta_task, problem (9); it stays symmetric.

    The forward passes use the batch's own statistics and write the running ones into a copy that is thrown away.
    """
    theta = torch.from_numpy(state.theta)
    theta_task = state.theta_task
    scratch = {name: value.clone() for name, value in state.statistics.items()}
    step = min(schedule.learning_rate, 1.0 / problem.coupling) if problem.coupling > 0 else schedule.learning_rate
    for _ in range(schedule.task_steps):
        leaf = theta_task.detach().requires_grad_()
        loss = problem.task_weight * problem.training_loss(state.weights, scratch, problem.shift(leaf))
        (gradient,) = torch.autograd.grad(loss, leaf)
        gradient = 0.5 * (gradient + gradient.T) + problem.coupling * (theta_task - theta)
        # With a scaled shift the loss does not feel theta_task's size, so its gradient grows without bound as that
        # shrinks: no step moves it by more than a tenth of itself.
        longest = LONGEST_MOVE * float(torch.linalg.matrix_norm(theta_task) / torch.linalg.matrix_norm(gradient))
        theta_task = theta_task - min(step, longest) * gradient
    return replace(state, theta_task=theta_task)


def open_for_training(state: JointState) -> tuple[Tensors, Tensors, Adam]:
    """Copies of the weights (as leaves) and statistics, and Adam as the last epoch left it."""
    weights = {name: value.clone().requires_grad_() for name, value in state.weights.items()}
    statistics = {name: value.clone() for name, value in state.statistics.items()}
    return weights, statistics, Adam.of(weights.values(), state.adam)


def weights_step(state: JointState, problem: Problem, schedule: Schedule) -> JointState:
    """Lines 12-14, Step 3: Adam on the network's weights, problem (10) with the l2 term of eq. (3)."""
    weights, statistics, adam = open_for_training(state)
    shift = problem.shift(state.theta_task)
    taps = problem.taps(shift)
    for _ in range(schedule.weight_steps):
        loss = problem.task_weight * problem.training_loss(weights, statistics, shift, taps)
        loss.backward()  # type: ignore[no-untyped-call]
        add_l2_gradient(weights, problem.l2_penalty)
        adam.step(schedule.learning_rate)
    return replace(
        state,
        weights={name: value.detach() for name, value in weights.items()},
        statistics=statistics,
        adam=adam,
    )
