"""What a page needs to be worked with: the graphs as data, and the scripts that draw them and sort tables.

A page stands without scripts; with them, a circle and a matrix of the same graph are linked. Names come from strangers'
files: here they become JSON inside a script element, without any character that could end it, and the scripts put them
on the page as text alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from precisionnet.errors import printable
from precisionnet.plots.graph import graph_of, linked_order
from precisionnet.types import FloatArray, IndexArray

MOST_EDGES = 10_000
"""Edges of a graph that a page carries, the strongest ones: about 200 KB."""
LONGEST_NAME = 120
DIGITS = 4
SCRIPTS = ("vendor/d3.min.js", "scripts/tables.js", "scripts/circle.js", "scripts/matrix.js", "scripts/explorer.js")


@dataclass(frozen=True)
class PageGraph:
    """One graph that a reader can choose.

    Parameters
    ----------
    key : str
        A short name, for links.
    title : str
        What the switch says.
    label : str
        What the numbers of the edges are.
    signs : tuple of two str
        What the two signs mean; the second is empty where there is no direction.
    first, second : ndarray of int
        The two columns of each edge, strongest first.
    value : ndarray of float
        Their numbers.
    q : ndarray of float, default=None
        False discovery rates; NaN where an edge was not tested.
    sure : ndarray of bool, default=None
        Whether an edge is beyond chance; None where nothing was tested.
    plain : ndarray of bool, default=None
        Edges that have a size and no sign.
    tested : ndarray of float, default=None
        Numbers that were tested, where they are not ``value`` itself: sure edges are coloured by their signs.
    note : str, default=""
        What a reader has to know of it.
    """

    key: str
    title: str
    label: str
    signs: tuple[str, str]
    first: IndexArray
    second: IndexArray
    value: FloatArray
    q: FloatArray | None = None
    sure: Any = None
    plain: Any = None
    tested: FloatArray | None = None
    note: str = ""


@dataclass(frozen=True)
class Explorer:
    """Graphs over the same columns, ready for a page."""

    key: str
    """Name that tells several explorers on one page apart."""
    data: Markup
    """The JSON text of a script element."""
    graphs: list[PageGraph] = field(repr=False)
    n_columns: int
    n_edges: int
    """Number of edges of the largest graph that the page carries."""


def explorer(
    names: Sequence[str],
    graphs: Sequence[PageGraph],
    key: str = "explorer",
    nodes: tuple[str, FloatArray] | None = None,
) -> Explorer | None:
    """Return graphs for a page, or None where no graph has an edge.

    ``nodes`` are numbers of the columns, such as what the prediction owes to each, and what these are.
    """
    kept = [graph for graph in graphs if np.any(graph.value)]
    if not kept or len(names) < 2:
        return None
    main = kept[0]
    order = linked_order(len(names), main.first, main.second, main.value)
    told = {
        "names": [_name(name) for name in names],
        "order": order.tolist(),
        "nodes": None if nodes is None else {"label": nodes[0], "values": _rounded(nodes[1])},
        "graphs": [_graph(graph) for graph in kept],
    }
    most = max(min(len(graph.value), MOST_EDGES) for graph in kept)
    return Explorer(key, script_json(told), kept, len(names), most)


def model_graphs(model: Any, judged: pd.DataFrame | None = None) -> list[PageGraph]:
    """Return the data's graph and the task's graph of a fitted model; ``judged`` says how the data's were tested."""
    found = []
    for which, title in (("data", "The data's graph"), ("task", "What pairs do for the prediction")):
        graph = graph_of(model, which)
        q = sure = tested = None
        if which == "data" and judged is not None:
            q, sure = judged["q_value"].to_numpy(dtype=float), judged["sure"].to_numpy(dtype=bool)
            tested = judged["tested"].to_numpy(dtype=float)
            q = q if np.isfinite(q).any() else None  # stability selection has none
        note = "Not tested: some of these would be here if the target were noise." if which == "task" else ""
        found.append(
            PageGraph(
                which, title, graph.label, graph.signs, graph.first, graph.second, graph.value, q, sure,
                graph.unsigned if graph.signs[1] else np.ones(len(graph.value), dtype=bool), tested, note,
            )
        )  # fmt: skip
    return found


def graph_of_pairs(
    key: str,
    title: str,
    edges: pd.DataFrame,
    names: Sequence[str],
    *,
    value: str,
    label: str,
    signs: tuple[str, str],
    unsigned: Collection[str] = (),
    note: str = "",
) -> PageGraph:
    """Return a graph from a table with ``source``, ``target``, the column of values, ``q_value`` and ``sure``.

    Pairs beyond chance come first, then the others by their size; so many are kept as a page carries.
    """
    size = edges[value].abs()
    ranked = edges.loc[size.sort_values(ascending=False, kind="stable").index]
    ranked = ranked.sort_values("sure", ascending=False, kind="stable").head(MOST_EDGES)
    ranked = ranked.loc[ranked[value].abs().sort_values(ascending=False, kind="stable").index]
    place = {name: number for number, name in enumerate(names)}
    first, second = (ranked[end].map(place).to_numpy(dtype=np.intp) for end in ("source", "target"))
    q = ranked["q_value"].to_numpy(dtype=float)
    plain = (ranked["source"].isin(unsigned) | ranked["target"].isin(unsigned)).to_numpy()
    return PageGraph(
        key, title, label, signs, first, second, ranked[value].to_numpy(dtype=float),
        q if np.isfinite(q).any() else None, ranked["sure"].to_numpy(dtype=bool), plain, note=note,
    )  # fmt: skip


def script_json(value: Any) -> Markup:
    """Return JSON that may stand in a script element: no ``<``, ``>`` or ``&``, nor a line end of JavaScript's own."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@cache
def scripts() -> Markup:
    """Return the scripts of every page, one after the other."""
    home = files("precisionnet.report")
    texts = [home.joinpath(*name.split("/")).read_text(encoding="utf-8").strip() for name in SCRIPTS]
    assert not any("</script" in text or "<!--" in text for text in texts)
    return Markup("\n".join(texts))


def _graph(graph: PageGraph) -> dict[str, Any]:
    kept = slice(0, MOST_EDGES)
    return {
        "key": graph.key,
        "title": printable(graph.title),
        "label": printable(graph.label),
        "signs": [printable(sign) for sign in graph.signs],
        "note": printable(graph.note),
        "total": len(graph.value),
        "i": graph.first[kept].tolist(),
        "j": graph.second[kept].tolist(),
        "v": _rounded(graph.value[kept]),
        "t": None if graph.tested is None else _rounded(graph.tested[kept]),
        "q": None if graph.q is None else _rounded(graph.q[kept]),
        "sure": None if graph.sure is None else [int(value) for value in graph.sure[kept]],
        "plain": None
        if graph.plain is None or not np.any(graph.plain)
        else [int(value) for value in graph.plain[kept]],
    }


def _rounded(values: FloatArray) -> list[float | None]:
    """Numbers with four significant digits; None where there is none."""
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values]


def _name(name: str) -> str:
    text = printable(" ".join(str(name).split()))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
