"""The mathematics of ComBat: what a site adds to a column's mean and does to its spread, by empirical Bayes.

Model (Johnson, Li and Rabinovic 2007; Fortin et al. 2018 for brain images). Row j of site i has in column v the value

    x_ijv = mean_v + (c_ij - c_mean)' coef_v + scale_v (location_iv + sqrt(variance_iv) noise_ijv)

with covariates c whose effect is to be kept. The first two terms are a least-squares fit with an intercept a site, the
intercepts averaged over all rows; scale_v^2 is the mean square of its residuals. In standard units,

    z_ijv = (x_ijv - mean_v - (c_ij - c_mean)' coef_v) / scale_v,

a site's raw estimates are the mean g_v and the variance d_v (n - 1 in the denominator) of its n rows. They are noisy
where n is small, so each site's estimates are shrunk towards what that site does to all columns: the priors

    location_v ~ Normal(G, T^2),  variance_v ~ InverseGamma,   moments taken over the site's own g_v and d_v,

give the conditional posterior means, which ``parametric_posterior`` solves together, by turns, to rounding:

    location_v = (n T^2 g_v + variance_v G) / (n T^2 + variance_v)
    variance_v = (sum_j (z_jv - location_v)^2 / 2 + B) / (n / 2 + A - 1),  A = 2 + M^2 / S^2,  B = M + M^3 / S^2

with M and S^2 the mean and variance of d. ``nonparametric_posterior`` takes the other columns' (g_w, d_w) themselves as
the prior. A harmonised value is

    mean_v + (c_ij - c_mean)' coef_v + scale_v (z_ijv - location_iv) / sqrt(variance_iv).

Where this differs from neuroCombat 0.2.12, which the tests compare it with: the iteration stops at 1e-12, not at 1e-4;
nothing is divided by S^2, so columns of equal variance are no special case; likelihoods are compared as logarithms and
do not underflow; covariates stay float64; a column without variation is left alone. As there (and in R's sva), the
shrinkage of ``mean_only`` weighs a site as if it had one row.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from precisionnet.errors import PrecisionNetWarning
from precisionnet.types import BoolArray, FloatArray, IndexArray

TOLERANCE = 1e-12
"""Largest change of the last step, in standard units."""
MAX_STEPS = 10_000
_NO_VARIATION = 1e-10
"""A residual spread of less than this share of the column's own is rounding."""


@dataclass(frozen=True)
class Expected:
    """What a row is expected to hold wherever it was measured: column means and the covariates' effect."""

    mean: FloatArray
    covariate_mean: FloatArray
    coef: FloatArray
    """(n_covariates, n_features)"""

    def __call__(self, covariates: FloatArray) -> FloatArray:
        """Return the expected rows.

        Terms are added one by one, as a matrix product's last bits would depend on the other rows.
        """
        expected = np.tile(self.mean, (len(covariates), 1))
        for column, mean, coef in zip(covariates.T, self.covariate_mean, self.coef, strict=True):
            expected += (column - mean)[:, None] * coef
        return expected


def fit_expected(X: FloatArray, covariates: FloatArray, groups: IndexArray) -> tuple[Expected, FloatArray, BoolArray]:
    """Least squares with an intercept a group: the expected rows, the residuals' scale, and which columns vary at all.

    Covariates that are multiples or sums of each other share their effect (minimum norm in standard units).
    """
    unit = _spread(covariates)
    rows, columns = within_groups(X, groups), within_groups(covariates, groups) / unit
    coef = np.linalg.lstsq(columns, rows)[0] if columns.shape[1] else np.zeros((0, X.shape[1]))
    scale = np.sqrt(np.mean((rows - columns @ coef) ** 2, axis=0))
    rounding = 16 * np.finfo(float).eps * np.abs(X).max(axis=0)
    varies = scale > np.maximum(_NO_VARIATION * X.std(axis=0), rounding)
    expected = Expected(X.mean(axis=0), covariates.mean(axis=0), coef / unit[:, None])
    return expected, np.where(varies, scale, 1.0), varies


def within_groups(values: FloatArray, groups: IndexArray) -> FloatArray:
    """Subtract from each row the mean of its group; a column that is constant in a group becomes exactly zero there."""
    centred = values.astype(np.float64)
    for group in range(int(groups.max()) + 1):
        rows = centred[groups == group]
        centred[groups == group] = np.where(rows.min(axis=0) == rows.max(axis=0), 0.0, rows - rows.mean(axis=0))
    return centred


def is_confounded(covariates: FloatArray, groups: IndexArray) -> bool:
    """Whether some combination of the covariates varies between groups but in none: its effect is not to be known."""
    unit = _spread(covariates)
    whole = within_groups(covariates, np.zeros(len(covariates), dtype=int)) / unit
    return _rank(within_groups(covariates, groups) / unit) < _rank(whole)


def site_effect(
    z: FloatArray, *, empirical_bayes: bool = True, parametric: bool = True, mean_only: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Location and variance a column of one site, from its rows in standard units. One row has no variance: 1."""
    n, n_columns = z.shape
    location = z.mean(axis=0)
    squares = ((z - location) ** 2).sum(axis=0)
    scaled = not mean_only and n > 1
    variance = _positive(squares / (n - 1)) if scaled else np.ones(n_columns)
    if not empirical_bayes or n_columns < 2:  # a prior made of one column is that column
        return location, variance
    if not parametric:
        location, posterior = nonparametric_posterior(location, variance, squares, n)
        return location, posterior if scaled else variance
    if not scaled:
        return _posterior_location(location, variance, 1, location.mean(), location.var(ddof=1)), variance
    return parametric_posterior(location, variance, squares, n)


def parametric_posterior(g: FloatArray, d: FloatArray, squares: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The pair of posterior means under the normal and inverse-gamma priors; ``squares`` are about ``g``."""
    G, T2 = g.mean(), g.var(ddof=1)
    M, S2 = d.mean(), d.var(ddof=1)
    location, variance = g, d
    for _ in range(MAX_STEPS):
        before = location, variance
        location = _posterior_location(g, variance, n, G, T2)
        about = squares + n * (g - location) ** 2
        # The formula above with numerator and denominator multiplied by S^2.
        variance = (S2 * about / 2 + M * S2 + M**3) / (S2 * n / 2 + S2 + M**2)
        change = max(np.abs(location - before[0]).max(), np.abs(variance - before[1]).max())
        if change <= TOLERANCE * max(1.0, np.abs(location).max(), variance.max()):
            return location, variance
    warnings.warn(
        f"ComBat's empirical Bayes estimates still moved by {change:.1g} after {MAX_STEPS} steps: look for columns "
        "with extreme values, or set empirical_bayes=False.",
        PrecisionNetWarning,
        stacklevel=2,
    )
    return location, variance


def nonparametric_posterior(g: FloatArray, d: FloatArray, squares: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Posterior means where the prior is what the site does to each of the other columns."""
    location, variance = np.empty_like(g), np.empty_like(d)
    for v in range(len(g)):
        about = squares[v] + n * (g[v] - g) ** 2
        log_likelihood = -n / 2 * np.log(d) - about / (2 * d)
        log_likelihood[v] = -np.inf
        weight = softmax(log_likelihood)
        location[v], variance[v] = weight @ g, weight @ d
    return location, variance


def remove(X: FloatArray, expected: FloatArray, shift: FloatArray, variance: FloatArray) -> FloatArray:
    """Remove the sites' effects from rows; ``shift`` is scale * location. Values without an effect stay as they are."""
    harmonised = expected + (X - expected - shift) / np.sqrt(variance)
    return np.where((shift == 0) & (variance == 1), X, harmonised)


def _posterior_location(g: FloatArray, variance: FloatArray, n: int, G: float, T2: float) -> FloatArray:
    return (n * T2 * g + variance * G) / (n * T2 + variance)


def _positive(variance: FloatArray) -> FloatArray:
    """Replace variances of zero by one: a column that does not vary within a site keeps its scale there."""
    return np.where(variance > _NO_VARIATION**2, variance, 1.0)


def _spread(values: FloatArray) -> FloatArray:
    spread = values.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def _rank(values: FloatArray) -> int:
    return int(np.linalg.matrix_rank(values, tol=1e-8 * np.sqrt(len(values)))) if values.size else 0
