r"""Which penalties to try, and penalties that fall with the strength of an edge (the adaptive graphical lasso).

    penalty_ij = l1_penalty * w_ij,    w_ij = 1 / (1 + |rho_ij| / floor)

with rho the partial correlations of the round before (Candes, Wakin and Boyd 2008; Fan, Feng and Wu 2009).

Regime: a few strong edges among many absent ones, which the plain l1 norm shrinks as much as it shrinks noise.
How this differs from the textbook's 1 / (floor + |theta_ij|): partial correlations have no units, so one floor fits
every table; and no weight exceeds one, so an edge left out by the first round meets the same penalty again instead of a
larger one.
"""

from __future__ import annotations

import numpy as np

from precisionnet.errors import InputError
from precisionnet.linalg import partial_correlations
from precisionnet.precision.api import graphical_lasso
from precisionnet.precision.problem import checked_matrix
from precisionnet.precision.result import PrecisionResult
from precisionnet.types import BoolArray, FloatArray

FLOOR = 0.1


def l1_max(emp_cov: FloatArray, known_zeros: BoolArray | None = None) -> float:
    """Find the smallest penalty whose graph is empty.

    Parameters
    ----------
    emp_cov : array-like of shape (n_features, n_features)
        Symmetric sample covariance.
    known_zeros : array-like of bool of shape (n_features, n_features), default=None
        Mask of the entries that do not count, as for :func:`graphical_lasso`.

    Returns
    -------
    float
        The largest absolute off-diagonal entry.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import l1_max
    >>> l1_max(np.array([[1.0, -0.6], [-0.6, 2.0]]))
    0.6
    """
    off_diagonal = np.abs(checked_matrix("emp_cov", emp_cov))
    np.fill_diagonal(off_diagonal, 0.0)
    if known_zeros is not None:
        off_diagonal[np.asarray(known_zeros, dtype=bool)] = 0.0
    return float(off_diagonal.max())


def penalty_grid(emp_cov: FloatArray, n_penalties: int = 20, smallest: float = 0.01) -> FloatArray:
    """Make a grid of penalties, evenly spaced on a log scale from ``l1_max`` down.

    Parameters
    ----------
    emp_cov : array-like of shape (n_features, n_features)
        Symmetric sample covariance.
    n_penalties : int, default=20
        How many penalties.
    smallest : float, default=0.01
        The last penalty, as a share of the first.

    Returns
    -------
    ndarray of shape (n_penalties,)
        Penalties, largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import penalty_grid
    >>> penalty_grid(np.array([[1.0, 0.5], [0.5, 1.0]]), 3).round(3)
    array([0.5  , 0.05 , 0.005])
    """
    largest = l1_max(emp_cov)
    if largest == 0.0:  # no covariance anywhere: every penalty gives the same, empty graph
        largest = float(np.diag(emp_cov).max())
    return np.geomspace(largest, smallest * largest, n_penalties)


def adaptive_graphical_lasso(
    emp_cov: FloatArray,
    l1_penalty: float | FloatArray,
    *,
    n_reweights: int = 1,
    floor: float = FLOOR,
    first: PrecisionResult | None = None,
    tol: float = 1e-6,
    max_iter: int = 2000,
    **options: object,
) -> PrecisionResult:
    """Estimate a sparse precision matrix in rounds that shrink strong edges less.

    The first round is :func:`graphical_lasso`. Each further round divides the penalty of an edge by
    ``1 + |partial correlation| / floor`` and starts at the round before.

    Parameters
    ----------
    emp_cov : array-like of shape (n_features, n_features)
        Symmetric sample covariance.
    l1_penalty : float or array-like of shape (n_features, n_features)
        Penalty of the first round.
    n_reweights : int, default=1
        Rounds after the first one.
    floor : float, default=0.1
        Partial correlation at which the penalty is halved.
    first : PrecisionResult, default=None
        Result of the first round where it is known already.
    tol : float, default=1e-6
        Proved relative gap at which each round stops.
    max_iter : int, default=2000
        Largest number of sweeps of each round.
    **options : object
        Other parameters of :func:`graphical_lasso`.

    Returns
    -------
    PrecisionResult
        The result of the last round.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.precision import adaptive_graphical_lasso
    >>> emp_cov = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> adaptive_graphical_lasso(emp_cov, 0.2, n_reweights=2).covariance.round(2)
    array([[1.  , 0.57],
           [0.57, 1.  ]])
    """
    if n_reweights < 0:
        raise InputError(f"n_reweights must be at least 0, got {n_reweights}.")
    if first is None:
        first = graphical_lasso(emp_cov, l1_penalty, tol=tol, max_iter=max_iter, **options)  # type: ignore[arg-type]
    rounds = {**options, "init": None}
    for _ in range(n_reweights if np.any(l1_penalty) else 0):  # weights of no penalty change nothing
        weights = edge_weights(first.precision, floor)
        rounds["init"] = first.precision
        first = graphical_lasso(emp_cov, l1_penalty * weights, tol=tol, max_iter=max_iter, **rounds)  # type: ignore[arg-type]
    return first


def edge_weights(precision: FloatArray, floor: float = FLOOR) -> FloatArray:
    """The weights w of the module's text; ones on the diagonal, which is no edge."""
    if not (np.isfinite(floor) and floor > 0):
        raise InputError(f"floor must be a number > 0, got {floor}.")
    weights = 1.0 / (1.0 + np.abs(partial_correlations(precision)) / floor)
    np.fill_diagonal(weights, 1.0)
    return weights
