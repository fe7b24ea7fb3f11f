"""Correlations of cortical thickness on ABIDE: 1035 people, the 68 Desikan regions."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.precision.graphs import correlation_of


def abide_correlation() -> np.ndarray | str:
    """The matrix, or a sentence that says what is missing."""
    folder = os.environ.get("PRECISIONNET_DATA", "")
    if not folder:
        return "the real tables are not here: set PRECISIONNET_DATA to their folder"
    tables = [Path(folder) / "abide" / f"{side}.aparc_table_thickness.tsv" for side in ("lh", "rh")]
    if not all(table.is_file() for table in tables):
        return "PRECISIONNET_DATA holds no abide/{lh,rh}.aparc_table_thickness.tsv"
    sides = [pd.read_csv(table, sep="\t", index_col=0) for table in tables]
    regions = pd.concat(sides, axis=1, join="inner").filter(regex=r"_thickness$")
    return correlation_of(regions.loc[:, ~regions.columns.str.contains("Mean")].to_numpy(dtype=np.float64))
