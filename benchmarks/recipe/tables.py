"""The tables a recipe is judged on, and their splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets as bundled

from precisionnet.datasets import make_gaussian_regression
from precisionnet.paper.cohorts import load_cohort

SPLITS = 10
Rows = tuple[Any, Any, Any, Any]
"""X and y to learn from, X and y to be judged on."""


def _cohort(name: str) -> Callable[[], tuple[Any, Any]]:
    def load() -> tuple[Any, Any]:
        data = load_cohort(name, None)
        return np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float)

    return load


def _synthetic() -> tuple[Any, Any]:
    data = make_gaussian_regression(300, 20, random_state=0)
    return np.asarray(data.X), np.asarray(data.y)


TABLES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "abide": _cohort("abide"),
    "ants": _cohort("ants"),
    "diabetes": lambda: bundled.load_diabetes(return_X_y=True),
    "synthetic": _synthetic,
    "breast_cancer": lambda: bundled.load_breast_cancer(return_X_y=True),
    "wine": lambda: bundled.load_wine(return_X_y=True),
    "digits": lambda: bundled.load_digits(return_X_y=True),
}
CLASSES = ("breast_cancer", "wine", "digits")


def splits(table: str) -> Iterator[Rows]:
    """60 % of the rows to learn from, 20 % to be judged on; the rest is left alone, for comparisons of methods."""
    X, y = TABLES[table]()
    for split in range(SPLITS):
        order = np.random.RandomState(1000 + split).permutation(len(X))
        learn, judge = np.split(order[: int(0.8 * len(X))], [int(0.6 * len(X))])
        yield X[learn], y[learn], X[judge], y[judge]
