"""One self-contained page about what a model's predictions rest on: columns, the task's edges, the data's edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from precisionnet import plots
from precisionnet.evidence import EdgeInference, TaskEvidence
from precisionnet.plots.evidence import BARS
from precisionnet.plots.graph import EDGES_DRAWN
from precisionnet.report.data_graph import EDGES_SHOWN, LEVEL, data_graph_part, inferred_graph, q_text, shown_sentence
from precisionnet.report.interactive import Explorer, explorer, graph_of_pairs
from precisionnet.report.page import Picture, template
from precisionnet.versions import versions

NODES_SHOWN = 25
UNSURE_SHOWN = 5
OUTSIDE_SHOWN = 3

EDGE_COLUMNS = {
    "source, target": "The two columns.",
    "effect": "How far the two columns together move the prediction beyond what each does alone, in the target's "
    "units; from networks fitted to what single columns leave unexplained.",
    "frequency": "Share of half-tables in which the pair is among the strongest twentieth, with the same sign.",
    "p_value": "How often drawn targets give any pair an effect so far from chance.",
    "q_value": "False discovery rate: of all edges with a q up to this one, so large a share is expected to be chance. "
    "Empty for pairs that are no edge of the data's graph: they were not tested as edges.",
    "in_graph": "Whether the pair is an edge of the model's sparse graph.",
    "task_graph": "The model's own value of the effect (task_graph_), not tested.",
    "partial_correlation, ci_low, ci_high": "The data's own edge: correlation of the two columns given the others, "
    "with its 95 % interval. The target plays no part in it.",
    "data_p_value, data_q_value": "How sure the data's edge is; q over all pairs.",
    "data_selection_frequency": "Share of halves of the people that name the pair; only where rows are too few for "
    "intervals.",
}
NODE_COLUMNS = {
    "node": "The column.",
    "importance, importance_low, importance_high": "How far the prediction moves with the column, in the target's "
    "units per standard deviation, with a 95 % interval over halves of the people. Correlated columns share it.",
    "direction": "1 where the prediction rises with the column, -1 where it falls.",
    "frequency": "Share of half-tables in which the direction is the same.",
    "p_value, q_value": "As for edges, beside targets given to other people; q over all columns.",
    "data_degree, data_strength": "Number and summed size of the column's edges in the data's graph (q up to 0.1).",
    "data_predictability": "Share of the column's variance that the other columns explain.",
}
CONTRIBUTION_COLUMNS = {
    "learned_from": "Whether the model was fitted on the row.",
    "base": "The prediction at the mean of the rows that the model was fitted on.",
    "predicted (or log_odds)": "The base plus the row's contributions: exactly what the model predicts.",
    "one column per column": "The column's part of this row's prediction. It is given to the column that the networks "
    "use, not shared with columns that correlate with it.",
}
NOT_MEANT = (
    "Importance is shared between correlated columns: a column that only accompanies another one gets part of it. It "
    "says where the information lies, not which column is needed; several low values in a block of correlated columns "
    "may together carry the prediction.",
    "A contribution is not shared in this way, and belongs to one row. A large contribution is no evidence that the "
    "column matters in general; that is what q is for.",
    "Nothing here is about causes. Changing a column of a person need not change the target, and a third quantity "
    "(age, head size, scanner) may be behind both.",
    "q is a rate over the list, not a probability of one edge: of all edges shown as beyond chance one in twenty is "
    "expected to be false, and nothing says which.",
    "Not beyond chance does not mean absent. It means that these rows cannot tell it from noise.",
    "Importance is a size and never below 0. Its interval says how far it moves with the people who are in the table; "
    "an interval that leaves 0 out is no test, q is.",
    "Pairs share effects as columns share importance: an edge may be beyond chance because one of its columns goes "
    "with a column of the pair that really acts together, which may be no edge of the graph.",
    "An edge of the data's graph need not matter to the task, and the other way round.",
)


@dataclass(frozen=True)
class Explanation:
    """What was found, and what its page has to say of where it comes from."""

    found: TaskEvidence
    graph: EdgeInference | None
    no_graph: str
    """Why there is no evidence for the data's graph, where there is none."""
    names: list[str]
    target: str
    classes: list[str]
    model: Any
    source: str
    n_rows: int
    n_people: int
    seed: int
    level: float = LEVEL


def render_explanation(about: Explanation, created: str) -> str:
    """Return the page; it needs no network."""
    found, level = about.found, about.level
    nodes = found.nodes.assign(sure=found.nodes["q_value"] <= level)
    edges = found.edges[found.edges["in_graph"]]
    edges = edges.assign(sure=edges["q_value"] <= level)
    return template("explain.html.j2").render(
        about=about,
        found=found,
        created=created,
        level=level,
        unit=_unit(about),
        verdict=found.summary(level),
        n_nodes_sure=int(nodes["sure"].sum()),
        n_edges_sure=int(edges["sure"].sum()),
        n_edges=len(edges),
        nodes_shown=shown_sentence(int(nodes["sure"].sum()), BARS, NODES_SHOWN),
        edges_shown=shown_sentence(int(edges["sure"].sum()), EDGES_DRAWN, EDGES_SHOWN),
        n_pairs=len(found.edges),
        figures=_figures(about, nodes, edges),
        nodes=node_rows(nodes),
        edges=edge_rows(edges),
        outside=_outside(found.edges),
        graph=None
        if about.graph is None
        else data_graph_part(about.graph, about.names, "data-graph", unsigned=about.model.fitted.blocks.unsigned),
        columns={"edges.csv": EDGE_COLUMNS, "nodes.csv": NODE_COLUMNS, "contributions.csv": CONTRIBUTION_COLUMNS},
        not_meant=NOT_MEANT,
        explorer=_explorer(about, nodes, edges),
        versions=versions(),
    )


def _explorer(about: Explanation, nodes: pd.DataFrame, edges: pd.DataFrame) -> Explorer | None:
    """Return the task's graph and the data's, for those who work with the page."""
    plain = about.names if len(about.classes) > 2 else about.model.fitted.blocks.unsigned
    task = graph_of_pairs(
        "task",
        "The task's graph",
        edges,
        about.names,
        value="effect",
        label=f"joint effect, {_unit(about)}",
        signs=("together they raise the prediction", "lower it"),
        unsigned=plain,
    )
    graphs = [task] if edges["sure"].any() else []  # without a sure edge it would show noise
    if about.graph is not None:
        unsigned = about.model.fitted.blocks.unsigned
        graphs.append(inferred_graph(about.graph, about.names, "data", "The data's graph", unsigned))
    importance = nodes.set_index(nodes["node"].astype(str))["importance"].reindex(about.names).to_numpy(dtype=float)
    return explorer(about.names, graphs, "explain", ("importance", importance))


def _unit(about: Explanation) -> str:
    if len(about.classes) == 2:
        return f"log-odds of {about.classes[1]!r}"
    return f"units of {about.target}"


def _figures(about: Explanation, nodes: pd.DataFrame, edges: pd.DataFrame) -> dict[str, Picture]:
    with plots.styled():
        unit = "log-odds" if about.classes else "in the target's units"
        label = f"importance, 95 % interval, {unit}"
        drawn: dict[str, tuple[Any, str]] = {
            "nodes": (
                plots.node_bars(nodes, value="importance", low="importance_low", high="importance_high", label=label),
                "Importance of columns for the prediction; those not told from chance are pale.",
            )
        }
        if edges["sure"].any():
            drawn["edges"] = (
                plots.evidence_graph(
                    edges,
                    about.names,
                    value="effect",
                    unsigned=about.names if len(about.classes) > 2 else about.model.fitted.blocks.unsigned,
                ),
                "The task's graph: edges beyond chance in colour, others pale.",
            )
        names = nodes["node"].astype(str)
        values = dict(zip(names, nodes["importance"] * nodes["direction"], strict=True))
        sure = dict(zip(names, nodes["sure"], strict=True))
        for number, measure in enumerate(plots.brain_measures(names)):
            drawn[f"brain-{number}"] = (
                plots.brain_map(
                    values,
                    label=f"importance, with the sign of its direction, {unit}",
                    signed=True,
                    sure=sure,
                    measure=measure,
                    title=measure.capitalize(),
                ),
                "Importance of cortical regions on the brain; those not told from chance are grey.",
            )
        return {name: Picture(Markup(plots.to_svg(figure, name)), text) for name, (figure, text) in drawn.items()}


def node_rows(nodes: pd.DataFrame) -> list[tuple[bool, list[str]]]:
    """Return the table of columns as text, each with whether it is beyond chance."""
    ranked = nodes.sort_values(["sure", "importance"], ascending=False, kind="stable")
    shown = pd.concat([ranked[ranked["sure"]].head(NODES_SHOWN), ranked[~ranked["sure"]].head(UNSURE_SHOWN)])
    return [
        (
            bool(row["sure"]),
            [
                str(row["node"]),
                "rises" if row["direction"] > 0 else "falls" if row["direction"] < 0 else "–",
                _number(row["importance"]),
                f"{_number(row['importance_low'])} to {_number(row['importance_high'])}",
                f"{row['frequency']:.0%}",
                q_text(row["q_value"]),
            ],
        )
        for row in shown.to_dict("records")
    ]


def edge_rows(edges: pd.DataFrame) -> list[tuple[bool, list[str]]]:
    """Return the table of tested edges as text, each with whether it is beyond chance."""
    size = edges.assign(size=edges["effect"].abs())
    ranked = size.sort_values(["sure", "p_value", "size"], ascending=[False, True, False], kind="stable")
    shown = pd.concat([ranked[ranked["sure"]].head(EDGES_SHOWN), ranked[~ranked["sure"]].head(UNSURE_SHOWN)])
    return [
        (
            bool(row["sure"]),
            [
                str(row["source"]),
                str(row["target"]),
                f"{row['effect']:+.3g}",
                f"{row['frequency']:.0%}",
                q_text(row["q_value"]),
            ],
        )
        for row in shown.to_dict("records")
    ]


def _outside(edges: pd.DataFrame) -> list[str]:
    """Name pairs that were not tested, as they are no edges, and have a larger effect than all that were."""
    size = edges["effect"].abs()
    largest = float(size[edges["in_graph"]].max()) if edges["in_graph"].any() else 0.0
    found = edges[~edges["in_graph"] & (size > largest)]
    found = found.loc[found["effect"].abs().sort_values(ascending=False, kind="stable").index].head(OUTSIDE_SHOWN)
    return [
        f"{row['source']} and {row['target']} ({row['effect']:+.3g}, p = {q_text(row['p_value'])})"
        for row in found.to_dict("records")
    ]


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3g}"
