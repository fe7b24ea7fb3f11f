r"""How rows become a sparse precision matrix, said once: for a fit, a fold of a cross-validation and a subsample alike.

    rows -> covariance (estimate.py) -> graphical lasso (solver.py), reweighted (adaptive.py)

With ``scale_free`` the penalty is l1_penalty * d_i d_j, d the standard deviations: the correlation matrix is solved
with l1_penalty and the units are put back, theta = D^-1 phi D^-1, which is the same problem. A result's gap is then
that of the correlations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from precisionnet.errors import InputError
from precisionnet.precision.penalties import adaptive_graphical_lasso
from precisionnet.precision.correlation import to_correlation
from precisionnet.precision.estimate import CovarianceEstimate, estimate_covariance
from precisionnet.precision.path import graphical_lasso_path, l1_max, penalty_grid
from precisionnet.precision.problem import normal_form
from precisionnet.precision.result import PrecisionResult
from precisionnet.precision.api import graphical_lasso
from precisionnet.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Recipe:
    """Everything but the rows and the penalty."""

    covariance: str = "empirical"
    missing: str = "error"
    assume_centered: bool = False
    scale_free: bool = False
    known_zeros: BoolArray | None = None
    penalize_diagonal: bool = False
    n_reweights: int = 0
    tol: float = 1e-6
    max_iter: int = 2000

    def estimate(self, X: FloatArray, names: Sequence[Any] | None = None, where: str = "") -> CovarianceEstimate:
        """The covariance of rows; ``where`` ("the training rows of fold 2") says which, should they be refused."""
        try:
            return estimate_covariance(
                X,
                self.covariance,
                self.missing,
                assume_centered=self.assume_centered,
                scale_free=self.scale_free,
                names=names,
            )
        except InputError as error:
            if not where:
                raise
            sentence = str(error)
            raise InputError(f"In {where}, {sentence[0].lower()}{sentence[1:]}") from None

    def check(self, emp_cov: FloatArray) -> None:
        """Refuse a covariance or a mask that no solver takes, before anything is built on them."""
        normal_form(emp_cov, 1.0, known_zeros=self.known_zeros, penalize_diagonal=self.penalize_diagonal)

    def solve(self, emp_cov: FloatArray, l1_penalty: float, init: FloatArray | None = None) -> PrecisionResult:
        """The precision for one penalty."""
        unit, matrix = self._units(emp_cov)
        start = None if init is None else init * np.outer(unit, unit)
        result = graphical_lasso(matrix, l1_penalty, init=start, **self._options)
        return self._finish(result, matrix, l1_penalty, unit)

    def path(self, emp_cov: FloatArray, l1_penalties: FloatArray) -> list[PrecisionResult]:
        """The precision for each penalty, each started at its neighbour."""
        unit, matrix = self._units(emp_cov)
        results = graphical_lasso_path(matrix, l1_penalties, **self._options)
        return [self._finish(result, matrix, float(l1), unit) for result, l1 in zip(results, l1_penalties, strict=True)]

    def path_of_rows(
        self, X: FloatArray, l1_penalties: FloatArray, names: Sequence[Any] | None = None
    ) -> list[PrecisionResult]:
        """The same from rows."""
        return self.path(self.estimate(X, names, f"a subsample of {len(X)} rows").emp_cov, l1_penalties)

    def l1_max(self, emp_cov: FloatArray) -> float:
        """The smallest penalty whose graph is empty."""
        return l1_max(self._units(emp_cov)[1], self.known_zeros)

    def grid(self, emp_cov: FloatArray, n_penalties: int) -> FloatArray:
        """Penalties from ``l1_max`` downwards."""
        matrix = self._units(emp_cov)[1]
        if self.known_zeros is not None:
            matrix = np.where(np.asarray(self.known_zeros, dtype=bool), 0.0, matrix)
        return penalty_grid(matrix, n_penalties)

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "known_zeros": self.known_zeros,
            "penalize_diagonal": self.penalize_diagonal,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }

    def _units(self, emp_cov: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Standard deviations that were divided out, and what is left."""
        return to_correlation(emp_cov) if self.scale_free else (np.ones(len(emp_cov)), emp_cov)

    def _finish(
        self, result: PrecisionResult, matrix: FloatArray, l1_penalty: float, unit: FloatArray
    ) -> PrecisionResult:
        if self.n_reweights:
            result = adaptive_graphical_lasso(
                matrix, l1_penalty, n_reweights=self.n_reweights, first=result, **self._options
            )
        if not self.scale_free:
            return result
        objective = result.objective + 2.0 * float(np.log(unit).sum())
        return replace(result, precision=result.precision / np.outer(unit, unit), objective=objective)
