"""What new rows are compared with: how far training rows lie from each other, and what their target was.

The distance of a row x, in standard units, is

    d(x) = sqrt( (x - m)' S^{-1} (x - m) / p ),    S = (1 - a) C + a diag(C),    a = max(p / (n + p), 0.05),

C and m the training rows' covariance and mean, p nodes and n rows: Mahalanobis' distance with correlations that are
shrunk, the more so the fewer the rows, so that S can be inverted. It sees a row that is ordinary in every column and
odd in how they go together (on a sparse support a = 1, and it does not). Distances of training rows are those to the
rows of other folds, as new rows have them.

Of a table with labels and gaps only the numbers and dates are compared: a row with a rare level lies ten standard
deviations from the mean of that level's node, and is no odd row for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from precisionnet.estimators.preparation import TrainingData
from precisionnet.estimators.rows import left_out_rows
from precisionnet.estimators.targets import NumberTarget
from precisionnet.precision import sample_covariance
from precisionnet.preprocessing.table_encoder import TableEncoder
from precisionnet.preprocessing.table_nodes import measured_nodes
from precisionnet.types import FloatArray, IndexArray

N_FOLDS = 5
N_QUANTILES = 101
LEAST_SHRINKAGE = 0.05


@dataclass(frozen=True)
class Reference:
    """What is kept of the training rows to compare new rows with.

    Parameters
    ----------
    distances : ndarray of shape (101,)
        Distances of training rows to the others, every hundredth part of them, in order; zeros where there are no
        numbers to measure them by.
    target_range : (float, float) or None
        The smallest and the largest training target; None of classes.
    """

    distances: FloatArray
    target_range: tuple[float, float] | None


def reference_of(data: TrainingData) -> Reference:
    """Measure the distances of training rows, each to rows of other folds."""
    nodes, n = compared_nodes(data.encoder, data.training.X.shape[1]), len(data.training)
    y = data.targets
    limits = (float(y.min()), float(y.max())) if isinstance(data.target, NumberTarget) else None
    folds = left_out_rows(data.training, N_FOLDS, None, np.random.RandomState(0), N_FOLDS)
    known = np.concatenate(folds)
    if not len(nodes) or not len(known):
        return Reference(np.zeros(N_QUANTILES), limits)
    rows = data.scaler.transform(data.training.X)[:, nodes]
    found: FloatArray = np.empty(n)
    for fold in folds:
        others = np.setdiff1d(np.arange(n), fold)
        weight = data.training.weight[others]
        mean = np.average(rows[others], axis=0, weights=weight)
        if data.sparse:
            variance = np.average((rows[others] - mean) ** 2, axis=0, weights=weight)
            found[fold] = distances_by_variance(rows[fold] - mean, variance)
            continue
        found[fold] = distances(rows[fold] - mean, sample_covariance(rows[others], weight), len(others))
    return Reference(np.quantile(found[known], np.linspace(0.0, 1.0, N_QUANTILES)), limits)


def compared_nodes(encoder: TableEncoder | None, n_nodes: int) -> IndexArray:
    """Return the nodes whose means and distances are compared: all, or those of numbers and dates beside labels."""
    return np.arange(n_nodes) if encoder is None else measured_nodes(encoder.columns_)


def distances_by_variance(centred: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the distance of each row without correlations: a = 1, which more columns than rows come close to."""
    variance = np.maximum(variance, max(1e-12 * variance.max(), np.finfo(float).tiny))
    result: FloatArray = np.sqrt((centred**2 / variance).mean(axis=1))
    return result


def distances(centred: FloatArray, covariance: FloatArray, n_rows: int) -> FloatArray:
    """Return the distance of each row, given its difference to the mean of ``n_rows`` others and their covariance."""
    p = len(covariance)
    share = max(p / (n_rows + p), LEAST_SHRINKAGE)
    variances = np.maximum(np.diag(covariance), np.finfo(float).tiny)
    variances = np.maximum(variances, 1e-12 * variances.max())  # a column that is constant among these rows
    shrunk = (1.0 - share) * covariance
    shrunk[np.diag_indices(p)] = variances
    lower, _ = cho_factor(shrunk, lower=True)
    whitened = solve_triangular(lower, centred.T, lower=True)
    result: FloatArray = np.sqrt((whitened**2).mean(axis=0))
    return result
