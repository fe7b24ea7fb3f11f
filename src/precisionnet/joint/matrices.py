"""The matrices under the networks of an ensemble, and what a gradient step and an epoch do to them.

Every member has its own pair theta, theta_task; all start at the same one. ``Fixed`` never moves (glasso, sample, vnn).
``Coupled`` is problem (7): Adam on the task's gradient moves theta_task, an implicit step on the coupling pulls it back
to theta, and every few epochs Step 1 solves theta again. ``Single`` is problem (5), the naive method: one matrix for
both terms.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from precisionnet.joint.adam import Adam
from precisionnet.joint.naive import naive_gradient, ridged_inverse, smallest_eigenvalue
from precisionnet.joint.problem import JointState, Problem
from precisionnet.joint.steps import solve_theta
from precisionnet.linalg import into_spectral_box, soft_threshold_off_diagonal, symmetrize
from precisionnet.types import BoolArray, FloatArray

STEP_TOL = 1e-4
"""Relative gap to which Step 1 is solved while training goes on; the matrix that is returned is solved to the end."""

THRESHOLD_RATE = 0.01
"""Step length whose soft threshold the naive method ends with: the paper's learning rate."""


class Fixed:
    """The same matrix for every member, from first to last."""

    def __init__(self, problem: Problem, start: JointState, n_members: int) -> None:
        self.problem = problem
        self.theta: FloatArray = np.repeat(start.theta[None], n_members, axis=0)
        self.matrix = start.theta_task.to(problem.rows.x.dtype).repeat(n_members, 1, 1)
        self.scale = float(torch.linalg.matrix_norm(start.theta_task, 2)) if problem.scale_shift else 1.0
        """What the networks' shift is divided by: the norm of the start, for the whole fit and for predictions."""
        self.note = start.note

    def resume(self, theta: FloatArray, theta_task: FloatArray) -> None:
        """Go on from the matrices of another run on the same rows."""
        self.theta = theta.copy()
        with torch.no_grad():
            self.matrix.copy_(torch.from_numpy(theta_task))

    def shift(self) -> Tensor:
        """What the networks run on, (members, nodes, nodes)."""
        return self.matrix / self.scale

    @property
    def theta_task(self) -> FloatArray:
        """The members' matrices as the networks see them, not scaled, float64."""
        matrix = self.matrix.detach().double().numpy()
        return 0.5 * (matrix + matrix.transpose(0, 2, 1))

    def begin(self, progress: float, *, solve: bool) -> None:
        """What happens before an epoch, when a share of all epochs is done; ``solve``: it is time for Step 1."""

    def settled(self, progress: float) -> bool:
        """Whether an epoch that ends here may be kept."""
        return True

    def step(self, learning_rate: float) -> None:
        """What happens with a batch's gradient."""

    def snapshot(self) -> tuple[FloatArray, FloatArray]:
        """theta and theta_task of every member."""
        return self.theta.copy(), self.theta_task

    def common(self, theta: FloatArray, theta_task: FloatArray) -> FloatArray:
        """One sparse precision for all members."""
        return theta[0]


class _Learned(Fixed):
    """A matrix that moves with the task."""

    def __init__(self, problem: Problem, start: JointState, n_members: int) -> None:
        super().__init__(problem, start, n_members)
        self.matrix.requires_grad_()
        self.adam = Adam.of([self.matrix])

    def shift(self) -> Tensor:
        return 0.5 * (self.matrix + self.matrix.mT) / self.scale

    def step(self, learning_rate: float) -> None:
        self.adam.step(learning_rate)


class Coupled(_Learned):
    """theta by Step 1, theta_task by the task's gradient and the coupling."""

    def __init__(self, problem: Problem, start: JointState, n_members: int) -> None:
        super().__init__(problem, start, n_members)
        self._anchor = self.matrix.detach().clone()

    def resume(self, theta: FloatArray, theta_task: FloatArray) -> None:
        """Go on from there; theta is what theta_task is pulled to."""
        super().resume(theta, theta_task)
        self._anchor = torch.from_numpy(theta).to(self.matrix.dtype)

    def begin(self, progress: float, *, solve: bool) -> None:
        """Step 1 of every member."""
        if not solve:
            return
        solved = [
            solve_theta(self.problem, anchor, init, known_zeros=self._known_zeros(), tol=STEP_TOL)
            for anchor, init in zip(self.theta_task, self.theta, strict=True)
        ]
        self.theta = np.stack([one.precision for one in solved])
        self._anchor = torch.from_numpy(self.theta).to(self.matrix.dtype)

    def _known_zeros(self) -> BoolArray | None:
        return None

    def step(self, learning_rate: float) -> None:
        """Adam on the task, then the coupling's proximal step: stable however strong the coupling is."""
        super().step(learning_rate)
        weight = learning_rate * self.problem.coupling
        with torch.no_grad():
            self.matrix.lerp_(self._anchor, weight / (1.0 + weight))

    def common(self, theta: FloatArray, theta_task: FloatArray) -> FloatArray:
        """Step 1 once more, solved to the end, with the members' mean matrix for anchor.

        The sum of their couplings is that of their mean, up to a constant: this is Step 1 of the whole ensemble.
        """
        solved = solve_theta(self.problem, theta_task.mean(axis=0), theta[0])
        self.note = "" if solved.converged else solved.message
        return solved.precision


class Single(_Learned):
    """One matrix for the graph and the task, by gradient steps on both."""

    def step(self, learning_rate: float) -> None:
        """Adam on both terms, then back into the bounds."""
        assert self.matrix.grad is not None
        problem, current = self.problem, self.theta_task
        task = self.matrix.grad.double().numpy() * problem.task_weight
        whole = np.stack(
            [
                naive_gradient(theta, ridged_inverse(theta, problem), symmetrize(gradient), problem)
                for theta, gradient in zip(current, task, strict=True)
            ]
        )
        self.matrix.grad.copy_(torch.from_numpy(whole))
        super().step(learning_rate)
        low, high = smallest_eigenvalue(problem), problem.spectral_bound
        values, vectors = torch.linalg.eigh(torch.from_numpy(self.theta_task))
        with torch.no_grad():
            self.matrix.copy_((vectors * values.clamp(low, high).unsqueeze(-2)) @ vectors.mT)

    def snapshot(self) -> tuple[FloatArray, FloatArray]:
        """The network of this method runs on the thresholded matrix: both are that one."""
        theta = np.stack([self._thresholded(matrix) for matrix in self.theta_task])
        return theta, theta.copy()

    def _thresholded(self, matrix: FloatArray) -> FloatArray:
        problem = self.problem
        threshold = soft_threshold_off_diagonal(matrix, problem.l1_penalty * THRESHOLD_RATE)
        return into_spectral_box(threshold, smallest_eigenvalue(problem), problem.spectral_bound)

    def common(self, theta: FloatArray, theta_task: FloatArray) -> FloatArray:
        """The members' mean, on the edges that most of them have."""
        mean = theta.mean(axis=0)
        often = (theta != 0).mean(axis=0) > 0.5  # or it would not be sparse
        return into_spectral_box(
            np.where(often, mean, 0.0), smallest_eigenvalue(self.problem), self.problem.spectral_bound
        )
