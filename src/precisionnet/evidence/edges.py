r"""Which edges of the data's own graph may be believed: partial correlations with intervals, p-values and frequencies.

Three methods, by the number of people G (rows, or groups of rows) and of columns N:

    exact         G >= 5 N and G >= N + 20    given all other columns            ``partial_correlation.py``
    desparsified  G >= N / 2 and G >= 15      given both nodes' neighbours       ``desparsified.py``
    stability     G >= 20                     how often half of the people name a pair   ``stability_selection.py``

and below that nothing. The first two claim that intervals of every pair cover with the probability ``level``, for
Gaussian and heavy-tailed rows alike; simulations of seven families of graphs are in ``results/evidence/coverage.csv``.
The third has no interval. Asked for by name, a method is also used where it claims nothing, and its message says so.

What is assumed: people are independent and come from one population with fourth moments; the partial correlation is
that of its covariance. It is a measure of linear dependence given the other columns, and no statement about causes. A
q-value is Benjamini and Hochberg's over all pairs: of the edges with q <= 0.1 one in ten is expected to be false.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from precisionnet.arguments import check_choice, check_count, check_number
from precisionnet.errors import InputError, shown
from precisionnet.evidence.desparsified import NeighbourhoodGraph, select_neighbours
from precisionnet.evidence.nodes import SURE, Graph, node_table, strength_stability
from precisionnet.evidence.observations import Observations, read_observations
from precisionnet.evidence.pairs import pair_frame, q_values
from precisionnet.evidence.partial_correlation import PairEstimates, saturated_graph
from precisionnet.evidence.stability_selection import N_CUTS, StabilitySelection, stability_selection
from precisionnet.precision.covariance import refuse_covariance_without_room
from precisionnet.types import BoolArray

MethodOfEdges = Literal["exact", "desparsified", "stability"]
EDGE_METHODS = ("auto", "exact", "desparsified", "stability")
FALSE_EDGES = 1.0
"""Largest bound on the number of false edges among the sure ones, where there is no q-value."""
ROWS_PER_COLUMN, SPARE_ROWS = 5, 20
"""The exact method claims coverage with so many rows per column, and so many rows more than columns."""
FEWEST_FOR_EXACT = 10
"""More people than columns, at least, where the exact method is asked for by name."""
FEWEST_FOR_INTERVALS, FEWEST_FOR_HALVES = 15, 20
DEPENDENT = (
    "A column of X is a sum of other columns, up to scale and rounding: partial correlations do not exist; drop one of "
    "those columns (a total beside its parts, for example)."
)
ROUNDING = 1e-9
"""Largest rounding error of correlations, and of frequencies, which are counts divided by a number of halves."""


@dataclass(frozen=True, eq=False)
class EdgeInference:
    """What may be believed of the edges and nodes of a table's graph.

    Parameters
    ----------
    edges : pandas.DataFrame
        One row per pair: ``source``, ``target``, ``partial_correlation``, the interval ``ci_low`` to ``ci_high``,
        ``p_value``, ``q_value`` (Benjamini and Hochberg's, over all pairs) and ``selection_frequency`` (share of halves
        of the people in which the pair is among the strongest). NaN where the method has no such number, or no
        bootstraps were asked for.
    nodes : pandas.DataFrame
        One row per column: ``node``, ``degree``, then ``strength``, ``expected_influence``, ``closeness`` and
        ``betweenness`` in the graph of the sure edges weighted by their partial correlations, and ``predictability``,
        the adjusted R2 of the node given the others (given its neighbours, where the method is "desparsified" or
        "stability"); each with ``_low`` and ``_high``, NaN without bootstraps.
    method : {"exact", "desparsified", "stability"}
        The method that was used.
    message : str
        Why it was used, and what it does and does not claim.
    claims_coverage : bool
        Whether the intervals are claimed to cover with the probability ``level``.
    level : float
        Confidence level of all intervals.
    n_rows : int
        Rows of the table.
    n_people : int
        Groups of rows; the number of rows where no groups were given.
    stability : float, default=nan
        Stability coefficient of ``strength``: the largest share of people that can be dropped such that strengths still
        correlate 0.7 with these in 95 % of the draws. Network analysts ask for 0.25, better 0.5. NaN without
        bootstraps.
    stability_curve : pandas.DataFrame or None, default=None
        What it was read off: ``dropped``, ``n_people`` that stay, mean ``correlation``, and ``share_above`` 0.7.
    false_edge_bounds : pandas.DataFrame or None, default=None
        ``frequency``, ``n_edges`` that have it at least, and ``false_edges``, the bound on how many of them are
        expected to be named by chance; where selection frequencies were measured.
    frequency_threshold : float, default=nan
        The selection frequency from which on no more than one edge is expected to be named by chance; above 1 where no
        frequency is enough. NaN where no frequencies were measured.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evidence import edge_inference
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> X[:, 1] += X[:, 0]
    >>> result = edge_inference(X)
    >>> result.method, result.claims_coverage, len(result.sure_edges)
    ('exact', True, 1)
    """

    edges: pd.DataFrame
    nodes: pd.DataFrame
    method: MethodOfEdges
    message: str
    claims_coverage: bool
    level: float
    n_rows: int
    n_people: int
    stability: float = np.nan
    stability_curve: pd.DataFrame | None = field(default=None, repr=False)
    false_edge_bounds: pd.DataFrame | None = field(default=None, repr=False)
    frequency_threshold: float = np.nan

    @property
    def sure_edges(self) -> pd.DataFrame:
        """The edges to show as sure, surest first.

        Returns
        -------
        pandas.DataFrame
            Rows of ``edges`` with a q-value of at most 0.1; for the method "stability" those frequent enough that no
            more than one is expected to be named by chance.
        """
        if self.method == "stability":
            sure = self.edges[self.edges["selection_frequency"] >= self.frequency_threshold - ROUNDING]
            return sure.sort_values("selection_frequency", ascending=False, kind="stable").reset_index(drop=True)
        sure = self.edges[self.edges["q_value"] <= SURE]
        return sure.sort_values("p_value", kind="stable").reset_index(drop=True)


def edge_inference(
    X: Any,
    *,
    level: float = 0.95,
    method: str = "auto",
    groups: Any = None,
    n_bootstraps: int = 0,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> EdgeInference:
    """Infer which pairs of columns are joined: partial correlations with intervals, p-values and false discovery rate.

    Variances come from the influence of each row, not from a Gaussian formula: intervals cover for heavy-tailed rows,
    too. With ``groups`` they come from the influence of each group of rows.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_columns)
        Rows of numbers without missing values.
    level : float, default=0.95
        Confidence level of the intervals.
    method : {"auto", "exact", "desparsified", "stability"}, default="auto"
        "exact" inverts the sample covariance, "desparsified" holds only the neighbours of both nodes fixed, "stability"
        counts how often half of the people name a pair and has no interval. "auto" takes the first that claims coverage
        with so many rows.
    groups : array-like of shape (n_rows,), default=None
        Whose row it is. Rows of one group are kept together, may depend on each other, and count once when a method is
        chosen. None: rows are independent.
    n_bootstraps : int, default=0
        Draws for the intervals of centralities and for the stability coefficient; selection frequencies are measured
        where it is above 0 (on up to 100 halves), and always by the method "stability".
    n_jobs : int, default=None
        Workers, as joblib has them; they do not change the result.
    random_state : int, numpy.random.Generator or None, default=None
        Source of the draws. Without draws nothing is random.

    Returns
    -------
    EdgeInference
        ``edges`` and ``nodes`` as tables, the ``method`` that was used and a ``message`` that says why.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evidence import edge_inference
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[:, 1] += X[:, 0]
    >>> edge_inference(X).edges.round(2)[["source", "target", "partial_correlation", "q_value"]]
      source target  partial_correlation  q_value
    0     x0     x1                 0.71     0.00
    1     x0     x2                -0.04     0.65
    2     x1     x2                -0.03     0.65
    """
    check_number("level", level, 0.0, 1.0, low_allowed=False)
    check_choice("method", method, EDGE_METHODS)
    check_count("n_bootstraps", n_bootstraps, 0)
    data = read_observations(X, groups)
    _refuse_copies(data)
    chosen, claims, message = _choose(method, data)
    rng = _generator(random_state)
    selected = None
    if n_bootstraps or chosen == "stability":
        n_cuts = N_CUTS if chosen == "stability" else min(N_CUTS, max(1, n_bootstraps // 2))
        selected = stability_selection(data, rng, n_cuts=n_cuts, n_jobs=n_jobs)
    graph = _graph(chosen, data)
    estimates = graph.estimates()
    if np.abs(estimates.correlation).max() > 1.0 - ROUNDING:
        raise InputError(DEPENDENT)
    sure = _sure(chosen, estimates, selected)
    n_draws = 0 if chosen == "stability" else int(n_bootstraps)
    nodes = node_table(data, graph, estimates, sure, level=float(level), n_draws=n_draws, rng=rng)
    dropping = None
    if n_draws:
        strength = nodes["strength"].to_numpy()
        dropping = strength_stability(data, graph, strength, n_draws=n_draws, rng=rng, n_jobs=n_jobs)
    return EdgeInference(
        edges=_edge_table(chosen, data, estimates, selected, float(level)),
        nodes=nodes,
        method=chosen,
        message=message,
        claims_coverage=claims,
        level=float(level),
        n_rows=len(data.X),
        n_people=data.n_people,
        stability=np.nan if dropping is None else dropping.coefficient,
        stability_curve=None if dropping is None else dropping.curve,
        false_edge_bounds=None if selected is None else selected.bounds(),
        frequency_threshold=np.nan if selected is None else selected.threshold_for(FALSE_EDGES),
    )


def _generator(random_state: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"random_state must be a whole number >= 0, a numpy Generator or None, got {shown(random_state)}."
        ) from error


def _sure(method: MethodOfEdges, estimates: PairEstimates, selected: StabilitySelection | None) -> BoolArray:
    if method == "stability":
        assert selected is not None
        return selected.frequency >= selected.threshold_for(FALSE_EDGES) - ROUNDING
    return q_values(estimates.p_values()) <= SURE


def _edge_table(
    method: MethodOfEdges,
    data: Observations,
    estimates: PairEstimates,
    selected: StabilitySelection | None,
    level: float,
) -> pd.DataFrame:
    nothing = np.full(len(estimates.correlation), np.nan)
    low, high, p = nothing, nothing, nothing
    if method != "stability":
        low, high = estimates.intervals(level)
        p = estimates.p_values()
    return pair_frame(
        data.names,
        {
            "partial_correlation": estimates.correlation,
            "ci_low": low,
            "ci_high": high,
            "p_value": p,
            "q_value": q_values(p),
            "selection_frequency": nothing if selected is None else selected.frequency,
        },
    )


def _choose(method: str, data: Observations) -> tuple[MethodOfEdges, bool, str]:
    """Return the method, whether it claims coverage, and a sentence that says why."""
    n_people, n_nodes = data.n_people, data.X.shape[1]
    counted = f"{n_people} {'groups of rows' if data.repeated else 'rows'} for {n_nodes} columns"
    exact = n_people >= max(ROWS_PER_COLUMN * n_nodes, n_nodes + SPARE_ROWS)
    intervals = n_people >= max(n_nodes / 2, FEWEST_FOR_INTERVALS)
    if method == "auto":
        method = "exact" if exact else "desparsified" if intervals else "stability"
        least = min(max(int(np.ceil(n_nodes / 2)), FEWEST_FOR_INTERVALS), FEWEST_FOR_HALVES)
    else:
        least = {
            "exact": n_nodes + FEWEST_FOR_EXACT,
            "desparsified": FEWEST_FOR_INTERVALS,
            "stability": FEWEST_FOR_HALVES,
        }[method]
    if n_people < least:
        way = "" if method != "exact" else ", or set method='desparsified'"
        raise InputError(f"{counted} are too few to say anything about edges: bring at least {least}{way}.")
    if method == "exact":
        why = f"Partial correlations of the inverse sample covariance ({counted})"
        if exact:
            return "exact", True, f"{why}, with intervals that do not assume Gaussian rows."
        return "exact", False, f"{why}: so few rows make wide intervals, whose coverage is not claimed."
    if method == "desparsified":
        why = f"Partial correlations given the neighbours of both nodes ({counted})"
        if intervals:
            return "desparsified", True, f"{why}, as so few rows do not carry the inverse of the sample covariance."
        return "desparsified", False, f"{why}: so few rows do not find the neighbours, and coverage is not claimed."
    return (
        "stability",
        False,
        f"Selection frequencies over halves of the people ({counted}): so few rows carry no interval and no p-value; "
        "false_edge_bounds says how many edges are expected to be named by chance.",
    )


def _graph(method: MethodOfEdges, data: Observations) -> Graph:
    if method != "exact":
        return NeighbourhoodGraph(data, select_neighbours(data))
    graph = saturated_graph(data)
    if graph is None:
        raise InputError(DEPENDENT)
    return graph


def _refuse_copies(data: Observations) -> None:
    """Refuse columns that are the same up to scale and a constant."""
    refuse_covariance_without_room(data.X.shape[1])
    correlation = np.abs(data.X.T @ data.X) / len(data.X)
    pairs = np.argwhere(np.triu(correlation > 1.0 - 1e-10, k=1))
    if len(pairs):
        first, second = (data.names[int(i)] for i in pairs[0])
        more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
        raise InputError(f"Columns {first!r} and {second!r} are the same up to scale{more}: drop one of each.")
