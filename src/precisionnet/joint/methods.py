"""The methods by name: where each starts and what one epoch does.

================  ==============================================  ==================================
name              theta and theta_task at the start               an epoch
================  ==============================================  ==================================
``joint``         both the graphical lasso of the training rows   Step 1, Step 2, Step 3
``naive``         the same                                        gradient on both, soft threshold
``glasso``        the same                                        Step 3
``sample``        inverse of the sample covariance                Step 3
``vnn``           theta as ``sample``; theta_task = covariance    Step 3
================  ==============================================  ==================================

``joint`` starts at the graphical lasso because that is the solution of its problem when the task has no say: Step 1
stays there until Step 2 moves theta_task, so whatever changes was learned from the task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from precisionnet.joint.naive import naive_result, naive_step
from precisionnet.joint.problem import JointState, Problem
from precisionnet.joint.steps import PRECISION_TOL, Schedule, theta_step, theta_task_step, weights_step
from precisionnet.precision import PrecisionResult, graphical_lasso, sample_precision
from precisionnet.types import FloatArray, MethodName

Update = Callable[[JointState, Problem, Schedule], JointState]


@dataclass(frozen=True)
class Method:
    """init / update / result of one method."""

    init: Callable[[Problem], JointState]
    update: Update
    result: Callable[[JointState], JointState] = lambda state: state


def _state(problem: Problem, theta: FloatArray, shift: FloatArray, note: str = "") -> JointState:
    network = problem.network
    return JointState(
        theta=theta,
        theta_task=torch.from_numpy(shift.copy()),
        weights={name: value.detach().clone() for name, value in network.named_parameters()},
        statistics={name: value.detach().clone() for name, value in network.named_buffers()},
        note=note,
    )


def _init_glasso(problem: Problem) -> JointState:
    solved = problem.start or solve_start(problem)
    return _state(problem, solved.precision, solved.precision, "" if solved.converged else solved.message)


def solve_start(problem: Problem) -> PrecisionResult:
    """The graphical lasso of the training rows, where ``joint``, ``naive`` and ``glasso`` start."""
    return graphical_lasso(
        problem.emp_cov,
        problem.l1_penalty,
        spectral_bound=problem.spectral_bound,
        ridge=problem.ridge,
        tol=PRECISION_TOL,
    )


def _init_sample(problem: Problem) -> JointState:
    theta = sample_precision(problem.emp_cov)
    return _state(problem, theta, theta)


def _init_vnn(problem: Problem) -> JointState:
    return _state(problem, sample_precision(problem.emp_cov), problem.emp_cov)


def joint_step(state: JointState, problem: Problem, schedule: Schedule) -> JointState:
    """One epoch of Algorithm 1."""
    state = theta_step(state, problem, schedule)
    state = theta_task_step(state, problem, schedule)
    return weights_step(state, problem, schedule)


METHODS: dict[MethodName, Method] = {
    "joint": Method(_init_glasso, joint_step),
    "naive": Method(_init_glasso, naive_step, naive_result),
    "glasso": Method(_init_glasso, weights_step),
    "sample": Method(_init_sample, weights_step),
    "vnn": Method(_init_vnn, weights_step),
}
