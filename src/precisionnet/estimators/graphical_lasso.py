"""The graphical lasso for a given penalty."""

from __future__ import annotations

import warnings
from typing import Any, Self

from sklearn.utils.metaestimators import available_if

from precisionnet.arguments import check_number, check_switch
from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.graphical_base import BaseGraphicalLasso
from precisionnet.precision import CovarianceEstimate, RunningMoments, estimate_from_moments
from precisionnet.types import FloatArray

MERGEABLE = ("empirical", "oas")
"""Covariances that batches can be merged into: the others look at all rows at once."""


def _merges_batches(estimator: GraphicalLasso) -> bool:
    if estimator.covariance in MERGEABLE and estimator.missing == "error":
        return True
    raise InputError(
        "partial_fit merges batches of complete rows for covariance='empirical' or 'oas'; covariance="
        f"{estimator.covariance!r} with missing={estimator.missing!r} needs all rows at once: call fit."
    )


class GraphicalLasso(BaseGraphicalLasso):
    """A sparse precision matrix: minimise tr(C theta) - log det theta + l1_penalty * sum_{i != j} |theta_ij|.

    Parameters
    ----------
    l1_penalty : weight of the absolute entries (scikit-learn's ``alpha``); from ``l1_max_`` on the graph is empty.
    covariance : what C is. "empirical" (divided by n), "ledoit_wolf" or "oas" (shrunk towards a multiple of the
        identity), "nonparanormal" (rank correlations, for columns that are Gaussian after increasing transforms), or
        "precomputed" (X is C).
    missing : what NaN means. "error", "pairwise" (each entry of C from the rows that its pair shares, then the nearest
        semi-definite matrix with the same variances) or "em" (maximum likelihood, values missing at random).
    known_zeros : (n_features, n_features) mask, True where theta_ij must be zero.
    penalize_diagonal : put the penalty on the diagonal, too (R's glasso does).
    n_reweights : rounds of the adaptive variant, in which strong edges are shrunk less; 1 or 2 are usual.
    scale_free : penalise correlations, l1_penalty * d_i d_j with d the standard deviations: the graph does not depend
        on the columns' units.
    warm_start : start a fit at the precision of the fit before.
    assume_centered : the rows have mean zero.
    tol : proved relative gap to the optimum at which the solver stops.
    max_iter : sweeps of the solver at most.

    Attributes
    ----------
    precision_, covariance_ : (n_features, n_features) theta, its zeros exact, and its inverse.
    emp_cov_, location_ : what was estimated of the rows: C and their mean (zeros for normal scores).
    n_edges_, l1_max_ : pairs that are joined, and the smallest penalty at which none is.
    gap_, status_, n_iter_ : how far from the optimum at most, how the solver ended, and its iterations.
    n_samples_ : rows behind the covariance (None: precomputed).
    """

    _to_more_edges = "lower l1_penalty, or let GraphicalLassoCV choose it"
    _to_fewer_edges = "raise l1_penalty, or let GraphicalLassoCV choose it"

    def __init__(
        self,
        *,
        l1_penalty: float = 0.1,
        covariance: str = "empirical",
        missing: str = "error",
        known_zeros: Any = None,
        penalize_diagonal: bool = False,
        n_reweights: int = 0,
        scale_free: bool = False,
        warm_start: bool = False,
        assume_centered: bool = False,
        tol: float = 1e-6,
        max_iter: int = 2000,
    ) -> None:
        self.l1_penalty = l1_penalty
        self.covariance = covariance
        self.missing = missing
        self.known_zeros = known_zeros
        self.penalize_diagonal = penalize_diagonal
        self.n_reweights = n_reweights
        self.scale_free = scale_free
        self.warm_start = warm_start
        self.assume_centered = assume_centered
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the precision matrix of the rows of X (n_samples, n_features), or of the covariance X."""
        before = getattr(self, "precision_", None)
        try:
            self._check_parameters()
            estimate = self._estimate(self._checked(X, reset=True))
            notes = self._solve(estimate, before if self.warm_start else None)
        except BaseException:
            self._forget()
            raise
        _warn(notes)
        return self

    @available_if(_merges_batches)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in another batch of rows: mean and covariance are exactly those of all rows so far.

        The first call starts afresh, or goes on from ``fit``; each solve starts at the one before. A batch that is
        refused leaves the model as it was.
        """
        self._check_parameters()
        moments: RunningMoments | None = getattr(self, "_moments", None)
        first = moments is None
        try:
            rows = self._checked(X, reset=first, least=2 if first else 1)
            merged = (moments or RunningMoments.empty(rows.shape[1])).update(rows)
            estimate = estimate_from_moments(
                merged,
                self.covariance,
                assume_centered=bool(self.assume_centered),
                scale_free=bool(self.scale_free),
                names=column_names(self),
            )
            notes = self._solve(estimate, None if first else self.precision_)
        except BaseException:
            if first:
                self._forget()
            raise
        _warn(notes)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("l1_penalty", self.l1_penalty)
        check_switch("warm_start", self.warm_start)

    def _solve(self, estimate: CovarianceEstimate, init: FloatArray | None) -> list[str]:
        if init is not None and len(init) != len(estimate.emp_cov):
            init = None
        result = self._recipe.solve(estimate.emp_cov, float(self.l1_penalty), init)
        notes = self._keep(estimate, result)
        self._moments = estimate.moments
        return notes + self._about_the_graph(float(self.l1_penalty))


def _warn(notes: list[str]) -> None:
    for note in notes:
        warnings.warn(note, PrecisionNetWarning, stacklevel=3)
