"""What is trained on: one split of ABIDE (a drawn table of its size where that is absent), and the paper's recipe."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from precisionnet.datasets import Dataset, fetch_abide, make_gaussian_regression
from precisionnet.errors import FetchError
from precisionnet.precision import PrecisionResult, graphical_lasso, sample_covariance, spectral_bound
from precisionnet.types import FloatArray

DRAWN = (1000, 62)


@dataclass(frozen=True)
class Shape:
    """L, F and K of the network; the readout is a perceptron over the flattened nodes."""

    n_layers: int
    n_filters: int
    order: int
    readout_width: int = 64

    def __str__(self) -> str:
        plural = "s" * (self.n_layers > 1)
        return f"{self.n_layers} layer{plural}, {self.n_filters} filters, order {self.order}"


SMALL, LARGE = Shape(1, 8, 2), Shape(2, 16, 3)


@dataclass(frozen=True)
class Recipe:
    """The numbers of the paper; written down here so that a change of the library's defaults changes nothing."""

    l1_penalty: float
    spectral_bound: float
    task_weight: float = 0.5
    coupling: float = 10.0
    ridge: float = 1e-4
    l2_penalty: float = 3e-3
    learning_rate: float = 0.01
    steps: int = 20
    """Of each kind: passes of Step 1, gradient steps of theta_task, Adam steps."""
    epochs: int = 10


@dataclass(frozen=True)
class Part:
    """Rows in standard units, as every network takes them."""

    x: Tensor
    """(rows, nodes, 1), float32."""
    y: Tensor
    """(rows,), float32, in standard deviations of the training rows."""


class Task:
    """A table split 60 / 20 / 20; the last fifth, the test rows, is never looked at."""

    def __init__(self, name: str, data: Dataset) -> None:
        self.name = name
        self.raw_train, self.raw_validation, _ = data.split((0.6, 0.2, 0.2), seed=0)
        X, y = self.raw_train.X.to_numpy(np.float64), np.asarray(self.raw_train.y, dtype=np.float64)
        self._centre, self._scale = X.mean(axis=0), X.std(axis=0)
        self._y_centre, self.unit = float(y.mean()), float(y.std())
        self.train = self._part(self.raw_train.X, y)
        self.validation = self._part(self.raw_validation.X, np.asarray(self.raw_validation.y, dtype=np.float64))
        self.emp_cov: FloatArray = sample_covariance((X - self._centre) / self._scale)
        n_rows, n_nodes = X.shape
        self.recipe = Recipe(float(np.sqrt(np.log(n_nodes) / n_rows)), spectral_bound(self.emp_cov))

    def _part(self, X: pd.DataFrame, y: FloatArray) -> Part:
        x = (X.to_numpy(np.float64) - self._centre) / self._scale
        return Part(
            torch.from_numpy(x).float().unsqueeze(-1), torch.from_numpy((y - self._y_centre) / self.unit).float()
        )

    @property
    def n_nodes(self) -> int:
        """N."""
        return len(self.emp_cov)

    @cached_property
    def start(self) -> PrecisionResult:
        """The graphical lasso of the training rows: theta and theta_task of everyone at the start."""
        recipe = self.recipe
        return graphical_lasso(
            self.emp_cov, recipe.l1_penalty, spectral_bound=recipe.spectral_bound, ridge=recipe.ridge, tol=1e-10
        )


def the_task() -> Task:
    """ABIDE's table where ``PRECISIONNET_DATA`` has it, or one drawn at its size: by default nothing is downloaded."""
    if os.environ.get("PRECISIONNET_DATA"):
        try:
            return Task("ABIDE 1035 x 62", fetch_abide(progress=False))
        except FetchError:
            pass
    return drawn_task(*DRAWN)


def drawn_task(n_rows: int, n_columns: int) -> Task:
    """A Gaussian table with a sparse precision."""
    data = make_gaussian_regression(n_rows, n_columns, sparsity=0.2, random_state=0)
    return Task(f"drawn {n_rows} x {n_columns}", data)
