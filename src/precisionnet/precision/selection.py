r"""Choosing a penalty: by cross-validation, by the extended BIC, or by the stability of its graph.

Cross-validation: the mean Gaussian log-likelihood of rows that were left out. Regime: a model is wanted that describes
new rows; its graph has many small edges too many. Nothing of a fold's path depends on its left-out rows, not even its
penalties: a grid is the same shares of the fold's own l1_max.

    score(l1) = mean over folds of  mean over left-out rows of  log p(row; mean and precision of the other rows)

Extended BIC (Foygel and Drton 2010), with T rows, N columns and E edges. Regime: a graph is wanted rather than a
prediction; gamma = 0 is the ordinary BIC, gamma = 0.5 guards against the many graphs that N columns have. The
likelihood is that of the penalised solution itself, as in R's qgraph and huge, not of a refit on its edges.

    eBIC(theta) = -T (log det theta - tr(C theta)) + E log T + 4 gamma E log N

StARS (Liu, Roeder and Wasserman 2010). Regime: a graph is wanted that other rows of the same kind would give, too; it
prefers an edge too many to one too few.

    D(l1) = mean over pairs of 2 f_ij (1 - f_ij),    f_ij the share of subsamples in which i and j are joined

Rows are drawn without replacement, 10 sqrt(T) of T where T > 144 and 0.8 T otherwise. D is made monotone (the largest
so far, coming from the empty graph), and the smallest penalty that stays within the threshold is chosen. Penalties are
taken a few at a time from the largest down, and none after the threshold is passed: those would cost the most and
cannot be chosen. The subsamples are drawn before any work is handed out: the number of workers changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from precisionnet.arguments import masked_as_missing
from precisionnet.errors import InputError
from precisionnet.linalg import log_det_from_cholesky, try_cholesky
from precisionnet.precision.api import graphical_lasso_path
from precisionnet.precision.covariance import sample_covariance
from precisionnet.precision.estimation import EstimationPlan
from precisionnet.precision.missing import gaussian_score
from precisionnet.precision.result import PrecisionResult, count_edges
from precisionnet.types import BoolArray, FloatArray, IndexArray
from precisionnet.workers import in_workers

FEW_ROWS = 144
STAGE = 5
"""Number of penalties that are solved before the threshold is looked at."""

PathOfRows = Callable[[FloatArray, FloatArray], Sequence[PrecisionResult]]
"""A function from rows and penalties to one result per penalty."""


class FoldPath(NamedTuple):
    """One fold of a cross-validation; arrays with one entry per penalty."""

    l1_penalties: FloatArray
    scores: FloatArray
    n_edges: IndexArray
    converged: BoolArray


def cross_validate(
    X: FloatArray,
    splits: Sequence[tuple[IndexArray, IndexArray]],
    plan: EstimationPlan,
    penalties: int | FloatArray,
    *,
    names: Sequence[Any] | None = None,
    n_jobs: int | None = None,
) -> list[FoldPath]:
    """A path for each (training rows, left-out rows); ``penalties`` is a number of them or the penalties themselves."""
    calls = (
        (X[training], X[left_out], plan, penalties, names, number) for number, (training, left_out) in enumerate(splits)
    )
    return in_workers(fold_path, calls, n_jobs)


def fold_path(
    training: FloatArray,
    left_out: FloatArray,
    plan: EstimationPlan,
    penalties: int | FloatArray,
    names: Sequence[Any] | None,
    number: int,
) -> FoldPath:
    """Estimate and solve on the training rows of one fold, and score its left-out rows."""
    estimate = plan.estimate(training, names, where=f"the training rows of fold {number}")
    grid = plan.grid(estimate.emp_cov, penalties) if isinstance(penalties, int) else penalties
    results = plan.path(estimate.emp_cov, grid)
    rows = estimate.in_units(left_out)
    return FoldPath(
        grid,
        np.array([gaussian_score(rows, estimate.location, result.precision) for result in results]),
        np.array([count_edges(result.precision) for result in results]),
        np.array([result.converged for result in results]),
    )


@dataclass(frozen=True)
class EBICChoice:
    """The result of :func:`select_by_ebic`.

    Parameters
    ----------
    index : int
        Position of the smallest eBIC.
    scores : ndarray of shape (n_penalties,)
        The eBIC of each result.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import EBICChoice
    >>> EBICChoice(index=1, scores=np.array([3.0, 2.0])).index
    1
    """

    index: int
    scores: FloatArray


def ebic(precision: FloatArray, emp_cov: FloatArray, n_samples: int, gamma: float = 0.5) -> float:
    """Compute the extended Bayesian information criterion of a precision matrix.

    Parameters
    ----------
    precision : ndarray of shape (n_features, n_features)
        Positive definite matrix.
    emp_cov : ndarray of shape (n_features, n_features)
        Sample covariance.
    n_samples : int
        Rows behind the covariance.
    gamma : float, default=0.5
        Weight of the number of possible graphs, between 0 (the ordinary BIC) and 1.

    Returns
    -------
    float
        The criterion; smaller is better.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import ebic
    >>> ebic(np.eye(2), np.eye(2), n_samples=10)
    20.0
    """
    if not n_samples >= 1:
        raise InputError(f"n_samples must be at least 1, got {n_samples}.")
    if not 0.0 <= gamma <= 1.0:
        raise InputError(f"gamma must be between 0 and 1, got {gamma}.")
    factor = try_cholesky(precision)
    if factor is None:
        raise InputError("precision is not positive definite: it has no likelihood.")
    fit = n_samples * (log_det_from_cholesky(factor) - float(np.vdot(emp_cov, precision)))
    return count_edges(precision) * float(np.log(n_samples) + 4.0 * gamma * np.log(len(precision))) - fit


def select_by_ebic(
    path: Sequence[PrecisionResult], emp_cov: FloatArray, n_samples: int, gamma: float = 0.5
) -> EBICChoice:
    """Choose the result of a path with the smallest extended BIC.

    Parameters
    ----------
    path : sequence of PrecisionResult
        Results of :func:`graphical_lasso_path`.
    emp_cov : ndarray of shape (n_features, n_features)
        Sample covariance.
    n_samples : int
        Rows behind the covariance.
    gamma : float, default=0.5
        Weight of the number of possible graphs.

    Returns
    -------
    EBICChoice
        Position of the smallest (of equals, the first), and all scores.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import graphical_lasso_path, select_by_ebic
    >>> emp_cov = np.array([[1.0, 0.8], [0.8, 1.0]])
    >>> select_by_ebic(graphical_lasso_path(emp_cov, [0.9, 0.1]), emp_cov, n_samples=100).index
    1
    """
    scores = np.array([ebic(result.precision, emp_cov, n_samples, gamma) for result in path])
    return EBICChoice(int(np.argmin(scores)), scores)


@dataclass(frozen=True)
class StarsChoice:
    """The result of :func:`stars`.

    Parameters
    ----------
    l1_penalty : float
        The chosen penalty.
    index : int
        Its position.
    instability : ndarray of shape (n_penalties,)
        ``D`` of each penalty, made monotone; NaN for penalties that were left out because they could not be chosen any
        more, as in the next two.
    n_edges : ndarray of shape (n_penalties,)
        Edges, as a mean over the subsamples.
    n_unconverged : ndarray of shape (n_penalties,)
        Subsamples whose solution did not reach the tolerance.
    selection_frequency : ndarray of shape (n_features, n_features)
        Share of the subsamples in which two columns are joined at the chosen penalty; zero on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import stars
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> stars(X, [0.9, 0.8], n_subsamples=3, random_state=0).l1_penalty
    0.8
    """

    l1_penalty: float
    index: int
    instability: FloatArray
    n_edges: FloatArray
    n_unconverged: FloatArray
    selection_frequency: FloatArray


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
    """Choose the penalty whose graph is stable over subsamples of the rows (StARS).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    l1_penalties : sequence of float
        Penalties to choose from, in any order.
    threshold : float, default=0.05
        Instability allowed, between 0 and 0.5.
    n_subsamples : int, default=20
        Subsamples to measure it on.
    subsample_size : int, default=None
        Rows in each; None takes ``10 sqrt(n_samples)``, or 80 % where there are at most 144 rows.
    random_state : int or numpy.random.Generator, default=None
        Draws the subsamples.
    n_jobs : int, default=None
        Workers, as joblib has them; they do not change the result.
    path : callable, default=None
        ``path(rows, penalties)`` solves one subsample; None takes the graphical lasso of its sample covariance.
    **options : object
        Parameters of :func:`graphical_lasso_path` where ``path`` is None.

    Returns
    -------
    StarsChoice
        The smallest penalty that stays within the threshold, or the largest where none does, and the curves.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import stars
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> stars(X, [0.9, 0.8], n_subsamples=3, random_state=0).index
    1
    """
    X = np.asarray(masked_as_missing(X), dtype=np.float64)
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
    frequencies: dict[int, FloatArray] = {}
    largest = 0.0
    for begin in range(0, len(order), STAGE):
        stage = order[begin : begin + STAGE]
        solved = in_workers(_graphs, ((X[rows], penalties[stage], path) for rows in draws), n_jobs)
        frequency = np.mean([graphs for graphs, _ in solved], axis=0)
        frequencies.update(zip(stage.tolist(), frequency, strict=True))
        unstable = 2.0 * np.mean(frequency * (1.0 - frequency), axis=1)
        instability[stage] = np.maximum.accumulate(np.maximum(unstable, largest))
        n_edges[stage] = frequency.sum(axis=1)
        n_unconverged[stage] = np.sum([~converged for _, converged in solved], axis=0)
        largest = float(instability[stage[-1]])
        if largest > threshold:
            break
    within = order[instability[order] <= threshold]
    index = int(within[-1] if len(within) else order[0])
    joined = np.zeros((X.shape[1], X.shape[1]))
    joined[np.triu_indices(X.shape[1], k=1)] = frequencies[index]
    return StarsChoice(float(penalties[index]), index, instability, n_edges, n_unconverged, joined + joined.T)


def stars_subsample_size(n_samples: int) -> int:
    """Return the number of rows in a subsample, as in the paper."""
    return int(10.0 * np.sqrt(n_samples)) if n_samples > FEW_ROWS else int(0.8 * n_samples)


def _graphs(X: FloatArray, penalties: FloatArray, path: PathOfRows) -> tuple[BoolArray, BoolArray]:
    """Return which pairs are joined, (penalties, pairs), and which solutions converged."""
    results = path(X, penalties)
    upper = np.triu_indices(X.shape[1], k=1)
    joined = np.array([result.precision[upper] != 0.0 for result in results])
    return joined, np.array([result.converged for result in results])


def _plain_path(X: FloatArray, penalties: FloatArray, options: dict[str, object]) -> list[PrecisionResult]:
    return graphical_lasso_path(sample_covariance(X), penalties, **options)  # type: ignore[arg-type]
