"""Columns without what covariates explain of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from precisionnet.errors import InputError
from precisionnet.preprocessing.checks import ROUTING, checked_rows, forget, warn_about_target
from precisionnet.preprocessing.covariates import Coding, as_frame
from precisionnet.preprocessing.site_effects import Expected, fit_expected


class CovariateRegression(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Regress covariates out: x - (c - c_mean)' coef, so that each column keeps its mean.

    ``coef`` is least squares on the rows given to ``fit``; covariates that are multiples or sums of each other share
    their effect (minimum norm). ``transform`` treats each row by itself. Numbers count as numbers; text and pandas
    categories are one-hot encoded. As in :class:`ComBat`, ``covariates`` is metadata and requested by default::

        sklearn.set_config(enable_metadata_routing=True)
        model = make_pipeline(CovariateRegression(), StandardScaler(), Ridge())
        cross_validate(model, X, y, params={"covariates": people[["sex", "volume"]]})

    Never give the target of a prediction as a covariate: its true value would have to be known for the rows to be
    predicted. A covariate that equals ``y`` gets a warning.

    Attributes
    ----------
    mean_ : (n_features,) column means.
    coef_, covariate_names_ : (n_columns, n_features) effect of the encoded covariates, and their names.
    """

    __metadata_request__fit = {"covariates": True}  # noqa: RUF012
    __metadata_request__transform = {"covariates": True}  # noqa: RUF012

    def fit(self, X: Any, y: Any = None, *, covariates: Any = None) -> Self:
        """Learn the covariates' effect. ``y`` is only compared with them."""
        forget(self)
        X = checked_rows(self, X, reset=True, covariates=covariates)
        frame = self._frame(covariates, len(X), "fit")
        coding = Coding.fit(frame)
        columns = coding.encode(frame)
        if len(X) <= columns.shape[1] + 1:
            raise InputError(
                f"Got n_samples={len(X)} rows for {columns.shape[1]} covariate columns: more than "
                f"{columns.shape[1] + 1} are needed, or nothing is left of X; bring more rows, or drop covariates."
            )
        if y is not None:
            warn_about_target(y, frame)
        expected, _, _ = fit_expected(X, columns, np.zeros(len(X), dtype=int))
        self.mean_, self.coef_, self._covariate_mean_ = expected.mean, expected.coef, expected.covariate_mean
        self.covariate_names_ = coding.columns
        self._coding_ = coding
        return self

    def transform(self, X: Any, *, covariates: Any = None) -> Any:
        """What the covariates do not explain, about the column means."""
        check_is_fitted(self, "coef_")
        X = checked_rows(self, X, reset=False, covariates=covariates)
        columns = self._coding_.encode(self._frame(covariates, len(X), "transform"))
        return X - Expected(np.zeros_like(self.mean_), self._covariate_mean_, self.coef_)(columns)

    def fit_transform(self, X: Any, y: Any = None, *, covariates: Any = None) -> Any:
        """``fit`` and ``transform`` of the same rows."""
        return self.fit(X, y, covariates=covariates).transform(X, covariates=covariates)

    @staticmethod
    def _frame(covariates: Any, n_rows: int, method: str) -> Any:
        if covariates is None:
            raise InputError(
                f"CovariateRegression.{method} needs covariates, one row a row of X: pass covariates=...{ROUTING}."
            )
        return as_frame(covariates, n_rows)
