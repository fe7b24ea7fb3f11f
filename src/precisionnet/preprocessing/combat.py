"""ComBat harmonisation behind scikit-learn's face."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from precisionnet.arguments import check_choice, check_switch
from precisionnet.errors import InputError, PrecisionNetWarning, some
from precisionnet.preprocessing.checks import (
    checked_rows,
    column_names,
    forget,
    in_order,
    site_labels,
    warn_about_target,
)
from precisionnet.preprocessing.covariates import Coding, as_frame
from precisionnet.preprocessing.site_effects import (
    Expected,
    fit_expected,
    is_confounded,
    remove,
    site_effect,
    within_groups,
)
from precisionnet.types import FloatArray, IndexArray

UNSEEN = ("error", "own_rows", "pass")
LEAST_OWN_ROWS = 2


class ComBat(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Remove what scanners and sites do to a column's mean and spread, keep what covariates explain.

    Everything is estimated from the rows given to ``fit``. A row of a site that was among them is transformed by
    itself: the rows beside it never matter. The formulas are in ``precisionnet/preprocessing/site_effects.py``.

    Parameters
    ----------
    empirical_bayes : bool, default=True
        Shrink each site's estimates towards what it does to all columns. If False, they are the plain mean and variance
        of the site's rows.
    parametric : bool, default=True
        Use normal and inverse-gamma priors. If False, the other columns' estimates are the prior, which takes many
        columns.
    mean_only : bool, default=False
        Leave the spread alone. Shrinkage is then that of neuroCombat and R's sva, as if each site had one row, and
        leaves part of the shift; with ``empirical_bayes=False`` all of it goes.
    unseen_sites : {"error", "own_rows", "pass"}, default="error"
        What to do with rows of a site that was not in ``fit``. "error" refuses them. "own_rows" estimates the site's
        effect from the rows given to ``transform``, at least two and better twenty; these rows then depend on each
        other. "pass" leaves them as they are, with a warning.

    Attributes
    ----------
    sites_ : list
        Labels of the sites.
    site_counts_ : ndarray of shape (n_sites,)
        Rows of each site in ``fit``.
    site_location_, site_variance_ : ndarray of shape (n_sites, n_features)
        ``gamma`` and ``delta^2`` of the papers, in units of ``scale_``.
    mean_, scale_ : ndarray of shape (n_features,)
        Column means, and the spread that sites and covariates leave.
    coef_ : ndarray of shape (n_columns, n_features)
        Effect of the encoded covariates.
    covariate_names_ : list of str
        Names of the encoded covariates.

    Notes
    -----
    ``covariates`` (a data frame, a column or a 2-D array) are kept: age, for instance, must not be removed with the
    sites that scanned older people. Numbers count as numbers; text and pandas categories are one-hot encoded. What
    ``fit`` was given, ``transform`` needs, too. **Never give the target of a prediction**: its true value would have to
    be known for the rows to be predicted. A covariate that equals ``y`` gets a warning. Without covariates, ComBat also
    removes what differs between sites because their people differ.

    A site with one row is shifted, not scaled, with a warning. Rows of a single site pass through, with a warning. A
    column that does not vary within sites passes through. Missing values are refused.

    ``site`` and ``covariates`` are metadata, requested by default. In a Pipeline::

        sklearn.set_config(enable_metadata_routing=True)
        model = make_pipeline(ComBat(), StandardScaler(), Ridge())
        cross_validate(model, X, y, params={"site": site, "covariates": people[["sex"]]})

    Scorers chosen by name, ``cross_val_predict`` and ``GridSearchCV.predict`` pass no metadata to ``predict``, a limit
    of scikit-learn. Score with ``scoring=None`` (the model's own score); predict with ``best_estimator_``, or with the
    estimators that ``cross_validate(..., return_estimator=True, return_indices=True)`` gives back.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> site = np.repeat(["A", "B"], 50)
    >>> X = rng.standard_normal((100, 4)) + 3.0 * (site == "B")[:, None]
    >>> harmonised = ComBat(empirical_bayes=False).fit_transform(X, site=site)
    >>> gap = harmonised[site == "B"].mean(axis=0) - harmonised[site == "A"].mean(axis=0)
    >>> bool((abs(gap) < 1e-8).all())
    True
    """

    # Requested without set_fit_request: ComBat is nothing without its sites.
    __metadata_request__fit = {"site": True, "covariates": True}  # noqa: RUF012
    __metadata_request__transform = {"site": True, "covariates": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        empirical_bayes: bool = True,
        parametric: bool = True,
        mean_only: bool = False,
        unseen_sites: str = "error",
    ) -> None:
        self.empirical_bayes = empirical_bayes
        self.parametric = parametric
        self.mean_only = mean_only
        self.unseen_sites = unseen_sites

    def fit(self, X: Any, y: Any = None, *, site: Any = None, covariates: Any = None) -> Self:
        """Estimate column means, the covariates' effect and each site's.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Training rows, nothing missing.
        y : array-like of shape (n_rows,) or None, default=None
            The target. It is only compared with the covariates, to warn where one of them is the target.
        site : array-like of shape (n_rows,)
            Label of each row's site.
        covariates : DataFrame, array-like or None, default=None
            What to keep, one row per row of ``X``.

        Returns
        -------
        ComBat
            This object, fitted.
        """
        forget(self)
        self._check_parameters()
        X = checked_rows(self, X, reset=True, site=site, covariates=covariates)
        columns: FloatArray = np.empty((len(X), 0))
        labels = site_labels(site, len(X), "fit")
        coding = None
        if covariates is not None:
            frame = as_frame(covariates, len(X))
            coding = Coding.fit(frame)
            columns = coding.encode(frame)
            if y is not None:
                warn_about_target(y, frame)
        sites = in_order(labels)
        codes = np.array([sites.index(label) for label in labels])
        self._check_design(columns, [] if coding is None else coding.columns, codes, sites)
        expected, self.scale_, varies = fit_expected(X, columns, codes)
        self.mean_, self.coef_, self._covariate_mean_ = expected.mean, expected.coef, expected.covariate_mean
        self._coding_ = coding
        self.covariate_names_ = [] if coding is None else coding.columns
        self.site_counts_ = np.bincount(codes)
        self.site_location_ = np.zeros((len(sites), X.shape[1]))
        self.site_variance_ = np.ones((len(sites), X.shape[1]))
        self._warn(X, codes, sites, varies)
        self._varies_ = varies
        z = (X - expected(columns)) / self.scale_
        for i in range(len(sites) if len(sites) > 1 else 0):
            self.site_location_[i], self.site_variance_[i] = self._effect(z[codes == i])
        self.sites_ = sites
        return self

    def transform(self, X: Any, *, site: Any = None, covariates: Any = None) -> Any:
        """Remove the sites' effects.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Rows with the columns of ``fit``.
        site : array-like of shape (n_rows,)
            Label of each row's site.
        covariates : DataFrame, array-like or None, default=None
            The covariates of ``fit`` for these rows.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The harmonised rows.
        """
        check_is_fitted(self, "sites_")
        X = checked_rows(self, X, reset=False, site=site, covariates=covariates)
        labels = site_labels(site, len(X), "transform")
        expected = Expected(self.mean_, self._covariate_mean_, self.coef_)(self._columns(covariates, len(X)))
        place = {label: i for i, label in enumerate(self.sites_)}
        codes = np.array([place.get(label, -1) for label in labels])
        location, variance = self.site_location_[codes], self.site_variance_[codes]
        location[codes < 0], variance[codes < 0] = 0.0, 1.0
        for rows in self._unseen(labels, codes):
            location[rows], variance[rows] = self._effect((X[rows] - expected[rows]) / self.scale_)
        return remove(X, expected, self.scale_ * location, variance)

    def fit_transform(self, X: Any, y: Any = None, *, site: Any = None, covariates: Any = None) -> Any:
        """Fit to rows and harmonise them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            Training rows, nothing missing.
        y : array-like of shape (n_rows,) or None, default=None
            The target, only compared with the covariates.
        site : array-like of shape (n_rows,)
            Label of each row's site.
        covariates : DataFrame, array-like or None, default=None
            What to keep, one row per row of ``X``.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            The harmonised rows.
        """
        fitted = self.fit(X, y, site=site, covariates=covariates)
        return fitted.transform(X, site=site, covariates=covariates)

    def _effect(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A site's location and variance in every column; those without variation have none."""
        location, variance = np.zeros(z.shape[1]), np.ones(z.shape[1])
        if self._varies_.any():
            location[self._varies_], variance[self._varies_] = site_effect(
                z[:, self._varies_],
                empirical_bayes=self.empirical_bayes,
                parametric=self.parametric,
                mean_only=self.mean_only,
            )
        return location, variance

    def _columns(self, covariates: Any, n_rows: int) -> FloatArray:
        if self._coding_ is None:
            if covariates is not None:
                raise InputError(
                    "ComBat was fitted without covariates: give none to transform, or give them to fit, too."
                )
            return np.empty((n_rows, 0))
        if covariates is None:
            raise InputError(
                f"ComBat was fitted with covariates to keep ({some([str(n) for n in self._coding_.names])}): give "
                "transform the same covariates of its rows."
            )
        return self._coding_.encode(as_frame(covariates, n_rows))

    def _unseen(self, labels: list[Any], codes: IndexArray) -> list[IndexArray]:
        """Rows of each unseen site whose effect is to be estimated from them."""
        rows: dict[Any, list[int]] = {}
        for i in np.flatnonzero(codes < 0):
            rows.setdefault(labels[int(i)], []).append(int(i))
        if not rows:
            return []
        new = in_order(rows)
        what = f"Site {some(new)} ({int((codes < 0).sum())} of {len(labels)} rows) was not among the rows given to fit"
        if self.unseen_sites == "error":
            known = {str(label) for label in self.sites_}
            spelled = " (labels are compared as given: 1 is not '1')" if any(str(n) in known for n in new) else ""
            raise InputError(
                f"{what}{spelled}: its effect is unknown; fit with rows of every site, or set unseen_sites='own_rows' "
                "(estimate it from these rows) or 'pass' (leave them as they are)."
            )
        if self.unseen_sites == "pass":
            warnings.warn(f"{what}: its rows are left as they are, not harmonised.", PrecisionNetWarning, stacklevel=4)
            return []
        few = [label for label in new if len(rows[label]) < LEAST_OWN_ROWS]
        if few:
            raise InputError(
                f"Site {some(few)} was not among the rows given to fit and has {len(rows[few[0]])} row here: "
                f"unseen_sites='own_rows' needs at least {LEAST_OWN_ROWS}, better 20; bring more, or drop it."
            )
        return [np.array(rows[label]) for label in new]

    def _check_parameters(self) -> None:
        for name in ("empirical_bayes", "parametric", "mean_only"):
            check_switch(name, getattr(self, name))
        check_choice("unseen_sites", self.unseen_sites, UNSEEN)

    def _check_design(self, columns: FloatArray, names: list[str], codes: IndexArray, sites: list[Any]) -> None:
        n_terms = len(sites) + columns.shape[1]
        if len(codes) <= n_terms:
            raise InputError(
                f"Got n_samples={len(codes)} rows for {len(sites)} sites and {columns.shape[1]} covariate columns: "
                f"ComBat needs more than {n_terms} rows; bring more, merge sites, or drop covariates."
            )
        if is_confounded(columns, codes):
            still = ~within_groups(columns, codes).any(axis=0) & (columns.min(axis=0) < columns.max(axis=0))
            fixed = [name for name, alone in zip(names, still, strict=True) if alone]
            raise InputError(
                f"Covariate {some(fixed or names)} does not vary within sites: its effect cannot be told from theirs; "
                "leave it out, or bring sites in which it varies."
            )

    def _warn(self, X: FloatArray, codes: IndexArray, sites: list[Any], varies: Any) -> None:
        sentences = []
        if len(sites) == 1:
            sentences.append(f"All {len(X)} rows are of site {sites[0]!r}: there is nothing to harmonise.")
        single = [label for label, count in zip(sites, self.site_counts_, strict=True) if count == 1]
        if single:
            sentences.append(
                f"Site {some(single)} has one row, which says nothing of its spread: it is shifted, not scaled; bring "
                "more rows, or drop it."
            )
        between = within_groups(X, np.zeros(len(X), dtype=int)).any(axis=0)
        fixed = np.flatnonzero(~varies & between & ~within_groups(X, codes).any(axis=0))
        if len(fixed):
            listed = some([column_names(self)[int(i)] for i in fixed])
            sentences.append(
                f"Column {listed} varies only between sites: it passes through and gives them away; drop it."
            )
        for sentence in sentences:
            warnings.warn(sentence, PrecisionNetWarning, stacklevel=3)
