r"""Do groups have different graphs? Permutation tests of the whole, of each edge and of each node.

Rows are freed of the labels' means, of covariates and of the columns' spread (``covariates.py``), labels are exchanged
between people or within pairs (``permutations.py``), every relabelling gives differences in standard errors
(``differences.py``), and the labels' own are judged by those (``permutation_tests.py``):

    t_ij = (r_ij^a - r_ij^b) / error_ij.

"structure": the larger of two standard scores, that of max |t_ij| (a few edges differ) and that of sum t_ij^2 (many
differ a little), each about its mean over relabellings. "global strength": |t| of the common graph's summed strength.
Both have p = (1 + b) / (1 + B). Edges: |t_ij| against the |t| of all edges in all relabellings, so that a thousand
relabellings of 68 nodes resolve p-values of 4e-7 and a false discovery rate over 2,278 edges is possible; nodes
likewise.
Intervals are difference +- q * error with q the 95 % quantile of the same |t|: an interval without 0 has p <= 0.05.
Shrunk partial correlations (few people) have none: they would be honest about the shrunk difference, but hold the true
difference of a sparse graph in as few as a tenth of the cases.

What is tested: that rows of the groups have the same distribution but for means and spreads. Rejections are driven by
partial correlations alone; where groups share them and differ in something else, studentising keeps the level only
roughly (Gaussian rows against rows with t5 tails: structure is rejected in 10 % of draws, edges in 6 %).
Nothing here says why groups differ: patients who move more in the scanner have another graph, too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from precisionnet.errors import InputError
from precisionnet.evidence.covariates import covariate_columns, standard_rows
from precisionnet.evidence.design import Design, checked_rows, design_of, refuse_other_order
from precisionnet.evidence.differences import (
    FEWEST_PEOPLE,
    PartialCorrelations,
    TaskGraphs,
    partial_correlations,
    shrinkage_share,
)
from precisionnet.evidence.pairs import pair_frame, pairs_of, q_values
from precisionnet.evidence.permutation_tests import PairResult
from precisionnet.evidence.permutations import check_counts
from precisionnet.types import FloatArray, IndexArray

PLAIN_FACTOR, PLAIN_EXTRA = 1.5, 10
"""People a group must have for the plain inverse: ``PLAIN_FACTOR`` per column and ``PLAIN_EXTRA`` more.

One more for each column of covariates.
"""


@dataclass(frozen=True)
class GraphComparison:
    """What :func:`compare_graphs` found.

    A difference is always ``group_a`` minus ``group_b``.

    Parameters
    ----------
    tests : DataFrame
        For every pair of groups the tests "structure" and "global strength": ``group_a``, ``group_b``, ``test``,
        ``statistic``, ``p_value``, and the effect with its 95 % interval. The effect of "structure" is the root mean
        square difference of partial correlations beyond that of relabelled rows (no interval), of "global strength" the
        difference in summed strength.
    edges : DataFrame
        Every pair of nodes for every pair of groups: ``group_a``, ``group_b``, ``source``, ``target``, ``difference``
        of partial correlations with a 95 % interval ``ci_low``, ``ci_high``, ``p_value``, ``q_value`` (false discovery
        rate over the whole table), and ``common``, the sign of an edge of the two groups' common graph, else 0.
    nodes : DataFrame
        The same for each node's strength, the sum of its common edges' partial correlations times their signs, with
        ``node`` in place of ``source`` and ``target``.
    graphs : dict
        For each group a DataFrame of its partial correlations, zero on the diagonal.
    n_people : dict
        How many people each group has.
    n_permutations : int
        Relabellings drawn for each pair of groups.
    method : {"partial correlations", "shrunk partial correlations", "task graphs"}
        What the graphs hold. Shrunk ones, without intervals, where a group has fewer people than 10 plus 1.5 per
        column and 1 per column of covariates.
    shrinkage : float
        Share of the identity in the shrunk correlations, 0 for plain ones.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evidence import compare_graphs
    >>> rng = np.random.default_rng(0)
    >>> found = compare_graphs(rng.normal(size=(60, 3)), ["a", "b"] * 30, n_permutations=99, random_state=0)
    >>> print(found.summary())
    a (30 people) and b (30 people): ...
    """

    tests: pd.DataFrame
    edges: pd.DataFrame
    nodes: pd.DataFrame
    graphs: dict[Any, pd.DataFrame] = field(repr=False)
    n_people: dict[Any, int]
    n_permutations: int
    method: str
    shrinkage: float

    def summary(self) -> str:
        """Say in plain sentences what differs.

        Returns
        -------
        str
            One line per pair of groups.
        """
        lines = []
        for (a, b), tests in self.tests.groupby(["group_a", "group_b"], sort=False):
            here = [frame[(frame["group_a"] == a) & (frame["group_b"] == b)] for frame in (self.edges, self.nodes)]
            n_edges, n_nodes = (int((frame["q_value"] <= 0.05).sum()) for frame in here)
            p = tests.set_index("test")["p_value"]
            lines.append(
                f"{a} ({self.n_people[a]} people) and {b} ({self.n_people[b]} people): structure p = "
                f"{p['structure']:.3g}, global strength p = {p['global strength']:.3g}; "
                f"{_counted(n_edges, 'edge')} and {_counted(n_nodes, 'node')} at a false discovery rate of 0.05."
            )
        if self.shrinkage > 0.0:
            lines.append(
                f"Partial correlations are shrunk ({self.shrinkage:.0%} of the identity) because a group has few "
                "people for so many columns: p-values hold, differences are far smaller than the true ones and have no "
                "intervals, and an edge may differ because its neighbours do."
            )
        return "\n".join(lines)


def compare_graphs(
    X: Any,
    labels: Any,
    *,
    y: Any = None,
    n_permutations: int = 1000,
    paired_by: Any = None,
    groups: Any = None,
    covariates: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> GraphComparison:
    """Test whether groups have different graphs, as a whole, edge by edge and node by node.

    Graphs are partial correlations. Labels are exchanged between people who belong to one group each, or within people
    who have rows in all of them (``paired_by``); for every pair of groups on its own. Means, covariates' effects on the
    means, and the columns' variances within groups are taken out first and never count as a difference.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, nothing missing; columns are the nodes.
    labels : array-like of shape (n_samples,)
        The group of each row: two to ten different values.
    y : array-like of shape (n_samples,), default=None
        A target: task graphs (``task_graph_`` of networks fitted to each group) are compared instead of the data's own.
        Networks are fitted for every relabelling, which takes seconds each: ask for fewer of them. Intervals are then
        those of relabelled rows: where groups do differ, they are a rough guide.
    n_permutations : int, default=1000
        Relabellings for each pair of groups.
    paired_by : array-like of shape (n_samples,), default=None
        The person of each row where every person has rows in every group; labels are swapped within people only.
    groups : array-like of shape (n_samples,), default=None
        The person of each row where people have several rows and belong to one group each; people are moved whole.
        None counts every row as another person.
    covariates : DataFrame or array-like with n_samples rows, default=None
        What to take out of the columns' means first: numbers as they are, text and categories one-hot coded.
    n_jobs : int, default=None
        Worker processes; -1 uses all processors. It changes no result.
    random_state : int, RandomState instance or None, default=None
        Draws the relabellings.

    Returns
    -------
    GraphComparison
        ``tests``, ``edges`` and ``nodes`` as data frames, and the groups' ``graphs``.

    Raises
    ------
    InputError
        Labels, people, covariates or rows cannot be compared as they are; the message says what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.evidence import compare_graphs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> patient = np.arange(200) < 100
    >>> X[patient, 0] += X[patient, 1]  # an edge that only patients have
    >>> labels = np.where(patient, "patient", "control")
    >>> found = compare_graphs(X, labels, n_permutations=199, random_state=0)
    >>> found.edges.loc[found.edges["q_value"] <= 0.05, ["source", "target"]].values.tolist()
    [['x0', 'x1']]
    """
    refuse_other_order(X, labels=labels, y=y, paired_by=paired_by, groups=groups, covariates=covariates)
    rows, names = checked_rows(X)
    check_counts(n_permutations, n_jobs)
    design = design_of(labels, len(rows), paired_by=paired_by, groups=groups)
    columns = np.empty((len(rows), 0)) if covariates is None else covariate_columns(covariates, design.group)
    z = standard_rows(rows, design.group, columns, design.labels, names)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
    if y is not None:
        target = _target_rows(y, design, columns)
        return _compared_tasks(z, target, design, names, int(n_permutations), n_jobs, rng)
    share = _share(z, design, columns.shape[1])
    found, signs = [], []
    for a, b in itertools.combinations(range(len(design.labels)), 2):
        here, exchange = design.pair(a, b)
        contrast = PartialCorrelations.of(z[here], exchange, share)
        draws = exchange.draws(n_permutations, rng)
        found.append(PairResult.of(contrast, exchange.in_b, draws, n_jobs, intervals=share == 0.0))
        signs.append(contrast.signs[pairs_of(len(names))].astype(int))
    graphs = [partial_correlations(np.corrcoef(z[design.group == code].T), share) for code in range(len(design.labels))]
    return GraphComparison(
        **_tables(found, signs, design.labels, names),
        graphs={
            label: pd.DataFrame(graph, index=names, columns=names)
            for label, graph in zip(design.labels, graphs, strict=True)
        },
        n_people=dict(zip(design.labels, design.n_people, strict=True)),
        n_permutations=int(n_permutations),
        method="shrunk partial correlations" if share > 0.0 else "partial correlations",
        shrinkage=share,
    )


def _target_rows(y: Any, design: Design, columns: FloatArray) -> FloatArray:
    """Return the target freed of the labels' means and spreads and of covariates, in its own units."""
    try:
        target = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("y must hold numbers, one per row: code two classes as 0 and 1.") from error
    if target.shape != design.group.shape or not np.isfinite(target).all():
        raise InputError(f"y must be one finite number per row: there are {len(design.group)} rows.")
    free: FloatArray = standard_rows(target[:, None], design.group, columns, design.labels, ["y"])[:, 0]
    spreads = [target[design.group == code].std() for code in range(len(design.labels))]
    return free * float(np.sqrt(np.mean(np.square(spreads))))


def _compared_tasks(
    z: FloatArray,
    y: FloatArray,
    design: Design,
    names: list[str],
    n_permutations: int,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> GraphComparison:
    """Compare task graphs; networks are fitted to both groups for every relabelling."""
    if min(design.n_people) < FEWEST_PEOPLE:
        raise InputError(
            f"A group has {min(design.n_people)} people, and a task graph needs at least {FEWEST_PEOPLE} in each: "
            "merge groups, or compare the data's graphs (leave y out)."
        )
    seed = int(rng.integers(2**31 - 1))
    found = []
    for a, b in itertools.combinations(range(len(design.labels)), 2):
        here, exchange = design.pair(a, b)
        contrast = TaskGraphs(z[here], y[here], exchange.person, seed)
        draws = exchange.draws(n_permutations, rng)
        found.append(PairResult.of(contrast, exchange.in_b, draws, n_jobs, intervals=True))
    whole = TaskGraphs(z, y, design.person, seed)
    graphs = [whole.effects(design.group == code)[1] for code in range(len(design.labels))]
    n_pairs = len(pairs_of(len(names))[0])
    return GraphComparison(
        **_tables(found, [np.zeros(n_pairs, dtype=np.intp)] * len(found), design.labels, names),
        graphs={
            label: pd.DataFrame(graph, index=names, columns=names)
            for label, graph in zip(design.labels, graphs, strict=True)
        },
        n_people=dict(zip(design.labels, design.n_people, strict=True)),
        n_permutations=n_permutations,
        method="task graphs",
        shrinkage=0.0,
    )


def _share(z: FloatArray, design: Design, n_covariates: int) -> float:
    """Return 0 where every group has people enough for the plain inverse, else one share of the identity for all."""
    smallest = min(design.n_people)
    if smallest - n_covariates >= PLAIN_FACTOR * z.shape[1] + PLAIN_EXTRA:
        return 0.0
    return shrinkage_share(z, design.person, smallest)


def _tables(
    found: list[PairResult], signs: list[IndexArray], labels: list[Any], names: list[str]
) -> dict[str, pd.DataFrame]:
    tests, edges, nodes = [], [], []
    for (a, b), pair in zip(itertools.combinations(labels, 2), found, strict=True):
        who = {"group_a": a, "group_b": b}
        total = {name: float(column[0]) for name, column in pair.total.columns().items()}
        p_value, effect = total.pop("p_value"), total.pop("difference")
        structure = {"test": "structure", "statistic": pair.structure, "p_value": pair.structure_p, "effect": pair.rms}
        strength = {"test": "global strength", "statistic": pair.total_statistic, "p_value": p_value, "effect": effect}
        tests += [{**who, **structure, "ci_low": np.nan, "ci_high": np.nan}, {**who, **strength, **total}]
        edges.append(_labelled(pair_frame(names, pair.edges.columns()), who))
        nodes.append(_labelled(pd.DataFrame({"node": names, **pair.nodes.columns()}), who))
    tables = {"edges": pd.concat(edges, ignore_index=True), "nodes": pd.concat(nodes, ignore_index=True)}
    for table in tables.values():
        table["q_value"] = q_values(table["p_value"].to_numpy())
    tables["edges"]["common"] = np.concatenate(signs)
    return {"tests": pd.DataFrame(tests), **tables}


def _labelled(frame: pd.DataFrame, who: dict[str, Any]) -> pd.DataFrame:
    for place, (name, value) in enumerate(who.items()):
        frame.insert(place, name, [value] * len(frame))
    return frame


def _counted(number: int, what: str) -> str:
    return f"no {what} differs" if number == 0 else f"1 {what} differs" if number == 1 else f"{number} {what}s differ"
