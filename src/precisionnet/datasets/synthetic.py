"""The paper's synthetic recipe: a sparse precision, Gaussian rows from its inverse, a linear target with noise.

theta_0 has a prescribed share of non-zero entries, ||theta_0||_0 / N^2, and x ~ N(0, theta_0^-1). A regression target
is y = w'x + noise with w ~ N(0, I) at a signal-to-noise ratio of 10; classes are cut from that same y.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, eigvalsh, solve_triangular

from precisionnet.datasets.dataset import Dataset, generator
from precisionnet.datasets.graphs import GraphName, draw_edges
from precisionnet.errors import InputError
from precisionnet.parameters import Parameter
from precisionnet.types import FloatArray

WORST_CONDITION = 1e10
"""Largest condition number: beyond it the smallest eigenvalue is lost in rounding."""

PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter("n_samples", 100, "rows to draw", int, low=1),
        Parameter("n_features", 20, "columns to draw", int, low=1),
        Parameter("n_classes", 2, "classes to cut the target into", int, low=2),
        Parameter("snr", 10.0, "variance of the signal over that of the noise", closed="neither"),
        Parameter(
            "condition_number",
            10.0,
            "largest over smallest eigenvalue of the precision",
            low=1,
            high=WORST_CONDITION,
            closed="right",
        ),
    )
}


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticDataset(Dataset):
    """Drawn rows and the truth behind them, which stays whole when rows are taken or split.

    Parameters
    ----------
    X : pandas.DataFrame of shape (n_rows, n_columns)
        Gaussian rows.
    y : pandas.Series
        ``X @ coefficients`` and noise, or classes cut from that.
    groups : pandas.Series or None, default=None
        As in ``Dataset``; drawn rows have none.
    site : pandas.Series or None, default=None
        As in ``Dataset``; drawn rows have none.
    covariates : pandas.DataFrame or None, default=None
        As in ``Dataset``; drawn rows have none.
    description : str, default=""
        How the rows were drawn.
    notes : tuple of str, default=()
        Where the density is not the one asked for.
    doubts : tuple of str, default=()
        As in ``Dataset``.
    original_names : mapping of str to str, default={}
        As in ``Dataset``.
    measure : str, default=""
        As in ``Dataset``.
    theta_true : ndarray of shape (n_columns, n_columns)
        The precision that the rows were drawn from.
    coefficients : ndarray of shape (n_columns,)
        Weights ``w`` of the target.
    graph : str
        Family of the graph of ``theta_true``; "given" where its edges were given.

    Examples
    --------
    >>> data = make_gaussian_regression(n_samples=30, n_features=4, graph="chain", random_state=0)
    >>> data.graph, data.theta_true.shape
    ('chain', (4, 4))
    """

    y: pd.Series[Any]
    theta_true: FloatArray = field(kw_only=True)
    coefficients: FloatArray = field(kw_only=True)
    graph: str = field(kw_only=True)

    @property
    def density(self) -> float:
        """Share of non-zero entries of ``theta_true``, the diagonal included.

        Returns
        -------
        float
            ``||theta_true||_0 / N^2``.
        """
        return float(np.count_nonzero(self.theta_true)) / self.theta_true.size


def make_sparse_precision(
    n_features: int,
    sparsity: float | None,
    rng: np.random.Generator | int | None,
    condition_number: float = 10.0,
    graph: GraphName | Any = "random",
) -> FloatArray:
    """Draw a sparse precision with the graph, condition number and share of non-zero entries asked for.

    The values of the edges are uniform in +-[0.5, 1]. The diagonal is then raised until the condition number is the one
    asked for (without an edge it is 1), and the whole scaled to unit mean variance.

    Parameters
    ----------
    n_features : int
        Rows and columns of the matrix.
    sparsity : float or None
        Share of non-zero entries, the diagonal included; None takes the usual one of the graph's family.
    rng : numpy.random.Generator, int or None
        Source of randomness, or its seed.
    condition_number : float, default=10.0
        Largest over smallest eigenvalue.
    graph : str or array-like of shape (n_edges, 2), default="random"
        Family of the graph, as in ``make_gaussian_regression``, or its edges.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        Symmetric and positive definite.

    Examples
    --------
    >>> theta = make_sparse_precision(5, None, 0, graph="chain")
    >>> int((theta != 0).sum())
    13
    """
    rng = generator("rng", rng)
    _check("n_features", n_features)
    _check("condition_number", condition_number)
    _check_sparsity(sparsity)
    rows, cols = draw_edges(graph, int(n_features), sparsity, rng).T
    theta = np.zeros((n_features, n_features))
    theta[rows, cols] = rng.choice([-1.0, 1.0], len(rows)) * rng.uniform(0.5, 1.0, len(rows))
    theta += theta.T
    values = eigvalsh(theta)
    # (largest + d) / (smallest + d) = condition_number, solved for d
    lift = (values[-1] - condition_number * values[0]) / (condition_number - 1.0)
    theta[np.diag_indices(n_features)] = lift if len(rows) else 1.0
    mean_variance = float(np.trace(np.linalg.inv(theta))) / n_features
    return theta * mean_variance


def make_gaussian_regression(
    n_samples: int = 100,
    n_features: int = 20,
    *,
    graph: GraphName | Any = "random",
    sparsity: float | None = None,
    snr: float = 10.0,
    condition_number: float = 10.0,
    random_state: int | None = None,
) -> SyntheticDataset:
    """Draw Gaussian rows from a sparse precision, and a linear target with noise.

    ``x ~ N(0, inverse of theta_true)`` and ``y = w'x + noise`` with ``w ~ N(0, I)``. What ``sparsity`` decides, and
    what holds without it, depends on the family:

    ============= ============================================== =====================================
    graph         sparsity decides                               by default
    ============= ============================================== =====================================
    random        the number of edges, uniform over all pairs    0.2
    chain         nothing: (3N - 2) / N^2                        each feature joined to the next
    banded        the bandwidth                                  2
    hub           the number of edges, all of them at a hub      one hub for ten features, each joined to one
    block         the size of the complete blocks                a fifth of the features
    small_world   the number of neighbours on the ring           4, a tenth of the edges rewired
    ============= ============================================== =====================================

    Parameters
    ----------
    n_samples : int, default=100
        Rows to draw.
    n_features : int, default=20
        Columns to draw.
    graph : str or array-like of shape (n_edges, 2), default="random"
        Family of the graph of ``theta_true``, see above, or its edges as pairs of column positions.
    sparsity : float or None, default=None
        Share of non-zero entries of ``theta_true``, the diagonal included. A family that comes only near to it leaves a
        note, and one that cannot have it refuses. None takes the usual one.
    snr : float, default=10.0
        Variance of the signal over that of the noise.
    condition_number : float, default=10.0
        Largest over smallest eigenvalue of ``theta_true``.
    random_state : int or None, default=None
        Seed.

    Returns
    -------
    SyntheticDataset
        Rows, target, and the truth: ``theta_true`` and ``coefficients``.

    Examples
    --------
    >>> data = make_gaussian_regression(n_samples=50, n_features=10, graph="chain", random_state=0)
    >>> data.X.shape, round(data.density, 2)
    ((50, 10), 0.28)
    """
    _check("n_samples", n_samples)
    _check("snr", snr)
    rng = generator("random_state", random_state)
    theta = make_sparse_precision(n_features, sparsity, rng, condition_number, graph)
    # theta = L L', so x = L'^-1 z has covariance theta^-1.
    factor = cholesky(theta, lower=True)
    X = solve_triangular(factor, rng.standard_normal((n_features, n_samples)), lower=True, trans="T").T
    w = rng.standard_normal(n_features)
    signal = X @ w
    noise = rng.standard_normal(n_samples) * np.sqrt(w @ np.linalg.solve(theta, w) / snr)
    family = graph if isinstance(graph, str) else "given"
    return SyntheticDataset(
        X=pd.DataFrame(X, columns=[f"x{i}" for i in range(n_features)]),
        y=pd.Series(signal + noise, name="y"),
        description=f"Drawn: Gaussian rows from a sparse precision ({family} graph), y = w'x + noise at SNR {snr:g}.",
        notes=_density_note(family, sparsity, theta),
        theta_true=theta,
        coefficients=w,
        graph=family,
    )


def make_gaussian_classification(
    n_samples: int = 100,
    n_features: int = 20,
    *,
    n_classes: int = 2,
    graph: GraphName | Any = "random",
    sparsity: float | None = None,
    snr: float = 10.0,
    condition_number: float = 10.0,
    random_state: int | None = None,
) -> SyntheticDataset:
    """Draw the rows of ``make_gaussian_regression`` and cut its target into classes 0, 1, ... from low to high.

    The cuts are quantiles of the rows drawn, so classes differ in size by one row at most.

    Parameters
    ----------
    n_samples : int, default=100
        Rows to draw.
    n_features : int, default=20
        Columns to draw.
    n_classes : int, default=2
        Classes to cut the target into.
    graph : str or array-like of shape (n_edges, 2), default="random"
        As in ``make_gaussian_regression``.
    sparsity : float or None, default=None
        As in ``make_gaussian_regression``.
    snr : float, default=10.0
        As in ``make_gaussian_regression``.
    condition_number : float, default=10.0
        As in ``make_gaussian_regression``.
    random_state : int or None, default=None
        Seed.

    Returns
    -------
    SyntheticDataset
        Rows, classes, and the truth: ``theta_true`` and ``coefficients``.

    Examples
    --------
    >>> data = make_gaussian_classification(n_samples=9, n_features=4, n_classes=3, random_state=0)
    >>> sorted(data.y)
    [0, 0, 0, 1, 1, 1, 2, 2, 2]
    """
    _check("n_samples", n_samples)
    _check("n_classes", n_classes)
    if n_classes > n_samples:
        raise InputError(f"{n_samples} rows cannot be cut into {n_classes} classes: raise n_samples.")
    drawn = make_gaussian_regression(
        n_samples,
        n_features,
        graph=graph,
        sparsity=sparsity,
        snr=snr,
        condition_number=condition_number,
        random_state=random_state,
    )
    rank = np.argsort(np.argsort(drawn.y.to_numpy(), kind="stable"), kind="stable")
    classes = pd.Series(rank * n_classes // n_samples, name="y")
    cut = f"{drawn.description[:-1]}, cut at its quantiles into {n_classes} classes."
    return replace(drawn, y=classes, description=cut)


def _check(name: str, value: Any) -> None:
    parameter = PARAMETERS[name]
    complaint = parameter.complaint(value.item() if isinstance(value, np.generic) else value)
    if complaint is not None:
        raise InputError(f"{name} {complaint}: it is {parameter.help}.")


def _check_sparsity(sparsity: Any) -> None:
    if sparsity is None:
        return
    if isinstance(sparsity, bool) or not isinstance(sparsity, int | float | np.number) or not 0 < sparsity <= 1:
        raise InputError(f"sparsity must be in (0, 1], got {sparsity!r}: it is the share of non-zero entries.")


def _density_note(family: str, sparsity: float | None, theta: FloatArray) -> tuple[str, ...]:
    """Return a note if the density differs from the one asked for by more than one pair of entries."""
    found = np.count_nonzero(theta)
    if sparsity is None or abs(found - sparsity * theta.size) <= 2:
        return ()
    return (f"A sparsity of {sparsity:g} was asked for; the nearest of graph={family!r} is {found / theta.size:.4g}.",)
