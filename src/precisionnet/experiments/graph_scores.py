"""How sparse an estimated precision is, and how near the true one where that is known."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from precisionnet.linalg import count_zeros
from precisionnet.precision import count_edges
from precisionnet.types import FloatArray


def graph_scores(theta: FloatArray, theta_true: FloatArray | None = None) -> dict[str, float]:
    """Exact zeros, density and edges of theta; with the truth also its distance and how well edges are found.

    Zeros and density count all N x N entries, the diagonal among them, as the paper does. ``edge_f1`` takes an entry
    other than zero for an edge, ``edge_auc`` ranks the pairs by size; both are NaN where the truth leaves nothing to
    find (no pair is an edge, or all are).
    """
    theta = np.asarray(theta, dtype=np.float64)
    n_zeros = count_zeros(theta)
    scores = {"n_zeros": n_zeros, "density": 1.0 - n_zeros / theta.size, "edges": count_edges(theta)}
    if theta_true is None:
        return scores
    theta_true = np.asarray(theta_true, dtype=np.float64)
    difference = theta - theta_true
    pairs = np.triu_indices(len(theta), k=1)
    found, true = theta[pairs] != 0.0, theta_true[pairs] != 0.0
    decidable = bool(true.any() and not true.all())
    return {
        **scores,
        "l1_error": float(np.abs(difference).sum()),
        "frobenius_error": float(np.linalg.norm(difference)),
        "edge_f1": 2.0 * float((found & true).sum()) / float(found.sum() + true.sum()) if decidable else np.nan,
        "edge_auc": float(roc_auc_score(true, np.abs(theta[pairs]))) if decidable else np.nan,
        "density_true": 1.0 - count_zeros(theta_true) / theta.size,
    }
