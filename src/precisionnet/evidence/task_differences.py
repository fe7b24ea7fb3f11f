"""How two groups' task graphs differ: networks fitted to each group's rows and target, for one labelling.

Every labelling is fitted anew: two networks a group, the same first weights and the same number of epochs for all. The
target is freed of the labels' means and of covariates, as the columns are, so that groups of different age do not
differ for that alone. There is no formula for the standard error of a task graph's edge: differences are studentised
over labellings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from precisionnet.estimators.regressor import PNNRegressor
from precisionnet.evidence.differences import Differences
from precisionnet.evidence.pairs import pairs_of
from precisionnet.types import BoolArray, FloatArray, IndexArray

MEMBERS = 2
"""Networks of a fit, one with each readout."""
FEWEST_PEOPLE = 40
"""People of a group that networks are fitted to."""


@dataclass(frozen=True)
class TaskGraphs:
    """Differences of task graphs between the groups of a labelling, in the target's units."""

    X: FloatArray
    y: FloatArray
    person: IndexArray
    seed: int

    def __call__(self, in_b: BoolArray) -> Differences:
        """First group minus second group."""
        (nodes_a, edges_a), (nodes_b, edges_b) = (self.effects(rows) for rows in (~in_b, in_b))
        return Differences(
            edges=(edges_a - edges_b)[pairs_of(len(edges_a))],
            nodes=np.abs(nodes_a) - np.abs(nodes_b),
            total=float(np.linalg.norm(nodes_a) - np.linalg.norm(nodes_b)),
        )

    def effects(self, rows: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the task's nodes and edges in these rows."""
        network = PNNRegressor(n_members=MEMBERS, random_state=self.seed)
        run = network.start_training(self.X[rows], self.y[rows], groups=self.person[rows], keep="last")
        with run.threads():
            while not run.done:
                run.advance()
            fitted = run.finish()
        return fitted.task_nodes, fitted.task_graph
