"""Exact screening (Witten, Friedman and Simon 2011; Mazumder and Hastie 2012).

Where no pair across two groups of variables has |C_ij| > penalty_ij, the graphical lasso has no edge across them: the
groups are separate problems.
"""

from __future__ import annotations

import numpy as np

from precisionnet.precision.compiled import compiled
from precisionnet.precision.penalty import Penalty, row_of
from precisionnet.types import FloatArray, IndexArray


def components(emp_cov: FloatArray, penalty: Penalty) -> list[IndexArray]:
    """Groups of variables (sorted indices) that are separate problems."""
    labels = _labels(emp_cov, *penalty)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


@compiled
def _labels(emp_cov: FloatArray, l1: float, unit: FloatArray, matrix: FloatArray) -> IndexArray:
    """The smallest member of each variable's group, by union-find over the pairs above the penalty."""
    N = len(emp_cov)
    parent = np.arange(N)
    penalty = np.empty(N)
    groups = N
    for j in range(N):
        if groups == 1:
            break
        row_of(l1, unit, matrix, j, penalty)
        for i in range(j):
            if abs(emp_cov[j, i]) > penalty[i]:
                a, b = i, j
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                if a != b:
                    parent[max(a, b)] = min(a, b)
                    groups -= 1
    for i in range(N):
        parent[i] = parent[parent[i]]
    return parent
