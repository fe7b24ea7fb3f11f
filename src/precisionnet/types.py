"""Names for the few types that cross layers, and one number that does."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
"""A real array; float64 unless said otherwise."""

IndexArray = NDArray[np.integer[Any]]
"""Positions in an array, and other counts."""

BoolArray = NDArray[np.bool_]
"""A mask."""

MethodName = Literal["joint", "naive", "glasso", "sample", "vnn"]
"""How the matrix under the network is found."""

ReadoutName = Literal["mlp", "mean"]
"""How node features become a prediction."""

TaskName = Literal["regression", "classification"]
"""What the target is."""

LEVEL = 0.95
"""Coverage of every confidence interval."""
