"""Correlations of cortical thickness on ABIDE: 1035 people, the 68 Desikan regions."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.precision.graphs import correlation_of
from precisionnet.datasets import fetch_abide
from precisionnet.errors import PrecisionNetError


def abide_correlation() -> np.ndarray | str:
    """The matrix, or a sentence that says what is missing."""
    folder = os.environ.get("PRECISIONNET_DATA", "")
    if not folder:
        return "the real tables are not here: set PRECISIONNET_DATA to their folder"
    try:
        return correlation_of(fetch_abide(folder, regions="all").X.to_numpy())
    except PrecisionNetError as error:
        return str(error)
