"""The graphical lasso for a given penalty, as a scikit-learn estimator."""

from __future__ import annotations

import copy
import warnings
from typing import Any, Self

from sklearn.utils.metaestimators import available_if

from precisionnet.arguments import check_number, check_switch
from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.estimators.checks import column_names
from precisionnet.estimators.graphical_base import BaseGraphicalLasso, FittedGraphicalLasso
from precisionnet.precision import CovarianceEstimate, StreamingMoments, count_edges
from precisionnet.precision.estimation import estimate_from_moments

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
    """Sparse precision matrix of the columns of a table, by the graphical lasso.

    Minimises ``tr(C theta) - log det theta + l1_penalty * sum_{i != j} |theta_ij|`` and proves how far from the
    minimum the result can be.

    Parameters
    ----------
    l1_penalty : float, default=0.1
        Weight of the absolute entries (scikit-learn's ``alpha``); from ``l1_max_`` on the graph is empty.
    covariance : {"empirical", "ledoit_wolf", "oas", "nonparanormal", "precomputed"}, default="empirical"
        What ``C`` is: the sample covariance (divided by n), one shrunk towards a multiple of the identity, rank
        correlations (for columns that are Gaussian after increasing transforms), or ``X`` itself.
    missing : {"error", "pairwise", "em"}, default="error"
        What NaN means: an error, each entry of ``C`` from the rows that its pair shares (then the nearest
        semi-definite matrix with the same variances), or maximum likelihood for values missing at random.
    known_zeros : array-like of bool of shape (n_features, n_features), default=None
        Mask, True where ``theta_ij`` must be zero.
    penalize_diagonal : bool, default=False
        Whether the penalty is on the diagonal, too, as in R's glasso.
    n_reweights : int, default=0
        Rounds of the adaptive variant, in which strong edges are shrunk less; 1 or 2 are usual.
    scale_free : bool, default=False
        Whether correlations are penalised, ``l1_penalty * d_i d_j`` with ``d`` the standard deviations: the graph does
        not depend on the columns' units.
    warm_start : bool, default=False
        Whether a fit starts at the precision of the fit before.
    assume_centered : bool, default=False
        Whether the columns have mean zero.
    tol : float, default=1e-6
        Proved relative gap to the optimum at which the solver stops.
    max_iter : int, default=2000
        Largest number of sweeps of the solver.

    Attributes
    ----------
    precision_ : ndarray of shape (n_features, n_features)
        The precision matrix, its zeros exact.
    covariance_ : ndarray of shape (n_features, n_features)
        Its inverse.
    emp_cov_ : ndarray of shape (n_features, n_features)
        The covariance that was estimated from the rows.
    location_ : ndarray of shape (n_features,)
        Mean of the columns; zeros for normal scores.
    n_edges_ : int
        Pairs of columns that are joined.
    l1_max_ : float
        The smallest penalty at which no pair is joined.
    gap_ : float
        Proved bound on the relative distance to the optimum.
    status_ : str
        How the solver ended; "optimal" where ``gap_`` is at most ``tol``.
    n_iter_ : int
        Iterations of the solver.
    n_samples_ : int or None
        Rows behind the covariance; None where it is precomputed.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where ``X`` has any.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet import GraphicalLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> X[:, 1] += X[:, 0]
    >>> model = GraphicalLasso(l1_penalty=0.3).fit(X)
    >>> model.n_edges_, model.status_
    (1, 'optimal')
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
        """Learn the precision matrix of the columns of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or the covariance itself where ``covariance="precomputed"``.
        y : object, default=None
            Ignored.

        Returns
        -------
        GraphicalLasso
            The fitted estimator.
        """
        before = self._clear()
        self._check_parameters()
        probe = self._unfitted()
        estimate = self._estimate(probe._read(X, reset=True), column_names(probe))
        self._solve(probe, estimate, before if self.warm_start else None)
        return self

    @available_if(_merges_batches)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take in another batch of rows: mean and covariance are exactly those of all rows so far.

        The first call starts afresh, or goes on from ``fit``; each solve starts at the one before. A batch that is
        refused leaves the model as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete rows.
        y : object, default=None
            Ignored.

        Returns
        -------
        GraphicalLasso
            The fitted estimator.
        """
        self._check_parameters()
        before = self._fitted if hasattr(self, "_fitted") else None
        moments = None if before is None else before.estimate.moments
        probe = self._unfitted() if moments is None else copy.copy(self)
        rows = probe._read(X, reset=moments is None, least=2 if moments is None else 1)
        estimate = estimate_from_moments(
            (moments or StreamingMoments.empty(rows.shape[1])).update(rows),
            self.covariance,
            assume_centered=bool(self.assume_centered),
            scale_free=bool(self.scale_free),
            names=column_names(probe),
        )
        self._solve(probe, estimate, None if moments is None else before)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("l1_penalty", self.l1_penalty)
        check_switch("warm_start", self.warm_start)

    def _solve(self, probe: Self, estimate: CovarianceEstimate, before: FittedGraphicalLasso | None) -> None:
        """Solve, keep what was found, and say what the user should know."""
        init = None if before is None else before.result.precision
        if init is not None and len(init) != len(estimate.emp_cov):
            init = None
        result = self._plan.solve(estimate.emp_cov, float(self.l1_penalty), init)
        fitted = FittedGraphicalLasso(
            estimate,
            result,
            n_edges=count_edges(result.precision),
            l1_max=self._plan.l1_max(estimate.emp_cov),
            l1_penalty=float(self.l1_penalty),
        )
        self._keep(probe, fitted)
        for note in self._notes_on_solve(estimate, result) + self._notes_on_graph(fitted):
            warnings.warn(note, PrecisionNetWarning, stacklevel=3)
