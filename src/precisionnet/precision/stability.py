r"""Choosing a penalty by the stability of its graph: StARS (Liu, Roeder and Wasserman 2010).

    D(l1) = mean over pairs of 2 f_ij (1 - f_ij),    f_ij the share of subsamples in which i and j are joined

Regime: a graph is wanted that other rows of the same kind would give, too; it prefers an edge too many to one too few.
Rows are drawn without replacement, 10 sqrt(T) of T where T > 144 and 0.8 T otherwise. D is made monotone (the largest
so far, coming from the empty graph), and the smallest penalty that stays within the threshold is chosen. Penalties are
taken a few at a time from the largest down, and none after the threshold is passed: those would cost the most and
cannot be chosen. The subsamples are drawn before any work is handed out: the number of workers changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from precisionnet.errors import InputError
from precisionnet.precision.covariance import sample_covariance
from precisionnet.precision.path import graphical_lasso_path
from precisionnet.precision.result import PrecisionResult
from precisionnet.precision.workers import in_workers
from precisionnet.types import BoolArray, FloatArray

FEW_ROWS = 144
STAGE = 5
"""Penalties that are solved before the threshold is looked at."""

PathOfRows = Callable[[FloatArray, FloatArray], Sequence[PrecisionResult]]
"""From rows and penalties to a result a penalty."""


@dataclass(frozen=True)
class StarsChoice:
    """The chosen penalty, and the curves over all of them in the order they were given."""

    l1_penalty: float
    index: int
    instability: FloatArray
    """D, made monotone; NaN for penalties that could not be chosen any more and were left out, here and below."""
    n_edges: FloatArray
    """Mean over the subsamples."""
    n_unconverged: FloatArray
    """Subsamples whose solution did not reach the tolerance."""


def stars(
    X: FloatArray,
    l1_penalties: Sequence[float] | FloatArray,
    *,
    threshold: float = 0.05,
    n_subsamples: int = 20,
    subsample_size: int | None = None,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    path: PathOfRows | None = None,
    **options: object,
) -> StarsChoice:
    """Choose among ``l1_penalties`` for the rows of X.

    ``path`` solves a subsample; by default the graphical lasso of its sample covariance with ``options``. Where no
    penalty stays within the threshold, the largest is chosen.
    """
    X = np.asarray(X, dtype=np.float64)
    penalties = np.asarray(l1_penalties, dtype=np.float64)
    size = stars_subsample_size(len(X)) if subsample_size is None else subsample_size
    if penalties.ndim != 1 or len(penalties) == 0:
        raise InputError("l1_penalties must be a list of numbers, at least one.")
    if not 0.0 < threshold < 0.5:
        raise InputError(f"threshold must be between 0 and 0.5, the largest instability there is, got {threshold}.")
    if not n_subsamples >= 2:
        raise InputError(f"n_subsamples must be at least 2, got {n_subsamples}.")
    if not 2 <= size < len(X):
        raise InputError(
            f"a subsample of {size} of {len(X)} rows cannot be drawn: it needs at least 2, and fewer than all."
        )
    rng = np.random.default_rng(random_state)
    draws = [np.sort(rng.choice(len(X), size, replace=False)) for _ in range(n_subsamples)]
    path = path or partial(_plain_path, options=options)
    order = np.argsort(-penalties, kind="stable")
    instability, n_edges, n_unconverged = np.full((3, len(penalties)), np.nan)
    largest = 0.0
    for begin in range(0, len(order), STAGE):
        stage = order[begin : begin + STAGE]
        solved = in_workers(_graphs, ((X[rows], penalties[stage], path) for rows in draws), n_jobs)
        frequency = np.mean([graphs for graphs, _ in solved], axis=0)
        unstable = 2.0 * np.mean(frequency * (1.0 - frequency), axis=1)
        instability[stage] = np.maximum.accumulate(np.maximum(unstable, largest))
        n_edges[stage] = frequency.sum(axis=1)
        n_unconverged[stage] = np.sum([~converged for _, converged in solved], axis=0)
        largest = float(instability[stage[-1]])
        if largest > threshold:
            break
    within = order[instability[order] <= threshold]
    index = int(within[-1] if len(within) else order[0])
    return StarsChoice(float(penalties[index]), index, instability, n_edges, n_unconverged)


def stars_subsample_size(n_samples: int) -> int:
    """Rows in a subsample, as the paper has it."""
    return int(10.0 * np.sqrt(n_samples)) if n_samples > FEW_ROWS else int(0.8 * n_samples)


def _graphs(X: FloatArray, penalties: FloatArray, path: PathOfRows) -> tuple[BoolArray, BoolArray]:
    """Which pairs are joined (penalties, pairs), and which solutions converged."""
    results = path(X, penalties)
    upper = np.triu_indices(X.shape[1], k=1)
    joined = np.array([result.precision[upper] != 0.0 for result in results])
    return joined, np.array([result.converged for result in results])


def _plain_path(X: FloatArray, penalties: FloatArray, options: dict[str, object]) -> list[PrecisionResult]:
    return graphical_lasso_path(sample_covariance(X), penalties, **options)  # type: ignore[arg-type]
