"""``GapModel``: predicted minus true age for everybody, with the age bias taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted, check_random_state

from precisionnet.arguments import check_choice, check_count
from precisionnet.errors import InputError
from precisionnet.gap.correction import KINDS, NONE, CrossFitted, cross_fit, fit_correction
from precisionnet.gap.outer_folds import Metadata, dealt_folds, fit_fold, outer_folds, predict_with
from precisionnet.linalg import LARGEST
from precisionnet.preprocessing.checks import forget
from precisionnet.types import FloatArray, IndexArray
from precisionnet.workers import as_they_come, count_for

FEWEST_PEOPLE = 30
"""With fewer people the slope is too uncertain, and no interval of 95 % can be given."""


class GapModel(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The gap between predicted and true age (or another target), out of fold and without its age bias.

    Fit it on controls. Each of them is predicted by a regressor that left their fold out, and corrected by a line that
    was fitted without their fold. Others, patients for instance, go through the same: ``gap`` and ``corrected_gap``
    deal each row to one of the folds. The formulas are in ``precisionnet/gap/correction.py``.

    Parameters
    ----------
    regressor : estimator, default=None
        Any scikit-learn regressor or pipeline; None is ``PNNRegressor``. Each fold gets a whole fit of it.
    n_folds : int, default=5
        Outer folds, by person.
    correction : {"scaled", "subtractive", "smooth"}, default="scaled"
        "scaled" is ``(predicted - a) / b - age``, with ``predicted = a + b * age`` over the controls of the other
        folds: a brain s years ahead has a gap of s. "subtractive" is ``predicted - a - b * age``, which finds only b
        times s. "smooth" has a spline in place of the line.
    on_fit : callable, default=None
        Called with the number of fits done and of all, first before any is run.
    n_jobs : int, default=None
        Folds fitted side by side, as joblib counts them; a scheduler uses all of its workers. The numbers are the
        same. A regressor with callbacks is fitted in this process, one fold after another.
    random_state : int, RandomState instance or None, default=None
        Deals the folds, and seeds the default regressor.

    Attributes
    ----------
    oof_prediction_ : ndarray of shape (n_samples,)
        Each row given to ``fit``, predicted by the regressor that left its fold out.
    oof_gap_ : ndarray of shape (n_samples,)
        That prediction minus the target.
    oof_corrected_gap_ : ndarray of shape (n_samples,)
        The same without the age bias, by a correction fitted on the other folds.
    fold_ : ndarray of shape (n_samples,)
        The fold of each row.
    regressors_ : list of estimator
        The fitted regressors, one per fold.
    corrections_ : tuple of Correction
        What corrects each fold: ``intercept`` (a), ``slope`` (b), ``slope_error``.
    slope_ : float
        b over all rows. ``slope_error_`` is its standard error.

    Notes
    -----
    A corrected gap plus the age is no prediction: it has used the age. Its error says nothing, and is not computed.

    ``groups``, ``site`` and ``covariates`` go to whatever step of the regressor asks for them; scikit-learn's routing
    need not be switched on. So ComBat works out of fold::

        model = GapModel(make_pipeline(ComBat(), StandardScaler(), RidgeCV()))
        model.fit(X, age, site=site)
        model.corrected_gap(X_patients, age_patients, site=site_patients)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, 200)
    >>> X = age[:, None] + 30 * rng.standard_normal((200, 5))
    >>> model = GapModel(Ridge(), random_state=0).fit(X, age)
    >>> bool(np.corrcoef(model.oof_gap_, age)[0, 1] < -0.3)
    True
    >>> bool(abs(np.corrcoef(model.oof_corrected_gap_, age)[0, 1]) < 0.05)
    True
    >>> older = X[:50] + 4.0  # brains four years ahead
    >>> bool(abs(np.mean(model.corrected_gap(older, age[:50]) - model.corrected_gap(X[:50], age[:50])) - 4.0) < 1.0)
    True
    """

    def __init__(
        self,
        regressor: Any = None,
        *,
        n_folds: int = 5,
        correction: str = "scaled",
        on_fit: Callable[[int, int], None] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.regressor = regressor
        self.n_folds = n_folds
        self.correction = correction
        self.on_fit = on_fit
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None, *, site: Any = None, covariates: Any = None) -> Self:
        """Fit one regressor per fold, and the corrections to their out-of-fold predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the people that gaps are measured against, such as controls.
        y : array-like of shape (n_samples,)
            Their age, or another target.
        groups : array-like of shape (n_samples,), optional
            Whose row it is; rows of one person are in one fold.
        site : array-like of shape (n_samples,), optional
            Where it was measured; folds are alike in it, and steps such as ``ComBat`` get it.
        covariates : DataFrame or array-like, optional
            For steps such as ``CovariateRegression`` and ``ComBat``.

        Returns
        -------
        GapModel
            This object, fitted.
        """
        forget(self)
        check_count("n_folds", self.n_folds, 2)
        check_choice("correction", self.correction, KINDS)
        age = checked_target(y, X)
        metadata = self._metadata(len(age), groups=groups, site=site, covariates=covariates)
        if groups is not None and pd.isna(pd.Series(list(groups), dtype=object)).any():
            raise InputError("groups has missing entries: say whose row each one is, or leave those rows out.")
        people = len(age) if groups is None else len(set(groups))
        if people < max(FEWEST_PEOPLE, 2 * self.n_folds):
            raise InputError(
                f"{people} people are too few to learn a gap from: at least {max(FEWEST_PEOPLE, 2 * self.n_folds)} are "
                "needed; bring more."
            )
        state = check_random_state(self.random_state)
        seeds = state.randint(np.iinfo(np.int32).max, size=2)
        fold = outer_folds(age, self.n_folds, np.random.default_rng(seeds[0]), groups=groups, site=site)
        regressor = _default_regressor(int(seeds[1])) if self.regressor is None else self.regressor
        regressors, prediction = self._fit_folds(regressor, X, age, fold, metadata)
        fitted = cross_fit(self.correction, prediction, age, fold, self.n_folds, groups)
        self._plain_ = cross_fit(NONE, prediction, age, fold, self.n_folds, groups)
        whole = fit_correction(self.correction, prediction, age, groups)
        self.slope_, self.slope_error_ = whole.slope, whole.slope_error
        self.oof_prediction_, self.fold_, self.regressors_ = prediction, fold, regressors
        self.oof_gap_ = prediction - age
        self.oof_corrected_gap_ = fitted.gap(prediction, age, fold)
        self.corrections_ = fitted.corrections
        self.n_features_in_ = np.shape(X)[1]
        if isinstance(X, pd.DataFrame):
            self.feature_names_in_ = np.array([str(name) for name in X.columns], dtype=object)
        self._cross_fitted_ = fitted
        return self

    def _fit_folds(
        self, regressor: Any, X: Any, age: FloatArray, fold: IndexArray, metadata: Metadata
    ) -> tuple[list[Any], FloatArray]:
        """Return a regressor without each fold, and what it predicts for it; in workers where there are several."""
        tell = self.on_fit or (lambda done, total: None)
        tell(0, self.n_folds)
        shared, numbers = (regressor, X, age, fold, metadata), range(self.n_folds)
        found: Iterable[tuple[int, Any, FloatArray]] = (fit_fold(*shared, k) for k in numbers)
        if count_for(self.n_jobs) > 1 and not _has_callbacks(regressor):
            found = as_they_come(fit_fold, [(k,) for k in numbers], self.n_jobs, shared=shared)
        regressors, prediction = dict[int, Any](), np.empty(len(age))
        for k, model, predicted in found:
            regressors[k], prediction[fold == k] = model, predicted
            tell(len(regressors), self.n_folds)
        return [regressors[k] for k in numbers], prediction

    def deal(self, X: Any, groups: Any = None) -> IndexArray:
        """Say which fold's regressor and correction each new row gets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        groups : array-like of shape (n_samples,), optional
            Whose row it is; rows of one person get the same.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            A checksum of the row's values, or of the person: the same whatever rows stand beside it.
        """
        check_is_fitted(self, "corrections_")
        names = getattr(self, "feature_names_in_", None)
        if groups is None and names is not None and isinstance(X, pd.DataFrame) and set(X.columns) == set(names):
            X = X[list(names)]
        return dealt_folds(X, self.n_folds, groups)

    def predict(self, X: Any, groups: Any = None, *, site: Any = None, covariates: Any = None) -> FloatArray:
        """Predict new rows, each by the regressor of one fold; nothing is corrected.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were not given to ``fit``; of those, ``oof_prediction_`` has the predictions.
        groups : array-like of shape (n_samples,), optional
            Whose row it is; rows of one person get the same regressor.
        site : array-like of shape (n_samples,), optional
            Where it was measured.
        covariates : DataFrame or array-like, optional
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        fold = self.deal(X, groups)
        metadata = self._metadata(len(fold), groups=groups, site=site, covariates=covariates)
        prediction = np.empty(len(fold))
        for k in np.unique(fold):
            rows = np.flatnonzero(fold == k)
            prediction[rows] = predict_with(self.regressors_[k], X, rows, metadata)
        return prediction

    def gap(self, X: Any, y: Any, groups: Any = None, *, site: Any = None, covariates: Any = None) -> FloatArray:
        """Return prediction minus truth of new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were not given to ``fit``; of those, ``oof_gap_`` has the gaps.
        y : array-like of shape (n_samples,)
            Their true age.
        groups : array-like of shape (n_samples,), optional
            Whose row it is.
        site : array-like of shape (n_samples,), optional
            Where it was measured.
        covariates : DataFrame or array-like, optional
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Gaps, in the target's units.
        """
        age = checked_target(y, X)
        return self.predict(X, groups, site=site, covariates=covariates) - age

    def corrected_gap(
        self, X: Any, y: Any, groups: Any = None, *, site: Any = None, covariates: Any = None
    ) -> FloatArray:
        """Return the gap of new rows without its age bias.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were not given to ``fit``; of those, ``oof_corrected_gap_`` has the gaps.
        y : array-like of shape (n_samples,)
            Their true age.
        groups : array-like of shape (n_samples,), optional
            Whose row it is.
        site : array-like of shape (n_samples,), optional
            Where it was measured.
        covariates : DataFrame or array-like, optional
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Corrected gaps, in the target's units.
        """
        age = checked_target(y, X)
        prediction = self.predict(X, groups, site=site, covariates=covariates)
        found: FloatArray = self._cross_fitted_.gap(prediction, age, self.deal(X, groups))
        return found

    def gap_interval(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        *,
        coverage: float = 0.95,
        corrected: bool = True,
        site: Any = None,
        covariates: Any = None,
    ) -> FloatArray:
        """Return an interval around the gap of each new row, as wide as controls' gaps scatter.

        Of people like those of ``fit`` a share ``coverage`` has zero inside: an interval without zero is as rare among
        controls as one minus that. It takes every control's gap for error, and has one width at all ages.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their true age.
        groups : array-like of shape (n_samples,), optional
            Whose row it is.
        coverage : float, default=0.95
            Share of controls with zero inside, from 0.5 to below 1.
        corrected : bool, default=True
            Around the corrected gap; if False, around the plain one.
        site : array-like of shape (n_samples,), optional
            Where it was measured.
        covariates : DataFrame or array-like, optional
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        if not 0.5 <= coverage < 1.0:
            raise InputError(f"coverage must be from 0.5 to below 1, got {coverage!r}.")
        age, fold = checked_target(y, X), self.deal(X, groups)
        used: CrossFitted = self._cross_fitted_ if corrected else self._plain_
        middle = used.gap(self.predict(X, groups, site=site, covariates=covariates), age, fold)
        reach = used.reach(coverage)[fold]
        return np.column_stack([middle - reach, middle + reach])

    def _metadata(self, n_rows: int, **given: Any) -> Metadata:
        for name, values in given.items():
            if values is not None and len(values) != n_rows:
                raise InputError(f"{name} has {len(values)} rows and X has {n_rows}: give one per row of X.")
        return given


def checked_target(y: Any, X: Any) -> FloatArray:
    """Return the target as numbers, one per row of X and none missing."""
    if np.ndim(X) != 2:
        raise InputError(f"X must be a table of rows and columns, got {np.ndim(X)} dimensions.")
    try:
        age = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("y must hold numbers, such as ages in years without their unit.") from error
    if age.shape != (len(X),):
        raise InputError(f"y has shape {age.shape} and X has {len(X)} rows: give one number per row of X.")
    labelled = isinstance(X, pd.DataFrame) and isinstance(y, pd.Series)
    if labelled and not X.index.equals(y.index) and set(X.index) == set(y.index):
        raise InputError("y has the index of X in another order: pass y.loc[X.index].")
    if not (np.abs(age) <= LARGEST).all():
        raise InputError("y holds missing, infinite or huge values: correct or leave out those rows.")
    return age


def _has_callbacks(regressor: Any) -> bool:
    """Whether something of this process is called while it is fitted, by it or a step of it."""
    given = regressor.get_params() if hasattr(regressor, "get_params") else {}
    return any(name.split("__")[-1] == "callbacks" and value for name, value in given.items())


def _default_regressor(seed: int) -> Any:
    from precisionnet.estimators import PNNRegressor  # with torch, which other regressors do not need

    return PNNRegressor(random_state=seed)
