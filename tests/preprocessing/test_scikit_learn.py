"""scikit-learn's own checks. They call ``fit(X)``, so the transformers get their site or covariate from the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from precisionnet.preprocessing import ComBat, CovariateRegression


def first_column(X):
    """Numbers of the first column, or nothing where a check hands over something that is no table of numbers."""
    try:
        return np.nan_to_num(np.asarray(X, dtype=float)[:, 0])
    except (TypeError, ValueError, IndexError):
        return np.zeros(getattr(X, "shape", [len(X)])[0])


class SiteOfItsRows(ComBat):
    """A site for rows with a positive first value, one for the others: it depends on nothing but the row."""

    def fit(self, X, y=None):
        return super().fit(X, y, site=first_column(X) > 0)

    def transform(self, X):
        return super().transform(X, site=first_column(X) > 0)

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


class CovariateOfItsRows(CovariateRegression):
    def fit(self, X, y=None):
        return super().fit(X, y, covariates=first_column(X))

    def transform(self, X):
        return super().transform(X, covariates=first_column(X))

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SiteOfItsRows(unseen_sites="pass"), CovariateOfItsRows()])
def test_check_estimator(estimator, check):
    check(estimator)


WITHOUT_FIT = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
)


@pytest.mark.parametrize("kind", [ComBat, CovariateRegression])
def test_checks_that_need_no_fit_pass_as_it_is(kind):
    checks = [c for _, c in estimator_checks_generator(kind()) if c.func.__name__ in WITHOUT_FIT]
    assert len(checks) > 7  # not every version has every check
    for check in checks:
        check(kind())
