"""Members of several shapes: an ensemble for each shape, trained side by side, and one precision for all.

Half of the members with the one readout and half with the other err in different ways, so their mean errs less than
that of either kind (``docs/decisions/0009-recipe.md``).
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
    """Ensembles of one shape each, advanced together; each keeps its own best epoch."""

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
        self._problem, self._metric, self._validation = problem, metric, validation
        known: Sequence[EnsembleState | None] = begin_from or [None] * len(shapes)
        self._parts = [
            EnsembleTraining(problem, method, members, plan, metric, validation, state)
            for members, state in zip(shapes, known, strict=True)
        ]
        self._counts = [len(members) for members in shapes]
        leader = self._parts[0].matrices
        for part in self._parts[1:]:
            if isinstance(part.matrices, Pruned) and isinstance(leader, Pruned):
                part.matrices.follow(leader)
        self.history: list[HistoryRow] = []

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
            rows_ = self._validation
            output = self._problem.average(torch.cat([part.validation_outputs for part in self._parts]))
            row["validation_loss"] = float(self._problem.task_loss(output, rows_.y, rows_.weight))
            row["validation_metric"] = self._metric(output, rows_.y, rows_.weight)
        self.history.append(row)
        return row

    def result(self) -> EnsembleResult:
        """Every shape's best epoch so far, and Step 1 of all members together."""
        states = [part.best for part in self._parts]
        matrices = self._parts[0].matrices
        theta = matrices.common(
            np.concatenate([state.theta for state in states]), np.concatenate([state.theta_task for state in states])
        )
        return EnsembleResult(states, theta, matrices.scale, self.history, matrices.note)
