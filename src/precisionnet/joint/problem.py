r"""Problem (7) of the paper: the objective, its data and its weights; and the state that is iterated on.

    minimise over h, theta, theta_task
        task_weight * L_task(y, Phi(X, theta_task, h)) + l2_penalty * ||h||^2
        + (1 - task_weight) * [ tr(C theta) - log det(theta + ridge I) + l1_penalty * sum_{i != j} |theta_ij| ]
        + coupling / 2 * || theta - theta_task ||_F^2
    subject to  0 <= theta <= spectral_bound * I

This is the definition the code follows, also where the printed listing of Algorithm 1 drops a factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from precisionnet.joint.adam import Adam
from precisionnet.nn import PrecisionNetwork, Taps, Workspace, eval_output, scale_to_unit_norm, train_output
from precisionnet.precision import PrecisionResult, graphical_lasso_terms
from precisionnet.types import FloatArray

TaskLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(network output, target, sample weight) -> weighted mean loss over the rows; of each member, where several come."""

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class JointState:
    """What Algorithm 1 iterates on. A step takes one and returns another; it never writes into it."""

    theta: FloatArray
    """Sparse precision, float64."""
    theta_task: Tensor
    """Task-aware precision, float64; what the network runs on."""
    weights: Tensors
    """h: every trained tensor of the network."""
    statistics: Tensors
    """Batch-norm running statistics."""
    adam: Adam | None = None
    """Moments of Adam, carried from epoch to epoch."""
    epoch: int = 0
    note: str = ""
    """What the last Step 1 had to say, where it did not converge."""


@dataclass(frozen=True)
class Rows:
    """Samples as the network takes them."""

    x: Tensor
    y: Tensor
    weight: Tensor


@dataclass(frozen=True)
class Problem:
    """The objective with its data and weights (see the head of this file)."""

    network: PrecisionNetwork
    rows: Rows
    task_loss: TaskLoss
    emp_cov: FloatArray
    l1_penalty: float
    task_weight: float
    coupling: float
    ridge: float
    spectral_bound: float
    l2_penalty: float
    scale_shift: bool
    start: PrecisionResult | None = None
    """The graphical lasso of these rows at this penalty, where somebody has solved it already."""
    workspace: Workspace = field(default_factory=Workspace, compare=False)
    """Memory for the steps; copies of a problem share it, as they never run side by side."""

    def shift(self, matrix: Tensor) -> Tensor:
        """What the network runs on: ``matrix``, scaled, in the network's arithmetic."""
        return (scale_to_unit_norm(matrix) if self.scale_shift else matrix).to(self.rows.x.dtype)

    def output(self, weights: Tensors, statistics: Tensors, matrix: Tensor, x: Tensor) -> Tensor:
        """Phi(x, matrix, h) in evaluation mode."""
        h, known = _stacked(weights), _stacked(statistics)
        return eval_output(self.network, h, known, x.unsqueeze(0), self.shift(matrix).unsqueeze(0)).squeeze(0)

    def training_loss(self, weights: Tensors, statistics: Tensors, shift: Tensor, taps: Taps | None = None) -> Tensor:
        """L_task on the training rows, with the batch's own statistics; the running ones go into ``statistics``.

        ``taps`` spare their computation where the shift stays the same.
        """
        rows = self.rows
        h, known = _stacked(weights), _stacked(statistics)
        output = train_output(self.network, h, known, rows.x.unsqueeze(0), shift.unsqueeze(0), taps, self.workspace)
        return self.task_loss(output.squeeze(0), rows.y, rows.weight)

    def taps(self, shift: Tensor) -> Taps:
        """Of the training rows, for as long as the shift stays the same."""
        return Taps(self.rows.x.unsqueeze(0), shift.unsqueeze(0), self.network.order)


def _stacked(tensors: Tensors) -> Tensors:
    """One network as a stack of one."""
    return {name: value.unsqueeze(0) for name, value in tensors.items()}


def add_l2_gradient(weights: Tensors, l2_penalty: float, *, stacked: bool = False) -> None:
    """That of ``l2_penalty * l2_norm_squared(weights)``, onto the gradients that the leaves have."""
    for leaf in weights.values():
        if leaf.ndim > 1 + stacked and leaf.grad is not None:
            leaf.grad.add_(leaf.detach(), alpha=2.0 * l2_penalty)


def l2_norm_squared(weights: Tensors, *, stacked: bool = False) -> Tensor:
    """||h||^2 over coefficients and readout matrices; biases and batch-norm scales are not penalised.

    ``stacked`` where a first axis counts members: the sum over all of them.
    """
    return torch.stack([w.square().sum() for w in weights.values() if w.ndim > 1 + stacked]).sum()


def objective_terms(problem: Problem, state: JointState, task_loss: float) -> dict[str, float]:
    """Every term of the objective, weighted as it enters, and their sum."""
    l2 = float(l2_norm_squared(state.weights))
    return weighted_terms(problem, state.theta, state.theta_task.numpy(), l2, task_loss)


def weighted_terms(
    problem: Problem, theta: FloatArray, theta_task: FloatArray, l2_norm_squared: float, task_loss: float
) -> dict[str, float]:
    """The same from its parts."""
    gl_weight = 1.0 - problem.task_weight
    gl = graphical_lasso_terms(theta, problem.emp_cov, problem.l1_penalty, problem.ridge)
    distance = float(np.linalg.norm(theta - theta_task))
    terms = {
        "task_term": problem.task_weight * task_loss,
        "l2_term": problem.l2_penalty * l2_norm_squared,
        "trace_term": gl_weight * gl.trace,
        "log_det_term": gl_weight * gl.neg_log_det,
        "l1_term": gl_weight * gl.l1,
        "coupling_term": 0.5 * problem.coupling * distance**2,
    }
    return {"objective": sum(terms.values()), **terms, "distance": distance}
