"""Members of several shapes: an ensemble for each shape, trained side by side, and one precision for all.

Half of the members with the one readout and half with the other err in different ways, so their mean errs less than
that of either kind (``docs/decisions/0009-recipe.md``). The epoch that is kept has the lowest loss on the validation
rows or, without any, on the rows that members left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from precisionnet.joint.ensemble import EnsembleResult, EnsembleState, EnsembleTraining, Member, Plan
from precisionnet.joint.problem import Problem, Rows
from precisionnet.joint.pruning import Pruned
from precisionnet.joint.run import HistoryRow, Metric
from precisionnet.types import MethodName


class MixedTraining:
    """Ensembles of one shape each, advanced together; the epoch that is kept is the same for all."""

    def __init__(
        self,
        problem: Problem,
        method: MethodName,
        shapes: Sequence[Sequence[Member]],
        plan: Plan,
        metric: Metric,
        validation: Rows | None = None,
        begin_from: Sequence[EnsembleState] | None = None,
    ) -> None:
        self._problem, self._plan, self._metric, self._validation = problem, plan, metric, validation
        known: Sequence[EnsembleState | None] = begin_from or [None] * len(shapes)
        self._parts = [
            EnsembleTraining(problem, method, members, plan, metric, validation, state)
            for members, state in zip(shapes, known, strict=True)
        ]
        self._counts = [len(members) for members in shapes]
        weight = problem.rows.weight
        self._left_out = [sum(float(weight[one.left_out].sum()) for one in members) for members in shapes]
        leader = self._parts[0].matrices
        for part in self._parts[1:]:
            if isinstance(part.matrices, Pruned) and isinstance(leader, Pruned):
                part.matrices.follow(leader)
        self.history: list[HistoryRow] = []
        self._kept: list[EnsembleState] = []
        self._kept_loss = self._first_loss = np.inf

    @property
    def done(self) -> bool:
        """At the last epoch."""
        return self._parts[0].done

    def advance(self) -> HistoryRow:
        """One epoch more of every shape; the row is their mean, on validation rows that of all members together."""
        rows = [part.advance() for part in self._parts]
        row = {name: float(np.average([one[name] for one in rows], weights=self._counts)) for name in rows[0]}
        row |= {"epoch": int(row["epoch"]), "n_zeros": round(row["n_zeros"])}
        if self._validation is not None and len(self._parts) > 1:
            held_out = self._validation
            output = torch.cat([part.validation_outputs for part in self._parts]).mean(dim=0)
            row["validation_loss"] = float(self._problem.task_loss(output, held_out.y, held_out.weight))
            row["validation_metric"] = self._metric(output, held_out.y, held_out.weight)
        elif any(self._left_out):
            # Of a few people some members leave nobody out: they have no say here.
            known = [one for one, weight in zip(rows, self._left_out, strict=True) if weight]
            weights = [weight for weight in self._left_out if weight]
            for name in ("validation_loss", "validation_metric"):
                row[name] = float(np.average([one[name] for one in known], weights=weights))
        self.history.append(row)
        self._keep_if_best(row)
        return row

    def _keep_if_best(self, row: HistoryRow) -> None:
        """The lowest loss on held-out rows, or the last epoch where there are none."""
        epoch, loss = row["epoch"], row["validation_loss"]
        loss = -epoch if np.isnan(loss) else loss
        if not self._parts[0].matrices.settled((epoch - 1) / self._plan.max_epochs):
            self._kept = [part.state for part in self._parts]  # only what comes after the last edge went can be best
            return
        # Polishing on the last graph must not cost training loss: no epoch is kept that is worse than the first on it.
        if self._kept_loss == np.inf:
            self._first_loss = row["train_loss"]
        thinned = isinstance(self._parts[0].matrices, Pruned)
        if loss < self._kept_loss and (row["train_loss"] <= self._first_loss or not thinned):
            self._kept, self._kept_loss = [part.state for part in self._parts], loss

    @property
    def kept(self) -> list[EnsembleState]:
        """The best epoch so far, a state for each shape."""
        return self._kept

    @property
    def kept_row(self) -> HistoryRow:
        """That epoch's row of the history."""
        return self.history[self._kept[0].epoch - 1]

    def result(self) -> EnsembleResult:
        """The best epoch so far, and Step 1 of all members together."""
        states = self._kept
        matrices = self._parts[0].matrices
        theta = matrices.common(
            np.concatenate([state.theta for state in states]), np.concatenate([state.theta_task for state in states])
        )
        return EnsembleResult(states, theta, matrices.scale, self.history, matrices.note)
