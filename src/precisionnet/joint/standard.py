"""The standard recipe: several networks, mini-batch by mini-batch, as a policy of the trainer.

How it differs from Algorithm 1, each point measured in ``docs/decisions/0009-recipe.md``:

- Steps 2 and 3 are taken together: one backward pass gives the gradients of the weights and of theta_task;
- mini-batches, a learning rate that falls along a cosine, and noise on the features;
- Step 1 every few epochs;
- the mean of several members predicts. A member has its own first weights, order of rows, noise, matrices and rows left
  out, all drawn from its own seed.

Members of one shape are trained as stacks of at most ``STACKED``, so that a product serves several of them. Which
members share a stack depends on the members alone: with ``n_jobs`` whole stacks go to workers, and the numbers are the
same to the last bit. A worker trains a stack from the first epoch to the last and sends every epoch's row and state:
all that couples the stacks is the epoch that is kept, which is chosen from those.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from precisionnet.joint.matrices import MATRICES
from precisionnet.joint.problem import JointProblem, RowWindows, Start, TensorRows, l2_norm_squared
from precisionnet.joint.pruning import ENDS, Pruned
from precisionnet.joint.sparse_support import (
    REVISED_UNTIL,
    FixedOnSupport,
    LearnedOnSupport,
    SparseStart,
    chosen_nodes,
    revise,
)
from precisionnet.joint.trainer import (
    EIGENVALUE_ERRORS,
    FREED,
    Adam,
    HistoryRow,
    Snapshot,
    add_l2_gradient,
    keep_freed_memory,
)
from precisionnet.nn.filter import PolynomialFilter
from precisionnet.nn.sparse_shift import Probe, shift_of
from precisionnet.nn.stack import NetworkStack, Tensors
from precisionnet.sparse_matrices import Matrix, MatrixStack, concatenated
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray, IndexArray, MethodName
from precisionnet.workers import count_for, in_workers

SMALLEST_BATCH, FEWEST_BATCHES = 16, 8
"""A small table is cut into batches of 16 rows at least, and gone over until an epoch has eight of them."""

GATHERED = 16
"""Batches whose rows are taken out of the table together."""

MOST_AHEAD = 256_000_000
"""Bytes of states that workers send at once: all epochs of a usual table, so that a stack travels once."""

FIRST_WATCHED, SECONDS_WATCHED = 4, 2.0
"""With callbacks or verbose, workers first run this many epochs, then as many as take about this many seconds: the rows
of the history reach the caller with that delay."""

PROBED = 64
"""Rows of each member by whose gradients a sparse support is revised."""

STACKED = 4
"""Members trained as one; more would leave a second core nothing to do, fewer would pay for each operation alone."""


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

    def __init__(self, problem: JointProblem, kind: Any, members: Sequence[Member], plan: Plan, start: Start) -> None:
        like = problem.rows.x
        self.network = NetworkStack([one.network for one in members]).to(like.device)
        self.matrices = kind(problem.graph, start, len(members), like)
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
            noisy = self._noisy(rows.x)
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

    def _noisy(self, x: Tensor) -> Tensor:
        if not self._noise:
            return x
        noise = torch.empty(x.shape, dtype=x.dtype)
        for part, generator in zip(noise, self._generators, strict=True):
            part.normal_(generator=generator)
        return x.add(noise.to(x.device), alpha=self._noise)

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


@dataclass(frozen=True)
class WorkersEpochs:
    """What a worker sends back."""

    stack: MemberStack | None
    """Where epochs are left to run."""
    done: list[StackEpoch]
    failure: Exception | None
    """What kept it from the other epochs."""


class StandardRecipe:
    """Stacks of members advanced together; the epoch that is kept is common to all."""

    patience: int | None = None

    def __init__(
        self,
        problem: JointProblem,
        method: MethodName,
        members: Sequence[Member],
        plan: Plan,
        start: Start,
        validation: TensorRows | None = None,
        resume: Snapshot | None = None,
        n_jobs: int | None = None,
        *,
        watched: bool = True,
    ) -> None:
        self._problem, self._plan, self._validation, self._n_jobs = problem, plan, validation, n_jobs
        self.max_epochs = plan.max_epochs
        self.remedy = f"look for outliers in the table, or lower learning_rate (now {plan.learning_rate:g})"
        self._kind: Any = Pruned if method == "joint" and plan.sparse else MATRICES[method]
        self._sparse = isinstance(start, SparseStart)
        if self._sparse:
            self._kind = LearnedOnSupport if method == "joint" else FixedOnSupport
        revised = self._kind is LearnedOnSupport and not plan.sparse
        self._revised = [e for e in range(2, plan.max_epochs + 1) if revised and plan.revises(e)]
        """Epochs before which the members' common support is revised."""
        self._note = start.note
        groups = stacks_of(members, _stacked_at_most(problem, members, plan) if self._sparse else STACKED)
        self._stacks = [MemberStack(problem, self._kind, [members[i] for i in g], plan, start) for g in groups]
        self._member_order = np.argsort(np.concatenate(groups))
        if resume is not None:
            for stack, places in zip(self._stacks, groups, strict=True):
                theta = resume.theta if self._sparse else resume.theta[places]
                stack.resume(theta, resume.theta_task[places], [resume.networks[i] for i in places])
        self._counts = [stack.n_members for stack in self._stacks]
        self._left_out = [stack.left_out_weight for stack in self._stacks]
        self._first_loss: float | None = None
        self._scale = self._stacks[0].scale
        self._ahead: list[list[StackEpoch]] = []
        """Epochs that workers have run already."""
        self._failure: Exception | None = None
        """What ended a worker's run after those."""
        self._most_at_once = max(1, MOST_AHEAD // sum(stack.state_bytes for stack in self._stacks))
        self._watched = watched
        self._at_once = min(FIRST_WATCHED, self._most_at_once) if watched else self._most_at_once
        self._longest_first = np.argsort([-stack.work for stack in self._stacks])
        """So that no worker is left alone with a long one at the end."""

    def advance(self, epoch: int) -> tuple[HistoryRow, Snapshot]:
        """Run one epoch of every stack."""
        if not self._ahead and self._failure is None:
            if epoch in self._revised:
                self._revise_support()
            self._ahead = self._run_stacks(epoch)
        if not self._ahead and self._failure is not None:
            raise self._failure
        done = self._ahead.pop(0)
        order = self._member_order
        networks = [state for one in done for state in one.networks]
        snapshot = Snapshot(
            epoch,
            concatenated([one.theta for one in done])[order],
            concatenated([one.theta_task for one in done])[order],
            [networks[i] for i in order],
        )
        return self._row(done), snapshot

    def _run_stacks(self, epoch: int) -> list[list[StackEpoch]]:
        """Run the stacks, here or in workers; return what each epoch left behind, one entry per stack."""
        problem, validation, plan = self._problem, self._validation, self._plan
        if count_for(self._n_jobs) == 1 or len(self._stacks) == 1:
            return [[stack.epoch(problem, validation, plan, epoch) for stack in self._stacks]]
        revised = next((one for one in self._revised if one > epoch), plan.max_epochs + 1)
        epochs = range(epoch, min(epoch + self._at_once, revised))
        order = self._longest_first
        calls = ((self._stacks[i], epochs) for i in order)
        started = time.perf_counter()
        shared = problem, validation, plan
        in_order = in_workers(_epochs_in_worker, calls, self._n_jobs, shared=shared, by_file=False)
        if self._watched:
            in_time = round(SECONDS_WATCHED * len(epochs) / (time.perf_counter() - started))
            self._at_once = min(max(1, in_time), self._most_at_once)
        returned = [in_order[i] for i in np.argsort(order)]
        self._stacks = [one.stack for one in returned]
        self._failure = min(returned, key=lambda one: len(one.done)).failure
        return [list(done) for done in zip(*(one.done for one in returned), strict=False)]

    def _revise_support(self) -> None:
        """Let all members' gradients choose the pairs that theta_task may have."""
        matrices = [stack.matrices for stack in self._stacks]
        nodes = chosen_nodes(matrices)
        revise(matrices, nodes, np.sum([stack.pair_gradients(self._problem, nodes) for stack in self._stacks], axis=0))

    def _row(self, done: Sequence[StackEpoch]) -> HistoryRow:
        """Average the stacks' rows; on validation rows the mean output of all members counts."""
        rows = [one.row for one in done]
        row = {name: float(np.average([one[name] for one in rows], weights=self._counts)) for name in rows[0]}
        row |= {"epoch": int(row["epoch"]), "n_zeros": round(row["n_zeros"])}
        if self._validation is not None:
            held_out = self._validation
            output = torch.cat([one.validation_outputs for one in done if one.validation_outputs is not None]).mean(0)
            row["validation_loss"] = float(self._problem.task_loss(output, held_out.y, held_out.weight))
            row["validation_metric"] = self._problem.metric(output, held_out.y, held_out.weight)
        elif any(self._left_out):
            # Of a few people some members leave nobody out: they have no say here.
            known = [(one, weight) for one, weight in zip(rows, self._left_out, strict=True) if weight]
            for name in ("validation_loss", "validation_metric"):
                row[name] = float(np.average([one[name] for one, _ in known], weights=[weight for _, weight in known]))
        row["validated"] = self._validation is not None or any(self._left_out)
        return row

    def may_keep(self, row: HistoryRow) -> bool | None:
        """Allow every epoch, but on a graph that thins out only those after the last edge went.

        Polishing on the last graph must not cost training loss: no epoch is kept that is worse than the first on it.
        """
        if not self._kind.thins:
            return True
        if (row["epoch"] - 1) / self._plan.max_epochs < ENDS:
            return None
        if self._first_loss is None:
            self._first_loss = row["train_loss"]
        return row["train_loss"] <= self._first_loss

    def conclude(self, kept: Snapshot) -> tuple[Matrix, float, str]:
        """Return one sparse precision for all members, and what their matrices are divided by."""
        theta, note = self._kind.common(self._problem.graph, kept.theta, kept.theta_task)
        return theta, self._scale, self._note if note is None else note


def trial_losses(
    problem: JointProblem, method: MethodName, members: Sequence[Member], plan: Plan, start: Start, n_jobs: int | None
) -> dict[str, float]:
    """Return the lowest loss of each kind on rows left out in a short training."""
    kinds = dict.fromkeys(member.kind for member in members)
    groups = [[member for member in members if member.kind == kind] for kind in kinds]
    calls = ((group,) for group in groups)
    losses = in_workers(_trial_loss, calls, n_jobs, shared=(problem, method, plan, start), by_file=False)
    return dict(zip(kinds, losses, strict=True))


def _trial_loss(
    problem: JointProblem, method: MethodName, plan: Plan, start: Start, members: Sequence[Member]
) -> float:
    with limited_threads(1):
        recipe = StandardRecipe(problem, method, members, plan, start)
        try:
            rows = [recipe.advance(epoch)[0] for epoch in range(1, plan.max_epochs + 1)]
        except EIGENVALUE_ERRORS:
            return math.inf
    losses = [row["validation_loss"] for row in rows if math.isfinite(row["validation_loss"])]
    return min(losses, default=math.inf)


def _stacked_at_most(problem: JointProblem, members: Sequence[Member], plan: Plan) -> int:
    """Return how many members of very many columns share a stack: what a layer makes stays below what is kept free.

    Larger tensors are taken from the system, zeroed, and given back in every step.
    """
    widest = max(
        bank.out_features for one in members for bank in one.network.modules() if type(bank) is PolynomialFilter
    )
    x = problem.rows.x
    return max(1, min(STACKED, FREED // (plan.batch_size * x.shape[1] * widest * x.element_size())))


def stacks_of(members: Sequence[Member], most: int = STACKED) -> list[IndexArray]:
    """Return which members are trained as one: of one kind, at most ``most``, in their order."""
    kinds = dict.fromkeys(one.kind for one in members)
    places = [np.array([i for i, one in enumerate(members) if one.kind == kind]) for kind in kinds]
    return [part for same in places for part in np.split(same, range(most, len(same), most))]


def _epochs_in_worker(
    problem: JointProblem,
    validation: TensorRows | None,
    plan: Plan,
    stack: MemberStack,
    epochs: range,
) -> WorkersEpochs:
    """Run epochs of one stack."""
    keep_freed_memory()
    done: list[StackEpoch] = []
    failure = None
    with limited_threads(1):
        try:
            for epoch in epochs:
                done.append(stack.epoch(problem, validation, plan, epoch))
                if not math.isfinite(done[-1].row["objective"]):  # the fit has diverged, which its row will tell
                    break
        except EIGENVALUE_ERRORS as error:
            failure = error
    more = failure is None and epochs.stop <= plan.max_epochs
    return WorkersEpochs(stack if more else None, done, failure)
