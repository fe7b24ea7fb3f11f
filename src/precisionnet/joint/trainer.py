"""The only training loop: epochs, history, the state that is kept, divergence, callbacks; and the steps of Adam.

What an epoch does is a policy's business: Algorithm 1 of the paper (``algorithm1``) or mini-batches (``standard``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError as TorchLinAlgError  # type: ignore[attr-defined]
from torch.optim.adam import adam

from precisionnet.errors import FitDivergedError
from precisionnet.nn.network import Tensors
from precisionnet.sparse_matrices import Matrix, MatrixStack, numbers_of

HistoryRow = dict[str, float]
"""One epoch: every term of the objective, losses and metrics, zeros and eigenvalues of theta."""

Callback = Callable[[HistoryRow], object]
"""Called after each epoch with its row of the history; one that returns True ends the training."""

EIGENVALUE_ERRORS = (TorchLinAlgError, np.linalg.LinAlgError)
"""What an eigenvalue solver raises when it meets NaN."""


@dataclass(frozen=True)
class Snapshot:
    """The state after an epoch, members along the first axis. Nothing writes into it afterwards."""

    epoch: int
    theta: MatrixStack
    """(members, n, n), sparse precisions."""
    theta_task: MatrixStack
    """(members, n, n), what the networks run on, not scaled."""
    networks: list[Tensors]
    """State dictionary of each member."""


@dataclass(frozen=True)
class Trained:
    """What training came to."""

    kept: Snapshot
    theta: Matrix
    """(n, n), one sparse precision for all members."""
    scale: float
    """What each network's matrix is divided by."""
    history: list[HistoryRow]
    note: str
    """What the solver had to say, where it did not converge."""


FREED = 31 << 20
"""Bytes; glibc's limit for what it learns is 32 MiB."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep what the steps of training free, once per process.

    A step's tensors are a megabyte each. By default glibc hands their pages back to the system after each step and
    takes them again, zeroed, for the next, which costs a tenth of the time. It keeps freed memory up to twice the
    largest block that was freed so far: so one large block is taken and freed.
    """
    torch.empty(FREED, dtype=torch.uint8)


class StepPolicy(Protocol):
    """What an epoch does, and what is made of the epoch that is kept."""

    @property
    def max_epochs(self) -> int:
        """Epochs at most."""
        ...

    @property
    def patience(self) -> int | None:
        """Epochs without a better validation loss before stopping; None: never."""
        ...

    @property
    def remedy(self) -> str:
        """What to do about a fit that diverged."""
        ...

    def advance(self, epoch: int) -> tuple[HistoryRow, Snapshot]:
        """Run an epoch."""
        ...

    def may_keep(self, row: HistoryRow) -> bool | None:
        """Whether the epoch may be kept as the best; None where no epoch so far may, and the last one is kept."""
        ...

    def conclude(self, kept: Snapshot) -> tuple[Matrix, float, str]:
        """One sparse precision for all members, what their matrices are divided by, and the solver's note."""
        ...


class Trainer:
    """Runs a policy epoch by epoch, so that a fit can be watched, paused and given up.

    The epoch with the lowest loss on held-out rows is kept; the last one where no rows were held out, or where ``keep``
    is "last".
    """

    def __init__(
        self, policy: StepPolicy, callbacks: Iterable[Callback] = (), keep: Literal["best", "last"] = "best"
    ) -> None:
        keep_freed_memory()
        self._keep = keep
        self._policy, self._callbacks = policy, list(callbacks)
        self.history: list[HistoryRow] = []
        self.done = False
        """Whether training has ended: by itself, or because a callback asked for it."""
        self._asked = False
        """Whether a callback has asked for an end."""
        self._kept: Snapshot | None = None
        self._kept_loss = np.inf

    def advance(self) -> HistoryRow:
        """Run one epoch more and return its row of the history."""
        epoch = len(self.history) + 1
        try:
            row, snapshot = self._policy.advance(epoch)
        except EIGENVALUE_ERRORS as error:
            raise _divergence(epoch, ["theta"], self._policy.remedy) from error
        _refuse_divergence(row, snapshot, self._policy.remedy)
        self.history.append(row)
        allowed = self._policy.may_keep(row)
        loss = -epoch if np.isnan(row["validation_loss"]) else row["validation_loss"]
        if allowed is None or self._keep == "last":
            self._kept = snapshot
        elif allowed and loss < self._kept_loss:
            self._kept, self._kept_loss = snapshot, loss
        patience = self._policy.patience
        waited = self._kept is not None and patience is not None and epoch - self._kept.epoch >= patience
        self.done = waited or epoch >= self._policy.max_epochs
        answers = [callback(dict(row)) for callback in self._callbacks]
        self._asked |= any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)
        # A graph that thins out goes on until it has: before, no epoch is what was asked for.
        self.done = self.done or (self._asked and allowed is not None)
        return row

    @property
    def kept(self) -> Snapshot:
        """The state of the epoch that would be kept now."""
        assert self._kept is not None, "no epoch has been run"
        return self._kept

    @property
    def kept_row(self) -> HistoryRow:
        """That epoch's row of the history."""
        return self.history[self.kept.epoch - 1]

    def result(self, members: slice = slice(None)) -> Trained:
        """Return the kept epoch of these members, with one precision for all of them."""
        kept = self.kept
        kept = Snapshot(kept.epoch, kept.theta[members], kept.theta_task[members], kept.networks[members])
        theta, scale, note = self._policy.conclude(kept)
        return Trained(kept, theta, scale, self.history, note)


def _refuse_divergence(row: HistoryRow, snapshot: Snapshot, remedy: str) -> None:
    """Raise where a matrix, a weight or a number of the epoch's row is infinite or NaN."""
    validation = [row["validation_loss"], row["validation_metric"]]
    weights = [t.flatten() for state in snapshot.networks for t in state.values() if t.is_floating_point()]
    fine = {
        "theta": np.isfinite(numbers_of(snapshot.theta)).all(),
        "theta_task": np.isfinite(numbers_of(snapshot.theta_task)).all(),
        "the task loss": np.isfinite(row["train_loss"]),
        "the objective": np.isfinite(row["objective"]),
        "the training error": np.isfinite(row["train_metric"]),
        "the validation loss": not row["validated"] or np.isfinite(validation).all(),
        "the network's weights": not weights or bool(torch.isfinite(torch.cat(weights)).all()),
    }
    del row["validated"]
    names = [name for name, is_fine in fine.items() if not is_fine]
    if names:
        raise _divergence(int(row["epoch"]), names, remedy)


def _divergence(epoch: int, names: list[str], remedy: str) -> FitDivergedError:
    return FitDivergedError(
        f"The fit diverged in epoch {epoch}: {' and '.join(names)} became infinite or NaN; no model was made. "
        f"To go on, {remedy}."
    )


BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass
class Adam:
    """Tensors and the moments of their gradients; a step moves the tensors in place.

    ``torch.optim.adam.adam``, the function, does it: making a ``torch.optim.Adam`` imports PyTorch's compiler first.
    """

    leaves: list[Tensor]
    first: list[Tensor]
    second: list[Tensor]
    steps: list[Tensor]

    @classmethod
    def of(cls, leaves: Iterable[Tensor], known: Adam | None = None) -> Adam:
        """Adam for these tensors, with a copy of the moments of an earlier one where it is given."""
        leaves = list(leaves)
        if known is not None:
            first, second, steps = ([t.clone() for t in part] for part in (known.first, known.second, known.steps))
            return cls(leaves, first, second, steps)
        zeros = [torch.zeros_like(leaf, requires_grad=False) for leaf in leaves]
        # The fused kernel counts steps in single precision, on the tensors' device.
        counts = [torch.zeros((), dtype=torch.float32, device=leaf.device) for leaf in leaves]
        return cls(leaves, zeros, [zero.clone() for zero in zeros], counts)

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the tensors along their gradients, and drop these."""
        having = [i for i, leaf in enumerate(self.leaves) if leaf.grad is not None]
        if not having:
            return
        leaves = [self.leaves[i] for i in having]
        adam(
            leaves,
            [leaf.grad for leaf in leaves if leaf.grad is not None],
            [self.first[i] for i in having],
            [self.second[i] for i in having],
            [],
            [self.steps[i] for i in having],
            fused=True,
            amsgrad=False,
            beta1=BETA1,
            beta2=BETA2,
            lr=learning_rate,
            weight_decay=0.0,
            eps=EPSILON,
            maximize=False,
        )
        for leaf in leaves:
            leaf.grad = None


@torch.no_grad()
def add_l2_gradient(tensors: Iterable[Tensor], l2_penalty: float) -> None:
    """Add the gradient of ``l2_penalty * ||tensor||^2`` to the gradients that the tensors have."""
    for tensor in tensors:
        if tensor.grad is not None:
            tensor.grad.add_(tensor.detach(), alpha=2.0 * l2_penalty)
