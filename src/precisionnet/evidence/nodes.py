"""Nodes of an inferred graph: centralities and predictability with intervals, and how stable strengths are.

Centralities are those of the graph of sure edges, weighted by their partial correlations: summed over all pairs, the
noise of pairs without an edge would be most of a strength. Intervals are quantiles of draws (``bootstrap.py``) of these
edges' weights; that an edge may be missing or false is not in them, but in its q-value and selection frequency.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.evidence.bootstrap import CaseDropping, case_dropping, multiplier_draws
from precisionnet.evidence.centrality import CENTRALITIES, centralities
from precisionnet.evidence.desparsified import NeighbourhoodGraph, most_given
from precisionnet.evidence.observations import Observations
from precisionnet.evidence.pairs import pairs_of, q_values
from precisionnet.evidence.partial_correlation import PairEstimates, SaturatedGraph, saturated_graph
from precisionnet.evidence.predictability import predictability
from precisionnet.types import BoolArray, FloatArray

Graph = SaturatedGraph | NeighbourhoodGraph

SURE = 0.1
"""Largest q-value of an edge that counts, and that is shown as sure."""
SPARE_PEOPLE = 10
"""People beyond the columns held fixed, at least, where a graph is inferred from a part of the people."""


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
