r"""Nodes of an inferred graph: centralities and predictability with intervals, and how stable strengths are.

Centralities are those of the graph of sure edges, weighted by their partial correlations: summed over all pairs, the
noise of pairs without an edge would be most of a strength. Intervals are quantiles of draws of these edges' weights;
that an edge may be missing or false is not in them, but in its q-value and selection frequency.

**Draws** are what other people would have given, by the multiplier bootstrap: with psi_g the influence of person g on a
statistic (rows of one person together, corrected for leverage as in ``partial_correlation.py``),

    z* = z + sum_g xi_g psi_g,    xi ~ N(0, 1), one for each person and all statistics

so that all edges move together as they would over new people, and each edge's draws have the variance of its interval.
Regime: a graph whose edges are given; which pairs are edges at all is told by p-values and selection frequencies. How
this differs from the textbook's resampling of rows with replacement: that leaves 63 % of the rows, and the inverse of
their covariance is far noisier than that of T rows unless T is many times N (El Karoui and Purdom 2018).

**Stability**: the coefficient of Epskamp, Borsboom and Fried (2018) is the largest share of people that can be dropped
such that the node strengths of those who stay correlate at least 0.7 with those of all, in at least 95 % of the draws.
The graph of those who stay is inferred anew, its edges chosen anew.

**Predictability**: how well a node is predicted by the others, the adjusted R2 of least squares.

    R2 = 1 - (1 - R2_sample) (T - 1) / (T - k - 1),    k predictors

Draws are on the scale log(1 - R2), where the influence of a row is e^2 - x^2 (residual and value in standard units).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import inv, solve

from precisionnet.evidence.centrality import CENTRALITIES, centralities
from precisionnet.evidence.desparsified import NeighbourhoodGraph, most_given
from precisionnet.evidence.observations import Observations
from precisionnet.evidence.pairs import pairs_of, q_values
from precisionnet.evidence.partial_correlation import PairEstimates, SaturatedGraph, leverage_weights, saturated_graph
from precisionnet.types import BoolArray, FloatArray, IndexArray
from precisionnet.workers import in_workers

Graph = SaturatedGraph | NeighbourhoodGraph

SURE = 0.1
"""Largest q-value of an edge that counts, and that is shown as sure."""
SPARE_PEOPLE = 10
"""People beyond the columns held fixed, at least, where a graph is inferred from a part of the people."""
DROPPED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75)
"""Shares of people that are dropped."""
CORRELATION, SHARE_OF_DRAWS = 0.7, 0.95


@dataclass(frozen=True)
class CaseDropping:
    """``coefficient``, and the ``curve`` behind it: a row per share of people dropped."""

    coefficient: float
    curve: pd.DataFrame


def node_table(
    data: Observations,
    graph: Graph,
    estimates: PairEstimates,
    sure: BoolArray,
    *,
    level: float,
    n_draws: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return one row per node; ``_low`` and ``_high`` are NaN without draws."""
    n_nodes = data.X.shape[1]
    first, second = (ends[sure] for ends in pairs_of(n_nodes))
    weights = np.tanh(estimates.z[sure])
    everyone = np.ones((n_nodes, n_nodes), dtype=bool)
    r2 = predictability(data, graph.joined if isinstance(graph, NeighbourhoodGraph) else everyone)
    found = {name: value[0] for name, value in centralities(n_nodes, first, second, weights[None]).items()}
    found["predictability"] = r2.values
    drawn: dict[str, FloatArray] = {}
    if n_draws:
        multipliers = rng.standard_normal((n_draws, data.n_people))
        influence = graph.influence(first, second)
        z = multiplier_draws(estimates.z[sure], influence, estimates.variance[sure], multipliers)
        drawn = centralities(n_nodes, first, second, np.tanh(z))
        drawn["predictability"] = r2.draws(multipliers)
    tails = (0.5 - level / 2.0, 0.5 + level / 2.0)
    columns: dict[str, Any] = {
        "node": data.names,
        "degree": np.bincount(np.concatenate([first, second]), minlength=n_nodes),
    }
    for name in (*CENTRALITIES, "predictability"):
        low, high = np.quantile(drawn[name], tails, axis=0) if n_draws else np.full((2, n_nodes), np.nan)
        columns |= {name: found[name], f"{name}_low": low, f"{name}_high": high}
    return pd.DataFrame(columns)


def strength_stability(
    data: Observations,
    graph: Graph,
    strength: FloatArray,
    *,
    n_draws: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> CaseDropping:
    """Return how many people the strengths can do without; neighbours of the desparsified method are held."""
    if isinstance(graph, NeighbourhoodGraph):
        again = partial(_strength, joined=graph.joined)
        n_given = most_given(graph.joined)
    else:
        again = partial(_strength, joined=None)
        n_given = data.X.shape[1]
    return case_dropping(data, strength, again, n_given + SPARE_PEOPLE, n_draws, rng, n_jobs)


def _strength(data: Observations, joined: BoolArray | None) -> FloatArray | None:
    """Return the strengths of the sure edges among these people, or None where there is no graph."""
    graph = saturated_graph(data) if joined is None else NeighbourhoodGraph(data, joined)
    if graph is None:
        return None
    estimates = graph.estimates()
    sure = q_values(estimates.p_values()) <= SURE
    matrix = np.zeros((data.X.shape[1],) * 2)
    matrix[pairs_of(len(matrix))] = np.where(sure, np.abs(estimates.correlation), 0.0)
    strength: FloatArray = matrix.sum(axis=0) + matrix.sum(axis=1)
    return strength


def multiplier_draws(
    values: FloatArray, influence: FloatArray, variance: FloatArray, multipliers: FloatArray
) -> FloatArray:
    """Return draws (n_draws, n_statistics) around ``values`` whose variances are ``variance``."""
    spread = np.sum(influence**2, axis=0)
    scale = np.sqrt(variance / np.where(spread > 0.0, spread, 1.0))
    return values + multipliers @ (influence * scale)


def case_dropping(
    data: Observations,
    strength: FloatArray,
    strength_of: Callable[[Observations], FloatArray | None],
    fewest_people: int,
    n_draws: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> CaseDropping:
    """Return the stability coefficient of ``strength``; ``strength_of`` infers a part of the people's graph.

    Where fewer than ``fewest_people`` would stay, the share dropped counts as too many.
    """
    each = max(1, n_draws // len(DROPPED))
    kept = {share: data.n_people - round(share * data.n_people) for share in DROPPED}
    possible = [share for share in DROPPED if kept[share] >= fewest_people]
    draws = [rng.permutation(data.n_people)[: kept[share]] for share in possible for _ in range(each)]
    drawn = in_workers(_correlation, ((people,) for people in draws), n_jobs, shared=(data, strength, strength_of))
    values = np.array(drawn, dtype=np.float64).reshape(len(possible), each)
    share_above = np.mean(values >= CORRELATION, axis=1)
    stable: BoolArray = np.cumprod(share_above >= SHARE_OF_DRAWS).astype(bool)
    curve = pd.DataFrame(
        {
            "dropped": possible,
            "n_people": [kept[share] for share in possible],
            "correlation": values.mean(axis=1) if len(values) else [],
            "share_above": share_above,
        }
    )
    return CaseDropping(float(np.array(possible)[stable].max()) if stable.any() else 0.0, curve)


def _correlation(
    data: Observations,
    strength: FloatArray,
    strength_of: Callable[[Observations], FloatArray | None],
    people: IndexArray,
) -> float:
    """Correlation of both strengths over nodes; 0 where one of them does not vary or there is no graph."""
    part = strength_of(data.restricted_to(people))
    if part is None or np.ptp(part) == 0.0 or np.ptp(strength) == 0.0:
        return 0.0
    return float(np.corrcoef(strength, part)[0, 1])


@dataclass(frozen=True)
class Predictability:
    """``unexplained`` is log(1 - adjusted R2) of each node; ``influence`` is (n_people, n_nodes)."""

    unexplained: FloatArray
    influence: FloatArray

    @property
    def values(self) -> FloatArray:
        """Adjusted R2, at least 0."""
        return np.maximum(0.0, -np.expm1(self.unexplained))

    def draws(self, multipliers: FloatArray) -> FloatArray:
        """Return draws of the adjusted R2, (n_draws, n_nodes)."""
        return np.maximum(0.0, -np.expm1(self.unexplained + multipliers @ self.influence))


def predictability(data: Observations, joined: BoolArray) -> Predictability:
    """Regress every node on the nodes that it is joined to."""
    n_rows, n_nodes = data.X.shape
    covariance = data.X.T @ data.X / n_rows
    unexplained, influence = np.zeros(n_nodes), np.zeros((data.n_people, n_nodes))
    regress = _on_neighbours(data.X, covariance, joined) if not joined.all() else _on_all_others(data.X, covariance)
    for node, (n_others, residual, leverage) in enumerate(regress):
        if not n_others:
            continue  # nothing is explained, and exactly so
        share = float(np.mean(residual**2))
        by_person: FloatArray = np.bincount(data.person, leverage, minlength=data.n_people).astype(np.float64)
        weight = np.sqrt(leverage_weights(by_person, (n_others + 1.0) / data.n_people)) / n_rows
        rows = residual**2 / share - data.X[:, node] ** 2
        influence[:, node] = weight * np.bincount(data.person, weights=rows, minlength=data.n_people)
        unexplained[node] = np.log(share * (n_rows - 1.0) / max(n_rows - n_others - 1.0, 1.0))
    return Predictability(unexplained, influence)


Regression = tuple[int, FloatArray, FloatArray]
"""Number of predictors, residuals, leverages."""


def _on_neighbours(X: FloatArray, covariance: FloatArray, joined: BoolArray) -> Iterator[Regression]:
    for node in range(len(joined)):
        others = np.flatnonzero(joined[node] & (np.arange(len(joined)) != node))
        if not len(others):
            yield 0, X[:, node], np.full(len(X), 1.0 / len(X))
            continue
        inverse_rows = solve(covariance[np.ix_(others, others)], X[:, others].T, assume_a="pos")
        residual = X[:, node] - inverse_rows.T @ covariance[others, node]
        yield len(others), residual, (np.einsum("tk,kt->t", X[:, others], inverse_rows) + 1.0) / len(X)


def _on_all_others(X: FloatArray, covariance: FloatArray) -> Iterator[Regression]:
    """Return the same where all are joined, from one inverse for all nodes."""
    precision = inv(covariance)
    weighted = X @ precision
    with_itself = (np.sum(weighted * X, axis=1) + 1.0) / len(X)
    for node in range(len(covariance)):
        own = precision[node, node]
        yield len(covariance) - 1, weighted[:, node] / own, with_itself - weighted[:, node] ** 2 / own / len(X)
