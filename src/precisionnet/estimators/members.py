"""Who of an ensemble leaves which rows out.

The rows are dealt into as many folds as there are members, eight at least, and a member leaves one of them out. So
every member learns from seven eighths of the rows or more, and every row of its fold is new to it: that is what chooses
the epoch, what the out-of-bag error is measured on, and what prediction intervals are calibrated with. (A bootstrap, in
which a member sees 63 % of the rows, cost accuracy: ``docs/decisions/0009-recipe.md``.)
"""

from __future__ import annotations

import numpy as np

from precisionnet.estimators.rows import Table
from precisionnet.estimators.settings import Settings
from precisionnet.types import FloatArray, IndexArray

FEWEST_FOLDS = 8


def member_readouts(settings: Settings) -> list[str]:
    """Each member's readout; with ``both`` the first half averages over the nodes and the second half flattens them."""
    n = settings.n_members
    if settings.readout != "both":
        return [settings.readout] * n
    return ["mean"] * (n - n // 2) + ["mlp"] * (n // 2)


def left_out_rows(
    table: Table, n_members: int, strata: FloatArray | None, rng: np.random.RandomState
) -> list[IndexArray]:
    """The rows each member leaves out: whole groups, classes in equal shares."""
    _, first, group = np.unique(table.group, return_index=True, return_inverse=True)
    if len(first) < 2:
        return [np.array([], dtype=np.intp)] * n_members
    n_folds = max(n_members, FEWEST_FOLDS)
    order = rng.permutation(len(first))
    if strata is not None:  # dealt out class by class
        order = order[np.argsort(strata[first][order], kind="stable")]
    fold = np.empty(len(first), dtype=np.intp)
    fold[order] = np.arange(len(first)) % n_folds
    return [np.flatnonzero(fold[group] == i) for i in range(n_members)]
