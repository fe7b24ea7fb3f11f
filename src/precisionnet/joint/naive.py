"""The naive joint method: problem (5) of the paper by gradient on theta and the weights together.

One matrix serves both terms, so there is no coupling. The l1 term enters by its subgradient, which never gives an exact
zero; the soft threshold at the end does what it can. The running iterate lives in ``theta_task``, its thresholded
version, which is what is returned and predicted with, in ``theta``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from precisionnet.joint.problem import JointState, Problem, add_l2_gradient
from precisionnet.joint.steps import Schedule, open_for_training
from precisionnet.linalg import clip_eigenvalues, into_spectral_box, soft_threshold_off_diagonal, symmetrize
from precisionnet.types import FloatArray


def naive_step(state: JointState, problem: Problem, schedule: Schedule) -> JointState:
    """One epoch: ``weight_steps`` simultaneous gradient steps, then a thresholded copy."""
    theta = state.theta_task.numpy()
    weights, statistics, adam = open_for_training(state)
    for _ in range(schedule.weight_steps):
        leaf = torch.from_numpy(theta).requires_grad_()
        loss = problem.task_weight * problem.training_loss(weights, statistics, problem.shift(leaf))
        loss.backward()  # type: ignore[no-untyped-call]
        add_l2_gradient(weights, problem.l2_penalty)
        assert leaf.grad is not None
        theta = _theta_update(theta, symmetrize(leaf.grad.numpy()), problem, schedule.learning_rate)
        adam.step(schedule.learning_rate)
    thresholded = soft_threshold_off_diagonal(theta, schedule.learning_rate * problem.l1_penalty)
    return replace(
        state,
        theta=into_spectral_box(thresholded, smallest_eigenvalue(problem), problem.spectral_bound),
        theta_task=torch.from_numpy(theta),
        weights={name: value.detach() for name, value in weights.items()},
        statistics=statistics,
        adam=adam,
    )


def naive_result(state: JointState) -> JointState:
    """The paper's naive model runs on the thresholded matrix: both matrices are that one."""
    return replace(state, theta_task=torch.from_numpy(state.theta.copy()))


def smallest_eigenvalue(problem: Problem) -> float:
    """What keeps the one matrix, which no barrier guards, invertible."""
    return 1e-6 * min(problem.spectral_bound, 1.0)


def naive_gradient(theta: FloatArray, inverse: FloatArray, task_gradient: FloatArray, problem: Problem) -> FloatArray:
    """Of (5) in theta, the l1 term by its subgradient; ``task_gradient`` is weighted already."""
    gl_weight = 1.0 - problem.task_weight
    l1_subgradient = problem.l1_penalty * np.sign(theta)
    np.fill_diagonal(l1_subgradient, 0.0)
    return task_gradient + gl_weight * (problem.emp_cov - inverse + l1_subgradient)


def ridged_inverse(theta: FloatArray, problem: Problem) -> FloatArray:
    """(theta + ridge I)^-1, what the log-determinant's gradient is made of."""
    inverse: FloatArray = np.linalg.inv(theta + problem.ridge * np.eye(len(theta)))
    return inverse


def _theta_update(theta: FloatArray, task_gradient: FloatArray, problem: Problem, learning_rate: float) -> FloatArray:
    """Gradient step on (5) in theta; no longer than the log-determinant's curvature allows; back into the bounds."""
    inverse = ridged_inverse(theta, problem)
    gradient = naive_gradient(theta, inverse, task_gradient, problem)
    step = min(learning_rate, 1.0 / ((1.0 - problem.task_weight) * float(np.linalg.norm(inverse, 2)) ** 2))
    return clip_eigenvalues(theta - step * gradient, smallest_eigenvalue(problem), problem.spectral_bound)
