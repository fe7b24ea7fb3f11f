"""Stability with few rows, which the paper leaves to future work: || Phi(x, theta_T) - Phi(x, theta) || over T.

A job learns the weights of one network, keeps them, and follows its predictions while the matrix is estimated from T
rows (``precisionnet.stability_curve``): on drawn rows beside the matrix of the true covariance, on a cohort beside that
of all its rows. An estimate from T rows is off by a multiple of T^(-1/2), one that is compared with n rows by a
multiple of (1/T - 1/n)^(1/2): slopes are fitted against T and against T n / (n - T), and read beside -1/2
(``stability_slopes``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from precisionnet import PNNRegressor, stability_curve
from precisionnet.datasets import Dataset, make_gaussian_regression
from precisionnet.errors import InputError
from precisionnet.evaluation.methods import METHODS, Grid
from precisionnet.evaluation.protocol import data_hash, draw_hash, repeat_seed
from precisionnet.paper.cohorts import load_cohort
from precisionnet.paper.config import Config
from precisionnet.paper.stability_slopes import DRAWN
from precisionnet.runner.jobs import Experiment, Finished, Job, Row
from precisionnet.versions import recipe_version

METHODS_WITH_A_MATRIX = ("joint", "glasso", "sample", "vnn")
"""Methods whose matrix can be estimated anew without labels."""


@dataclass(frozen=True)
class Stability:
    """The work of one job: learn weights, then follow the predictions over T."""

    networks: Grid
    data: dict[str, Any]
    cohort: Dataset | None

    def __call__(self, job: Job, earlier: Row | None, scratch: Path | None) -> Finished:
        """Fit once, measure every T once."""
        started = time.perf_counter()
        space = METHODS[job.method].space("regression", self.networks, tuned=False)
        model = PNNRegressor(job.method, random_state=job.seed, **{name: values[0] for name, values in space.items()})
        if job.setting["source"] == DRAWN:
            sizes = self.data["n_samples"]
            rows = make_gaussian_regression(
                max(*sizes, self.data["n_fit"]),
                self.data["n_features"],
                sparsity=self.data["sparsity"],
                random_state=job.seed,
            )
            model.fit(rows.X[: self.data["n_fit"]], rows.y[: self.data["n_fit"]])
            fitted = time.perf_counter()
            truth = np.linalg.inv(rows.theta_true)
            curve = stability_curve(model, rows.X, sizes, n_draws=1, covariance=truth, random_state=job.seed)
        else:
            assert self.cohort is not None
            model.fit(self.cohort.X, self.cohort.y)
            fitted = time.perf_counter()
            sizes = self.data["cohort_samples"]
            curve = stability_curve(model, self.cohort.X, sizes, n_draws=1, random_state=job.seed)
        columns = ("n_rows", "effective_rows", "difference", "bound", "matrix_difference")
        return Finished(
            {
                "slope": curve.slope,
                **{name: curve.frame[name].tolist() for name in columns},
                "fit_seconds": fitted - started,
                "tune_seconds": time.perf_counter() - started,
            }
        )


def stability_experiment(config: Config, data_folder: Path | None) -> Experiment:
    """Build one job per method, source of rows and repeat."""
    data = dict(config.data)
    others = [method for method in config.methods if method not in METHODS_WITH_A_MATRIX]
    if others:
        raise InputError(
            f"The matrix of {others[0]} cannot be estimated from rows alone: choose some of "
            f"{', '.join(METHODS_WITH_A_MATRIX)}."
        )
    if config.tuning.tuned:
        raise InputError(
            f"tuning.search must be 'none', got {config.tuning.search!r}: weights are learned once and stay."
        )
    cohort = None if data["cohort"] is None else load_cohort(data["cohort"], data_folder)
    if cohort is not None and max(data["cohort_samples"]) >= len(cohort):
        raise InputError(
            f"data.cohort_samples has {max(data['cohort_samples'])}, and {data['cohort']} has {len(cohort)} rows, "
            "which fewer rows are compared with: name smaller numbers."
        )
    sources = [DRAWN] if cohort is None else [DRAWN, data["cohort"]]
    drawn = draw_hash({"drawn": "stability", "data": data, "seed": config.seed})
    return Experiment(
        name=config.name,
        config=config.hashed(),
        data_hash=drawn if cohort is None else draw_hash({"drawn": drawn, "table": data_hash(cohort)}),
        jobs=tuple(
            Job(method, repeat, repeat_seed(config.seed, repeat), {"source": source}, cost=METHODS[method].cost)
            for repeat in range(config.repeats)
            for source in sources
            for method in config.methods
        ),
        work=Stability(config.networks, data, cohort),
        metrics=("slope",),
        recipe_version=recipe_version(config.networks),
        about={
            "kind": "stability",
            "title": "Stability: how far predictions move when the matrix has few rows",
            "source": " and ".join(sources),
            "description": (
                f"Gaussian rows of {data['n_features']} columns from a precision of which {data['sparsity']:.0%} is "
                "not zero" + ("." if cohort is None else f"; {data['cohort'].upper()}, {len(cohort)} rows.")
            ),
            "n_features": data["n_features"],
            "notes": [],
            "expected": dict(config.expected),
        },
    )
