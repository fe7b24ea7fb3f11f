"""Graphs for other tools: what is written parses back, and names stay text."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from precisionnet.errors import InputError
from precisionnet.graph_files import write_graph

NAMES = ["plain", "<script>&\"'", "a\x1b[31m\n\x00", "\ufffe\uffff", "=1+1", "脳 left"]
NODES = pd.DataFrame({"node": NAMES, "degree": range(6), "q_value": [0.1, np.nan, 0.2, 0.3, 0.4, 0.5]})
EDGES = pd.DataFrame(
    {
        "source": NAMES[:2],
        "target": NAMES[2:4],
        "partial_correlation": [-0.25, 0.5],
        "ci_low": [np.nan, 0.1],
        "sure": [True, False],
        "said": ["\x07bell", "<b>"],
    }
)
READ = {".graphml": nx.read_graphml, ".gexf": nx.read_gexf}


@pytest.mark.parametrize("ending", READ)
def test_a_graph_parses_back(tmp_path, ending):
    path = tmp_path / f"graph{ending}"
    write_graph(NODES, EDGES, path, weight="partial_correlation", title="the <data's> graph\x1b")
    graph = READ[ending](path)
    labels = [graph.nodes[f"n{i}"]["label"] for i in range(6)]
    assert labels == ["plain", "<script>&\"'", r"a\x1b[31m\n\x00", r"\ufffe\uffff", "=1+1", "脳 left"]
    assert [graph.nodes[f"n{i}"].get("q_value") for i in range(6)] == [0.1, None, 0.2, 0.3, 0.4, 0.5]
    assert graph.nodes["n5"]["degree"] == 5
    first, second = graph.edges["n0", "n2"], graph.edges["n1", "n3"]
    assert (first["weight"], first["partial_correlation"], first["sure"]) == (0.25, -0.25, True)
    assert "ci_low" not in first
    assert (second["weight"], second["ci_low"], second["said"]) == (0.5, 0.1, "<b>")
    assert graph.number_of_edges() == 2
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", READ)
def test_a_graph_without_edges_parses_back(tmp_path, ending):
    path = tmp_path / f"graph{ending}"
    write_graph(NODES, EDGES.iloc[:0], path, weight="partial_correlation")
    assert (READ[ending](path).number_of_nodes(), READ[ending](path).number_of_edges()) == (6, 0)


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(InputError, match="graphml"):
        write_graph(NODES, EDGES, tmp_path / "graph.dot", weight="partial_correlation")
    with pytest.raises(InputError, match="2 nodes that are not in the table"):
        write_graph(NODES[2:], EDGES, tmp_path / "graph.gexf", weight="partial_correlation")
    assert list(tmp_path.iterdir()) == []
