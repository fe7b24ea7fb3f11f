r"""Problem (7) with sparse matrices, for tables with too many columns for a matrix of all pairs.

theta is solved from the rows, and theta_task lives on a sparse support that all members share.

theta is the graphical lasso of the rows with its proof (``precision.rows``). It stays as it is: Step 1 would pull it
towards theta_task, by 2 % of its norm over a fit of 60 columns, and would need the inverse of every member's matrix.

theta_task lives on theta's edges, on those of a theta with a smaller penalty where that is cheap to have, and on pairs
that the task's gradient asks for. The support is revised between epochs: the pairs with the largest gradients come in,
with the value zero, and the weakest of the pairs that are no edges of theta go. Only pairs with one end among the nodes
with the most active gradients are searched, so that the search costs hubs x N, not N x N. Values, Adam's moments and
the pull of the coupling are per slot of the support; an epoch's state is the values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from precisionnet.errors import InputError
from precisionnet.joint.problem import GraphTerms, JointProblem, Start
from precisionnet.joint.trainer import Adam
from precisionnet.nn.sparse_shift import Probe, SparseShift
from precisionnet.precision import graphical_lasso_from_rows
from precisionnet.sparse_kernels import sampled_product
from precisionnet.sparse_matrices import Matrix, SparseStack, Support, extreme_eigenvalues
from precisionnet.types import FloatArray, IndexArray

LIGHTER, LIGHT_TOL, LIGHT_MOST = 0.8, 1e-2, 4000
"""The lighter penalty as a share of the penalty, the gap that its solve reaches, and the most columns it is solved
for."""
FREE_PER_NODE, NEW_PER_NODE = 1.0, 0.25
"""Pairs per node that are no edges of theta: how many the support may have, and how many come in at a revision."""
HUBS = 128
"""Number of nodes whose pairs are searched in a revision."""
REVISED_UNTIL = 0.5
"""Share of the epochs after which the support is no longer revised."""


@dataclass(frozen=True)
class SparseStart(Start):
    """The start of a fit on a sparse support, with the terms of the objective that do not change."""

    support: Support = field(kw_only=True)
    """The support of theta_task."""
    covariance: Matrix = field(kw_only=True)
    """The covariance on the support, a scipy.sparse array."""
    trace: float = field(kw_only=True)
    neg_log_det: float = field(kw_only=True)
    l1: float = field(kw_only=True)
    eigenvalues: tuple[float, float] = field(kw_only=True)
    """The smallest and the largest eigenvalue of theta."""

    @property
    def norm(self) -> float:
        """The spectral norm of theta."""
        return self.eigenvalues[1]


def sparse_start(
    graph: GraphTerms, x: FloatArray, weight: FloatArray, *, edges_of_theta_alone: bool, n_jobs: int | None
) -> SparseStart:
    """Solve theta from the rows and lay out the support.

    Parameters
    ----------
    graph : GraphTerms
        Penalty and weights; its covariance is not used.
    x : ndarray of shape (n_rows, n_columns)
        Rows as the networks see them.
    weight : ndarray of shape (n_rows,)
        How often each row counts.
    edges_of_theta_alone : bool
        Whether theta_task may have no other edges than theta.
    n_jobs : int or None
        Workers that share the components.

    Returns
    -------
    SparseStart
        theta, theta_task on its support, and the terms of the objective.
    """
    if graph.l1_penalty == 0.0:
        raise InputError(
            "Without a penalty no pair of columns is left out, so no support is sparse: set l1_scale, or l1_penalty, "
            "above 0, or set support='dense'."
        )
    share = weight / weight.sum()
    centred = x - share @ x
    variance = share @ centred**2
    rounding = (16 * np.finfo(float).eps * np.abs(x).max(axis=0)) ** 2
    varies = np.flatnonzero((variance > rounding) & (x.min(axis=0) < x.max(axis=0)))
    rows = np.sqrt(share * len(x))[:, None] * centred[:, varies]
    # The solver subtracts the plain mean of its rows. With different weights that mean is not zero, so every row is
    # added once more with the opposite sign: then the mean is zero, and the covariance is the weighted one.
    if np.ptp(weight) > 0:
        rows = np.concatenate([rows, -rows])
    n, constant = x.shape[1], np.setdiff1d(np.arange(x.shape[1]), varies)
    usual, objective, note = 1.0, 0.0, ""
    theta = sparse.csr_array((n, n))
    if len(varies):
        solved = graphical_lasso_from_rows(rows, graph.l1_penalty, n_jobs=n_jobs)
        usual, objective = float(variance[varies].mean()), solved.objective
        theta, note = _embedded(solved.precision, varies, n), "" if solved.converged else solved.message
    theta = theta + sparse.csr_array((np.full(len(constant), 1.0 / usual), (constant, constant)), shape=(n, n))
    own = Support.of(theta)
    support = own
    if not edges_of_theta_alone and n <= LIGHT_MOST and len(varies):
        support = _with_lighter_edges(own, rows, varies, graph.l1_penalty, n_jobs)
    covariance = _covariance_on(support, centred, share)
    covariance[constant] = usual
    values = support.values_of(theta)
    size = np.concatenate([np.ones(n), np.full(support.n_edges, 2.0)])
    trace = float(size @ (covariance * values))
    l1 = graph.l1_penalty * float(np.abs(values[n:]).sum()) * 2.0
    return SparseStart(
        theta=theta,
        theta_task=theta,
        note=note,
        support=support,
        covariance=support.matrix(covariance),
        trace=trace,
        neg_log_det=objective - (trace - len(constant)) - l1 + len(constant) * float(np.log(usual)),
        l1=l1,
        eigenvalues=extreme_eigenvalues(theta),
    )


def _embedded(theta: Any, places: IndexArray, n: int) -> sparse.csr_array:
    coo = theta.tocoo()
    row, column = (places[part] for part in coo.coords)
    return sparse.csr_array((coo.data, (row, column)), shape=(n, n))


def _with_lighter_edges(
    own: Support, rows: FloatArray, varies: IndexArray, l1_penalty: float, n_jobs: int | None
) -> Support:
    """Add the strongest edges of a graphical lasso with a lighter penalty, at most as many as the support has."""
    try:
        lighter = graphical_lasso_from_rows(rows, LIGHTER * l1_penalty, tol=LIGHT_TOL, n_jobs=n_jobs).precision
    except InputError:  # no room for the lighter solve
        return own
    found = _embedded(lighter, varies, own.n)
    more = Support.of(found)
    new = ~own.holds(more.first, more.second)
    if not new.any():
        return own
    first, second = more.first[new], more.second[new]
    strength = np.abs(found[first, second]) / np.sqrt(found.diagonal()[first] * found.diagonal()[second])
    kept = np.argsort(-strength, kind="stable")[: own.n_edges + own.n]
    return joined(own, first[kept], second[kept])


def joined(support: Support, first: IndexArray, second: IndexArray) -> Support:
    """Return the support with more edges, in the order of their rows."""
    keys = np.union1d(support.keys, first * np.int64(support.n) + second)
    return Support(support.n, keys // support.n, keys % support.n)


def _covariance_on(support: Support, centred: FloatArray, share: FloatArray) -> FloatArray:
    """Return the weighted covariance, one number per slot."""
    by_node = np.ascontiguousarray(centred.T)[None, None]
    out = np.zeros((1, support.n_slots))
    sampled_product(*support.entries, by_node * share, by_node, out)
    out[0, support.n :] *= 0.5  # an edge's slot holds the sum of its two entries
    return out[0]


class FixedOnSupport:
    """A matrix that is not learned: every member runs on theta throughout."""

    learned: ClassVar[bool] = False
    thins: ClassVar[bool] = False

    def __init__(self, graph: GraphTerms, start: SparseStart, n_members: int, like: Tensor) -> None:
        self.graph, self._start = graph, start
        own = Support.of(start.theta)
        shared = np.broadcast_to(own.values_of(start.theta), (n_members, own.n_slots))
        self.theta = SparseStack(own, shared)
        self.support = start.support if self.learned else own
        anchor = torch.from_numpy(self.support.values_of(start.theta)).to(like)
        self._anchor = anchor
        """The values that the coupling pulls theta_task to: theta on the support."""
        self.values = anchor.repeat(n_members, 1).requires_grad_(self.learned)
        self.adam = Adam.of([self.values] if self.learned else [])

    def resume(self, theta: Any, theta_task: SparseStack) -> None:
        """Do nothing: another run on the same rows has the same matrix, as it is not learned."""

    def shift(self, scale: float, probe: Probe | None = None) -> SparseShift:
        """Return the matrices that the networks run on, divided by ``scale``."""
        return SparseShift(self.values / scale, self.support, probe)

    @property
    def theta_task(self) -> SparseStack:
        """The members' matrices in float64, not scaled."""
        return SparseStack(self.support, self.values.detach().cpu().double().numpy())

    def begin(self, progress: float, *, solve: bool) -> None:
        """Do nothing: theta is not solved again at the beginning of an epoch."""

    def step(self, learning_rate: float) -> None:
        """Do nothing with a batch's gradient: the matrix is not learned."""

    def snapshot(self) -> tuple[SparseStack, SparseStack]:
        """Return theta and theta_task of every member, copied."""
        task = self.theta_task
        return self.theta, SparseStack(task.support, task.values.copy())

    def terms(
        self, problem: JointProblem, theta: SparseStack, theta_task: SparseStack, l2: float, train_loss: float
    ) -> dict[str, float]:
        """Return every term of the objective, averaged over the members."""
        start, weight = self._start, 1.0 - self.graph.task_weight
        size = np.concatenate([np.ones(self.support.n), np.full(self.support.n_edges, 2.0)])
        apart = (theta_task.values - self.support.values_of(start.theta)) ** 2 @ size
        terms = {
            "task_term": self.graph.task_weight * train_loss,
            "l2_term": problem.l2_penalty * l2,
            "trace_term": weight * start.trace,
            "log_det_term": weight * start.neg_log_det,
            "l1_term": weight * start.l1,
            "coupling_term": 0.5 * self.graph.coupling * float(apart.mean()),
        }
        return {"objective": sum(terms.values()), **terms, "distance": float(np.sqrt(apart).mean())}

    def spectrum(self, theta: SparseStack) -> dict[str, float]:
        """Return the number of zeros and the extreme eigenvalues of theta."""
        n = self.support.n
        smallest, largest = self._start.eigenvalues
        n_zeros = n * n - n - 2 * theta.support.n_edges
        return {"n_zeros": float(n_zeros), "eigenvalue_min": smallest, "eigenvalue_max": largest}

    @staticmethod
    def common(graph: GraphTerms, theta: SparseStack, theta_task: SparseStack) -> tuple[Any, None]:
        """Return theta, which is the same for all members."""
        return theta[0], None


class LearnedOnSupport(FixedOnSupport):
    """theta_task, learned from the task's gradient and the coupling, on a support that is revised between epochs."""

    learned = True

    def resume(self, theta: Any, theta_task: SparseStack) -> None:
        """Continue from the matrices of another run on the same columns."""
        self._move_to(joined(self.support, theta_task.support.first, theta_task.support.second))
        values = np.stack([self.support.values_of(theta_task[i]) for i in range(len(theta_task))])
        with torch.no_grad():
            self.values.copy_(torch.from_numpy(values))

    def step(self, learning_rate: float) -> None:
        """Take an Adam step on the task, then the coupling's proximal step, as with a dense matrix."""
        self.adam.step(learning_rate)
        weight = learning_rate * self.graph.coupling
        with torch.no_grad():
            self.values.lerp_(self._anchor.expand_as(self.values), weight / (1.0 + weight))

    @property
    def activity(self) -> FloatArray:
        """How strongly the task pulls at each node: the second moment of its diagonal entry's gradient."""
        found: FloatArray = self.adam.second[0][:, : self.support.n].sum(dim=0).cpu().double().numpy()
        return found

    def forget_gradient(self) -> None:
        """Drop the gradients left by the search for new pairs."""
        self.values.grad = None

    def _move_to(self, support: Support) -> None:
        """Carry values and Adam's moments over to another support; they are zero at its new pairs."""
        place, n = self.support.places(support.keys), support.n
        slots = torch.from_numpy(np.concatenate([np.arange(n), np.where(place >= 0, n + place, 0)]))
        mask = torch.from_numpy(np.concatenate([np.ones(n), place >= 0])).to(self.values)
        with torch.no_grad():
            moved = [tensor[:, slots] * mask for tensor in (self.values, self.adam.first[0], self.adam.second[0])]
            self.values = moved[0].clone().requires_grad_()
        self.adam = Adam([self.values], [moved[1]], [moved[2]], self.adam.steps)
        self.support = support
        self._anchor = torch.from_numpy(support.values_of(self._start.theta)).to(self.values)


def chosen_nodes(matrices: Sequence[LearnedOnSupport]) -> IndexArray:
    """Return the nodes whose pairs are searched: those that the task pulls at most, over all members."""
    activity = np.sum([one.activity for one in matrices], axis=0)
    return np.sort(np.argsort(-activity, kind="stable")[:HUBS])


def revise(matrices: Sequence[LearnedOnSupport], nodes: IndexArray, gradient: FloatArray) -> None:
    """Revise the support of all members: add the pairs with the largest gradients, drop the weakest free pairs.

    Parameters
    ----------
    matrices : sequence of LearnedOnSupport
        The matrices of all stacks; they share one support.
    nodes : ndarray of int of shape (n_nodes,)
        The nodes whose pairs were searched.
    gradient : ndarray of shape (n_nodes, n)
        Absolute gradient of the pairs of these nodes with all nodes, summed over the members.
    """
    support, start = matrices[0].support, matrices[0]._start
    n = support.n
    new_first, new_second = _strongest_pairs(support, nodes, gradient, max(1, round(NEW_PER_NODE * n)))
    size = np.sum([np.abs(one.theta_task.values[:, n:]).sum(axis=0) for one in matrices], axis=0)
    free = np.flatnonzero(~start.support.holds(support.first, support.second))
    most = max(0, round(FREE_PER_NODE * n) - len(new_first))
    dropped = free[np.argsort(-size[free], kind="stable")[most:]]
    kept = np.setdiff1d(np.arange(support.n_edges), dropped)
    moved = joined(Support(n, support.first[kept], support.second[kept]), new_first, new_second)
    for one in matrices:
        one._move_to(moved)


def _strongest_pairs(
    support: Support, nodes: IndexArray, gradient: FloatArray, n_new: int
) -> tuple[IndexArray, IndexArray]:
    """Return the pairs outside the support with the largest gradients."""
    n = support.n
    size = np.array(gradient, dtype=np.float64)
    size[np.arange(len(nodes)), nodes] = 0.0
    most = min(size.size, n_new + 2 * len(nodes) * len(nodes) + int(np.diff(support.entries[0])[nodes].sum()))
    flat = np.argpartition(-size, most - 1, axis=None)[:most]
    flat = flat[np.argsort(-size.ravel()[flat], kind="stable")]
    ends = np.sort(np.stack([nodes[flat // n], flat % n]), axis=0)
    fine = (ends[0] < ends[1]) & (size.ravel()[flat] > 0) & ~support.holds(ends[0], ends[1])
    first, second = ends[0][fine], ends[1][fine]
    _, once = np.unique(first * np.int64(n) + second, return_index=True)
    once = np.sort(once)[:n_new]
    return first[once], second[once]
