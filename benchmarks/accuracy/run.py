"""Measure the defaults where a comparison of methods does not look.

    make accuracy     writes results/accuracy/*.csv; about a quarter of an hour on one quiet core

    few_rows.csv      joint and ridge (its penalty by cross-validation) on 50, 100 and 200 rows of ABIDE
    mean_readout.csv  single networks with the mean readout: the learned matrix beside fixed ones
    sparse.csv        dense and sparse matrices at prediction; coverage of 95 % intervals on held-out rows
    intervals.csv     95 % intervals beside those of one spread for all rows: coverage overall and by fifths of the
                      prediction and of the target, mean width; the cohorts, and drawn rows whose spread is known
    classes.csv       joint beside a support vector machine and logistic regression on scikit-learn's tables

Ten splits each, 60 % of the rows to learn from and 20 % to be judged on, whole people. Networks have their defaults;
the support vector machine and logistic regression are tuned on the other 20 %.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets as bundled
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet import PNNRegressor
from precisionnet.datasets import Dataset
from precisionnet.evaluation.comparison import compare
from precisionnet.evaluation.methods import QUICK_GRID
from precisionnet.evaluation.protocol import make_folds
from precisionnet.paper.cohorts import load_cohort

OUT = Path(__file__).parents[2] / "results" / "accuracy"
SPLITS = 10
SPARSE_SCALE = 9.0
"""l1_scale of the sparse models: more than 80 % zeros on both cohorts."""


def splits(cohort: str) -> Iterator[tuple[int, Dataset, Dataset]]:
    """Number, rows to learn from, rows to be judged on: those of the comparisons."""
    data = load_cohort(cohort, None)
    for fold in make_folds(data, SPLITS, 0, task="regression"):
        yield fold.repeat, data.take(fold.train), data.take(fold.test)


def mae(model: Any, test: Dataset) -> float:
    """Mean absolute error."""
    return float(np.abs(model.predict(test.X) - test.y).mean())


def few_rows() -> Iterator[dict[str, Any]]:
    """joint and ridge on a few rows of every split, drawn at random: the table is sorted by site."""
    for split, train, test in splits("abide"):
        order = np.random.default_rng(split).permutation(len(train))
        for n in (50, 100, 200):
            part = train.take(order[:n])
            ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 25))).fit(part.X, part.y)
            joint = PNNRegressor(random_state=split).fit(part.X, part.y)
            for method, model in (("joint", joint), ("ridge", ridge)):
                yield {"rows": n, "split": split, "method": method, "mae": mae(model, test)}


def mean_readout() -> Iterator[dict[str, Any]]:
    """One network, its readout the average node."""
    for cohort in ("abide", "ants"):
        for split, train, test in splits(cohort):
            for method in ("joint", "glasso", "sample", "vnn"):
                model = PNNRegressor(method, n_members=1, readout="mean", random_state=split).fit(train.X, train.y)
                yield {"cohort": cohort, "split": split, "method": method, "mae": mae(model, test)}


def sparse() -> Iterator[dict[str, Any]]:
    """The same members on dense matrices and on one sparse graph."""
    for cohort in ("abide", "ants"):
        for split, train, test in splits(cohort):
            for predict_on in ("task", "sparse"):
                model = PNNRegressor(predict_on=predict_on, l1_scale=SPARSE_SCALE, random_state=split)
                model.fit(train.X, train.y)
                low, high = model.predict_interval(test.X).T
                yield {
                    "cohort": cohort,
                    "split": split,
                    "predict_on": predict_on,
                    "mae": mae(model, test),
                    "oob_mae": model.oob_mae_,
                    "zeros": float((model.shifts_[0] == 0).mean()),
                    "covered": float(((low <= test.y) & (test.y <= high)).mean()),
                    "width": float((high - low).mean()),
                }


SPREADS: dict[str, Callable[[Any, Any], Any]] = {
    "one size": lambda X, f: np.ones(len(X)),
    "with the prediction": lambda X, f: np.exp(0.9 * f / f.std()),
    "with a column": lambda X, f: np.exp(0.9 * X[:, -1]),
    "two regions": lambda X, f: np.where(X[:, -1] > 0.5, 1.5, 0.25),
}
"""Standard deviation of what is added to a drawn target, against 0.7; the target without it has 1.5."""


def drawn(how: str, n: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Rows to learn from and 2,000 to be judged on: 20 correlated columns, five of which make the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 2000, 20)) @ (np.eye(20) + 0.15 * rng.normal(size=(20, 20)))
    X /= X.std(axis=0)
    f = X[:, :5] @ rng.normal(size=5)
    f *= 1.5 / f.std()
    y = f + 0.7 * SPREADS[how](X, f) * rng.normal(size=len(f))
    return X[:n], y[:n], X[n:], y[n:]


def intervals() -> Iterator[dict[str, Any]]:
    """Intervals that adapt beside those that do not, of the same networks."""
    for cohort in ("abide", "ants"):
        for split, train, test in splits(cohort):
            model = PNNRegressor(random_state=split).fit(train.X, train.y)
            yield {"table": cohort, "rows": len(train), "split": split} | _judged(model, test.X, np.asarray(test.y))
    for how in SPREADS:
        for n in (100, 300, 1000):
            for seed in range(4):
                X, y, X_new, y_new = drawn(how, n, seed)
                model = PNNRegressor(random_state=seed).fit(X, y)
                yield {"table": how, "rows": n, "split": seed} | _judged(model, X_new, y_new)


def _judged(model: PNNRegressor, X: Any, y: Any) -> dict[str, Any]:
    made = model.calibration_
    alike = replace(made, spread=np.ones_like(made.spread), model=None, limits=(-np.inf, np.inf))
    before = copy(model).keep(replace(model.fitted, calibration=alike))
    ends, ends_before = model.predict_interval(X), before.predict_interval(X)
    judged: dict[str, Any] = {"adapts": made.model is not None}
    for name, (low, high) in (("", ends.T), ("_before", ends_before.T)):
        inside = (low <= y) & (y <= high)
        judged |= {f"covered{name}": inside.mean(), f"width{name}": (high - low).mean()}
        for by, order in (("prediction", np.argsort(model.predict(X))), ("target", np.argsort(y))):
            for i, part in enumerate(np.array_split(inside[order], 5), start=1):
                judged[f"{by}_{i}{name}"] = part.mean()
    return judged


def classes() -> Iterator[dict[str, Any]]:
    """The bundled tables whose target is a class."""
    columns = ["method", "accuracy", "log_loss"]
    for name in ("breast_cancer", "wine", "digits"):
        X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
        X = X[:, X.std(axis=0) > 0]  # corners of digits are always empty
        rows = compare(X, y, ["joint", "svc", "logistic"], SPLITS, task="classification", networks=QUICK_GRID)
        for row in rows.to_dict("records"):
            yield {"table": name, "split": row["repeat"], **{column: row[column] for column in columns}}


PARTS = {
    "few_rows": few_rows,
    "mean_readout": mean_readout,
    "sparse": sparse,
    "intervals": intervals,
    "classes": classes,
}


def main(names: list[str]) -> None:
    """The parts named, or all."""
    warnings.simplefilter("ignore")
    OUT.mkdir(parents=True, exist_ok=True)
    for name in names or PARTS:
        rows = []
        for row in PARTS[name]():
            rows.append(row)
            print(name, row, flush=True)
        pd.DataFrame(rows).round(5).to_csv(OUT / f"{name}.csv", index=False)


if __name__ == "__main__":
    main(sys.argv[1:])
