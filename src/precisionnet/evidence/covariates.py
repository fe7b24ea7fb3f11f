r"""Rows without what the labels and covariates do to their means, in one unit for all groups.

Least squares over all rows at once, with a mean for every group of labels and one slope for all groups,

    x_t = mean_{label(t)} + c_t' slope + e_t,      z_tj = e_tj / sqrt(1 - h_t) / s_{label(t), j}

where h_t is the row's leverage (so that every z has the same variance, however rare its covariates are) and s the
root mean square of the column within the group. Means, covariates and the columns' spread are what a comparison of
graphs must not see: a group with larger variances has the same partial correlations. The z are exchanged between
groups; taking the covariates out anew after each exchange would cost the exchanged groups degrees of freedom that the
observed ones still have.

What is taken out is the covariates' effect on the mean, with the same slope in every group. A site that changes
variances or correlations is not taken out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, shown, some
from precisionnet.preprocessing.covariates import Coding, as_frame
from precisionnet.types import FloatArray, IndexArray

SAME = 1e-8
"""Share of a variance that is rounding."""


def covariate_columns(covariates: Any, group: IndexArray) -> FloatArray:
    """Return the covariates as columns of numbers, one-hot where they are text or categories.

    A constant covariate and one that tells the groups apart by itself are refused; so are covariates that do together.
    """
    frame = as_frame(covariates, len(group))
    flat = [str(name) for name, column in frame.items() if column.nunique() < 2]
    if flat:
        raise InputError(
            f"Covariate {some(flat)} has the same value in all rows: there is nothing to take out; drop it."
        )
    same = [str(name) for name in frame if _tells_groups(Coding.fit(frame[[name]]).encode(frame[[name]]), group)]
    if same:
        raise InputError(
            f"Covariate {some(same)} coincides with the labels (its values say which group a row is of): what it does "
            "and what the groups differ in cannot be told apart; leave it out, or bring rows of every group for each "
            "of its values."
        )
    columns = Coding.fit(frame).encode(frame)
    if len(group) <= columns.shape[1] + len(np.unique(group)):
        raise InputError(
            f"{columns.shape[1]} covariate columns for {len(group)} rows leave nothing to compare: drop covariates, "
            "merge levels, or bring more rows."
        )
    if _tells_groups(columns, group):
        raise InputError(
            "The covariates together coincide with the labels (they say which group a row is of): leave one of them "
            "out."
        )
    return columns


def standard_rows(X: FloatArray, group: IndexArray, columns: FloatArray, groups: list[Any], names: list[str]) -> Any:
    """Return z of the module's text; ``groups`` and ``names`` are what labels and columns are called in messages."""
    design = _within(columns, group)
    spread = np.sqrt(np.mean(design**2, axis=0))
    basis, values, _ = np.linalg.svd(design / np.where(spread > 0.0, spread, 1.0), full_matrices=False)
    basis = basis[:, values > SAME * max(float(values.max(initial=0.0)), 1.0)]
    rows = _within(X, group)
    rows = rows - basis @ (basis.T @ rows)
    room = 1.0 - np.sum(basis**2, axis=1) - 1.0 / np.bincount(group)[group]
    alone = np.flatnonzero(room < SAME)
    if len(alone):
        raise InputError(
            f"The covariates explain {len(alone)} of {len(X)} rows completely (row {int(alone[0]) + 1} is the first; a "
            "level with a single row does that): merge such levels, or drop those rows."
        )
    rows /= np.sqrt(room)[:, None]
    rounding = SAME * np.sqrt(np.mean(_within(X, np.zeros_like(group)) ** 2, axis=0)) + 1e-14 * np.abs(X).max(axis=0)
    for code, label in enumerate(groups):
        here = group == code
        deviation = np.sqrt(np.mean(rows[here] ** 2, axis=0))
        flat = np.flatnonzero(deviation <= rounding)
        if len(flat):
            raise InputError(
                f"Column {some([names[int(j)] for j in flat])} is constant in group {shown(label)} (after covariates, "
                "where there are any): it has no correlation there; drop the column or the group."
            )
        rows[here] /= deviation
    return rows


def _within(values: FloatArray, group: IndexArray) -> FloatArray:
    """Values about the mean of their group."""
    member = pd.get_dummies(group).to_numpy(dtype=np.float64)
    mean = (member.T @ values) / member.sum(axis=0)[:, None]
    return np.asarray(values - mean[group])


def _tells_groups(columns: FloatArray, group: IndexArray) -> bool:
    """Whether a linear function of the columns is constant within groups and differs between some of them."""
    whole = np.zeros_like(group)
    centred = _within(columns, whole)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    centred = centred / np.where(spread > 0.0, spread, 1.0)
    rank = np.linalg.matrix_rank
    return bool(rank(_within(centred, group), tol=_tolerance(centred)) < rank(centred, tol=_tolerance(centred)))


def _tolerance(columns: FloatArray) -> float:
    return 1e-7 * float(np.linalg.norm(columns)) if columns.size else 0.0
