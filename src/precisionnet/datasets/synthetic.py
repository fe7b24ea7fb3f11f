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

from precisionnet.datasets.dataset import Dataset
from precisionnet.datasets.graphs import GraphName, draw_edges
from precisionnet.errors import InputError
from precisionnet.parameters import Parameter
from precisionnet.types import FloatArray

WORST_CONDITION = 1e10
"""Beyond, rounding decides about the smallest eigenvalue."""

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
    """Drawn rows and the truth behind them, which stays whole when rows are taken or split."""

    y: pd.Series[Any]
    theta_true: FloatArray = field(kw_only=True)
    """The precision that the rows were drawn from."""
    coefficients: FloatArray = field(kw_only=True)
    """w: the target is w'x and noise, or classes cut from it."""
    graph: str = field(kw_only=True)
    """The family of theta_true's graph; ``"given"`` where its edges were."""

    @property
    def density(self) -> float:
        """||theta_true||_0 / N^2, what the family made of the sparsity asked for."""
        return float(np.count_nonzero(self.theta_true)) / self.theta_true.size


def make_sparse_precision(
    n_features: int,
    sparsity: float | None,
    rng: np.random.Generator,
    condition_number: float = 10.0,
    graph: GraphName | Any = "random",
) -> FloatArray:
    """Symmetric positive definite, with the graph, condition number and share of non-zero entries asked for.

    The values of the edges are uniform in +-[0.5, 1]; the diagonal is then raised until the condition number is the one
    asked for (without an edge it is 1), and the whole scaled to unit mean variance. ``graph`` and ``sparsity`` are
    those of ``make_gaussian_regression``.
    """
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
    """x ~ N(0, inverse of theta_true), y = w'x + noise, w ~ N(0, I), with signal variance ``snr`` times the noise's.

    ``graph`` is the family of theta_true's graph, and ``sparsity`` its share of non-zero entries, the diagonal
    included (``density`` says what came out; a family that has it only nearly leaves a note, and one that cannot have
    it refuses). By default it is the family's own:

    ============= ============================================== =====================================
    graph         sparsity decides                               by default
    ============= ============================================== =====================================
    random        the number of edges, uniform over all pairs    0.2
    chain         nothing: (3N - 2) / N^2                        each feature joined to the next
    banded        the bandwidth                                  2
    hub           the number of edges, all of them at a hub      one hub for ten features, one hub each
    block         the size of the complete blocks                a fifth of the features
    small_world   the number of neighbours on the ring           4, a tenth of the edges rewired
    ============= ============================================== =====================================

    ``graph`` may also be the edges themselves, pairs of column positions (n_edges, 2).
    """
    _check("n_samples", n_samples)
    _check("snr", snr)
    try:
        rng = np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(f"random_state must be None or a whole number from 0 on, got {random_state!r}.") from error
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
    """The rows of ``make_gaussian_regression``, its y cut into ``n_classes`` classes 0, 1, ... from low to high.

    The cuts are quantiles of the rows drawn, so classes differ in size by one row at most.
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
    """Where the density is off by more than one pair of entries."""
    found = np.count_nonzero(theta)
    if sparsity is None or abs(found - sparsity * theta.size) <= 2:
        return ()
    return (f"A sparsity of {sparsity:g} was asked for; the nearest of graph={family!r} is {found / theta.size:.4g}.",)
