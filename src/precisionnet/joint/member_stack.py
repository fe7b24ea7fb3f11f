"""Members of one shape in training: one network a member, one matrix a member, an epoch of all of them at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from precisionnet.joint.matrices import Matrices
from precisionnet.joint.problem import JointProblem, RowWindows, Start, TensorRows, l2_norm_squared
from precisionnet.joint.sparse_support import REVISED_UNTIL, LearnedOnSupport
from precisionnet.joint.trainer import Adam, HistoryRow, add_l2_gradient
from precisionnet.nn.network import NetworkStack, Tensors
from precisionnet.nn.sparse_shift import Probe, shift_of
from precisionnet.sparse_matrices import MatrixStack
from precisionnet.types import FloatArray, IndexArray

SMALLEST_BATCH, FEWEST_BATCHES = 16, 8
"""A small table is cut into batches of 16 rows at least, and gone over until an epoch has eight of them."""

GATHERED = 16
"""Batches whose rows are taken out of the table together."""

PROBED = 64
"""Rows of each member by whose gradients a sparse support is revised."""


@dataclass(frozen=True)
class Member:
    """One network, before training."""

    network: nn.Module
    kind: str
    """Members of one kind have networks of one shape."""
    rows: IndexArray
    """What it learns from; of several targets (``TensorRows``), its own."""
    left_out: IndexArray
    """Training rows it never sees."""
    seed: int
    """Of the order of its rows and of its noise."""
    noise: float = 1.0
    """Share of the plan's noise; the same for all members of a kind."""
    batch: int = 1
    """Rows of its gradient steps, as a multiple of the plan's; the same for all members of a kind."""
    fold: int = 0
    """What it leaves out of every window of rows."""


@dataclass(frozen=True)
class Plan:
    """How members are trained."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    theta_every: int
    input_noise: float
    sparse: bool = False
    """End on a sparse graph: what ``joint`` does when that is what will predict."""

    def revises(self, epoch: int) -> bool:
        """Whether a sparse support is revised before an epoch: where a dense fit solves Step 1, in the first half."""
        return (epoch - 1) % self.theta_every == 0 and (epoch - 1) / self.max_epochs < REVISED_UNTIL

    def rate(self, progress: float) -> float:
        """Return the learning rate when a share of all steps is done."""
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))


@dataclass(frozen=True)
class StackEpoch:
    """What an epoch of one stack leaves behind."""

    theta: MatrixStack
    theta_task: MatrixStack
    networks: list[Tensors]
    row: HistoryRow
    validation_outputs: Tensor | None
    """(members, rows, outputs) on the validation rows."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as arrays: pickling a tensor takes many times as long as pickling its numbers."""
        arrays = [{name: tensor.cpu().numpy() for name, tensor in state.items()} for state in self.networks]
        return _epoch_of_arrays, (self.theta, self.theta_task, arrays, self.row, self.validation_outputs)


def _epoch_of_arrays(
    theta: MatrixStack, theta_task: MatrixStack, networks: list[dict[str, NDArray[Any]]], *others: Any
) -> StackEpoch:
    states = [{name: torch.from_numpy(array) for name, array in state.items()} for state in networks]
    return StackEpoch(theta, theta_task, states, *others)


class MemberStack:
    """Members of one shape in training; all of its state travels to a worker and back."""

    def __init__(
        self, problem: JointProblem, kind: type[Matrices], members: Sequence[Member], plan: Plan, start: Start
    ) -> None:
        like = problem.rows.x
        self.network = NetworkStack([one.network for one in members]).to(like.device)
        self.matrices: Matrices = kind(problem.graph, start, len(members), like)
        norm = start.norm
        self.scale = norm if problem.scale_shift else 1.0
        """What the networks' shift is divided by: the norm of the start, for the whole fit and for predictions."""
        # Adam's steps have the learning rate's length whatever the gradient's; the precision of features in large units
        # is small, and must not be overrun by them.
        self._step_unit = min(1.0, norm)
        self._adam = Adam.of(self.network.parameters())
        self._trains = any(value.requires_grad for value in self.network.parameters())
        self._generators = [torch.Generator().manual_seed(one.seed) for one in members]
        self._seeds = [torch.Generator().manual_seed(one.seed + 1) for one in members]
        self.n_members = len(members)
        self._noise = members[0].noise * plan.input_noise
        self._rows = [torch.from_numpy(one.rows) for one in members]
        self._left_out = [torch.from_numpy(one.left_out) for one in members]
        self.left_out_weight = sum(float(problem.rows[rows].weight.sum()) for rows in self._left_out)
        """Sum of the weights of the rows that members left out."""
        self._folds, self._largest_batch = [one.fold for one in members], members[0].batch * plan.batch_size
        self._cut_batches()
        self.work = self.n_members * len(list(self.network.modules()))
        """A rough measure of what an epoch costs, beside those of other stacks."""
        tensors = self.network.state_dict().values()
        self.state_bytes = 2 * self.matrices.theta.nbytes + sum(t.numel() * t.element_size() for t in tensors)

    def _cut_batches(self) -> None:
        fewest = min(len(rows) for rows in self._rows)
        self._batch = min(self._largest_batch, fewest, max(SMALLEST_BATCH, fewest // FEWEST_BATCHES))
        self._batches = max(FEWEST_BATCHES, fewest // self._batch)

    def resume(self, theta: MatrixStack, theta_task: MatrixStack, networks: Sequence[Tensors]) -> None:
        """Go on from what members of the same shape came to."""
        self.network.load_member_states(networks)
        self.matrices.resume(theta, theta_task)

    def epoch(self, problem: JointProblem, validation: TensorRows | None, plan: Plan, epoch: int) -> StackEpoch:
        """Take every member once over its rows."""
        solve = epoch > 1 and (epoch - 1) % plan.theta_every == 0
        self.matrices.begin((epoch - 1) / plan.max_epochs, solve=solve)
        learned = problem if problem.windows is None else self._in_window(problem, problem.windows, epoch)
        train_loss, train_metric = self._pass_over_rows(learned, plan, epoch)
        theta, theta_task = self.matrices.snapshot()
        networks = self.network.member_states()
        held_loss, held_metric, outputs = self._held_out_scores(problem, validation, theta_task)
        l2 = l2_norm_squared(list(self.network.penalised())) / self.n_members
        row = {
            "epoch": epoch,
            **self.matrices.terms(problem, theta, theta_task, l2, train_loss),
            "train_loss": train_loss,
            "train_metric": train_metric,
            "validation_loss": held_loss,
            "validation_metric": held_metric,
            **self.matrices.spectrum(theta),
        }
        return StackEpoch(theta, theta_task, networks, row, outputs)

    def _in_window(self, problem: JointProblem, windows: RowWindows, epoch: int) -> JointProblem:
        """Return the problem with the rows of this epoch's window."""
        rows, fold = windows.of_epoch(epoch)
        self._rows = [torch.from_numpy(np.flatnonzero(fold != own)) for own in self._folds]
        self._cut_batches()
        return replace(problem, rows=rows)

    def pair_gradients(self, problem: JointProblem, nodes: IndexArray) -> FloatArray:
        """Return the size of the task's gradient of every pair of some nodes, (n_nodes, n), summed over the members."""
        assert isinstance(self.matrices, LearnedOnSupport)
        probe = Probe(torch.from_numpy(nodes).to(problem.rows.x.device))
        places = np.linspace(0, min(len(rows) for rows in self._rows) - 1, PROBED).round().astype(np.intp)
        rows = problem.rows[torch.stack([rows[torch.from_numpy(places)] for rows in self._rows])]
        self.network.eval()
        output = self.network(rows.x, self.matrices.shift(self.scale, probe))
        problem.task_loss(output, rows.y, rows.weight).sum().backward()  # type: ignore[no-untyped-call]
        self.network.zero_grad()
        self.matrices.forget_gradient()
        assert probe.total is not None
        found: FloatArray = probe.total.abs().sum(dim=0).cpu().numpy()
        return found

    def _pass_over_rows(self, problem: JointProblem, plan: Plan, epoch: int) -> tuple[float, float]:
        """Return the mean loss and metric of the batches as they were seen."""
        penalised = list(self.network.penalised())
        self.network.train(self._trains)  # weights that stay as they are keep the moments of their normalisation, too
        losses, outputs, seen = [], [], []
        order, seeds = self._drawn()
        for first in range(0, self._batches, GATHERED):
            last = min(first + GATHERED, self._batches)
            rows = problem.rows[order[:, first * self._batch : last * self._batch]]
            noisy = rows.x
            if self._noise:
                noise = torch.empty(noisy.shape, dtype=noisy.dtype)
                for part, generator in zip(noise, self._generators, strict=True):
                    part.normal_(generator=generator)
                noisy = noisy.add(noise.to(noisy.device), alpha=self._noise)
            for batch in range(first, last):
                now = slice((batch - first) * self._batch, (batch - first + 1) * self._batch)
                output = self.network(noisy[:, now], self.matrices.shift(self.scale), seeds[batch])
                loss = problem.task_loss(output, rows.y[:, now], rows.weight[:, now])
                loss.sum().backward()  # type: ignore[no-untyped-call]
                add_l2_gradient(penalised, problem.l2_penalty)
                rate = plan.rate(((epoch - 1) * self._batches + batch) / (plan.max_epochs * self._batches))
                self._adam.step(rate)
                self.matrices.step(rate * self._step_unit)
                losses.append(loss.detach())
                outputs.append(output.detach())
            seen.append(rows)
        metric = problem.metric(
            torch.cat(outputs, dim=1).flatten(0, 1),
            torch.cat([rows.y for rows in seen], dim=1).flatten(),
            torch.cat([rows.weight for rows in seen], dim=1).flatten(),
        )
        return float(torch.stack(losses).double().mean()), metric

    def _drawn(self) -> tuple[Tensor, list[list[int] | None]]:
        """Draw an epoch: each member's rows, batch after batch, and what random layers draw from in each batch.

        Rows are shuffled, and as often as it takes. Only foreign networks, called one by one, have random layers.
        """
        order, wanted = [], self._batches * self._batch
        for rows, generator in zip(self._rows, self._generators, strict=True):
            whole = len(rows) // self._batch * self._batch
            passes = -(-wanted // whole)
            shuffled = [rows[torch.randperm(len(rows), generator=generator)[:whole]] for _ in range(passes)]
            order.append(torch.cat(shuffled)[:wanted])
        if not self.network.one_by_one:
            return torch.stack(order), [None] * self._batches
        draws = [torch.randint(2**62, (self._batches,), generator=generator) for generator in self._seeds]
        return torch.stack(order), list(torch.stack(draws, dim=1).tolist())

    @torch.no_grad()
    def _held_out_scores(
        self, problem: JointProblem, validation: TensorRows | None, theta_task: MatrixStack
    ) -> tuple[float, float, Tensor | None]:
        """Loss and metric of the mean output on the validation rows, or of each member on what it left out."""
        self.network.eval()
        shift = shift_of(theta_task, self.scale, problem.rows.x)
        outputs = None
        if validation is not None:
            rows = validation
            outputs = self.network(rows.x.expand(self.n_members, *rows.x.shape), shift)
            output = outputs.mean(dim=0)
        elif any(len(rows) for rows in self._left_out):
            # Members leave out a row more or less than others: all go through at once, the first row filling up.
            known = torch.nn.utils.rnn.pad_sequence(self._left_out, batch_first=True)
            every = self.network(problem.rows[known].x, shift)
            output = torch.cat([one[: len(left)] for one, left in zip(every, self._left_out, strict=True)])
            rows = problem.rows[torch.cat(self._left_out)]
        else:
            return np.nan, np.nan, None
        loss = float(problem.task_loss(output, rows.y, rows.weight))
        return loss, problem.metric(output, rows.y, rows.weight), outputs
