"""The work of a comparison: tune a method on training and validation rows, then open the test rows, once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from precisionnet.errors import InputError
from precisionnet.experiments.config import Tuning, recipe_of
from precisionnet.experiments.graph_scores import graph_scores
from precisionnet.experiments.methods.candidate import Candidate, Parameters, Part, Sides
from precisionnet.experiments.methods.network import NetworkCandidate
from precisionnet.experiments.methods.plain import PlainCandidate
from precisionnet.experiments.methods.registry import METHODS
from precisionnet.experiments.methods.searching import NO_OPTUNA, RUNGS, search
from precisionnet.experiments.metrics import score_all
from precisionnet.experiments.runner.jobs import Finished, Job, Row
from precisionnet.parameters import settled
from precisionnet.types import FloatArray, TaskName

ON_PRECISION = ("joint", "naive", "glasso", "sample")
"""Networks whose matrix is an estimate of the precision; a VNN runs on the covariance."""


class Drawn(NamedTuple):
    """The rows of one repeat, and what they were drawn from where that is known."""

    train: Part
    validation: Part
    test: Part
    theta_true: FloatArray | None = None


class Source(Protocol):
    """Where the rows come from; it travels to the workers."""

    def sides(self, job: Job) -> Drawn:
        """The rows of this job's repeat and setting: the same for every method."""
        ...


@dataclass(frozen=True)
class TuneAndTest:
    """Picklable: what the runner calls for every job."""

    source: Source
    task: TaskName
    networks: Mapping[str, Sequence[Any]]
    tuning: Tuning

    def __post_init__(self) -> None:
        if self.tuning.search == "optuna" and find_spec("optuna") is None:  # before every job says so
            raise InputError(NO_OPTUNA)

    def resolved(self, methods: Iterable[str]) -> dict[str, Any]:
        """What a result depends on beside the data: each method's choices, and what the networks do not tune."""
        spaces = {name: self._choices(name) for name in methods}
        values = settled({"recipe": recipe_of(self.networks)})
        fixed = {name: value for name, value in values.items() if name not in self.networks and name != "method"}
        rungs = RUNGS[recipe_of(self.networks)] if self.tuning.race else {}
        return {"spaces": spaces, "fixed": fixed, "rungs": list(rungs.items())}

    def __call__(self, job: Job, earlier: Row | None, scratch: Path | None) -> Finished:
        """Choose, fit, measure; where ``earlier`` is given, with the parameters chosen there."""
        rows = self.source.sides(job)
        sides = Sides(rows.train, rows.validation, self.task, job.seed)
        started = time.perf_counter()
        searched = search(
            partial(make_candidate, job.method, sides),
            self._space(job, earlier),
            self.tuning,
            job.seed,
            scratch,
            recipe_of(self.networks),
        )
        tuned = time.perf_counter() - started
        best, trials = searched.best, searched.trials
        model = best.model()
        started = time.perf_counter()
        predicted = model.predict(rows.test.X)
        predict_seconds = time.perf_counter() - started
        probabilities = None if self.task == "regression" else model.predict_proba(rows.test.X)
        row = {
            **score_all(rows.test.y, predicted, probabilities, getattr(model, "classes_", None)),
            **_graph(job.method, model, rows.theta_true),
            "validation": next(t["validation"] for t in trials if t["parameters"] == best.parameters),
            "parameters": best.parameters,
            "n_candidates": len(trials),
            "n_stopped": sum(trial["stopped"] for trial in trials),
            "fit_seconds": best.seconds,
            "tune_seconds": tuned,
            "predict_seconds": predict_seconds,
            "n_train": len(rows.train.y),
            "n_validation": len(rows.validation.y),
            "n_test": len(rows.test.y),
        }
        return Finished(row, trials)

    def _space(self, job: Job, earlier: Row | None) -> dict[str, list[Any]]:
        if earlier is None:
            return self._choices(job.method)
        if "parameters" not in earlier:
            raise InputError(f"{job.method} was not run: choosing its parameters had failed ({earlier.get('error')}).")
        return {name: [value] for name, value in earlier["parameters"].items()}

    def _choices(self, method: str) -> dict[str, list[Any]]:
        return METHODS[method].space(self.task, self.networks, tuned=self.tuning.tuned)


def make_candidate(method: str, sides: Sides, parameters: Parameters) -> Candidate:
    """An untrained candidate of the method."""
    kind = NetworkCandidate if METHODS[method].family == "network" else PlainCandidate
    return kind(method, parameters, sides)


def _graph(method: str, model: Any, theta_true: FloatArray | None) -> Row:
    """Scores of the estimated precision, in the units of the table, as the truth is."""
    if METHODS[method].runs not in ON_PRECISION:
        return {}
    scores: Row = graph_scores(model.precision_in_units_, theta_true)
    return scores
