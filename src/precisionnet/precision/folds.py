r"""Choosing a penalty by cross-validation: the mean Gaussian log-likelihood of rows that were left out.

    score(l1) = mean over folds of  mean over left-out rows of  log p(row; mean and precision of the other rows)

Regime: a model is wanted that describes new rows; its graph has many small edges too many. Nothing of a fold's path
depends on its left-out rows, not even its penalties: a grid is the same shares of the fold's own l1_max.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from precisionnet.precision.missing import gaussian_score
from precisionnet.precision.partial import count_edges
from precisionnet.precision.estimation import Recipe
from precisionnet.precision.workers import in_workers
from precisionnet.types import BoolArray, FloatArray, IndexArray


class FoldPath(NamedTuple):
    """One fold, a number a penalty."""

    l1_penalties: FloatArray
    scores: FloatArray
    n_edges: IndexArray
    converged: BoolArray


def cross_validate(
    X: FloatArray,
    splits: Sequence[tuple[IndexArray, IndexArray]],
    recipe: Recipe,
    penalties: int | FloatArray,
    *,
    names: Sequence[Any] | None = None,
    n_jobs: int | None = None,
) -> list[FoldPath]:
    """A path for each (training rows, left-out rows); ``penalties`` is a number of them or the penalties themselves."""
    calls = (
        (X[training], X[left_out], recipe, penalties, names, number)
        for number, (training, left_out) in enumerate(splits)
    )
    return in_workers(fold_path, calls, n_jobs)


def fold_path(
    training: FloatArray,
    left_out: FloatArray,
    recipe: Recipe,
    penalties: int | FloatArray,
    names: Sequence[Any] | None,
    number: int,
) -> FoldPath:
    """One fold."""
    estimate = recipe.estimate(training, names, where=f"the training rows of fold {number}")
    grid = recipe.grid(estimate.emp_cov, penalties) if isinstance(penalties, int) else penalties
    results = recipe.path(estimate.emp_cov, grid)
    rows = estimate.in_units(left_out)
    return FoldPath(
        grid,
        np.array([gaussian_score(rows, estimate.location, result.precision) for result in results]),
        np.array([count_edges(result.precision) for result in results]),
        np.array([result.converged for result in results]),
    )
