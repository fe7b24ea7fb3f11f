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

from precisionnet.joint.matrices import Coupled
from precisionnet.joint.problem import JointState, Problem
from precisionnet.joint.steps import solve_theta
from precisionnet.types import BoolArray, FloatArray

BEGINS, ENDS = 0.1, 0.5
"""Shares of the epochs between which edges go; what is left of the training polishes."""
POLISH = 0.6
"""So many epochs more than a dense fit has, as a share of its number."""


def edges_kept(n_pairs: int, n_edges: int, progress: float) -> int:
    """How many of all pairs are left when a share of the epochs is done: fast at first, slowly near the end."""
    done = min(1.0, max(0.0, (progress - BEGINS) / (ENDS - BEGINS)))
    return n_edges + round((n_pairs - n_edges) * (1.0 - done) ** 3)


class Pruned(Coupled):
    """theta and theta_task of every member on one graph that thins out."""

    def __init__(self, problem: Problem, start: JointState, n_members: int) -> None:
        super().__init__(problem, start, n_members)
        n = len(start.theta)
        self.n_edges = int(np.count_nonzero(np.triu(start.theta, 1)))
        self.graph: BoolArray = np.ones((n, n), dtype=bool)
        self._mask = torch.ones_like(self.matrix[0])
        self._leader: Pruned | None = None

    def resume(self, theta: FloatArray, theta_task: FloatArray) -> None:
        """Go on from there, on the graph of those matrices."""
        super().resume(theta, theta_task)
        self._set_graph((theta_task != 0).any(axis=0))

    def settled(self, progress: float) -> bool:
        """Whether the graph is the last one."""
        return progress >= ENDS

    def follow(self, leader: Pruned) -> None:
        """Take over the graph of others, who go first in every epoch."""
        self._leader = leader

    def begin(self, progress: float, *, solve: bool) -> None:
        """Thin the graph out, then Step 1 on it."""
        n = len(self.graph)
        if self._leader is not None:
            self._set_graph(self._leader.graph)
        kept = edges_kept(n * (n - 1) // 2, self.n_edges, progress)
        if self._leader is None and kept < np.count_nonzero(np.triu(self.graph, 1)) and self.adam.steps:
            self._thin_out(kept)
        super().begin(progress, solve=solve)

    def _thin_out(self, n_edges: int) -> None:
        felt = self.adam.second[0].double().sqrt().numpy() * self.theta_task**2
        score = felt.sum(axis=0)
        score = np.where(self.graph, score + score.T, -1.0)
        rows, columns = np.triu_indices(len(score), 1)
        strongest = np.argsort(score[rows, columns], kind="stable")[len(rows) - n_edges :]
        graph = np.eye(len(score), dtype=bool)
        graph[rows[strongest], columns[strongest]] = graph[columns[strongest], rows[strongest]] = True
        self._set_graph(graph)

    def _set_graph(self, graph: BoolArray) -> None:
        self.graph = graph
        self._mask = torch.from_numpy(graph).to(self.matrix.dtype)
        self._keep_to_graph()

    def _known_zeros(self) -> BoolArray | None:
        return None if self.graph.all() else ~self.graph

    def step(self, learning_rate: float) -> None:
        """As ever, then back to the graph."""
        super().step(learning_rate)
        self._keep_to_graph()

    def _keep_to_graph(self) -> None:
        with torch.no_grad():
            self.matrix.mul_(self._mask)

    def common(self, theta: FloatArray, theta_task: FloatArray) -> FloatArray:
        """The most likely precision on the graph, near the members' mean matrix: no edge is penalised a second time."""
        graph = (theta_task != 0).any(axis=0)
        solved = solve_theta(self.problem, theta_task.mean(axis=0), theta[0], l1_penalty=0.0, known_zeros=~graph)
        self.note = "" if solved.converged else solved.message
        return solved.precision
