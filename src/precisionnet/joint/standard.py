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
from dataclasses import dataclass

import numpy as np
import torch

from precisionnet.joint.matrices import MATRICES, Matrices
from precisionnet.joint.member_stack import (
    Member,
    MemberStack,
    Plan,
    StackEpoch,
)
from precisionnet.joint.problem import JointProblem, Start, TensorRows
from precisionnet.joint.pruning import ENDS, Pruned
from precisionnet.joint.sparse_support import (
    FixedOnSupport,
    LearnedOnSupport,
    SparseStart,
    chosen_nodes,
    revise,
)
from precisionnet.joint.trainer import (
    EIGENVALUE_ERRORS,
    FREED,
    HistoryRow,
    Snapshot,
    keep_freed_memory,
)
from precisionnet.nn.filter import PolynomialFilter
from precisionnet.sparse_matrices import Matrix, concatenated
from precisionnet.threads import limited_threads
from precisionnet.types import IndexArray, MethodName
from precisionnet.workers import count_for, in_workers

MOST_AHEAD = 256_000_000
"""Bytes of states that workers send at once: all epochs of a usual table, so that a stack travels once."""

FIRST_WATCHED, SECONDS_WATCHED = 4, 2.0
"""With callbacks or verbose, workers first run this many epochs, then as many as take about this many seconds: the rows
of the history reach the caller with that delay."""

STACKED = 4
"""Members trained as one; more would leave a second core nothing to do, fewer would pay for each operation alone."""


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
        self._kind: type[Matrices] = Pruned if method == "joint" and plan.sparse else MATRICES[method]
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
        matrices = [one for one in (stack.matrices for stack in self._stacks) if isinstance(one, LearnedOnSupport)]
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
