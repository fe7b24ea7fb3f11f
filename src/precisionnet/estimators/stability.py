r"""How far predictions move when the matrix is estimated from fewer rows: || Phi(x, theta_T) - Phi(x, theta) || over T.

The networks' weights stay as they are. The matrix is estimated anew from T rows that are drawn without replacement,
with the penalty, the bounds and the scaling that a fit to T rows would have:

- ``glasso``, ``sample``, ``vnn``: the method's own estimate;
- ``joint``: theta is Step 1 of the paper on the T rows, pulled to each network's own theta_task; what the task has
  added to the matrix, theta_task - theta, belongs to the labels and stays.

It is compared with the matrix of all n rows, or of the true covariance where that is known. An estimate from T rows is
off by a multiple of T^(-1/2), and from that of n rows, of which the T are a part, by a multiple of (1/T - 1/n)^(1/2).
So differences are set against T, or against T n / (n - T), and the slope on logarithmic axes beside -1/2. A bound from
the filters' frequency responses (``precisionnet.nn.lipschitz``) stands beside every difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from precisionnet.arguments import check_count
from precisionnet.errors import InputError, PrecisionNetWarning, shown
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.checks import MIN_ROWS
from precisionnet.estimators.fitted import Fitted
from precisionnet.estimators.targets import NumberTarget
from precisionnet.estimators.transfer import prepared_rows
from precisionnet.joint.problem import GraphTerms, start_of
from precisionnet.nn import PrecisionNetwork, output_change_bound
from precisionnet.precision.covariance import to_correlation
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray

N_SIZES = 6
MOST_ROWS = 2048
"""Rows that are predicted; of a longer table as many are taken, evenly spaced."""


@dataclass(frozen=True)
class StabilityCurve:
    """Differences of predictions over the number of rows that the matrix is estimated from.

    Parameters
    ----------
    frame : DataFrame
        One row per draw: ``n_rows`` T; ``effective_rows``, T n / (n - T), or T beside the true covariance; ``draw``;
        ``difference``, the root mean square over rows, in the units of what is learned (the target, its logarithm, or
        logits of classes); ``bound`` on it, NaN for networks of one's own; ``matrix_difference``, the Frobenius norm
        between the matrices as networks see them, mean over members.
    slope : float
        Of the difference in ``effective_rows`` on logarithmic axes, mean over draws; NaN where nothing moves.
    standard_error : float
        Of the slope; NaN with one draw.

    Examples
    --------
    >>> import pandas as pd
    >>> StabilityCurve(pd.DataFrame(), slope=-0.51, standard_error=0.02).slope
    -0.51
    """

    frame: pd.DataFrame
    slope: float
    standard_error: float


def stability_curve(
    model: BasePNN,
    X: Any,
    sizes: Sequence[int] | None = None,
    *,
    n_draws: int = 5,
    covariance: Any = None,
    random_state: int = 0,
) -> StabilityCurve:
    """Measure how far predictions move when the matrix is estimated from fewer rows, the weights as they are.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        Fitted, with ``method="joint"``, ``"glasso"``, ``"sample"`` or ``"vnn"``.
    X : array-like of shape (n_samples, n_features)
        Rows to estimate matrices from, and to predict.
    sizes : sequence of int, optional
        Numbers of rows T; by default six, up to half of the rows.
    n_draws : int, default=5
        How often T rows are drawn.
    covariance : array-like of shape (n_features, n_features), optional
        The true covariance of the columns, where it is known: its matrix is then what the others are compared with.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    StabilityCurve
        One row per draw, and the fitted slope, to be read beside -1/2.

    Examples
    --------
    >>> from precisionnet import PNNRegressor, stability_curve
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> data = make_gaussian_regression(n_samples=400, n_features=6, random_state=0)
    >>> model = PNNRegressor("vnn", readout="mean", n_members=1, max_epochs=5, random_state=0).fit(data.X, data.y)
    >>> curve = stability_curve(model, data.X, sizes=[25, 50, 100, 200], n_draws=3)
    >>> bool((curve.frame["difference"] <= curve.frame["bound"]).all())
    True
    """
    if not isinstance(model, BasePNN):
        raise InputError(f"model must be a fitted PNNRegressor or PNNClassifier, got {shown(model)}.")
    _refuse_unknown_matrix(model)
    check_count("n_draws", n_draws, 1)
    check_count("random_state", random_state, 0)
    rows = model._checked_rows(X)
    values = rows[0 : len(rows)]
    sizes = _checked_sizes(sizes, *values.shape, whole=covariance is not None)
    fitted, rng = model.fitted, np.random.default_rng(random_state)
    seen = values[np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_ROWS)).round().astype(np.intp))]
    with limited_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionNetWarning)  # that a draw has few rows is what is asked for
        parts = _task_parts(fitted)
        if covariance is None:
            whole = _on_rows(model, values, parts)
        else:
            whole = _on_matrix(fitted, _true_covariance(covariance, fitted), np.inf, parts)
        before = whole.mean_output(seen)
        found = []
        for size in sizes:
            for draw in range(n_draws):
                other = _on_rows(model, values[rng.permutation(len(values))[:size]], parts)
                measured = _differences(whole, other, seen, before)
                effective = size if covariance is not None else size * len(values) / (len(values) - size)
                found.append({"n_rows": size, "effective_rows": effective, "draw": draw, **measured})
    frame = pd.DataFrame(found)
    return StabilityCurve(frame, *fitted_slope(frame))


def fitted_slope(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the slope of ``difference`` in ``effective_rows`` on logarithmic axes, mean over draws, and its error."""
    slopes = []
    for _, part in frame[frame["difference"] > 0].groupby("draw"):
        if len(part["effective_rows"].unique()) > 1:
            slopes.append(np.polyfit(np.log(part["effective_rows"]), np.log(part["difference"]), 1)[0])
    if not slopes:
        return np.nan, np.nan
    error = np.std(slopes, ddof=1) / np.sqrt(len(slopes)) if len(slopes) > 1 else np.nan
    return float(np.mean(slopes)), float(error)


def _refuse_unknown_matrix(model: BasePNN) -> None:
    settings = model.fitted.settings
    model.fitted.refuse_on_support("A stability curve")
    if settings.method == "naive":
        raise InputError(
            "The one matrix of method='naive' cannot be estimated without labels: take a model with another method."
        )
    if settings.sparse:
        raise InputError("A model with predict_on='sparse' has a graph that training made: take predict_on='task'.")


def _checked_sizes(sizes: Sequence[int] | None, n_rows: int, n_features: int, *, whole: bool) -> list[int]:
    """Return numbers of rows, ascending; all rows are allowed where ``whole``, else they are what is compared with."""
    most = n_rows if whole else n_rows - 1
    if most < MIN_ROWS:
        raise InputError(f"X has {n_rows} rows: at least {MIN_ROWS + 1} are needed to draw some of them.")
    if sizes is None:
        low = max(MIN_ROWS, min(n_features, n_rows // 8))
        return np.unique(np.geomspace(low, max(low, n_rows // 2), N_SIZES).round().astype(int)).tolist()
    given: Any = sizes
    if not isinstance(given, list | tuple | range | np.ndarray) or not len(given):
        raise InputError(f"sizes must be a list of numbers of rows, got {shown(sizes)}.")
    for size in sizes:
        check_count("sizes", size, MIN_ROWS)
        if size > most:
            raise InputError(f"sizes has {size}, and X has {n_rows} rows: name numbers up to {most}.")
    return sorted({int(size) for size in sizes})


def _true_covariance(covariance: Any, fitted: Fitted) -> FloatArray:
    """Return the covariance of the columns as a fit to infinitely many rows would scale them."""
    n = fitted.n_features
    try:
        known = np.asarray(covariance, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"covariance must be a matrix of numbers for {n} columns, got {shown(covariance)}.") from error
    if known.shape != (n, n):
        wrong = f"shape {known.shape}"
    elif not np.isfinite(known).all():
        wrong = "values that are missing or infinite"
    elif not np.allclose(known, known.T):
        wrong = "one that is not symmetric"
    elif np.linalg.eigvalsh(known)[0] <= 0:
        wrong = "one with an eigenvalue that is not above zero"
    else:
        return to_correlation(known)[1] if fitted.settings.standardize else known
    raise InputError(f"covariance must be a positive definite matrix of {n} columns, got {wrong}.")


def _task_parts(fitted: Fitted) -> FloatArray:
    """Return what the task has added to each network's matrix, theta_task - theta; nothing where it has no say."""
    matrices = fitted.member_matrices
    if fitted.settings.method != "joint":
        return np.zeros_like(matrices)
    graph = GraphTerms.of(fitted.settings, fitted.covariance, 1.0)
    graph = replace(graph, l1_penalty=fitted.l1_penalty, spectral_bound=fitted.spectral_bound)
    return np.stack([one - graph.solve(one, fitted.precision).precision for one in matrices])


def _on_rows(model: BasePNN, values: FloatArray, task_parts: FloatArray) -> Fitted:
    data = prepared_rows(model, values)
    return _on_matrix(model.fitted, data.emp_cov, float(data.training.weight.sum()), task_parts)


def _on_matrix(fitted: Fitted, emp_cov: FloatArray, n_rows: float, task_parts: FloatArray) -> Fitted:
    """Return the model with its networks on the matrix of a covariance that was estimated from ``n_rows`` rows."""
    settings, own = fitted.settings, fitted.member_matrices
    graph = GraphTerms.of(settings, emp_cov, n_rows)
    if settings.method == "joint":
        solved = [graph.solve(one, fitted.precision).precision for one in own]
        matrices: FloatArray = np.stack(solved) + task_parts
    else:
        matrices = np.repeat(start_of(settings.method, graph).theta_task[None], len(own), axis=0)
    scale = np.full(len(own), 1.0)
    if settings.scale_shift:  # by a norm that is the matrix's own, or follows it
        norms, before = (np.linalg.norm(each, 2, axis=(1, 2)) for each in (matrices, own))
        scale = fitted.scale * norms / before
    return replace(fitted, member_matrices=matrices / scale[:, None, None], scale=1.0)


def _differences(whole: Fitted, other: Fitted, rows: FloatArray, before: FloatArray) -> dict[str, float]:
    """Return how far predictions and matrices are apart, and the bound."""
    unit = float(whole.target.scaler.scale) if isinstance(whole.target, NumberTarget) else 1.0
    moved = np.linalg.norm(other.mean_output(rows) - before, axis=1)
    x = torch.from_numpy(whole.scaler.transform(whole.filled(rows))).unsqueeze(-1)
    bound = np.zeros(len(rows))
    apart = np.linalg.norm(other.member_matrices - whole.member_matrices, axis=(1, 2))
    for i, weight in enumerate(whole.member_weights):
        network = whole.networks[i]
        if weight and isinstance(network, PrecisionNetwork):
            shifts = (torch.from_numpy(one.member_matrices[i]) for one in (whole, other))
            bound += weight * output_change_bound(network, x, *shifts).numpy()
        elif weight:
            bound += np.nan
    return {
        "difference": unit * float(np.sqrt(np.mean(moved**2))),
        "bound": unit * float(np.sqrt(np.mean(bound**2))),
        "matrix_difference": float(apart.mean()),
    }
