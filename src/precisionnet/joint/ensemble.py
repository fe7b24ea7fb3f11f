"""The standard recipe: several networks trained as one program, mini-batch by mini-batch.

How it differs from Algorithm 1, each point measured in ``docs/decisions/0009-recipe.md``:

- Steps 2 and 3 are taken together: one backward pass gives the gradients of the weights and of theta_task;
- mini-batches, a learning rate that falls along a cosine, and noise on the features;
- Step 1 every few epochs;
- the mean of several members predicts. A member has its own first weights, order of rows, noise, matrices and rows left
  out, all drawn from its own seed, so it is the same alone and among others.

Which epoch is kept is decided for all members together, in ``mixed``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError as TorchLinAlgError  # type: ignore[attr-defined]

from precisionnet.joint.adam import Adam
from precisionnet.joint.divergence import divergence, refuse_divergence
from precisionnet.joint.matrices import Coupled, Fixed, Single
from precisionnet.joint.methods import METHODS
from precisionnet.joint.problem import Problem, Rows, Tensors, add_l2_gradient, l2_norm_squared, weighted_terms
from precisionnet.joint.pruning import Pruned
from precisionnet.joint.run import HistoryRow, Metric
from precisionnet.joint.stacked import stack
from precisionnet.linalg import count_zeros
from precisionnet.nn import PrecisionNetwork, Workspace, eval_output, train_output
from precisionnet.types import FloatArray, IndexArray, MethodName

MATRICES: dict[MethodName, type[Fixed]] = {
    "joint": Coupled,
    "naive": Single,
    "glasso": Fixed,
    "sample": Fixed,
    "vnn": Fixed,
}


SMALLEST_BATCH, FEWEST_BATCHES = 16, 8
"""A small table is cut into batches of 16 rows at least, and gone over until an epoch has eight of them."""


@dataclass(frozen=True)
class Member:
    """One network of an ensemble, before training."""

    network: PrecisionNetwork
    rows: IndexArray
    """What it learns from."""
    left_out: IndexArray
    """Training rows it never sees."""
    seed: int
    """Of the order of its rows and of its noise."""


@dataclass(frozen=True)
class Plan:
    """How an ensemble is trained."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    theta_every: int
    input_noise: float
    sparse: bool = False
    """End on a sparse graph: what ``joint`` does when that is what will predict."""

    def rate(self, progress: float) -> float:
        """The learning rate when a share of all steps is done."""
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))


@dataclass(frozen=True)
class EnsembleState:
    """What is kept of an epoch; every tensor has the members along its first axis."""

    theta: FloatArray
    theta_task: FloatArray
    weights: Tensors
    statistics: Tensors
    epoch: int


@dataclass(frozen=True)
class EnsembleResult:
    """The kept epoch, one sparse precision for all members, what the shift is divided by, and a row an epoch."""

    states: list[EnsembleState]
    """One for each shape of network."""
    theta: FloatArray
    scale: float
    history: list[HistoryRow]
    note: str


class EnsembleTraining:
    """A run of networks of one shape that goes on epoch by epoch."""

    def __init__(
        self,
        problem: Problem,
        method: MethodName,
        members: Sequence[Member],
        plan: Plan,
        metric: Metric,
        validation: Rows | None = None,
        begin_from: EnsembleState | None = None,
    ) -> None:
        """``begin_from`` is what a run with the same members on the same rows came to."""
        self._problem, self._members, self._plan, self._metric = problem, members, plan, metric
        self._validation = validation
        self._network = members[0].network
        kind = Pruned if method == "joint" and plan.sparse else MATRICES[method]
        self.matrices = kind(problem, METHODS[method].init(problem), len(members))
        # Adam's steps have the learning rate's length whatever the gradient's; the precision of features in large units
        # is small, and must not be overrun by them.
        self._step_unit = min(1.0, float(np.linalg.norm(self.matrices.theta_task[0], 2)))
        weights, self._statistics = stack([one.network for one in members])
        if begin_from is not None:
            weights, self._statistics = self._copy(begin_from.weights), self._copy(begin_from.statistics)
            self.matrices.resume(begin_from.theta, begin_from.theta_task)
        self._weights = {name: value.requires_grad_() for name, value in weights.items()}
        self._adam = Adam.of(self._weights.values())
        self._generators = [torch.Generator().manual_seed(one.seed) for one in members]
        fewest = min(len(one.rows) for one in members)
        self._batch = min(plan.batch_size, fewest, max(SMALLEST_BATCH, fewest // FEWEST_BATCHES))
        self._batches = max(FEWEST_BATCHES, fewest // self._batch)
        self._workspace = Workspace()
        self.history: list[HistoryRow] = []
        self.state: EnsembleState
        """After the last epoch."""
        self.validation_outputs: Tensor
        """Of every member on the validation rows, in the last epoch."""

    @property
    def done(self) -> bool:
        """At the last epoch."""
        return len(self.history) >= self._plan.max_epochs

    def advance(self) -> HistoryRow:
        """One epoch more; returns the row it leaves in the history."""
        epoch = len(self.history) + 1
        every = self._plan.theta_every
        self.matrices.begin((epoch - 1) / self._plan.max_epochs, solve=epoch > 1 and (epoch - 1) % every == 0)
        try:
            train_loss, train_metric = self._pass_over_rows(epoch)
            theta, theta_task = self.matrices.snapshot()
            eigenvalues = np.linalg.eigvalsh(theta)
        except (TorchLinAlgError, np.linalg.LinAlgError) as error:  # an eigenvalue solver met NaN on the way
            raise divergence(epoch, ["theta"], self._plan.learning_rate) from error
        state = EnsembleState(theta, theta_task, self._copy(self._weights), self._copy(self._statistics), epoch)
        held_loss, held_metric = self._held_out_scores(state)
        row = {
            "epoch": epoch,
            **_mean_terms(self._problem, state, train_loss),
            "train_loss": train_loss,
            "train_metric": train_metric,
            "validation_loss": held_loss,
            "validation_metric": held_metric,
            "n_zeros": round(float(np.mean([count_zeros(one) for one in theta]))),
            "eigenvalue_min": float(eigenvalues.min()),
            "eigenvalue_max": float(eigenvalues.max()),
        }
        refuse_divergence(
            theta,
            torch.from_numpy(theta_task),
            state.weights,
            row,
            self._plan.learning_rate,
            validated=self._held_out,
        )
        self.history.append(row)
        self.state = state
        self._workspace.clear()  # somebody who is put aside shall not hold on to it
        return row

    @property
    def _held_out(self) -> bool:
        """Whether there are rows to choose the epoch on."""
        return self._validation is not None or any(len(one.left_out) for one in self._members)

    def _pass_over_rows(self, epoch: int) -> tuple[float, float]:
        """Every member once over its rows; the mean loss and metric of the batches as they were seen."""
        problem, plan, matrices = self._problem, self._plan, self.matrices
        rows = problem.rows
        order = [self._order(one, g) for one, g in zip(self._members, self._generators, strict=True)]
        losses, metrics = [], []
        for batch in range(self._batches):
            progress = ((epoch - 1) * self._batches + batch) / (plan.max_epochs * self._batches)
            taken = torch.stack([one[batch * self._batch : (batch + 1) * self._batch] for one in order])
            x, y, weight = self._noisy(rows.x[taken]), rows.y[taken], rows.weight[taken]
            shift = matrices.shift()
            output = train_output(self._network, self._weights, self._statistics, x, shift, workspace=self._workspace)
            task = problem.task_loss(output, y, weight)
            task.sum().backward()  # type: ignore[no-untyped-call]
            add_l2_gradient(self._weights, problem.l2_penalty, stacked=True)
            rate = plan.rate(progress)
            self._adam.step(rate)
            matrices.step(rate * self._step_unit)
            losses.append(float(task.detach().mean()))
            metrics.append(self._metric(output.detach().flatten(0, 1), y.flatten(), weight.flatten()))
        return float(np.mean(losses)), float(np.mean(metrics))

    def _order(self, one: Member, generator: torch.Generator) -> Tensor:
        """The rows of an epoch's batches, side by side: shuffled, and as often as it takes."""
        rows = torch.from_numpy(one.rows)
        whole = len(rows) // self._batch * self._batch
        passes = -(-self._batches * self._batch // whole)
        return torch.cat([rows[torch.randperm(len(rows), generator=generator)[:whole]] for _ in range(passes)])

    def _noisy(self, x: Tensor) -> Tensor:
        if not self._plan.input_noise:
            return x
        noise = [torch.empty_like(one).normal_(generator=g) for one, g in zip(x, self._generators, strict=True)]
        return x.add(torch.stack(noise), alpha=self._plan.input_noise)

    def _held_out_scores(self, state: EnsembleState) -> tuple[float, float]:
        """Loss and metric of the mean output on the validation rows, or of each member on what it left out."""
        problem = self._problem
        if self._validation is not None:
            rows = self._validation
            self.validation_outputs = self._outputs(state, rows.x.expand(len(self._members), *rows.x.shape))
            output = self.validation_outputs.mean(dim=0)
        else:
            if not self._held_out:
                return np.nan, np.nan
            # Members leave out a row more or less than others: all go through at once, the first row filling up.
            taken = [torch.from_numpy(one.left_out) for one in self._members]
            known = torch.nn.utils.rnn.pad_sequence(taken, batch_first=True)
            output = self._outputs(state, problem.rows.x[known])
            output = torch.cat([one[: len(left)] for one, left in zip(output, taken, strict=True)])
            left_out = torch.cat(taken)
            rows = Rows(problem.rows.x[left_out], problem.rows.y[left_out], problem.rows.weight[left_out])
        return float(problem.task_loss(output, rows.y, rows.weight)), self._metric(output, rows.y, rows.weight)

    def _outputs(self, state: EnsembleState, x: Tensor) -> Tensor:
        """Of every member on rows of its own, (members, rows, outputs), in evaluation mode."""
        shift = torch.from_numpy(state.theta_task / self.matrices.scale).to(x.dtype)
        return eval_output(self._network, state.weights, state.statistics, x, shift)

    @staticmethod
    def _copy(tensors: Tensors) -> Tensors:
        return {name: value.detach().clone() for name, value in tensors.items()}


def _mean_terms(problem: Problem, state: EnsembleState, task_loss: float) -> dict[str, float]:
    """The members' mean of every term of the objective."""
    n = len(state.theta)
    l2 = float(l2_norm_squared(state.weights, stacked=True)) / n
    terms = [
        weighted_terms(problem, theta, theta_task, l2, task_loss)
        for theta, theta_task in zip(state.theta, state.theta_task, strict=True)
    ]
    return {name: float(np.mean([one[name] for one in terms])) for name in terms[0]}
