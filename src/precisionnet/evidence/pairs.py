"""Pairs of columns as rows of a table, and what many tests at once mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from precisionnet.types import FloatArray, IndexArray


def pairs_of(n_nodes: int) -> tuple[IndexArray, IndexArray]:
    """Return both nodes of every pair i < j, row by row of the upper triangle."""
    first, second = np.triu_indices(n_nodes, 1)
    return first, second


def pair_frame(names: Sequence[str], columns: Mapping[str, FloatArray]) -> pd.DataFrame:
    """Return ``source``, ``target`` and the columns, one row per pair i < j.

    A column is one number per pair, or a symmetric matrix whose upper triangle is taken.
    """
    labels = np.array(names, dtype=object)
    first, second = pairs_of(len(names))
    flat = {name: value[first, second] if value.ndim == 2 else value for name, value in columns.items()}
    return pd.DataFrame({"source": labels[first], "target": labels[second], **flat})


def q_values(p_values: FloatArray) -> FloatArray:
    """Return Benjamini and Hochberg's adjusted p-values; NaN stays NaN and is not counted as a test."""
    q = np.full(p_values.shape, np.nan)
    known = ~np.isnan(p_values)
    if known.any():
        q[known] = false_discovery_control(p_values[known])
    return q
