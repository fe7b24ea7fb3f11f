r"""How two groups' graphs differ, edge by edge and node by node: partial correlations with errors, and task graphs.

For one labelling of standardised rows z, in each group,

    theta = ((1 - share) R + share I)^-1,   r_ij = -theta_ij / sqrt(theta_ii theta_jj),   R the rows' correlation,

and the row z adds to r_ij, to first order, its influence over the number of rows,

    psi_ij = v_i v_j - c_ij (v_i^2 + v_j^2) / 2,      v_i = (theta z)_i / its root mean square,   c = correlation of v,

whatever the rows' distribution. A person's rows, of both groups where people are paired, are added up before squaring,

    error_ij^2 = sum_people (sum_{rows in a} psi_ij / m_a - sum_{rows in b} psi_ij / m_b)^2,

with m = sqrt(n (n - N - 1)), which makes up for the N columns fitted to n rows (m = n where share > 0). So differences
in standard errors are comparable between edges, between groups of unequal size and between rows with light and heavy
tails: that is what makes one permutation distribution serve all edges, and a permutation test of equal graphs robust
against groups that differ in something else (Janssen 1997; DiCiccio and Romano 2017).

A node's strength is the sum of its edges' |r| over the edges of the *common graph*: those pairs whose partial
correlation in the rows of both groups together has p <= 0.05, and the strongest pair of every node. Signs are those of
the common graph, so that strength is linear in r. The sum of |r| over all pairs instead has a floor of noise, about
N sqrt(2 / (pi n)) a node, that depends on the size of the group and hides what differs: of two graphs, one with edges
0.6 times as strong (N = 20, 200 people a group), it tells 52 to 57 % apart where common edges tell 70 to 90 %. The
common graph does not change with the labels and is nearly independent of the difference, so choosing edges by it does
not bias the difference.

Regime: share = 0, the plain inverse, where every group has at least 1.5 N + 10 people; there r estimates the partial
correlation itself. Below, ``share`` is Ledoit and Wolf's for the smallest group, the same for all groups and
relabellings, and r is shrunk. Shrinking finds two to three times as many planted edges there (N = 20, 30 to 40 people a
group), but a shrunk r is partly a marginal correlation: tests of the whole stay valid, differences are too small, and
an edge may differ because its neighbours do. Above, the plain inverse finds somewhat fewer edges (17 where shrinking
finds 23, at 10 N people) and says what it means.

Task graphs are those of networks fitted to each group's rows and target, anew for every labelling: two networks a
group, the same first weights and the same number of epochs for all. The target is freed of the labels' means and of
covariates, as the columns are, so that groups of different age do not differ for that alone. There is no formula for
the standard error of a task graph's edge: differences are studentised over labellings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from precisionnet.errors import InputError
from precisionnet.evidence.pairs import pairs_of
from precisionnet.evidence.permutations import Exchange
from precisionnet.linalg import inverse_from_cholesky, try_cholesky
from precisionnet.types import BoolArray, FloatArray, IndexArray

COMMON_LEVEL = 0.05
"""p-value at which a pair is an edge of the common graph."""
LARGEST_BLOCK = 2**15
"""Influences of pairs that are held at once where people have several rows: what a processor holds close by."""
MEMBERS = 2
"""Networks of a task graph's fit, one with each readout."""
FEWEST_PEOPLE = 40
"""People of a group that networks are fitted to."""


@dataclass(frozen=True)
class Differences:
    """First group minus second group, for one labelling; errors are None where only relabelling can tell them."""

    edges: FloatArray
    """One estimate per pair i < j."""
    nodes: FloatArray
    total: float
    edge_errors: FloatArray | None = None
    node_errors: FloatArray | None = None
    total_error: float | None = None


Contrast = Callable[[BoolArray], Differences]
"""A function from ``in_b``, which says for each row if it is of the second group, to the groups' differences."""


@dataclass(frozen=True)
class PartialCorrelations:
    """The contrast of partial correlations: call it with a labelling."""

    rows: FloatArray
    """z, rows of both groups."""
    person: IndexArray
    paired: bool
    """Whether every person has rows in both groups."""
    share: float
    signs: FloatArray
    """Symmetric: the common graph's edges with their sign, else 0."""

    @classmethod
    def of(cls, rows: FloatArray, exchange: Exchange, share: float) -> PartialCorrelations:
        """Find the common graph of the rows, the same for every labelling."""
        signs = common_signs(partial_correlations(_correlation(rows), share), exchange.n_people)
        return cls(rows, exchange.person, exchange.paired, share, signs)

    def __call__(self, in_b: BoolArray) -> Differences:
        """Compute differences and their errors for one labelling."""
        a, b = (self._side(np.flatnonzero(here)) for here in (~in_b, in_b))
        first, second = pairs_of(self.rows.shape[1])
        node_errors, total_error = _node_errors(a, b, self.signs, self.paired)
        nodes = np.sum(self.signs * (a.r - b.r), axis=1)
        return Differences(
            edges=(a.r - b.r)[first, second],
            nodes=nodes,
            total=0.5 * float(np.sum(nodes)),
            edge_errors=_edge_errors(a, b, first, second, self.paired),
            node_errors=node_errors,
            total_error=total_error,
        )

    def _side(self, here: IndexArray) -> _Side:
        here = here[np.argsort(self.person[here], kind="stable")]
        begins = np.flatnonzero(np.diff(self.person[here], prepend=-1))
        return _Side.of(self.rows[here], self.share, None if len(begins) == len(here) else begins)


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
        from precisionnet.estimators import PNNRegressor  # with torch, which partial correlations do not need

        network = PNNRegressor(n_members=MEMBERS, random_state=self.seed)
        run = network.start_training(self.X[rows], self.y[rows], groups=self.person[rows], keep="last")
        with run.threads():
            while not run.done:
                run.advance()
            fitted = run.finish()
        return fitted.task_nodes, fitted.task_graph


def partial_correlations(correlation: FloatArray, share: float) -> FloatArray:
    """Compute r of the module's text; its diagonal is 0."""
    return _partial(_precision(correlation, share))


def common_signs(r: FloatArray, n_people: int) -> FloatArray:
    """Return the signs of the common graph's edges, 0 elsewhere."""
    size = np.abs(r)
    room = max(n_people - len(r) - 1, 1)
    strongest = size >= size.max(axis=1, keepdims=True)
    kept = (np.arctanh(np.minimum(size, 1.0 - 1e-12)) * np.sqrt(room) >= -ndtri(COMMON_LEVEL / 2)) | strongest
    signs = np.where(kept | kept.T, np.sign(r), 0.0)
    np.fill_diagonal(signs, 0.0)
    return signs


def shrinkage_share(rows: FloatArray, person: IndexArray, n_smallest: int) -> float:
    """Ledoit and Wolf's share towards the identity for a group of ``n_smallest`` people; people's rows are added up."""
    R = _correlation(rows)
    off = ~np.eye(len(R), dtype=bool)
    whose = np.unique(person, return_inverse=True)[1]
    n_people = int(whose.max()) + 1
    spread = np.zeros_like(R)
    for mine in np.split(rows[np.argsort(whose, kind="stable")], np.cumsum(np.bincount(whose))[:-1]):
        spread += (mine.T @ mine - len(mine) * R) ** 2
    spread *= n_people / len(rows) ** 2
    signal = float(np.sum(R[off] ** 2)) - float(np.sum(spread[off])) / n_people
    noise = float(np.sum(spread[off])) / n_smallest
    return float(np.clip(noise / (noise + max(signal, 0.0)), 0.01, 0.99))


@dataclass(frozen=True)
class _Side:
    """One group of one labelling, its rows in the order of people; influences are over m."""

    r: FloatArray
    v: FloatArray
    """(n_columns, n_rows)"""
    c: FloatArray
    m: float
    begins: IndexArray | None
    """Position at which each person's rows begin; None if everybody has one row."""

    @classmethod
    def of(cls, rows: FloatArray, share: float, begins: IndexArray | None) -> _Side:
        n_rows, n_columns = rows.shape
        rows = rows - rows.mean(axis=0)
        theta = _precision(_correlation(rows), share)
        r = _partial(theta)
        v = theta @ (rows / np.sqrt(np.mean(rows**2, axis=0))).T
        v /= np.sqrt(np.mean(v**2, axis=1, keepdims=True))
        if share == 0.0:
            return cls(r, v, -r, float(np.sqrt(n_rows * (n_rows - n_columns - 1.0))), begins)
        c = v @ v.T / n_rows
        np.fill_diagonal(c, 0.0)
        return cls(r, v, c, float(n_rows), begins)

    def variances(self) -> FloatArray:
        """Sum psi_ij^2 / m^2 over rows, for every pair, by products of matrices."""
        v2 = self.v**2
        fourth, third = v2 @ v2.T, (v2 * self.v) @ self.v.T
        own = np.diag(fourth)
        total = fourth - self.c * (third + third.T) + 0.25 * self.c**2 * (2.0 * fourth + own + own[:, None])
        return np.asarray(total / self.m**2)

    def influence(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """Sum psi_ij / m over each person's rows: (n_pairs, n_people)."""
        v_i, v_j = self.v[first], self.v[second]
        return self._per_person(v_i * v_j - 0.5 * self.c[first, second, None] * (v_i**2 + v_j**2))

    def node_influence(self, signs: FloatArray) -> FloatArray:
        """Sum signs_ij psi_ij / m over j and each person's rows: (n_columns, n_people)."""
        v2, weight = self.v**2, signs * self.c
        return self._per_person(self.v * (signs @ self.v) - 0.5 * (v2 * weight.sum(axis=1)[:, None] + weight @ v2))

    def _per_person(self, psi: FloatArray) -> FloatArray:
        psi /= self.m
        return psi if self.begins is None else np.add.reduceat(psi, self.begins, axis=1)


def _edge_errors(a: _Side, b: _Side, first: IndexArray, second: IndexArray, paired: bool) -> FloatArray:
    if not paired and a.begins is None and b.begins is None:
        return np.asarray(np.sqrt((a.variances() + b.variances())[first, second]))
    errors = np.empty(len(first))
    step = max(1, LARGEST_BLOCK // max(a.v.shape[1], b.v.shape[1]))
    for begin in range(0, len(first), step):
        part = slice(begin, begin + step)
        errors[part] = _norms(a.influence(first[part], second[part]), b.influence(first[part], second[part]), paired)
    return errors


def _node_errors(a: _Side, b: _Side, signs: FloatArray, paired: bool) -> tuple[FloatArray, float]:
    of_a, of_b = a.node_influence(signs), b.node_influence(signs)
    total = _norms(of_a.sum(axis=0, keepdims=True), of_b.sum(axis=0, keepdims=True), paired)
    return _norms(of_a, of_b, paired), 0.5 * float(total[0])


def _norms(of_a: FloatArray, of_b: FloatArray, paired: bool) -> FloatArray:
    """Root of the sum of squares over people; of those in both groups, the difference is squared."""
    if paired:
        return np.asarray(np.linalg.norm(of_a - of_b, axis=1))
    return np.hypot(np.linalg.norm(of_a, axis=1), np.linalg.norm(of_b, axis=1))


def _partial(theta: FloatArray) -> FloatArray:
    deviation = np.sqrt(np.diag(theta))
    r = -theta / np.outer(deviation, deviation)
    np.fill_diagonal(r, 0.0)
    return r


def _correlation(rows: FloatArray) -> FloatArray:
    """Second moments over the columns' root mean squares; rows are centred already."""
    moments = rows.T @ rows
    deviation = np.sqrt(np.diag(moments))
    return np.asarray(moments / np.outer(deviation, deviation))


def _precision(correlation: FloatArray, share: float) -> FloatArray:
    shrunk = (1.0 - share) * correlation
    shrunk[np.diag_indices_from(shrunk)] = 1.0
    factor = try_cholesky(shrunk)
    if factor is None or float(np.diag(factor).min()) < 1e-7:
        raise InputError(
            "Some columns are sums or multiples of others, and partial correlations do not exist: drop one of each "
            "such set of columns."
        )
    return inverse_from_cholesky(factor)
