"""What is looked at before a graphical lasso: parameters and rows, one sentence a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from precisionnet.arguments import check_count
from precisionnet.errors import InputError, some
from precisionnet.estimators.checks import refuse_huge
from precisionnet.types import FloatArray


def checked_penalties(l1_penalties: Any) -> int | FloatArray:
    """A number of penalties as it is, or a list of them, each once and the largest first."""
    if not isinstance(l1_penalties, bool) and isinstance(l1_penalties, Integral):
        check_count("l1_penalties", l1_penalties, 2)
        return int(l1_penalties)
    try:
        penalties = np.asarray(l1_penalties, dtype=np.float64)
    except (TypeError, ValueError):
        penalties = np.empty(0)
    if penalties.ndim != 1 or not len(penalties) or not (np.isfinite(penalties) & (penalties >= 0)).all():
        raise InputError(
            f"l1_penalties must be how many to try, at least 2, or a list of numbers >= 0, got {l1_penalties!r}."
        )
    return np.unique(penalties)[::-1]


def refuse_rows(X: FloatArray, names: Sequence[str], missing: str, least: int = 2) -> None:
    """Infinity, NaN where none is expected, and too few rows or columns."""
    infinite = np.isinf(X)
    if infinite.any():
        raise InputError(
            f"Input X contains infinity in column {_columns(infinite, names)}: drop or correct those rows."
        )
    absent = np.isnan(X)
    if absent.any() and missing == "error":
        raise InputError(
            f"Input X contains NaN in {int(absent.any(axis=1).sum())} of {len(X)} rows (column "
            f"{_columns(absent, names)}): set missing='em' (maximum likelihood) or missing='pairwise' (each covariance "
            "from the rows its pair shares), or drop them."
        )
    refuse_huge(X, names)
    if X.shape[1] < 2:
        raise InputError(f"Column {names[0]!r} is the only feature (n_features=1): a graph needs at least two.")
    if len(X) < least:
        raise InputError(f"Got n_samples={len(X)} row: a covariance needs at least {least}.")


def refuse_not_square(X: FloatArray) -> None:
    """A precomputed covariance has as many rows as columns."""
    if X.shape[0] != X.shape[1]:
        raise InputError(
            f"covariance='precomputed' takes a covariance matrix, which is square, got shape {X.shape}: pass the "
            "covariance of the rows, or set another covariance."
        )
    if len(X) < 2:
        raise InputError("The covariance has one variable (n_features=1): a graph needs at least two.")


def _columns(where: Any, names: Sequence[str]) -> str:
    return some([names[int(i)] for i in np.flatnonzero(where.any(axis=0))])
