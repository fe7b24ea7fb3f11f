r"""Does the joint optimisation converge? Objective (7) and the residual of stationarity, epoch by epoch.

Three variants train the same network on the same rows from the same start, in the paper's reading (mean readout, target
in its own units, shift not scaled):

- ``listing``: Step 1 as printed, in steps of fixed length. They lower what they descend on only where
  curvature + coupling < 2 / learning_rate, which is checked before anything runs;
- ``exact``: Step 1 solved to its minimum, Steps 2 and 3 the same;
- ``monotone``: every step taken only as far as the objective falls (``joint/monotone.py``).

Tables are the cohorts, the paper's synthetic draw, and ``smooth``: a small problem that meets all conditions of the
convergence theorem in ``docs/theory.md`` (full batches, no batch normalisation, a smooth activation, all weights
penalised, float64).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from precisionnet.datasets import Dataset, Split, make_gaussian_regression
from precisionnet.errors import FitDivergedError
from precisionnet.estimators import PNNRegressor
from precisionnet.estimators.training import TrainingRun
from precisionnet.evaluation.protocol import Fold, data_hash, draw_hash, make_folds, repeat_seed
from precisionnet.joint.algorithm1 import Algorithm1
from precisionnet.joint.monotone import objective_of, stationarity
from precisionnet.joint.trainer import HistoryRow
from precisionnet.nn import PolynomialFilter
from precisionnet.paper.cohorts import load_cohort
from precisionnet.paper.config import Config
from precisionnet.parameters import BY_NAME
from precisionnet.precision.algorithm1_step1 import listing_curvature
from precisionnet.runner.jobs import Experiment, Finished, Job, Row
from precisionnet.versions import PAPER_VERSION

CHANGES: dict[str, dict[str, Any]] = {"listing": {"step1": "paper"}, "exact": {}, "monotone": {"monotone": True}}
"""What each variant sets."""
READING: dict[str, Any] = {
    "recipe": "paper",
    "readout": "mean",
    "standardize_target": False,
    "scale_shift": False,
}
"""The paper's reading, in so many words."""
DRAWN: dict[str, dict[str, Any]] = {
    "synthetic": {"n_samples": 100, "n_features": 20, "sparsity": 0.2, "snr": 10.0},
    "smooth": {"n_samples": 100, "n_features": 6, "sparsity": 0.5, "snr": 10.0},
}
"""Tables that are drawn anew in every repeat."""
GRAPH_TERMS = ("trace_term", "log_det_term", "l1_term", "coupling_term")
"""What Step 1 changes."""


class SmoothNetwork(nn.Module):
    """One filter layer and a linear readout of the mean node, with tanh and without a bias: all weights are penalised.

    Parameters
    ----------
    n_filters : int
        Features of a node.
    order : int
        Degree of the polynomials.
    n_outputs : int
        Outputs.
    """

    def __init__(self, n_filters: int, order: int, n_outputs: int) -> None:
        super().__init__()
        self.filter = PolynomialFilter(1, n_filters, order, bias=False)
        self.readout = nn.Linear(n_filters, n_outputs, bias=False)

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """Predict x of shape (batch, nodes, 1)."""
        output: Tensor = self.readout(torch.tanh(self.filter(x, shift)).mean(dim=-2))
        return output


def smooth_network(n_nodes: int, n_outputs: int) -> SmoothNetwork:
    """Make the network of the small problem."""
    return SmoothNetwork(4, 2, n_outputs)


SMOOTH: dict[str, Any] = {
    "recipe": "paper",
    "network": smooth_network,
    "standardize_target": True,
    "scale_shift": False,
    "coupling": 1.0,
    "l2_penalty": 0.01,
    "dtype": "float64",
}
"""The small problem; a network without a bias needs a target without a mean."""


@dataclass(frozen=True)
class Convergence:
    """The work of one job: train a variant on a table, and watch objective and residual."""

    n_epochs: int
    l1_scale: float
    cohorts: dict[str, tuple[Dataset, list[Fold]]] = field(default_factory=dict)
    fractions: tuple[float, float, float] = (0.6, 0.2, 0.2)

    def __call__(self, job: Job, earlier: Row | None, scratch: Path | None) -> Finished:
        """Train once."""
        started = time.perf_counter()
        sides = self.split(job)
        model, run = self.started(job, sides)
        policy = run.policy
        assert isinstance(policy, Algorithm1)
        curvature, longest = step_condition(policy)
        curves: dict[str, list[float]] = {"objective": [], "stationarity": [], "graph": []}
        diverged = None
        with run.threads():
            _watch(policy, {}, curves)
            while not run.done:
                try:
                    seen = run.advance()
                except FitDivergedError as error:
                    diverged = str(error)
                    break
                _watch(policy, seen, curves)
        row: Row = {
            "n_epochs": len(curves["objective"]) - 1,
            "diverged": diverged,
            "curvature": curvature,
            "curvature_limit": longest,
            **rises(curves["objective"], "objective"),
            **rises(curves["graph"], "graph"),
            "objective": curves["objective"],
            "stationarity": curves["stationarity"],
        }
        if run.trainer.history:
            kept = model.keep(run.finish())
            row |= {
                "mae": float(np.abs(kept.predict(sides.test.X) - np.asarray(sides.test.y)).mean()),
                "kept_epoch": int(kept.best_epoch_),
            }
        return Finished(row | {"fit_seconds": time.perf_counter() - started})

    def split(self, job: Job) -> Split[Any]:
        """Return training, validation and test rows, the same for every variant."""
        table = job.setting["table"]
        if table in self.cohorts:
            data, folds = self.cohorts[table]
            fold = folds[job.repeat]
        else:
            data = make_gaussian_regression(**DRAWN[table], random_state=job.seed)
            (fold,) = make_folds(data, 1, job.seed, self.fractions, task="regression")
        return Split(data.take(fold.train), data.take(fold.validation), data.take(fold.test))

    def started(self, job: Job, sides: Split[Any]) -> tuple[PNNRegressor, TrainingRun]:
        """Return a model and its training before the first epoch."""
        model = PNNRegressor(
            **(SMOOTH if job.setting["table"] == "smooth" else READING) | CHANGES[job.method],
            l1_scale=self.l1_scale,
            max_epochs=self.n_epochs,
            patience=self.n_epochs,
            random_state=job.seed,
        )
        train, validation, _ = sides[:3]
        return model, model.start_training(train.X, train.y, X_val=validation.X, y_val=validation.y)


def step_condition(policy: Algorithm1) -> tuple[float, float]:
    """Return curvature + coupling where training begins, and what the listing needs it to stay below."""
    graph = policy.problem.graph
    curvature = listing_curvature(policy.state.theta, coupling=graph.coupling, ridge=graph.ridge)
    return curvature, 2.0 / policy.schedule.learning_rate


def _watch(policy: Algorithm1, seen: HistoryRow, curves: dict[str, list[float]]) -> None:
    """Add the present objective and residual: the epoch's own where it has measured them, which ``monotone`` has."""
    terms = objective_of(policy.problem, policy.state)
    known = "stationarity" in seen
    curves["objective"].append(seen["objective"] if known else terms["objective"])
    curves["stationarity"].append(seen["stationarity"] if known else stationarity(policy.problem, policy.state))
    curves["graph"].append(sum(terms[name] for name in GRAPH_TERMS))


def rises(values: Iterable[float], name: str) -> Row:
    """Return in how many epochs a number rose, and by how much at most."""
    steps = np.diff(np.asarray(list(values)))
    return {f"{name}_rises": int((steps > 0).sum()), f"{name}_largest_rise": float(steps.max(initial=0.0))}


def convergence_experiment(config: Config, data_folder: Path | None) -> Experiment:
    """Build one job for every variant, table and repeat, and check the listing's step before any of them runs."""
    data = config.data
    cohorts = {}
    for table in data["tables"]:
        if table not in DRAWN:
            rows = load_cohort(table, data_folder)
            cohorts[table] = (
                rows,
                list(make_folds(rows, config.repeats, config.seed, config.fractions, task="regression")),
            )
    work = Convergence(data["n_epochs"], data["l1_scale"], cohorts, config.fractions)
    jobs = tuple(
        Job(variant, repeat, repeat_seed(config.seed, repeat), {"table": table}, cost=COSTS[variant])
        for table in data["tables"]
        for repeat in range(config.repeats)
        for variant in CHANGES
    )
    drawn = {"drawn": "convergence", "tables": {name: DRAWN[name] for name in data["tables"] if name in DRAWN}}
    hashes = [data_hash(rows) for rows, _ in cohorts.values()]
    return Experiment(
        name=config.name,
        config=config.hashed(),
        data_hash=draw_hash({**drawn, "cohorts": hashes, "seed": config.seed}),
        jobs=jobs,
        work=work,
        metrics=("curvature",),
        recipe_version=PAPER_VERSION,
        about={
            "kind": "convergence",
            "title": "Convergence of the joint optimisation",
            "source": "drawn rows and public cohorts",
            "description": (
                f"Objective (7) and the residual of stationarity over {data['n_epochs']} epochs: the printed listing, "
                "Step 1 solved exactly, and the monotone variant; one network, the paper's reading, l1_scale "
                f"{data['l1_scale']:g}."
            ),
            "notes": [_condition_sentence(work, job) for job in jobs if job.method == "listing" and job.repeat == 0],
            "expected": dict(config.expected),
        },
    )


COSTS = {"listing": 1.0, "exact": 1.0, "monotone": 2.0}
"""Rough time of a variant beside the others."""


def _condition_sentence(work: Convergence, job: Job) -> str:
    """Say whether the listing's step is short enough where training begins."""
    _, run = work.started(job, work.split(job))
    assert isinstance(run.policy, Algorithm1)
    curvature, longest = step_condition(run.policy)
    rate: float = BY_NAME["learning_rate"].of("paper")
    told = f"curvature + coupling is {curvature:,.0f} where training begins, and the listing's step of {rate:g} needs "
    told += f"it below 2 / {rate:g} = {longest:,.0f}"
    fine = "the condition is met there" if curvature < longest else "the listing may raise the objective, or diverge"
    return f"{job.setting['table']}: {told}; {fine}."
