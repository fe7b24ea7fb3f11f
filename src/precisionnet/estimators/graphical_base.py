"""What ``GraphicalLasso`` and ``GraphicalLassoCV`` share: rows in, a covariance, the fitted attributes and what is said
about them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils.validation import check_is_fitted, validate_data

from precisionnet.arguments import check_choice, check_count, check_number, check_switch
from precisionnet.errors import InputError
from precisionnet.estimators.checks import column_names, refuse_text_columns
from precisionnet.estimators.graphical_checks import refuse_not_square, refuse_rows
from precisionnet.estimators.interop import GraphInterop
from precisionnet.linalg import extreme_eigenvalues
from precisionnet.precision import (
    COVARIANCES,
    MISSING,
    CovarianceEstimate,
    PrecisionResult,
    Recipe,
    count_edges,
    gaussian_score,
    refuse_constant,
    squared_distances,
)
from precisionnet.precision.problem import checked_matrix
from precisionnet.types import FloatArray

PRECOMPUTED = "precomputed"


class BaseGraphicalLasso(GraphInterop, EmpiricalCovariance):  # type: ignore[misc]
    """A sparse precision matrix behind scikit-learn's face; subclasses say which penalty."""

    covariance: str
    missing: str
    known_zeros: Any
    penalize_diagonal: bool
    n_reweights: int
    scale_free: bool
    assume_centered: bool
    tol: float
    max_iter: int

    _to_more_edges: ClassVar[str]
    _to_fewer_edges: ClassVar[str]

    def _check_parameters(self) -> None:
        check_choice("covariance", self.covariance, (*COVARIANCES, PRECOMPUTED))
        check_choice("missing", self.missing, MISSING)
        for name in ("penalize_diagonal", "scale_free", "assume_centered"):
            check_switch(name, getattr(self, name))
        check_count("n_reweights", self.n_reweights, 0)
        check_number("tol", self.tol, low_allowed=False)
        check_count("max_iter", self.max_iter, 1)
        if self.covariance == PRECOMPUTED and self.missing != "error":
            raise InputError(
                f"missing={self.missing!r} is for rows, and covariance='precomputed' has none: leave missing='error'."
            )

    @property
    def _recipe(self) -> Recipe:
        return Recipe(
            covariance=self.covariance,
            missing=self.missing,
            assume_centered=bool(self.assume_centered),
            scale_free=bool(self.scale_free),
            known_zeros=None if self.known_zeros is None else np.asarray(self.known_zeros),
            penalize_diagonal=bool(self.penalize_diagonal),
            n_reweights=int(self.n_reweights),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )

    def _checked(self, X: Any, *, reset: bool, least: int = 2) -> FloatArray:
        """Rows as numbers, or the precomputed covariance where that is what a fit takes."""
        refuse_text_columns(X)
        X = validate_data(self, X, dtype=np.float64, reset=reset, ensure_all_finite=False)
        if reset and self.covariance == PRECOMPUTED:
            refuse_not_square(X)
        else:
            refuse_rows(X, column_names(self), self.missing, least)
        checked: FloatArray = X
        return checked

    def _estimate(self, X: FloatArray) -> CovarianceEstimate:
        names = column_names(self)
        if self.covariance != PRECOMPUTED:
            return self._recipe.estimate(X, names)
        location, emp_cov = np.zeros(len(X)), checked_matrix("emp_cov", X)
        if (np.diag(emp_cov) >= 0).all() and (self.scale_free or not self.penalize_diagonal):
            refuse_constant(location, np.diag(emp_cov), names)
        self._recipe.check(emp_cov)
        return CovarianceEstimate(location, emp_cov, 0)

    def _keep(self, estimate: CovarianceEstimate, result: PrecisionResult) -> list[str]:
        """Set the fitted attributes; what the user should know about them, a sentence each."""
        self.location_ = estimate.location
        self.emp_cov_ = estimate.emp_cov
        self.precision_ = result.precision
        self.covariance_ = result.covariance
        self.n_samples_ = estimate.n_samples or None
        self.gap_ = result.gap
        self.status_ = result.status
        self.n_iter_ = result.n_iter
        self.n_edges_ = count_edges(result.precision)
        self.l1_max_ = self._recipe.l1_max(estimate.emp_cov)
        self._scores = estimate.scores
        notes = [estimate.note] if estimate.note else []
        if not result.converged:
            notes.append(self._about_the_solve(estimate, result))
        return notes

    def _about_the_solve(self, estimate: CovarianceEstimate, result: PrecisionResult) -> str:
        if self.covariance == PRECOMPUTED:
            smallest, largest = extreme_eigenvalues(estimate.emp_cov)
            if smallest < -1e-8 * largest:
                return (
                    f"The precomputed matrix has the negative eigenvalue {smallest:.2g}: no rows have such a "
                    "covariance, and the penalty does not make up for it; check how the matrix was made."
                )
        if result.status == "unbounded":
            return (
                "Without a penalty a singular covariance has no precision matrix, and a regularised inverse was kept: "
                "raise l1_penalty, or set covariance='ledoit_wolf' or 'oas'."
            )
        return f"Graphical lasso: {result.message}."

    def _about_the_graph(self, l1_penalty: float) -> list[str]:
        """A graph without edges, or with all of them, is rarely what was wanted."""
        if self.status_ != "optimal":
            return []
        if self.l1_max_ == 0.0:
            return ["The graph is empty: no two columns covary at all, so that no penalty gives an edge."]
        if self.n_edges_ == 0:
            return [
                f"The graph is empty: l1_penalty={l1_penalty:.3g} is not below l1_max_={self.l1_max_:.3g}, from which "
                f"on no edge is left; {self._to_more_edges}."
            ]
        n_pairs = self.n_features_in_ * (self.n_features_in_ - 1) // 2
        if self.known_zeros is not None:
            n_pairs -= int(np.count_nonzero(np.triu(np.asarray(self.known_zeros), k=1)))
        if self.n_edges_ == n_pairs and self.n_features_in_ > 2:
            return [
                f"The graph is full: at l1_penalty={l1_penalty:.3g} all {n_pairs} pairs are joined (none would be at "
                f"l1_max_={self.l1_max_:.3g}); {self._to_fewer_edges}."
            ]
        return []

    def _forget(self) -> None:
        """A failed fit leaves no half of a model behind."""
        given = self.get_params(deep=False)
        for name in [name for name in vars(self) if name.endswith("_") or name in ("_scores", "_moments")]:
            if name not in given:
                delattr(self, name)

    def score(self, X_test: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows of ``X_test`` under the fitted Gaussian.

        Of a row with missing values, what is present counts. For covariance="nonparanormal" rows become normal scores
        first; for "precomputed" they are taken as centred.
        """
        return gaussian_score(self._rows(X_test), self.location_, self.precision_)

    def mahalanobis(self, X: Any) -> FloatArray:
        """Squared Mahalanobis distance of each row of X, over what is present in it; units as in ``score``."""
        return squared_distances(self._rows(X), self.location_, self.precision_)[0]

    def get_precision(self) -> FloatArray:
        """The fitted precision matrix."""
        check_is_fitted(self)
        return self.precision_

    def _rows(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        rows = self._checked(X, reset=False, least=1)
        return rows if self._scores is None else self._scores.transform(rows)

    def _matrix(self, which: str) -> FloatArray:
        if which != "sparse":
            raise InputError(f'which must be "sparse", the only matrix of {type(self).__name__}, got {which!r}.')
        return super()._matrix(which)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags
