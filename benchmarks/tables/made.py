"""Drawn tables: scikit-learn's generators, the project's graph families, and truths that neither has.

Every table is drawn with a seed of its own, so that splits differ and the rows do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets as generators

from benchmarks.tables.encoding import Rows, plain
from precisionnet.datasets import make_gaussian_classification, make_gaussian_regression
from precisionnet.types import TaskName

Load = Callable[[], Rows]
NUMBER: TaskName = "regression"
CLASS: TaskName = "classification"


def _drawn(make: Callable[..., Any], **arguments: Any) -> Load:
    """One of scikit-learn's generators."""

    def load() -> Rows:
        return plain(*make(**arguments))

    return load


def _graph(make: Callable[..., Any], *size: int, **arguments: Any) -> Load:
    """One of the project's graph families."""

    def load() -> Rows:
        data = make(*size, **arguments)
        return plain(data.X, data.y)

    return load


def _additive() -> Rows:
    """A sum of curves of single columns; the last six columns have no effect."""
    rng = np.random.default_rng(21)
    X = rng.normal(size=(1000, 12))
    signal = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.5 * X[:, 2] ** 2 + np.tanh(3 * X[:, 3]) + X[:, 4] - 0.5 * X[:, 5]
    return plain(X, signal + 0.5 * rng.normal(size=len(X)))


def _products() -> Rows:
    """Products of pairs of correlated columns; no column has an effect of its own."""
    rng = np.random.default_rng(26)
    X = 0.8 * rng.normal(size=(800, 20)) + 0.6 * rng.normal(size=(800, 1))
    signal = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] - X[:, 4] * X[:, 5]
    return plain(X, signal + 0.3 * rng.normal(size=len(X)))


def _steps() -> Rows:
    """Thresholds of single columns and a box of two; what trees find and smooth functions do not."""
    rng = np.random.default_rng(31)
    X = rng.uniform(-1.0, 1.0, size=(900, 12))
    box = (np.abs(X[:, 3]) < 0.5) & (X[:, 4] > 0.0)
    signal = 2.0 * (X[:, 0] > 0.2) - 1.5 * (X[:, 1] > -0.3) + (X[:, 2] > 0.6) + 2.0 * box
    return plain(X, signal + 0.4 * rng.normal(size=len(X)))


def _saddle() -> Rows:
    """A saddle over two sums of neighbours on a ring of eight correlated columns, and a line."""
    rng = np.random.default_rng(32)
    noise = rng.normal(size=(500, 8))
    X = noise + 0.7 * np.roll(noise, 1, axis=1)
    signal = (X[:, 0] + X[:, 1]) ** 2 / 4 - (X[:, 4] + X[:, 5]) ** 2 / 4 + X[:, 2]
    return plain(X, signal + 0.5 * rng.normal(size=len(X)))


def _heavy_tails() -> Rows:
    """A linear truth with noise of two degrees of freedom, and columns of three."""
    rng = np.random.default_rng(22)
    X = rng.standard_t(3, size=(400, 15))
    return plain(X, X @ rng.normal(size=15) + 3 * rng.standard_t(2, size=len(X)))


def _multiplied() -> Rows:
    """A positive target, the product of its causes: linear in logarithms, skewed as it stands."""
    rng = np.random.default_rng(23)
    X = rng.normal(size=(600, 10))
    return plain(X, np.exp(X @ np.linspace(0.5, -0.4, 10) + 0.3 * rng.normal(size=len(X))))


def _factors() -> Rows:
    """150 columns that five hidden factors move, and a target that two of the factors make."""
    rng = np.random.default_rng(24)
    hidden = rng.normal(size=(250, 5))
    X = hidden @ rng.normal(size=(5, 150)) + rng.normal(size=(250, 150))
    return plain(X, 2 * hidden[:, 0] - hidden[:, 1] + 0.5 * rng.normal(size=len(X)))


def _categories() -> Rows:
    """Four categories of five levels, one-hot: the class hangs on two of them together, and on a number."""
    rng = np.random.default_rng(25)
    levels = rng.integers(0, 5, size=(1500, 4))
    numbers = rng.normal(size=(1500, 4))
    together = rng.normal(size=(5, 5)) * 2
    score = together[levels[:, 0], levels[:, 1]] + numbers[:, 0] + 0.5 * (levels[:, 2] == 1)
    X = np.hstack([np.eye(5)[levels[:, j]] for j in range(4)] + [numbers])
    return plain(X, score + rng.logistic(size=len(score)) > 0)


TABLES: list[tuple[str, TaskName, Load, str, str, bool]] = [
    (
        "recipe",
        NUMBER,
        _graph(make_gaussian_regression, 200, 20, sparsity=0.2, random_state=0),
        "the paper's synthetic recipe, as in the demo; linear",
        "precisionnet make_gaussian_regression",
        True,
    ),
    (
        "linear_60",
        NUMBER,
        _drawn(generators.make_regression, n_samples=60, n_features=20, n_informative=10, noise=30.0, random_state=1),
        "60 rows of a linear truth",
        "scikit-learn make_regression",
        True,
    ),
    (
        "friedman1",
        NUMBER,
        _drawn(generators.make_friedman1, n_samples=500, n_features=10, noise=1.0, random_state=2),
        "a product, a square and lines; half of the columns idle",
        "scikit-learn make_friedman1",
        True,
    ),
    (
        "friedman2",
        NUMBER,
        _drawn(generators.make_friedman2, n_samples=300, noise=100.0, random_state=3),
        "four columns that interact, in very different units",
        "scikit-learn make_friedman2",
        True,
    ),
    (
        "friedman3",
        NUMBER,
        _drawn(generators.make_friedman3, n_samples=400, noise=0.1, random_state=13),
        "an angle of four columns; strongly curved",
        "scikit-learn make_friedman3",
        True,
    ),
    ("steps", NUMBER, _steps, "thresholds of single columns and a box of two", "drawn here", False),
    ("saddle", NUMBER, _saddle, "a saddle over sums of neighbours on a ring", "drawn here", False),
    ("products", NUMBER, _products, "products of pairs of columns, no linear signal", "drawn here", False),
    (
        "sparse",
        NUMBER,
        _drawn(generators.make_sparse_uncorrelated, n_samples=200, n_features=60, random_state=4),
        "4 of 60 columns matter; linear",
        "scikit-learn make_sparse_uncorrelated",
        False,
    ),
    ("additive", NUMBER, _additive, "a sum of curves", "drawn here", False),
    ("heavy_tails", NUMBER, _heavy_tails, "linear, heavy-tailed columns and noise", "drawn here", False),
    ("multiplied", NUMBER, _multiplied, "skewed positive target, linear in logarithms", "drawn here", False),
    ("factors", NUMBER, _factors, "150 columns moved by five hidden factors", "drawn here", False),
    (
        "chain_wide",
        NUMBER,
        _graph(make_gaussian_regression, 200, 500, graph="chain", random_state=5),
        "more columns (500) than rows; linear, every column matters",
        "precisionnet make_gaussian_regression",
        False,
    ),
    (
        "hub",
        NUMBER,
        _graph(make_gaussian_regression, 500, 60, graph="hub", snr=2.0, random_state=6),
        "a graph of hubs, noisy; linear",
        "precisionnet make_gaussian_regression",
        False,
    ),
    (
        "small_world",
        NUMBER,
        _graph(make_gaussian_regression, 120, 40, graph="small_world", random_state=7),
        "120 rows of a small-world graph; linear",
        "precisionnet make_gaussian_regression",
        False,
    ),
    (
        "rare_class",
        CLASS,
        _drawn(
            generators.make_classification,
            n_samples=1500,
            n_features=20,
            n_informative=6,
            n_redundant=4,
            weights=[0.95],
            random_state=8,
        ),
        "5 % of the rows in one class",
        "scikit-learn make_classification",
        False,
    ),
    (
        "three_classes",
        CLASS,
        _drawn(
            generators.make_classification,
            n_samples=600,
            n_features=30,
            n_informative=8,
            n_redundant=8,
            n_classes=3,
            flip_y=0.05,
            random_state=9,
        ),
        "three classes of several clusters; correlated, some labels wrong",
        "scikit-learn make_classification",
        False,
    ),
    (
        "sphere",
        CLASS,
        _drawn(generators.make_hastie_10_2, n_samples=2000, random_state=10),
        "inside or outside of a sphere in ten dimensions; no linear signal",
        "scikit-learn make_hastie_10_2",
        False,
    ),
    (
        "wide_classes",
        CLASS,
        _drawn(
            generators.make_classification,
            n_samples=150,
            n_features=300,
            n_informative=10,
            n_redundant=0,
            class_sep=1.5,
            shuffle=False,
            random_state=11,
        ),
        "10 of 300 columns matter, 150 rows",
        "scikit-learn make_classification",
        False,
    ),
    (
        "block_classes",
        CLASS,
        _graph(make_gaussian_classification, 500, 50, n_classes=3, graph="block", random_state=12),
        "classes cut from a linear target; a graph of blocks",
        "precisionnet make_gaussian_classification",
        False,
    ),
    ("categories", CLASS, _categories, "categories that matter together", "drawn here", False),
]
"""Name, task, loader, description, source, and whether the defaults were chosen while looking at it."""
