r"""Centralities of weighted graphs, many graphs with the same edges at once.

With w the signed weights (partial correlations) of a node's edges and 1 / |w| the length of an edge:

    strength            sum |w|
    expected influence  sum w                                            (Robinaugh, Millner and McNally 2016)
    closeness           (m - 1)^2 / (n - 1) / sum of distances to the m - 1 nodes that can be reached
    betweenness         share of the other pairs' shortest paths that pass through the node

Closeness and betweenness are those of NetworkX, also where a graph falls into parts. Shortest paths by Dijkstra's
algorithm on the full matrix, N^2 per node, which is as good as any heap for the graphs of a table's columns;
betweenness by Brandes (2001).
"""

from __future__ import annotations

import numpy as np

from precisionnet.compiled import compiled
from precisionnet.types import FloatArray, IndexArray

CENTRALITIES = ("strength", "expected_influence", "closeness", "betweenness")
SHORTEST = 1e-12
"""Weights below it count as no edge: their length would be infinite."""


def centralities(n_nodes: int, first: IndexArray, second: IndexArray, weights: FloatArray) -> dict[str, FloatArray]:
    """Return an array (n_graphs, n_nodes) for each of ``CENTRALITIES``; ``weights`` is (n_graphs, n_edges)."""
    result = np.zeros((len(CENTRALITIES), len(weights), n_nodes))
    for ends in (first, second):
        for edge, node in enumerate(ends):
            result[0, :, node] += np.abs(weights[:, edge])
            result[1, :, node] += weights[:, edge]
    if weights.shape[1]:
        pairs = np.ascontiguousarray(first, dtype=np.intp), np.ascontiguousarray(second, dtype=np.intp)
        _paths(n_nodes, *pairs, np.ascontiguousarray(weights), result[2], result[3])
    return dict(zip(CENTRALITIES, result, strict=True))


@compiled
def _paths(
    n_nodes: int,
    first: IndexArray,
    second: IndexArray,
    weights: FloatArray,
    closeness: FloatArray,
    betweenness: FloatArray,
) -> None:
    """Fill in closeness and betweenness, graph by graph."""
    n = n_nodes
    far = 1e300
    length = np.empty((n, n))
    distance, n_paths, share = np.empty(n), np.empty(n), np.empty(n)
    done = np.empty(n, dtype=np.bool_)
    order = np.empty(n, dtype=np.intp)
    for graph in range(len(weights)):
        length[:] = far
        for edge in range(len(first)):
            size = abs(weights[graph, edge])
            if size > SHORTEST:
                length[first[edge], second[edge]] = 1.0 / size
                length[second[edge], first[edge]] = 1.0 / size
        for source in range(n):
            distance[:] = far
            done[:] = False
            distance[source] = 0.0
            reached = 0
            total = 0.0
            for _ in range(n):
                node = -1
                for k in range(n):
                    if not done[k] and distance[k] < far and (node < 0 or distance[k] < distance[node]):
                        node = k
                if node < 0:
                    break
                done[node] = True
                order[reached] = node
                reached += 1
                total += distance[node]
                for k in range(n):
                    if not done[k] and length[node, k] < far:
                        distance[k] = min(distance[k], distance[node] + length[node, k])
            if total > 0.0:
                closeness[graph, source] = (reached - 1.0) ** 2 / (n - 1.0) / total
            # Numbers of shortest paths in the order of distance, then what passes through a node, backwards.
            n_paths[:] = 0.0
            n_paths[source] = 1.0
            share[:] = 0.0
            for place in range(1, reached):
                node = order[place]
                for before in range(place):
                    k = order[before]
                    if _on_shortest(distance[k] + length[k, node], distance[node]):
                        n_paths[node] += n_paths[k]
            for place in range(reached - 1, 0, -1):
                node = order[place]
                for before in range(place):
                    k = order[before]
                    if _on_shortest(distance[k] + length[k, node], distance[node]):
                        share[k] += n_paths[k] / n_paths[node] * (1.0 + share[node])
                if n > 2:
                    betweenness[graph, node] += share[node] / ((n - 1.0) * (n - 2.0))


@compiled
def _on_shortest(path: float, shortest: float) -> bool:
    return abs(path - shortest) <= 1e-10 * shortest
