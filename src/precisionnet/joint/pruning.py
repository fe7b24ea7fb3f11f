"""Sparse at prediction: the networks' matrices keep only as many edges as the sparse precision has.

With ``predict_on="sparse"`` the graph is thinned out while the networks learn, from all pairs down to as many edges as
the graphical lasso of these rows has at this penalty; the second half of the epochs, of which there are more than in
a dense fit, polishes weights and edges on the graph that is left. An edge goes where its loss would be felt least: by
theta_task^2 times the root mean square of the task's gradient (which Adam keeps anyway), summed over the members, who
all share the graph. Thinning at once, after training, cost twice the accuracy (``docs/decisions/0009-recipe.md``).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from precisionnet.joint.matrices import Coupled
from precisionnet.joint.problem import GraphTerms, Start
from precisionnet.types import BoolArray, FloatArray

BEGINS, ENDS = 0.1, 0.5
"""Shares of the epochs between which edges go; what is left of the training polishes."""


def edges_kept(n_pairs: int, n_edges: int, progress: float) -> int:
    """How many of all pairs are left when a share of the epochs is done: fast at first, slowly near the end."""
    done = min(1.0, max(0.0, (progress - BEGINS) / (ENDS - BEGINS)))
    return n_edges + round((n_pairs - n_edges) * (1.0 - done) ** 3)


def thinned(support: BoolArray, felt: FloatArray, n_edges: int) -> BoolArray:
    """Return the graph of the ``n_edges`` pairs of ``support`` whose loss would be felt most."""
    score = np.where(support, felt + felt.T, -1.0)
    rows, columns = np.triu_indices(len(score), 1)
    strongest = np.argsort(score[rows, columns], kind="stable")[len(rows) - n_edges :]
    graph = np.eye(len(score), dtype=bool)
    graph[rows[strongest], columns[strongest]] = graph[columns[strongest], rows[strongest]] = True
    return graph


class Pruned(Coupled):
    """theta and theta_task of every member on one graph that thins out; the policy says which."""

    thins = True

    def __init__(self, graph: GraphTerms, start: Start, n_members: int, like: Tensor) -> None:
        super().__init__(graph, start, n_members, like)
        self._mask = torch.ones_like(self.matrix[0], requires_grad=False)

    def felt(self) -> FloatArray:
        """How much the loss of each entry would be felt, summed over the members; zeros before the first step."""
        second = self.adam.second[0].cpu().double()
        return np.sum(second.sqrt().numpy() * self.theta_task**2, axis=0)

    def begin(self, progress: float, *, solve: bool, support: BoolArray | None) -> None:
        """Keep to the graph, then Step 1 on it."""
        if support is not None:
            self._mask = torch.from_numpy(support).to(self.matrix)
            self._keep_to_graph()
        super().begin(progress, solve=solve, support=support)

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
