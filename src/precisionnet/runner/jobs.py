"""What an experiment is made of: jobs, each of which becomes one line of ``rows.jsonl``.

The runner knows no methods. It is given a picklable callable, the work, and calls it once for every job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

import pandas as pd

Row = dict[str, Any]
"""JSON values by name."""


@dataclass(frozen=True)
class Job:
    """One fit to be done: a method on one repeat of one setting.

    Parameters
    ----------
    method : str
        Name of the method. The runner only copies it into the row.
    repeat : int
        Number of the repeat.
    seed : int
        Seed of everything that is drawn in this job.
    setting : mapping, default={}
        What else tells jobs apart, such as ``{"sparsity": 0.2}``. It is copied into the row.
    after : str, default=None
        Name of an earlier job whose row is passed to this one, for example to reuse its parameters.
    cost : float, default=1.0
        Rough time relative to other jobs. Long jobs start first, and the remaining time is estimated from it until
        jobs of the same kind have finished.

    Examples
    --------
    >>> from precisionnet.runner import Job
    >>> Job("joint", 0, seed=7, setting={"sparsity": 0.2}).name
    'joint/0/sparsity=0.2'
    """

    method: str
    repeat: int
    seed: int
    setting: Mapping[str, Any] = field(default_factory=dict)
    after: str | None = None
    cost: float = 1.0

    @property
    def name(self) -> str:
        """Name of the job, unique in its experiment."""
        extra = "".join(f"/{key}={value}" for key, value in self.setting.items())
        return f"{self.method}/{self.repeat}{extra}"


@dataclass(frozen=True)
class Finished:
    """What the work returns for a job.

    Parameters
    ----------
    row : dict
        Scores, chosen parameters and seconds. The runner adds the job, hashes and versions.
    trials : sequence of dict, default=()
        One entry per candidate that was tried: parameters, validation score, epochs.

    Examples
    --------
    >>> from precisionnet.runner import Finished
    >>> Finished({"mae": 3.0}).trials
    ()
    """

    row: Row
    trials: Sequence[Row] = ()


class Work(Protocol):
    """Does one job. It is sent to workers, so it must be picklable."""

    def __call__(self, job: Job, earlier: Row | None, scratch: Path | None) -> Finished:
        """``earlier`` is the row of ``job.after``; ``scratch`` is a folder of this job that survives a restart."""
        ...


@dataclass(frozen=True)
class Experiment:
    """Everything the runner needs.

    Parameters
    ----------
    name : str
        Name of the experiment.
    config : mapping
        JSON values whose hash tells experiments apart. It holds everything that can change a number, and nothing
        else: neither the number of workers nor the folder.
    data_hash : str
        Hash of the data.
    jobs : tuple of Job
        The jobs in the order of the rows. A job comes after the one it needs.
    work : callable
        Called as ``work(job, earlier, scratch)`` for every job, returns a :class:`Finished`.
    splits : DataFrame, default=None
        One row per sample, one column per repeat: train, validation or test.
    about : mapping, default={}
        JSON values for the page: kind, task, target, number of rows, the paper's figures.
    metrics : tuple of str, default=()
        Numbers that every row must have. A fit without a finite one counts as failed.
    recipe_version : int, default=None
        Version of the training recipe (``precisionnet.versions``) where results depend on it.

    Examples
    --------
    >>> from precisionnet.runner import Experiment, Finished, Job
    >>> def work(job, earlier, scratch):
    ...     return Finished({"mae": 1.0 + job.repeat})
    >>> experiment = Experiment("demo", {}, "no data", (Job("mean", 0, 0), Job("mean", 1, 1)), work, metrics=("mae",))
    >>> len(experiment.jobs)
    2
    """

    name: str
    config: Mapping[str, Any]
    data_hash: str
    jobs: tuple[Job, ...]
    work: Work
    splits: pd.DataFrame | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    recipe_version: int | None = None


def seconds_left(finished: Iterable[tuple[Job, Row]], left: Iterable[Job], workers: int) -> float | None:
    """Estimate how long the remaining jobs take; None before the first job is finished.

    A job takes as long as those of its method did; jobs that reuse parameters are a kind of their own. What has not
    been seen yet is guessed from ``cost``. The sum is spread over the workers and is at least the longest job.
    """
    spent, costs = defaultdict[tuple[str, bool], list[float]](list), dict[tuple[str, bool], float]()
    for job, row in finished:
        if isinstance(row.get("seconds"), int | float):
            spent[_kind(job)].append(row["seconds"])
            costs[_kind(job)] = job.cost
    if not spent:
        return None
    mean = {kind: fmean(seconds) for kind, seconds in spent.items()}
    pace = sum(mean.values()) / max(sum(costs.values()), 1e-9)
    guesses = [mean.get(_kind(job), pace * job.cost) for job in left]
    return max(sum(guesses) / workers, max(guesses, default=0.0))


def check_jobs(jobs: Sequence[Job]) -> None:
    """Refuse jobs with equal names and jobs before the one they need: mistakes of the caller, not of a user."""
    seen: set[str] = set()
    for job in jobs:
        if job.name in seen:
            raise ValueError(f"two jobs are named {job.name}")
        if job.after is not None and job.after not in seen:
            raise ValueError(f"{job.name} stands before {job.after}, which it needs")
        seen.add(job.name)


def _kind(job: Job) -> tuple[str, bool]:
    return job.method, job.after is None
