"""The matrices under a stack of members, and what a gradient step and an epoch do to them.

Every member has its own pair theta, theta_task; all start at the same one. ``Fixed`` never moves (glasso, sample, vnn).
``Coupled`` is problem (7): Adam on the task's gradient moves theta_task, an implicit step on the coupling pulls it back
to theta, and every few epochs Step 1 solves theta again. ``Single`` is problem (5), the naive method: one matrix for
both terms, whose l1 term enters by its subgradient and gives no exact zero before the threshold at the end.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from precisionnet.joint.problem import GraphTerms, JointProblem, Start
from precisionnet.joint.trainer import Adam
from precisionnet.linalg import count_zeros, into_spectral_box, soft_threshold_off_diagonal, symmetrize
from precisionnet.nn.sparse_shift import SparseShift
from precisionnet.sparse_matrices import Matrix, MatrixStack
from precisionnet.types import BoolArray, FloatArray, MethodName

STEP_TOL = 1e-4
"""Relative gap to which Step 1 is solved while training goes on; the matrix that is returned is solved to the end."""

THRESHOLD_RATE = 0.01
"""Step length whose soft threshold the naive method ends with: the paper's learning rate."""


class Matrices(Protocol):
    """What training asks of the members' matrices, dense (``Fixed`` and its kinds) or sparse (``FixedOnSupport``)."""

    learned: ClassVar[bool]
    """Whether the matrix moves with the task."""
    thins: ClassVar[bool]
    """Whether the graph loses edges while the networks learn."""
    theta: MatrixStack

    def __init__(self, graph: GraphTerms, start: Any, n_members: int, like: Tensor) -> None: ...

    @property
    def theta_task(self) -> MatrixStack:
        """The members' matrices as the networks see them, not scaled, float64."""

    def resume(self, theta: MatrixStack, theta_task: MatrixStack) -> None:
        """Go on from another run."""

    def shift(self, scale: float) -> Tensor | SparseShift:
        """Return what the networks run on, divided by ``scale``."""

    def begin(self, progress: float, *, solve: bool) -> None:
        """Prepare an epoch; ``progress`` is the share of epochs done, ``solve`` asks for Step 1."""

    def step(self, learning_rate: float) -> None:
        """Take in a batch's gradient."""

    def snapshot(self) -> tuple[MatrixStack, MatrixStack]:
        """Return theta and theta_task of every member, which later epochs leave alone."""

    def terms(
        self, problem: JointProblem, theta: MatrixStack, theta_task: MatrixStack, l2: float, train_loss: float
    ) -> dict[str, float]:
        """Every term of the objective, the mean over the members."""

    def spectrum(self, theta: MatrixStack) -> dict[str, float]:
        """Zeros and extreme eigenvalues of the members' thetas."""

    @staticmethod
    def common(graph: GraphTerms, theta: MatrixStack, theta_task: MatrixStack) -> tuple[Matrix, str | None]:
        """Return one sparse precision for all members, and the solver's note; None where nothing was solved."""


class Fixed:
    """A matrix that is not learned: every member runs on the same one throughout.

    ``like`` is a tensor in the networks' arithmetic and on their device.
    """

    learned: ClassVar[bool] = False
    """Whether the matrix moves with the task."""
    thins: ClassVar[bool] = False
    """Whether the graph loses edges while the networks learn."""

    def __init__(self, graph: GraphTerms, start: Start, n_members: int, like: Tensor) -> None:
        self.graph = graph
        self.theta: FloatArray = np.repeat(start.theta[None], n_members, axis=0)
        self.matrix = torch.from_numpy(start.theta_task).to(like).repeat(n_members, 1, 1)
        self._anchor = self.matrix.clone() if self.learned else self.matrix
        """The matrix that the coupling pulls theta_task to: theta in the networks' arithmetic."""
        self.matrix.requires_grad_(self.learned)
        self.adam = Adam.of([self.matrix] if self.learned else [])

    def resume(self, theta: FloatArray, theta_task: FloatArray) -> None:
        """Do nothing: another run on the same rows has the same matrix, as it is not learned."""

    def shift(self, scale: float) -> Tensor:
        """Return what the networks run on, (members, nodes, nodes), divided by ``scale``."""
        return self.matrix / scale

    @property
    def theta_task(self) -> FloatArray:
        """The members' matrices in float64, not scaled."""
        matrix = self.matrix.detach().cpu().double().numpy()
        return 0.5 * (matrix + matrix.transpose(0, 2, 1))

    def begin(self, progress: float, *, solve: bool) -> None:
        """Prepare an epoch; ``progress`` is the share of epochs done."""

    def step(self, learning_rate: float) -> None:
        """Do nothing with a batch's gradient: the matrix is not learned."""

    def snapshot(self) -> tuple[FloatArray, FloatArray]:
        """Return theta and theta_task of every member; the next Step 1 makes a new theta, this one is left alone."""
        return self.theta, self.theta_task

    def terms(
        self, problem: JointProblem, theta: FloatArray, theta_task: FloatArray, l2: float, train_loss: float
    ) -> dict[str, float]:
        """Every term of the objective, the mean over the members."""
        terms = [problem.objective(one, task, l2, train_loss) for one, task in zip(theta, theta_task, strict=True)]
        return {name: float(np.mean([one[name] for one in terms])) for name in terms[0]}

    def spectrum(self, theta: FloatArray) -> dict[str, float]:
        """Zeros and extreme eigenvalues of the members' thetas."""
        eigenvalues = np.linalg.eigvalsh(theta)
        return {
            "n_zeros": float(np.mean([count_zeros(one) for one in theta])),
            "eigenvalue_min": float(eigenvalues.min()),
            "eigenvalue_max": float(eigenvalues.max()),
        }

    @staticmethod
    def common(graph: GraphTerms, theta: FloatArray, theta_task: FloatArray) -> tuple[FloatArray, str | None]:
        """Return one sparse precision for all members, and the solver's note; None where nothing was solved."""
        return theta[0], None


class _Learned(Fixed):
    """A matrix that moves with the task."""

    learned = True

    def resume(self, theta: FloatArray, theta_task: FloatArray) -> None:
        """Continue from the matrices of another run on the same columns."""
        self.theta = theta.copy()
        with torch.no_grad():
            self.matrix.copy_(torch.from_numpy(theta_task))

    def shift(self, scale: float) -> Tensor:
        return (self.matrix + self.matrix.mT) * (0.5 / scale)


class Coupled(_Learned):
    """theta, solved by Step 1, and theta_task, learned from the task's gradient and the coupling."""

    known_zeros: BoolArray | None = None
    """Pairs that Step 1 may not connect."""

    def resume(self, theta: FloatArray, theta_task: FloatArray) -> None:
        """Continue from another run, with theta solved anew by Step 1 for each member's own theta_task.

        The ``theta`` of the other run is not used as it is: it may have seen rows that a member must not see.
        """
        super().resume(theta, theta_task)
        absent = ~(theta_task != 0).any(axis=0)
        self.known_zeros = absent if absent.any() else None
        Coupled.begin(self, 0.0, solve=True)
        self.known_zeros = None

    def begin(self, progress: float, *, solve: bool) -> None:
        """Solve Step 1 for every member."""
        if not solve:
            return
        solved = [
            self.graph.solve(anchor, init, known_zeros=self.known_zeros, tol=STEP_TOL)
            for anchor, init in zip(self.theta_task, self.theta, strict=True)
        ]
        self.theta = np.stack([one.precision for one in solved])
        self._anchor = torch.from_numpy(self.theta).to(self.matrix)

    def step(self, learning_rate: float) -> None:
        """Adam on the task, then the coupling's proximal step: stable however strong the coupling is."""
        self.adam.step(learning_rate)
        weight = learning_rate * self.graph.coupling
        with torch.no_grad():
            self.matrix.lerp_(self._anchor, weight / (1.0 + weight))

    @staticmethod
    def common(graph: GraphTerms, theta: FloatArray, theta_task: FloatArray) -> tuple[FloatArray, str]:
        """Solve Step 1 once more, to the end, with the members' mean matrix for anchor.

        The sum of their couplings is that of their mean, up to a constant: this is Step 1 of the whole ensemble.
        """
        solved = graph.solve(theta_task.mean(axis=0), theta[0])
        return solved.precision, "" if solved.converged else solved.message


class Single(_Learned):
    """One matrix for the graph and the task, by gradient steps on both."""

    def step(self, learning_rate: float) -> None:
        """Adam on both terms, then back into the bounds."""
        graph = self.graph
        if self.matrix.grad is None:  # a network that does not look at its matrix
            self.matrix.grad = torch.zeros_like(self.matrix)
        task = self.matrix.grad.cpu().double().numpy() * graph.task_weight
        whole = np.stack(
            [
                naive_gradient(theta, ridged_inverse(theta, graph), symmetrize(gradient), graph)
                for theta, gradient in zip(self.theta_task, task, strict=True)
            ]
        )
        self.matrix.grad.copy_(torch.from_numpy(whole))
        self.adam.step(learning_rate)
        low, high = smallest_eigenvalue(graph), graph.spectral_bound
        values, vectors = torch.linalg.eigh(torch.from_numpy(self.theta_task))
        with torch.no_grad():
            self.matrix.copy_((vectors * values.clamp(low, high).unsqueeze(-2)) @ vectors.mT)

    def snapshot(self) -> tuple[FloatArray, FloatArray]:
        """Return the thresholded matrix twice: the network of this method runs on it."""
        graph = self.graph
        threshold = [
            soft_threshold_off_diagonal(matrix, graph.l1_penalty * THRESHOLD_RATE) for matrix in self.theta_task
        ]
        theta = np.stack(
            [into_spectral_box(one, smallest_eigenvalue(graph), graph.spectral_bound) for one in threshold]
        )
        return theta, theta.copy()

    @staticmethod
    def common(graph: GraphTerms, theta: FloatArray, theta_task: FloatArray) -> tuple[FloatArray, str | None]:
        """Return the members' mean, on the edges that most of them have."""
        often = (theta != 0).mean(axis=0) > 0.5  # or it would not be sparse
        mean = np.where(often, theta.mean(axis=0), 0.0)
        return into_spectral_box(mean, smallest_eigenvalue(graph), graph.spectral_bound), None


def smallest_eigenvalue(graph: GraphTerms) -> float:
    """Return what keeps the naive method's one matrix, which no barrier guards, invertible."""
    return 1e-6 * min(graph.spectral_bound, 1.0)


def naive_gradient(theta: FloatArray, inverse: FloatArray, task_gradient: FloatArray, graph: GraphTerms) -> FloatArray:
    """Gradient of (5) in theta, the l1 term by its subgradient; ``task_gradient`` is weighted already."""
    l1_subgradient = graph.l1_penalty * np.sign(theta)
    np.fill_diagonal(l1_subgradient, 0.0)
    return task_gradient + (1.0 - graph.task_weight) * (graph.emp_cov - inverse + l1_subgradient)


def ridged_inverse(theta: FloatArray, graph: GraphTerms) -> FloatArray:
    """(theta + ridge I)^-1, what the log-determinant's gradient is made of."""
    inverse: FloatArray = np.linalg.inv(theta + graph.ridge * np.eye(len(theta)))
    return inverse


MATRICES: dict[MethodName, type[Fixed]] = {
    "joint": Coupled,
    "naive": Single,
    "glasso": Fixed,
    "sample": Fixed,
    "vnn": Fixed,
}
"""The class of the matrices that each method's networks run on, in the standard recipe."""
