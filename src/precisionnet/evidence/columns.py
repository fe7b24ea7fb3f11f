"""Evidence that was found for nodes, said of the table's columns.

A column of labels is several nodes (``estimators/columns.py``). Its p-value, and that of a pair of columns, is the
smallest of its nodes' or pairs', times their number (Bonferroni's, which holds however they depend on each other); q is
computed anew over columns. Sizes are norms, or the largest of the partial correlations, with a sign where both columns
have a direction. Intervals of
partial correlations are not carried over: there is none for the largest of several. Pairs within a column are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.estimators.columns import ColumnBlocks
from precisionnet.evidence.edges import EdgeInference
from precisionnet.evidence.pairs import pair_frame, pairs_of, q_values
from precisionnet.evidence.task import TaskEvidence
from precisionnet.types import FloatArray


def edges_by_column(found: EdgeInference, blocks: ColumnBlocks) -> EdgeInference:
    """Say the evidence for a graph of nodes as one for a graph of columns."""
    if blocks.trivial:
        edges, nodes = _by_their_columns(found.edges, found.nodes, blocks)
        return replace(found, edges=edges, nodes=nodes)
    edges, pairs = found.edges, _Pairs(blocks)
    partial = edges["partial_correlation"].to_numpy()
    p = pairs.smallest_p(edges["p_value"].to_numpy())
    table = pair_frame(
        blocks.names,
        {
            "partial_correlation": pairs.with_signs(pairs.largest(np.abs(partial)), partial),
            "ci_low": pairs.own_or(edges["ci_low"].to_numpy(), np.nan),
            "ci_high": pairs.own_or(edges["ci_high"].to_numpy(), np.nan),
            "p_value": p,
            "q_value": q_values(p),
            "selection_frequency": pairs.largest(edges["selection_frequency"].to_numpy()),
        },
    )
    shown = replace(found, edges=table[list(edges.columns)])
    return replace(shown, nodes=_graph_nodes(found.nodes, shown, blocks))


def _by_their_columns(
    edges: pd.DataFrame, nodes: pd.DataFrame, blocks: ColumnBlocks
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Name nodes after their columns where each column is one node: a column of two labels has one, called sex=f."""
    column = dict(zip(nodes["node"], blocks.names, strict=True))
    ends = {end: edges[end].map(column) for end in ("source", "target")}
    return edges.assign(**ends), nodes.assign(node=list(blocks.names))


def _graph_nodes(nodes: pd.DataFrame, shown: EdgeInference, blocks: ColumnBlocks) -> pd.DataFrame:
    """Degree and strength in the graph of columns; the rest of a single node its own, of several the largest."""
    table = nodes.drop(columns="node").groupby(blocks.of_node).max()
    bounds = [name for name in table.columns if name.endswith(("_low", "_high"))]
    table.loc[~blocks.single, bounds] = np.nan
    place = {name: i for i, name in enumerate(blocks.names)}
    degree, strength = np.zeros(len(blocks), dtype=int), np.zeros(len(blocks))
    for edge in shown.sure_edges.to_dict("records"):
        for end in (edge["source"], edge["target"]):
            degree[place[end]] += 1
            strength[place[end]] += abs(edge["partial_correlation"])
    table["degree"], table["strength"] = degree, strength
    return pd.DataFrame({"node": list(blocks.names)}).join(table)[list(nodes.columns)]


def task_by_column(found: TaskEvidence, blocks: ColumnBlocks) -> TaskEvidence:
    """Say what a prediction rests on by columns."""
    if blocks.trivial:
        edges, nodes = _by_their_columns(found.edges, found.nodes, blocks)
        return replace(found, edges=edges, nodes=nodes)
    edges, pairs = found.edges, _Pairs(blocks)
    tested = edges["in_graph"].to_numpy(dtype=bool)
    in_graph = pairs.largest(tested.astype(float)) > 0
    p = pairs.smallest_p(edges["p_value"].to_numpy())
    q = q_values(np.where(in_graph, pairs.smallest_p(np.where(tested, edges["p_value"].to_numpy(), np.nan)), np.nan))
    columns: dict[str, Any] = {
        "effect": pairs.norm(edges["effect"].to_numpy()),
        "frequency": pairs.largest(edges["frequency"].to_numpy()),
        "p_value": p,
        "q_value": q,
    }
    table = pair_frame(blocks.names, columns)
    table["in_graph"], table["task_graph"] = in_graph, pairs.norm(edges["task_graph"].to_numpy())
    return replace(found, edges=table[list(edges.columns)], nodes=_task_nodes(found.nodes, blocks))


def _task_nodes(nodes: pd.DataFrame, blocks: ColumnBlocks) -> pd.DataFrame:
    sizes = np.bincount(blocks.of_node)
    p = np.minimum(sizes * nodes["p_value"].groupby(blocks.of_node).min().to_numpy(), 1.0)
    table = {
        "node": list(blocks.names),
        "importance": blocks.norms(nodes["importance"].to_numpy()),
        "importance_low": nodes["importance_low"].groupby(blocks.of_node).max().to_numpy(),
        "importance_high": blocks.norms(nodes["importance_high"].to_numpy()),
        "direction": np.where(blocks.signed, nodes["direction"].to_numpy()[blocks.first], 0),
        "frequency": nodes["frequency"].groupby(blocks.of_node).max().to_numpy(),
        "p_value": p,
        "q_value": q_values(p),
    }
    return pd.DataFrame(table)


class _Pairs:
    """Pairs of nodes by the pair of columns that they belong to; columns in the order of their pairs."""

    def __init__(self, blocks: ColumnBlocks) -> None:
        first, second = (blocks.of_node[nodes] for nodes in pairs_of(len(blocks.of_node)))
        self._between = first != second
        place = np.zeros((len(blocks), len(blocks)), dtype=int)
        place[pairs_of(len(blocks))] = np.arange(len(blocks) * (len(blocks) - 1) // 2)
        self._owner = place[first, second][self._between]
        # Of columns with a direction, the pair of their first nodes has the sign.
        leads = np.isin(np.arange(len(blocks.of_node)), blocks.first) & blocks.signed[blocks.of_node]
        ends = pairs_of(len(blocks.of_node))
        self._leading = (leads[ends[0]] & leads[ends[1]])[self._between]
        self.n_pairs = np.bincount(self._owner)

    def _grouped(self, values: FloatArray) -> Any:
        return pd.Series(values[self._between]).groupby(self._owner)

    def largest(self, values: FloatArray) -> FloatArray:
        """Return the largest number of each pair of columns."""
        return np.asarray(self._grouped(values).max(), dtype=np.float64)

    def smallest_p(self, p_values: FloatArray) -> FloatArray:
        """Return Bonferroni's p-value of each pair of columns, over the pairs of nodes that have a p-value."""
        grouped = self._grouped(p_values)
        return np.minimum(np.asarray(grouped.min() * grouped.count(), dtype=np.float64), 1.0)

    def norm(self, values: FloatArray) -> FloatArray:
        """Return the root of the sum of squares, with a sign where both columns have a direction."""
        return self.with_signs(np.sqrt(np.asarray(self._grouped(values**2).sum(), dtype=np.float64)), values)

    def with_signs(self, sizes: FloatArray, values: FloatArray) -> FloatArray:
        """Give sizes the signs that the values of the leading nodes have."""
        signed = sizes.copy()
        owner = self._owner[self._leading]
        signed[owner] = np.copysign(sizes[owner], values[self._between][self._leading])
        return signed

    def own_or(self, values: FloatArray, others: FloatArray | float) -> FloatArray:
        """Return the number of a pair of columns if both are single nodes, else ``others``."""
        return np.where(self.n_pairs == 1, np.asarray(self._grouped(values).sum(), dtype=np.float64), others)
