"""One self-contained page about the data's graph, and about how the graphs of groups differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from precisionnet import plots
from precisionnet.evidence import EdgeInference, GraphComparison
from precisionnet.plots.graph import EDGES_DRAWN
from precisionnet.plots.style import short
from precisionnet.report.data_graph import (
    EDGES_SHOWN,
    LEVEL,
    data_graph_part,
    inferred_graph,
    interval_text,
    q_text,
    shown_sentence,
    sure_sentence,
)
from precisionnet.report.interactive import Explorer, explorer, graph_of_pairs
from precisionnet.report.page import NONE, Picture, template
from precisionnet.versions import versions

NODES_SHOWN = 20
UNSURE_SHOWN = 5
GRAPHS_CARRIED = 7
"""Graphs of groups that can be worked with on the page."""
VERDICTS = 3
"""Pairs of groups that get a sentence each at the top of the page."""
GRAPH_COLUMNS = {
    "source, target": "The two columns.",
    "partial_correlation, ci_low, ci_high": "Correlation of the two columns given the others, with its 95 % interval.",
    "p_value": "Chance of so large a partial correlation where there is none.",
    "q_value": "False discovery rate over all pairs: of all edges with a q up to this one, so large a share is "
    "expected to be chance.",
    "selection_frequency": "Share of halves of the people that name the pair; only where it was measured.",
    "sure": "Whether the edge is shown as beyond chance (q up to 0.05).",
}
NODE_COLUMNS = {
    "node": "The column.",
    "degree, strength, expected_influence, closeness, betweenness": "Its place in the graph of edges with q up to 0.1; "
    "_low and _high are 95 % intervals, where bootstraps were asked for.",
    "predictability": "Share of the column's variance that the others explain (adjusted R²).",
}
DIFFERENCE_COLUMNS = {
    "group_a, group_b": "The groups; a difference is always the first minus the second.",
    "difference, ci_low, ci_high": "Difference of partial correlations (edges.csv) or of a column's strength over the "
    "groups' common edges (nodes.csv), with its 95 % interval.",
    "p_value, q_value": "Against relabelled people; q is the false discovery rate over the whole table.",
    "common": "Sign of the edge where it belongs to the common graph of both groups, else 0.",
    "value_a, value_b": "Each group's own value.",
}
TEST_COLUMNS = {
    "structure": "Do the graphs differ at all, in a few edges or in many? Its effect is the root mean square "
    "difference of edges beyond that of relabelled people.",
    "global strength": "Is one group's graph stronger as a whole? Its effect is the difference in summed strength.",
}
NOT_MEANT = (
    "An edge is a dependence given the columns of this table, and no cause. A column that is missing here may be "
    "behind two that are joined.",
    "q is a rate over the list: of all edges shown as beyond chance one in twenty is expected to be false, and nothing "
    "says which.",
    "Not beyond chance does not mean absent: these rows cannot tell it from noise. A smaller group shows fewer sure "
    "edges for that reason alone, so the numbers of sure edges of two groups must not be compared; that is what the "
    "tests of differences are for.",
    "A difference between groups need not come from what they are named after: age, site, head size or movement may "
    "differ as well. A covariate takes out what it does to the means, not to the correlations.",
)


@dataclass(frozen=True)
class GroupGraph:
    """The graph of some rows, or why there is none."""

    label: Any
    evidence: EdgeInference | None
    refusal: str
    n_rows: int

    def sentence(self) -> str:
        """Say how many edges are beyond chance."""
        if self.evidence is None:
            return f"Graph of {self.label}: {self.refusal}"
        return f"Graph of {self.label} ({self.n_rows:,} rows): {sure_sentence(self.evidence)}"


@dataclass(frozen=True)
class GroupGraphs:
    """What was found, and what its page has to say of where it comes from."""

    whole: GroupGraph
    graphs: list[GroupGraph]
    comparison: GraphComparison | None
    names: list[str]
    by: str | None
    covariates: list[str]
    paired_by: str | None
    source: str
    seed: int
    notes: Sequence[str] = ()
    """What was done while the table was read."""


def render_graphs(found: GroupGraphs, created: str) -> str:
    """Return the page; it needs no network."""
    comparison = found.comparison
    graphs = [
        {
            "label": str(graph.label),
            "n_rows": graph.n_rows,
            "refusal": graph.refusal,
            "part": None
            if graph.evidence is None
            else data_graph_part(graph.evidence, found.names, f"graph-{number}", f", {graph.label}"),
        }
        for number, graph in enumerate([found.whole, *found.graphs])
    ]
    columns: dict[str, dict[str, str]] = {"edges.csv": GRAPH_COLUMNS, "nodes.csv": NODE_COLUMNS}
    if comparison is not None:
        columns = {
            "tests.csv": TEST_COLUMNS,
            "edges.csv and nodes.csv": DIFFERENCE_COLUMNS,
            "graph.csv and graph-1-….csv": GRAPH_COLUMNS,
        }
    return template("graphs.html.j2").render(
        found=found,
        created=created,
        level=LEVEL,
        verdict=_verdict(found),
        pairs=[] if comparison is None else _pairs(found, comparison),
        comparison=comparison,
        whole=graphs[0],
        graphs=graphs[1:],
        nodes=_node_rows(found.whole.evidence),
        columns=columns,
        not_meant=NOT_MEANT,
        explorer=_explorer(found),
        versions=versions(),
    )


def _explorer(found: GroupGraphs) -> Explorer | None:
    """Return the graphs of all rows, of groups, and their differences, for those who work with the page."""
    graphs = []
    for number, one in enumerate([found.whole, *found.graphs][:GRAPHS_CARRIED]):
        if one.evidence is not None:
            title = "All rows" if number == 0 else str(one.label)
            graphs.append(inferred_graph(one.evidence, found.names, f"graph-{number}", title))
    if found.comparison is not None:
        pairs = found.comparison.tests[["group_a", "group_b"]].drop_duplicates().itertuples(index=False)
        for number, (a, b) in enumerate(list(pairs)[:VERDICTS]):
            edges = _of_pair(found.comparison, a, b)[0]
            graphs.append(
                graph_of_pairs(
                    f"difference-{number}",
                    f"{short(str(a), 20)} minus {short(str(b), 20)}",
                    edges.assign(sure=edges["q_value"] <= LEVEL),
                    found.names,
                    value="difference",
                    label="difference of partial correlations",
                    signs=(f"larger in {short(str(a), 20)}", f"larger in {short(str(b), 20)}"),
                )
            )
    return explorer(found.names, graphs, "graphs")


def _verdict(found: GroupGraphs) -> list[str]:
    comparison = found.comparison
    if comparison is None:
        evidence = found.whole.evidence
        return [] if evidence is None else [sure_sentence(evidence)]
    said, n_different = [], 0
    for pair, tests in comparison.tests.groupby(["group_a", "group_b"], sort=False):
        p = tests.set_index("test")["p_value"]
        a, b = pair
        edges, _ = _of_pair(comparison, a, b)
        n = int((edges["q_value"] <= LEVEL).sum())
        n_different += int(p["structure"] <= 0.05)
        differ = "differ" if p["structure"] <= 0.05 else "cannot be told apart"
        what = f"{n:,} edge{'s' if n > 1 else ''} beyond chance" if n else "no single edge beyond chance"
        said.append(
            f"The graphs of {a} and {b} {differ} as a whole (structure p = {q_text(float(p['structure']))}), with "
            f"{what} at a false discovery rate of {LEVEL:g}."
        )
    if len(said) > 1:
        alone = (
            f"{n_different} of {len(said)} pairs of groups differ as a whole (structure p up to 0.05, one test per "
            "pair, not corrected for their number)."
        )
        said = [*said, alone] if len(said) <= VERDICTS else [alone]
    return said


def _of_pair(comparison: GraphComparison, a: Any, b: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    tables = (comparison.edges, comparison.nodes)
    first, second = (table[(table["group_a"] == a) & (table["group_b"] == b)] for table in tables)
    return first, second


def _pairs(found: GroupGraphs, comparison: GraphComparison) -> list[dict[str, Any]]:
    shown = []
    for number, (pair, tests) in enumerate(comparison.tests.groupby(["group_a", "group_b"], sort=False)):
        a, b = pair
        edges, nodes = (table.assign(sure=table["q_value"] <= LEVEL) for table in _of_pair(comparison, a, b))
        picture = None
        if edges["sure"].any():
            with plots.styled():
                larger = (f"larger in {short(str(a), 20)}", f"larger in {short(str(b), 20)}")
                figure = plots.evidence_graph(edges, found.names, value="difference", most_unsure=0, signs=larger)
                svg = plots.to_svg(figure, f"difference-{number}")
            picture = Picture(Markup(svg), f"Edges whose partial correlation differs between {a} and {b}.")
        shown.append(
            {
                "a": str(a),
                "b": str(b),
                "n_a": comparison.n_people[a],
                "n_b": comparison.n_people[b],
                "tests": [_test_row(row) for row in tests.to_dict("records")],
                "edges": _difference_rows(edges, ["source", "target"]),
                "nodes": _difference_rows(nodes, ["node"]),
                "n_edges": int(edges["sure"].sum()),
                "n_nodes": int(nodes["sure"].sum()),
                "edges_shown": shown_sentence(int(edges["sure"].sum()), EDGES_DRAWN, EDGES_SHOWN),
                "picture": picture,
            }
        )
    return shown


def _test_row(row: dict[Any, Any]) -> list[str]:
    interval = interval_text(row["ci_low"], row["ci_high"])
    return [str(row["test"]), f"{row['effect']:+.3f}", interval, q_text(row["p_value"])]


def _difference_rows(table: pd.DataFrame, names: list[str]) -> list[tuple[bool, list[str]]]:
    ranked = table.sort_values(["sure", "p_value"], ascending=[False, True], kind="stable")
    shown = pd.concat([ranked[ranked["sure"]].head(EDGES_SHOWN), ranked[~ranked["sure"]].head(UNSURE_SHOWN)])
    return [
        (
            bool(row["sure"]),
            [
                *(str(row[name]) for name in names),
                f"{row['difference']:+.3f}",
                interval_text(row["ci_low"], row["ci_high"]),
                q_text(row["q_value"]),
            ],
        )
        for row in shown.to_dict("records")
    ]


def _node_rows(evidence: EdgeInference | None) -> list[list[str]]:
    if evidence is None:
        return []
    nodes = evidence.nodes.sort_values(["strength", "predictability"], ascending=False, kind="stable").head(NODES_SHOWN)
    return [
        [
            str(row["node"]),
            str(int(row["degree"])),
            _with_interval(row, "strength"),
            _with_interval(row, "predictability"),
        ]
        for row in nodes.to_dict("records")
    ]


def _with_interval(row: dict[Any, Any], name: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if np.isnan(value):
        return NONE
    return f"{value:.2f}" if np.isnan(low) else f"{value:.2f} ({low:.2f} to {high:.2f})"
