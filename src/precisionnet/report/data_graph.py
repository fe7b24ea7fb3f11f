"""The data's own graph on a page: which edges are beyond chance, in a sentence, a picture and a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from precisionnet import plots
from precisionnet.errors import InputError
from precisionnet.evidence import EdgeInference, edge_inference
from precisionnet.evidence.columns import edges_by_column
from precisionnet.plots.graph import EDGES_DRAWN
from precisionnet.report.interactive import PageGraph, graph_of_pairs
from precisionnet.report.page import NONE, Picture

LEVEL = 0.05
"""False discovery rate below which an edge or a column is shown as sure."""
EDGES_SHOWN = 30
UNSURE_SHOWN = 5


@dataclass(frozen=True)
class DataGraph:
    """The part of a page that shows the data's graph."""

    says: str
    message: str
    shown: str
    """How many edges are drawn and listed, if not all are."""
    picture: Picture | None
    rows: list[list[str]]
    measure: str
    """Name of the number in the last cell of each row."""
    n_sure: int
    n_pairs: int
    sure: list[bool]
    """For each row, whether it is beyond chance."""


def infer_data_graph(
    X: pd.DataFrame, groups: pd.Series[Any] | None, model: Any = None
) -> tuple[EdgeInference | None, str]:
    """Return the evidence for the data's own edges from complete rows, or a sentence that says why there is none.

    Where ``X`` are the nodes of a ``model`` (``node_rows``), the edges are those of its columns.
    """
    complete = X.notna().all(axis=1).to_numpy()
    people = None if groups is None else groups.to_numpy()[complete]
    try:
        found = edge_inference(X[complete], groups=people, random_state=0)
    except InputError as error:
        return None, str(error)
    return found if model is None else edges_by_column(found, model.fitted.blocks), ""


def edges_with_sureness(found: EdgeInference) -> pd.DataFrame:
    """Return every pair with the column ``sure``: q of at most 0.05, or named often enough where there is no q."""
    edges = found.edges
    if found.method == "stability":
        named = set(map(tuple, found.sure_edges[["source", "target"]].to_numpy().tolist()))
        sure = [pair in named for pair in map(tuple, edges[["source", "target"]].to_numpy().tolist())]
        return edges.assign(sure=np.array(sure, dtype=bool))
    return edges.assign(sure=(edges["q_value"] <= LEVEL).to_numpy())


def sure_sentence(found: EdgeInference) -> str:
    """Say how many edges of the data's graph are beyond chance."""
    edges = edges_with_sureness(found)
    n, of = int(edges["sure"].sum()), len(edges)
    if found.method == "stability":
        ground = "named by so many halves of the people that at most one such pair is expected to be named by chance"
        none = "No edge is named often enough by halves of the people: so few rows show no edge for sure."
        return none if n == 0 else f"{n:,} of {of:,} pairs {_are(n)} {ground}."
    if n == 0:
        return (
            f"No edge of the data's graph is beyond chance at a false discovery rate of {LEVEL:g}: with these rows no "
            "pair can be told from independence given the others."
        )
    return f"{n:,} of {of:,} pairs {_are(n)} joined beyond chance at a false discovery rate of {LEVEL:g}."


def data_graph_part(
    found: EdgeInference, names: list[str], key: str, whose: str = "", unsigned: Collection[str] = ()
) -> DataGraph:
    """Draw and tabulate; ``key`` keeps the pictures of a page apart, ``whose`` says of which rows the graph is.

    Edges of columns without a direction (``unsigned``) have a size and no sign.
    """
    edges = edges_with_sureness(found)
    sure = edges[edges["sure"]]
    order = ["selection_frequency"] if found.method == "stability" else ["p_value"]
    ranked = edges.sort_values(order, ascending=found.method != "stability", kind="stable")
    shown = pd.concat([ranked[ranked["sure"]].head(EDGES_SHOWN), ranked[~ranked["sure"]].head(UNSURE_SHOWN)])
    picture = None
    if len(sure):
        caption = f"The data's graph{whose}: edges beyond chance in colour, others pale."
        with plots.styled():
            figure = plots.evidence_graph(edges, names, value="partial_correlation", unsigned=unsigned)
            picture = Picture(Markup(plots.to_svg(figure, key)), caption)
    return DataGraph(
        says=sure_sentence(found),
        message=found.message,
        shown=shown_sentence(len(sure), EDGES_DRAWN, EDGES_SHOWN),
        picture=picture,
        rows=[
            [
                str(row["source"]),
                str(row["target"]),
                f"{row['partial_correlation']:{'' if {row['source'], row['target']} & set(unsigned) else '+'}.3f}",
                interval_text(row["ci_low"], row["ci_high"]),
                q_text(row["q_value"]) if found.method != "stability" else f"{row['selection_frequency']:.0%}",
            ]
            for row in shown.to_dict("records")
        ],
        measure="Frequency" if found.method == "stability" else "q",
        n_sure=len(sure),
        n_pairs=len(edges),
        sure=[bool(value) for value in shown["sure"]],
    )


def inferred_graph(
    found: EdgeInference, names: Sequence[str], key: str, title: str, unsigned: Collection[str] = ()
) -> PageGraph:
    """Return the data's graph for a page that can be worked with: every pair, with its q."""
    note = "" if found.method != "stability" else "Colour: pairs named by halves of the people often enough."
    return graph_of_pairs(
        key,
        title,
        edges_with_sureness(found),
        names,
        value="partial_correlation",
        label="partial correlation",
        signs=("positive partial correlation", "negative"),
        unsigned=unsigned,
        note=note,
    )


def shown_sentence(n: int, drawn: int, listed: int) -> str:
    """Say how many of the ``n`` that are beyond chance a page draws and lists, where that is not all of them."""
    said = [f"the {drawn} strongest are drawn"] if n > drawn else []
    said += [f"the first {listed} are listed"] if n > listed else []
    return f"Of these {n:,}, {' and '.join(said)}; the files have all." if said else ""


def interval_text(low: float, high: float, digits: int = 3) -> str:
    """'-0.12 to +0.30', or a dash where there is no interval."""
    return NONE if np.isnan(low) or np.isnan(high) else f"{low:+.{digits}f} to {high:+.{digits}f}"


def q_text(q: float) -> str:
    """Write a q- or p-value, rounded as a person would."""
    if np.isnan(q):
        return NONE
    return "< 0.0001" if q < 1e-4 else f"{q:.2g}" if q < 0.1 else f"{q:.2f}"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
