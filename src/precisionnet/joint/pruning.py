"""Sparse at prediction: the networks' matrices keep only the strongest edges of the rows' own graph.

With ``predict_on="sparse"`` all members end on one graph, with as many edges as the graphical lasso of these rows has
at this penalty. It is reached step by step while the networks learn: the weakest pairs go first, the last ones after
half of the epochs, and the other half polishes weights and edges on what is left. The order in which pairs go is known
before training and depends on the rows alone: by partial correlation, of a graphical lasso with the penalty
sqrt(log N / T). So two seeds have the same graph, and two halves of a cohort similar ones.

Edges chosen by the task's gradient predict 1 to 2 % better, and no two seeds agree on them: any few edges will do for
the prediction, so the graph that is shown is the one that the rows support (``docs/decisions/0011-task-graph.md``).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from precisionnet.joint.matrices import Coupled
from precisionnet.joint.problem import GraphTerms, Start
from precisionnet.precision import count_edges, partial_correlations
from precisionnet.types import BoolArray, FloatArray, IndexArray

BEGINS, ENDS = 0.1, 0.5
"""Shares of the epochs between which edges go; what is left of the training polishes."""


def edges_kept(n_pairs: int, n_edges: int, progress: float) -> int:
    """Return how many of all pairs are left after a share of the epochs: they go fast at first, slowly near the end."""
    done = min(1.0, max(0.0, (progress - BEGINS) / (ENDS - BEGINS)))
    return n_edges + round((n_pairs - n_edges) * (1.0 - done) ** 3)


def edge_ranks(theta: FloatArray) -> IndexArray:
    """Rank every pair by the size of its partial correlation: 0 for the strongest; -1 on the diagonal, which stays."""
    strength = np.abs(partial_correlations(theta))
    rows, columns = np.triu_indices(len(theta), 1)
    order = np.argsort(-strength[rows, columns], kind="stable")
    ranks: IndexArray = np.full(theta.shape, -1, dtype=np.intp)
    ranks[rows[order], columns[order]] = ranks[columns[order], rows[order]] = np.arange(len(rows))
    return ranks


class Pruned(Coupled):
    """theta and theta_task of every member on one graph that thins out."""

    thins = True

    def __init__(self, graph: GraphTerms, start: Start, n_members: int, like: Tensor) -> None:
        super().__init__(graph, start, n_members, like)
        self._ranks = edge_ranks(graph.lightly_penalised(start.theta))
        self._n_edges = count_edges(start.theta)
        self._most = len(start.theta) * (len(start.theta) - 1) // 2
        self._mask = torch.ones_like(self.matrix[0], requires_grad=False)

    def resume(self, theta: FloatArray, theta_task: FloatArray) -> None:
        """Continue from another run; a graph that was sparse already does not become dense again first."""
        super().resume(theta, theta_task)
        self._most = max(self._n_edges, count_edges((theta_task != 0).any(axis=0)))

    def begin(self, progress: float, *, solve: bool) -> None:
        """Keep to the graph of this epoch, then Step 1 on it."""
        kept = min(self._most, edges_kept(self._ranks.max() + 1, self._n_edges, progress))
        support: BoolArray = self._ranks < kept
        self.known_zeros = None if support.all() else ~support
        self._mask = torch.from_numpy(support).to(self.matrix)
        self._keep_to_graph()
        super().begin(progress, solve=solve)

    def step(self, learning_rate: float) -> None:
        """Step as ``Coupled`` does, then back to the graph."""
        super().step(learning_rate)
        self._keep_to_graph()

    def _keep_to_graph(self) -> None:
        with torch.no_grad():
            self.matrix.mul_(self._mask)

    @staticmethod
    def common(graph: GraphTerms, theta: FloatArray, theta_task: FloatArray) -> tuple[FloatArray, str]:
        """Return the most likely precision on the graph, near the members' mean; no edge is penalised a second time."""
        support = (theta_task != 0).any(axis=0)
        solved = graph.solve(theta_task.mean(axis=0), theta[0], l1_penalty=0.0, known_zeros=~support)
        return solved.precision, "" if solved.converged else solved.message
