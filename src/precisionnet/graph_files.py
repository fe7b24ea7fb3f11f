"""Graphs in files that other tools open: GraphML (igraph, Cytoscape, NetworkX) and GEXF (Gephi).

Names of nodes come from strangers' tables. A node's id is ``n0``, ``n1``, ...; its name is text in ``label``, escaped
as XML wants it, and characters that XML cannot hold are spelled out (``\\x1b``). A missing number is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, printable
from precisionnet.outputs import whole_file

if TYPE_CHECKING:
    import networkx as nx

GRAPH_ENDINGS = (".graphml", ".gexf")
"""Formats that ``write_graph`` writes."""
_NOT_XML = re.compile("[\ufffe\uffff]")
"""XML has no such characters; control characters are spelled out by ``printable``."""


def write_graph(nodes: pd.DataFrame, edges: pd.DataFrame, path: str | Path, *, weight: str, title: str = "") -> None:
    """Write a graph in the format that the ending of the path names; whole or not at all.

    Parameters
    ----------
    nodes : pandas.DataFrame
        One row per node: ``node``, its name, and any other columns, which become attributes.
    edges : pandas.DataFrame
        One row per edge: ``source`` and ``target``, names of nodes, and any other columns.
    path : str or Path
        Where to write it. The ending is .graphml or .gexf.
    weight : str
        Column of ``edges`` whose size becomes the attribute ``weight``, by which other tools draw and measure. Its sign
        stays in the column itself.
    title : str, default=""
        What graph this is, in words; kept with it.

    Raises
    ------
    InputError
        The ending is another one, or an edge names no node.
    OutputError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile, networkx, pandas as pd
    >>> nodes = pd.DataFrame({"node": ["left <insula>", "right"], "strength": [0.4, 0.4]})
    >>> edges = pd.DataFrame({"source": ["left <insula>"], "target": ["right"], "partial_correlation": [-0.4]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graph(nodes, edges, f"{folder}/graph.graphml", weight="partial_correlation")
    ...     found = networkx.read_graphml(f"{folder}/graph.graphml")
    >>> found.nodes["n0"]["label"], found.edges["n0", "n1"]["weight"]
    ('left <insula>', 0.4)
    """
    import networkx as nx

    ending = Path(path).suffix.lower()
    if ending not in GRAPH_ENDINGS:
        raise InputError(f"Cannot write {str(path)!r}: its ending must be one of {', '.join(GRAPH_ENDINGS)}.")
    graph = _graph(nodes, edges, weight)
    if title:
        graph.graph["name" if ending == ".gexf" else "title"] = _text(title)
    write = nx.write_graphml_xml if ending == ".graphml" else nx.write_gexf
    with whole_file(path) as scratch, scratch.open("wb") as file:
        write(graph, file)


def _graph(nodes: pd.DataFrame, edges: pd.DataFrame, weight: str) -> nx.Graph[Any]:
    import networkx as nx

    ids = {name: f"n{place}" for place, name in enumerate(nodes["node"])}
    unknown = set(edges["source"]).union(edges["target"]) - set(ids)
    if unknown:
        raise InputError(f"Edges name {len(unknown)} nodes that are not in the table of nodes: add them to it.")
    graph: nx.Graph[Any] = nx.Graph()
    for row in nodes.to_dict("records"):
        name = row.pop("node")
        graph.add_node(ids[name], label=_text(str(name)), **_attributes(row))
    for row in edges.to_dict("records"):
        ends = ids[row.pop("source")], ids[row.pop("target")]
        graph.add_edge(*ends, weight=abs(float(row[weight])), **_attributes(row))
    return graph


def _attributes(row: dict[Any, Any]) -> dict[str, Any]:
    """Plain Python values; what is missing is left out."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, str):
            found[str(name)] = _text(value)
        elif isinstance(value, bool | np.bool_):
            found[str(name)] = bool(value)
        elif isinstance(value, int | np.integer):
            found[str(name)] = int(value)
        elif not pd.isna(value):
            found[str(name)] = float(value)
    return found


def _text(value: str) -> str:
    return _NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), printable(value))
