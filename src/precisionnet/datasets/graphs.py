"""Graph families: which pairs of features are joined, and how dense each family can be.

A graph is its edges, an integer array (n_edges, 2) with the smaller feature first. Density is the paper's
||theta||_0 / N^2, which counts both halves and the diagonal: (N + 2 n_edges) / N^2. Features keep the family's own
order (neighbours on the chain side by side, a block's features together, hubs first).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from precisionnet.errors import InputError, did_you_mean
from precisionnet.types import IndexArray

GraphName = Literal["random", "chain", "banded", "hub", "block", "small_world"]
GRAPHS: tuple[GraphName, ...] = ("random", "chain", "banded", "hub", "block", "small_world")
DEFAULT_SPARSITY = 0.2
"""Density of a random graph if none is asked for: the paper's choice for tuning."""
FEATURES_A_HUB = 10
N_BLOCKS = 5
N_NEIGHBORS = 4
REWIRED = 0.1
"""Share of a small world's edges that leave the ring."""


def density(n_features: int, n_edges: int) -> float:
    """Return ||theta||_0 / N^2 of a precision matrix with so many edges and a full diagonal."""
    return (n_features + 2 * n_edges) / n_features**2


def random_graph(n_features: int, n_edges: int, rng: np.random.Generator) -> IndexArray:
    """Draw a graph uniformly from all graphs with so many edges."""
    rows, cols = np.triu_indices(n_features, k=1)
    chosen = rng.choice(len(rows), size=n_edges, replace=False)
    return np.column_stack([rows[chosen], cols[chosen]])


def chain_graph(n_features: int) -> IndexArray:
    """Join each feature to the next: the precision matrix is tridiagonal."""
    return banded_graph(n_features, 1)


def banded_graph(n_features: int, bandwidth: int) -> IndexArray:
    """Join each feature to the next ``bandwidth`` features."""
    rows, cols = np.triu_indices(n_features, k=1)
    near = cols - rows <= bandwidth
    return np.column_stack([rows[near], cols[near]])


def hub_graph(n_features: int, n_hubs: int, n_edges: int, rng: np.random.Generator) -> IndexArray:
    """Draw a graph in which the first ``n_hubs`` features are hubs and every edge has a hub at an end.

    First each other feature is joined to one hub, in turn. If there are fewer edges than that, some features stay
    alone; if there are more, the others are drawn uniformly from the pairs with a hub.
    """
    others = np.arange(n_hubs, n_features)
    spokes = np.column_stack([others % n_hubs, others])
    if n_edges <= len(spokes):
        return spokes[np.sort(rng.choice(len(spokes), size=n_edges, replace=False))]
    rows, cols = np.triu_indices(n_features, k=1)
    is_spoke = (cols >= n_hubs) & (cols % n_hubs == rows)
    free = np.flatnonzero((rows < n_hubs) & ~is_spoke)
    more = rng.choice(free, size=n_edges - len(spokes), replace=False)
    return np.vstack([spokes, np.column_stack([rows[more], cols[more]])])


def block_graph(n_features: int, block_size: int) -> IndexArray:
    """Join all features within blocks of ``block_size`` consecutive features; the last block may be smaller."""
    rows, cols = np.triu_indices(n_features, k=1)
    together = rows // block_size == cols // block_size
    return np.column_stack([rows[together], cols[together]])


def small_world_graph(n_features: int, n_neighbors: int, rewired: float, rng: np.random.Generator) -> IndexArray:
    """Draw a small world (Watts and Strogatz 1998).

    Every feature on a ring is joined to its ``n_neighbors`` nearest, an even number, and a share of the edges is
    rewired.
    """
    import networkx as nx  # late: it takes a third of a second to import, and is only needed here

    graph = nx.watts_strogatz_graph(n_features, n_neighbors, rewired, seed=rng)
    return np.sort(np.array(graph.edges, dtype=np.intp).reshape(-1, 2), axis=1)


def draw_edges(graph: GraphName | Any, n_features: int, sparsity: float | None, rng: np.random.Generator) -> IndexArray:
    """Draw the edges of a family, as near to the density ``sparsity`` as it can be (None: the family's own density).

    ``graph`` may also be the edges themselves, pairs (n_edges, 2).
    """
    if not isinstance(graph, str):
        return _given_edges(graph, n_features, sparsity)
    if graph not in GRAPHS:
        raise InputError(
            f"graph must be one of {', '.join(GRAPHS)}, or pairs of features, got {graph!r}"
            f"{did_you_mean(graph, GRAPHS)}."
        )
    if graph == "random":
        share = DEFAULT_SPARSITY if sparsity is None else sparsity
        most = n_features * (n_features - 1) // 2
        return random_graph(n_features, int(np.clip(_wanted_edges(n_features, share), 0, most)), rng)
    if graph == "small_world" and n_features < 3:
        raise InputError(f"graph='small_world' needs at least 3 features to make a ring, got {n_features}.")
    if n_features == 1:
        return np.empty((0, 2), dtype=np.intp)
    family = _FAMILIES[graph](n_features)
    if sparsity is None:
        return family.draw(family.usual, rng)
    counts = np.array([family.n_edges(setting) for setting in family.settings])
    lowest, highest = (density(n_features, int(count)) for count in (counts[0], counts[-1]))
    slack = 1.0 / n_features**2  # half a pair
    if not lowest - slack <= sparsity <= highest + slack:
        fixed = len(counts) == 1
        can = f"is always {lowest:.4g}" if fixed else f"lies between {lowest:.4g} and {highest:.4g}"
        raise InputError(
            f"The sparsity (share of non-zero entries) of graph={graph!r} with {n_features} features {can}, got "
            f"{sparsity:g}: {'leave sparsity out' if fixed else 'ask for one in this range'}, or take graph='random'."
        )
    entries = n_features + 2 * counts
    return family.draw(family.settings[int(np.argmin(np.abs(entries - sparsity * n_features**2)))], rng)


class _Family(NamedTuple):
    """The one setting of a family that its density depends on, and its range from the sparsest to the densest."""

    settings: range
    usual: int
    n_edges: Callable[[int], int]
    draw: Callable[[int, np.random.Generator], IndexArray]


def _chain(n: int) -> _Family:
    return _Family(range(1, 2), 1, lambda _: n - 1, lambda _, rng: chain_graph(n))


def _banded(n: int) -> _Family:
    """Vary the density of a band by its bandwidth."""
    return _Family(
        range(1, n),
        min(2, n - 1),
        lambda b: b * (2 * n - b - 1) // 2,
        lambda bandwidth, rng: banded_graph(n, bandwidth),
    )


def _hub(n: int) -> _Family:
    """Vary the density of a graph with hubs by its number of edges.

    There is one hub for ten features. Only if the edges do not fit are there more, up to half of the features.
    """
    n_hubs = max(1, n // FEATURES_A_HUB)

    def most(hubs: int) -> int:
        return hubs * (n - hubs) + hubs * (hubs - 1) // 2

    def draw(n_edges: int, rng: np.random.Generator) -> IndexArray:
        return hub_graph(n, next(h for h in range(n_hubs, n) if most(h) >= n_edges), n_edges, rng)

    return _Family(range(n_hubs, most(n // 2) + 1), n - n_hubs, lambda n_edges: n_edges, draw)


def _block(n: int) -> _Family:
    """Vary the density of complete blocks by their size."""

    def n_edges(size: int) -> int:
        return n // size * math.comb(size, 2) + math.comb(n % size, 2)

    usual = max(2, math.ceil(n / N_BLOCKS))
    return _Family(range(2, n + 1), usual, n_edges, lambda size, rng: block_graph(n, size))


def _small_world(n: int) -> _Family:
    """Vary the density of a small world by the number of neighbours, which is even."""
    return _Family(
        range(2, n, 2),
        min(N_NEIGHBORS, (n - 1) // 2 * 2),
        lambda neighbors: n * neighbors // 2,
        lambda neighbors, rng: small_world_graph(n, neighbors, REWIRED, rng),
    )


_FAMILIES: dict[str, Callable[[int], _Family]] = {
    "chain": _chain,
    "banded": _banded,
    "hub": _hub,
    "block": _block,
    "small_world": _small_world,
}


def _wanted_edges(n_features: int, sparsity: float) -> int:
    return round((sparsity * n_features**2 - n_features) / 2)


def _given_edges(graph: Any, n_features: int, sparsity: float | None) -> IndexArray:
    if sparsity is not None:
        raise InputError("sparsity follows from the pairs given as graph: leave it out.")
    try:
        edges = np.asarray(graph)
        whole = edges.size == 0 or np.issubdtype(edges.dtype, np.integer)
    except ValueError:  # ragged
        edges, whole = np.empty(0), False
    if not whole or (edges.size and (edges.ndim != 2 or edges.shape[1] != 2)):
        raise InputError(
            f"graph must be one of {', '.join(GRAPHS)}, or pairs of features as whole numbers (n_edges, 2), got an "
            f"array of shape {edges.shape} and type {edges.dtype}."
        )
    edges = np.sort(edges.reshape(-1, 2).astype(np.intp), axis=1)
    for wrong, what in (
        ((edges < 0).any(axis=1) | (edges >= n_features).any(axis=1), f"is not within 0 and {n_features - 1}"),
        (edges[:, 0] == edges[:, 1], "joins a feature to itself"),
    ):
        if wrong.any():
            raise InputError(f"Pair {tuple(edges[wrong][0].tolist())} of graph {what}: leave it out or correct it.")
    if len(np.unique(edges, axis=0)) < len(edges):
        raise InputError("graph holds a pair more than once: give every edge once, in one direction.")
    return edges
