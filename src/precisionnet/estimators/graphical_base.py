"""What ``GraphicalLasso`` and ``GraphicalLassoCV`` share: reading rows, the fitted attributes, what is said of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils.validation import check_is_fitted, validate_data

from precisionnet.arguments import check_choice, check_count, check_number, check_switch, masked_as_missing
from precisionnet.errors import InputError, some
from precisionnet.estimators.checks import HUGE, column_names, refuse_complex, refuse_text_columns
from precisionnet.estimators.interop import GraphInterop
from precisionnet.linalg import LARGEST
from precisionnet.precision import CovarianceEstimate, PrecisionResult
from precisionnet.precision.estimation import COVARIANCES, MISSING, EstimationPlan, refuse_constant
from precisionnet.precision.missing import gaussian_score, squared_distances
from precisionnet.precision.problem import checked_matrix
from precisionnet.types import FloatArray

PRECOMPUTED = "precomputed"


@dataclass(frozen=True)
class FittedGraphicalLasso:
    """All that a fit finds out; the estimators' attributes are read from it."""

    estimate: CovarianceEstimate
    result: PrecisionResult
    n_edges: int
    l1_max: float
    l1_penalty: float
    cv_results: dict[str, Any] | None = None
    """Curves over the penalties, where one was chosen."""
    selection_frequency: FloatArray | None = None
    """How often each pair was joined, if subsamples were drawn."""


class BaseGraphicalLasso(GraphInterop, EmpiricalCovariance):  # type: ignore[misc]
    """What both estimators share: reading rows, the fitted attributes and what is said about them."""

    covariance: str
    missing: str
    known_zeros: Any
    penalize_diagonal: bool
    n_reweights: int
    scale_free: bool
    assume_centered: bool
    tol: float
    max_iter: int

    _fitted: FittedGraphicalLasso
    _to_more_edges: ClassVar[str]
    _to_fewer_edges: ClassVar[str]

    @property
    def precision_(self) -> FloatArray:
        """The precision matrix, its zeros exact."""
        return self._fitted.result.precision

    @property
    def covariance_(self) -> FloatArray:
        """The inverse of ``precision_``."""
        return self._fitted.result.covariance

    @property
    def location_(self) -> FloatArray:
        """Mean of the columns; zeros for normal scores and a precomputed covariance."""
        return self._fitted.estimate.location

    @property
    def emp_cov_(self) -> FloatArray:
        """The covariance that was estimated from the rows, or passed."""
        return self._fitted.estimate.emp_cov

    @property
    def n_samples_(self) -> int | None:
        """Rows behind the covariance; None where it was passed."""
        return self._fitted.estimate.n_samples or None

    @property
    def n_edges_(self) -> int:
        """Pairs of columns that are joined."""
        return self._fitted.n_edges

    @property
    def l1_max_(self) -> float:
        """The smallest penalty at which no pair is joined."""
        return self._fitted.l1_max

    @property
    def gap_(self) -> float:
        """Proved bound on the relative distance to the optimum."""
        return self._fitted.result.gap

    @property
    def status_(self) -> str:
        """How the solver ended, as in ``PrecisionResult.status``."""
        return self._fitted.result.status

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver."""
        return self._fitted.result.n_iter

    def score(self, X_test: Any, y: Any = None) -> float:
        """Compute the mean log-likelihood of rows under the fitted Gaussian.

        Parameters
        ----------
        X_test : array-like of shape (n_samples, n_features)
            Rows. Of a row with missing values, what is present counts. For covariance="nonparanormal" rows become
            normal scores first; for "precomputed" they are taken as centred.
        y : object, default=None
            Ignored.

        Returns
        -------
        float
            The mean over the rows.
        """
        return gaussian_score(self._rows(X_test), self.location_, self.precision_)

    def mahalanobis(self, X: Any) -> FloatArray:
        """Compute the squared Mahalanobis distance of rows from the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for ``score``.

        Returns
        -------
        ndarray of shape (n_samples,)
            The distance of what is present in each row.
        """
        return squared_distances(self._rows(X), self.location_, self.precision_)[0]

    def get_precision(self) -> FloatArray:
        """Return the fitted precision matrix.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            ``precision_``.
        """
        check_is_fitted(self)
        return self.precision_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    @property
    def _plan(self) -> EstimationPlan:
        return EstimationPlan(
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

    def _unfitted(self) -> Self:
        """Return an unfitted copy, on which scikit-learn sets its attributes while it reads X."""
        probe = copy.copy(self)
        probe._clear()
        return probe

    def _clear(self) -> FittedGraphicalLasso | None:
        """Unset what a fit has set, and return it."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        return self.__dict__.pop("_fitted", None)

    def _keep(self, probe: Self, fitted: FittedGraphicalLasso) -> None:
        """Set all fitted attributes, which nothing else does: the columns that the probe read, and the result."""
        for name in ("n_features_in_", "feature_names_in_"):
            if name in vars(probe):
                setattr(self, name, getattr(probe, name))
        self._fitted = fitted

    def _read(self, X: Any, *, reset: bool, least: int = 2) -> FloatArray:
        """Return rows as numbers, or the precomputed covariance if that is what the estimator is fitted to."""
        X = masked_as_missing(X)
        refuse_text_columns(X)
        refuse_complex(X, "X")
        X = validate_data(self, X, dtype=np.float64, reset=reset, ensure_all_finite=False)
        if reset and self.covariance == PRECOMPUTED:
            _refuse_not_square(X)
        else:
            _refuse_rows(X, column_names(self), self.missing, least)
        read: FloatArray = X
        return read

    def _rows(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self._fitted.estimate.in_units(self._read(X, reset=False, least=1))

    def _estimate(self, X: FloatArray, names: Sequence[str]) -> CovarianceEstimate:
        if self.covariance != PRECOMPUTED:
            return self._plan.estimate(X, names)
        location, emp_cov = np.zeros(len(X)), checked_matrix("emp_cov", X)
        if (np.diag(emp_cov) >= 0).all() and (self.scale_free or not self.penalize_diagonal):
            refuse_constant(location, np.diag(emp_cov), names)
        self._plan.check(emp_cov)
        return CovarianceEstimate(location, emp_cov, 0)

    def _notes_on_solve(self, estimate: CovarianceEstimate, result: PrecisionResult) -> list[str]:
        """What the user should know about the covariance and the solve, one sentence each."""
        notes = [estimate.note] if estimate.note else []
        if result.status == "unbounded":
            notes.append(
                "Without a penalty a singular covariance has no precision matrix, and a regularised inverse was kept: "
                "raise l1_penalty, or set covariance='ledoit_wolf' or 'oas'."
            )
        elif not result.converged:
            notes.append(f"Graphical lasso: {result.message}.")
        return notes

    def _notes_on_graph(self, fitted: FittedGraphicalLasso) -> list[str]:
        """A graph without edges, or with all of them, is rarely what was wanted."""
        if not fitted.result.converged:
            return []
        if fitted.l1_max == 0.0:
            return ["The graph is empty: no two columns covary at all, so that no penalty gives an edge."]
        if fitted.n_edges == 0:
            return [
                f"The graph is empty: l1_penalty={fitted.l1_penalty:.3g} is not below l1_max_={fitted.l1_max:.3g}, "
                f"from which on no edge is left; {self._to_more_edges}."
            ]
        n = len(fitted.result.precision)
        n_pairs = n * (n - 1) // 2
        if self.known_zeros is not None:
            n_pairs -= int(np.count_nonzero(np.triu(np.asarray(self.known_zeros), k=1)))
        if fitted.n_edges == n_pairs and n > 2:
            return [
                f"The graph is full: at l1_penalty={fitted.l1_penalty:.3g} all {n_pairs} pairs are joined (none would "
                f"be at l1_max_={fitted.l1_max:.3g}); {self._to_fewer_edges}."
            ]
        return []

    def _matrix(self, which: str) -> FloatArray:
        if which != "sparse":
            raise InputError(f'which must be "sparse", the only matrix of {type(self).__name__}, got {which!r}.')
        return super()._matrix(which)


def _refuse_rows(X: FloatArray, names: Sequence[str], missing: str, least: int) -> None:
    """Refuse infinity, NaN where none is expected, and too few rows or columns."""
    infinite, absent = np.isinf(X), np.isnan(X)
    if infinite.any():
        listed = some([names[int(i)] for i in np.flatnonzero(infinite.any(axis=0))])
        raise InputError(f"Input X contains infinity in column {listed}: drop or correct those rows.")
    if absent.any() and missing == "error":
        listed = some([names[int(i)] for i in np.flatnonzero(absent.any(axis=0))])
        raise InputError(
            f"Input X contains NaN in {int(absent.any(axis=1).sum())} of {len(X)} rows (column {listed}): set "
            "missing='em' (maximum likelihood) or missing='pairwise' (each covariance from the rows its pair shares), "
            "or drop them."
        )
    huge = np.flatnonzero((np.abs(X) > LARGEST).any(axis=0))
    if len(huge):
        raise InputError(HUGE.format(columns=some([names[int(i)] for i in huge])))
    if X.shape[1] < 2:
        raise InputError(f"Column {names[0]!r} is the only feature (n_features=1): a graph needs at least two.")
    if len(X) < least:
        raise InputError(f"Got n_samples={len(X)} row: a covariance needs at least {least}.")


def _refuse_not_square(X: FloatArray) -> None:
    """Refuse a precomputed covariance that has not as many rows as columns, at least two."""
    if X.shape[0] != X.shape[1]:
        raise InputError(
            f"covariance='precomputed' takes a covariance matrix, which is square, got shape {X.shape}: pass the "
            "covariance of the rows, or set another covariance."
        )
    if len(X) < 2:
        raise InputError("The covariance has one variable (n_features=1): a graph needs at least two.")
