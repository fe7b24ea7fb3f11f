"""Covariates: regressed out of the columns, and encoded as numbers.

Numbers stay as they are; text and pandas categories become one column per level but the first. The levels are learned
from the training rows; a level that was not among them is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from precisionnet.errors import InputError, some
from precisionnet.linalg import LARGEST
from precisionnet.preprocessing.checks import ROUTING, checked_rows, forget, in_order, warn_about_target
from precisionnet.preprocessing.site_effects import Expected, fit_expected
from precisionnet.types import FloatArray


class CovariateRegression(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Regress covariates out: ``x - (c - c_mean)' coef``, so that each column keeps its mean.

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
    mean_ : ndarray of shape (n_features,)
        Column means.
    coef_ : ndarray of shape (n_columns, n_features)
        Effect of the encoded covariates.
    covariate_names_ : list of str
        Names of the encoded covariates.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> volume = rng.standard_normal(50)
    >>> X = rng.standard_normal((50, 3)) + 2.0 * volume[:, None]
    >>> rest = CovariateRegression().fit_transform(X, covariates=volume[:, None])
    >>> bool((abs(np.corrcoef(rest.T, volume)[:3, 3]) < 1e-8).all())
    True
    """

    __metadata_request__fit = {"covariates": True}  # noqa: RUF012
    __metadata_request__transform = {"covariates": True}  # noqa: RUF012

    def fit(self, X: Any, y: Any = None, *, covariates: Any = None) -> Self:
        """Learn the covariates' effect.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Training rows, nothing missing.
        y : array-like of shape (n_rows,) or None, default=None
            The target. It is only compared with the covariates, to warn where one of them is the target.
        covariates : DataFrame or array-like
            What to regress out, one row per row of ``X``.

        Returns
        -------
        CovariateRegression
            This object, fitted.
        """
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
        """Return what the covariates do not explain, about the column means.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Rows with the columns of ``fit``.
        covariates : DataFrame or array-like
            The covariates of ``fit`` for these rows.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The rows without the covariates' effect.
        """
        check_is_fitted(self, "coef_")
        X = checked_rows(self, X, reset=False, covariates=covariates)
        columns = self._coding_.encode(self._frame(covariates, len(X), "transform"))
        return X - Expected(np.zeros_like(self.mean_), self._covariate_mean_, self.coef_)(columns)

    def fit_transform(self, X: Any, y: Any = None, *, covariates: Any = None) -> Any:
        """Fit to rows and regress the covariates out of them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Training rows, nothing missing.
        y : array-like of shape (n_rows,) or None, default=None
            The target, only compared with the covariates.
        covariates : DataFrame or array-like
            What to regress out, one row per row of ``X``.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The rows without the covariates' effect.
        """
        return self.fit(X, y, covariates=covariates).transform(X, covariates=covariates)

    @staticmethod
    def _frame(covariates: Any, n_rows: int, method: str) -> Any:
        if covariates is None:
            raise InputError(
                f"CovariateRegression.{method} needs covariates, one row per row of X: pass covariates=...{ROUTING}."
            )
        return as_frame(covariates, n_rows)


@dataclass(frozen=True)
class Coding:
    """How covariates become columns of numbers."""

    names: tuple[Any, ...]
    levels: tuple[tuple[Any, ...] | None, ...]
    """The levels of each covariate; None for a number."""

    @classmethod
    def fit(cls, frame: pd.DataFrame) -> Coding:
        """Learn which covariates are numbers, and the levels of the others."""
        levels = tuple(None if _is_number(column) else _levels(column) for _, column in frame.items())
        return cls(tuple(frame.columns), levels)

    @property
    def columns(self) -> list[str]:
        """A name for each encoded column."""
        named = zip(self.names, self.levels, strict=True)
        return [
            column
            for name, levels in named
            for column in ([str(name)] if levels is None else [f"{name}={level}" for level in levels[1:]])
        ]

    def encode(self, frame: pd.DataFrame) -> FloatArray:
        """(n_rows, n_columns) of float64."""
        frame = self._same_columns(frame)
        parts = [
            self._number(column, name) if levels is None else self._dummies(column, name, levels)
            for (_, column), name, levels in zip(frame.items(), self.names, self.levels, strict=True)
        ]
        return np.column_stack([np.empty((len(frame), 0)), *parts])

    def _same_columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        if set(frame.columns) == set(self.names):
            return frame[list(self.names)]
        if [*map(str, frame.columns)] == [*map(str, range(len(self.names)))]:
            return frame  # an array: by position
        raise InputError(
            f"covariates are {some([str(name) for name in frame.columns])}, and were "
            f"{some([str(name) for name in self.names])} in fit: give the same."
        )

    def _number(self, column: pd.Series[Any], name: Any) -> FloatArray:
        if not _is_number(column):
            raise InputError(
                f"Covariate {str(name)!r} held numbers in fit and holds {column.iloc[0]!r} now: correct it."
            )
        values = pd.to_numeric(column).to_numpy(dtype=np.float64)
        if not (np.abs(values) <= LARGEST).all():
            raise InputError(
                f"Covariate {str(name)!r} holds infinity or values beyond {LARGEST:g}: correct those rows."
            )
        return values

    def _dummies(self, column: pd.Series[Any], name: Any, levels: tuple[Any, ...]) -> FloatArray:
        values = column.tolist()
        new = in_order(value for value in values if value not in levels)
        if new:
            raise InputError(
                f"Covariate {str(name)!r} has level {some(new)}, which no row given to fit had "
                f"({some(list(levels))}): merge it with one of those, or drop its rows."
            )
        return np.array([[float(value == level) for level in levels[1:]] for value in values])


def as_frame(covariates: Any, n_rows: int) -> pd.DataFrame:
    """Covariates of any accepted kind as a data frame, one row per row of X, nothing missing."""
    if isinstance(covariates, pd.Series):
        frame = covariates.to_frame() if covariates.name is not None else pd.DataFrame({0: covariates})
    elif isinstance(covariates, pd.DataFrame):
        frame = covariates
    elif isinstance(covariates, np.ndarray | list | tuple | pd.Categorical) and np.ndim(covariates) in (1, 2):
        frame = pd.DataFrame(covariates)
    else:
        raise InputError("covariates must be a data frame, a column or a 2-D array with one row per row of X.")
    if len(frame) != n_rows:
        raise InputError(
            f"covariates have {len(frame)} rows and X has {n_rows}: give one row of covariates per row of X."
        )
    twice = frame.columns[frame.columns.duplicated()].unique()
    if len(twice):
        raise InputError(f"Covariate {some([str(name) for name in twice])} stands there more than once: drop one.")
    missing = frame.isna()
    if missing.to_numpy().any():
        names = [str(name) for name in frame.columns[missing.any()]]
        raise InputError(
            f"Covariate {some(names)} is missing in {int(missing.any(axis=1).sum())} of {n_rows} rows: drop those "
            "rows, or fill them in."
        )
    return frame.infer_objects()


def _is_number(column: pd.Series[Any]) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c"


def _levels(column: pd.Series[Any]) -> tuple[Any, ...]:
    values = column.tolist()
    what = {"text" if isinstance(value, str) else "numbers" for value in values}
    if column.dtype.kind in "mMc" or (column.dtype == object and "text" not in what):
        raise InputError(f"Covariate {str(column.name)!r} holds {values[0]!r}: use numbers, text or categories.")
    if len(what) > 1:
        raise InputError(f"Covariate {str(column.name)!r} mixes text and numbers: use one of them.")
    levels = in_order(values)
    if len(levels) > max(2, len(values) / 2):
        raise InputError(
            f"Covariate {str(column.name)!r} is {'text' if 'text' in what else 'a category'} with {len(levels)} levels "
            f"in {len(values)} rows: give numbers as numbers (a data frame keeps them beside text), or merge levels."
        )
    return tuple(levels)
