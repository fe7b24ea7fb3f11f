"""Disjoint sets: groups of columns that pairs join, kept as a forest in an array of parents.

Every column points to another of its group, and the root of a group is its smallest column. Each search for a root
halves the path that it follows, which keeps later searches short.
"""

from __future__ import annotations

import numpy as np

from precisionnet.compiled import compiled
from precisionnet.types import IndexArray


@compiled
def _root(parent: IndexArray, i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled
def unite(parent: IndexArray, first: IndexArray, second: IndexArray) -> None:
    """Put the two ends of every pair into one group, whose root is its smallest member."""
    for k in range(len(first)):
        a, b = _root(parent, first[k]), _root(parent, second[k])
        if a != b:
            parent[max(a, b)] = min(a, b)


@compiled
def roots(parent: IndexArray) -> IndexArray:
    """Return the smallest member of each column's group."""
    out = np.empty_like(parent)
    for i in range(len(parent)):
        out[i] = _root(parent, i)
    return out


@compiled
def first_too_large(first: IndexArray, second: IndexArray, order: IndexArray, n: int, largest: int) -> int:
    """Return the first position in ``order`` whose pair would make a group of more than ``largest`` columns, or -1."""
    parent, size = np.arange(n), np.ones(n, np.int64)
    for k in range(len(order)):
        a, b = _root(parent, first[order[k]]), _root(parent, second[order[k]])
        if a == b:
            continue
        if size[a] + size[b] > largest:
            return k
        a, b = min(a, b), max(a, b)
        parent[b] = a
        size[a] += size[b]
    return -1
