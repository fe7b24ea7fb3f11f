"""Run an experiment: what is finished stays, the rest is done, and the rows are the same however that went.

Nothing about a row but its seconds depends on the number of workers, the order in which they finish, or how often the
run was interrupted: each job is done from its own seed on one thread, and rows are read back as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from precisionnet.errors import InputError
from precisionnet.experiments.runner.cluster import on_cluster
from precisionnet.experiments.runner.estimate import seconds_left
from precisionnet.experiments.runner.jobs import Experiment, Finished, Job, Row
from precisionnet.experiments.runner.json_values import digest, plain
from precisionnet.experiments.runner.manifest import now
from precisionnet.experiments.runner.performing import Errand, Outcome
from precisionnet.experiments.runner.spreading import Pool, WorkerLostError, count_workers, here, on_cores
from precisionnet.experiments.runner.store import Store
from precisionnet.types import MethodName
from precisionnet.versions import versions

SLOWEST_FIRST: tuple[str, ...] = get_args(MethodName)
"""The networks, the one with most work in an epoch first."""


@dataclass(frozen=True)
class Event:
    """Where a run stands."""

    kind: Literal["started", "resumed", "finished"]
    """The first event of a run is "started", or "resumed" where earlier rows were found; then one "finished" a job."""
    done: int
    total: int
    job: Job | None = None
    row: Row | None = None
    seconds_left: float | None = None


def run_experiment(
    experiment: Experiment,
    folder: str | Path | None = None,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> list[Row]:
    """Do every job that ``folder`` has no row of yet; the rows of all, in the order of the jobs.

    ``jobs`` processes on this machine (by default one a core; 1 is this process itself), or the workers of the dask
    ``scheduler`` at that address. Without a folder nothing is written. Ctrl-C ends the workers and is raised on as a
    ``KeyboardInterrupt`` whose text says what is kept.
    """
    _check(experiment)
    if scheduler is not None and jobs is not None:
        raise InputError("jobs counts processes on this machine, a scheduler has its own workers: give one of the two.")
    workers = count_workers(jobs)
    # A scheduler that does not answer must not leave a folder behind, so it is asked first.
    with (
        nullcontext() if scheduler is None else on_cluster(scheduler) as cluster,
        nullcontext() if folder is None else Store(folder, experiment) as store,
    ):
        run = _Run(experiment, store, on_event)
        try:
            with _pool(cluster, min(workers, len(run.left()))) as pool:
                run.go_on(pool)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(run.ended("Stopped", "run the same command again to go on")) from None
        except WorkerLostError as lost:
            raise WorkerLostError(run.ended(*lost.args)) from lost
        return [run.rows[job.name] for job in experiment.jobs]


def _pool(cluster: Pool | None, workers: int) -> AbstractContextManager[Pool]:
    if cluster is not None:
        return nullcontext(cluster)
    return on_cores(workers) if workers > 1 else nullcontext(here())


class _Run:
    """The rows so far, and what is to be done for the others."""

    def __init__(self, experiment: Experiment, store: Store | None, on_event: Callable[[Event], object] | None) -> None:
        self.experiment, self.store, self.on_event = experiment, store, on_event
        self.rows: dict[str, Row] = {} if store is None else dict(store.finished)
        self.config_hash = digest(experiment.config)

    def left(self) -> list[Job]:
        return [job for job in self.experiment.jobs if job.name not in self.rows]

    def go_on(self, pool: Pool) -> None:
        """In waves: first what needs nothing that is not there, then what needs that."""
        self._tell("resumed" if self.rows else "started", pool)
        while left := self.left():
            ready = [job for job in left if job.after is None or job.after in self.rows]
            if pool.workers > 1:  # a long job that comes last keeps everyone waiting
                ready.sort(key=_slowest_first)
            for job, sentence in self._hopeless(ready):
                self._keep(Outcome(job, Finished({"error": sentence}), 0.0, versions()), pool)
            errands = [self._errand(job, pool) for job in ready if job.name not in self.rows]
            with closing(pool.outcomes(self.experiment.work, errands)) as outcomes:
                for outcome in outcomes:
                    self._keep(outcome, pool)

    def ended(self, what: str, remedy: str) -> str:
        """Before it was complete: a sentence."""
        if self.store is None:
            return f"{what}: no folder was named, so nothing is kept; {remedy}."
        done = f"{len(self.rows)} of {len(self.experiment.jobs)} fits are kept in {str(self.store.folder)!r}"
        return f"{what}: {done}; {remedy}."

    def _errand(self, job: Job, pool: Pool) -> Errand:
        earlier = None if job.after is None else self.rows[job.after]
        scratch = self.store.scratch(job.name) if self.store is not None and pool.same_disk else None
        return Errand(job, earlier, scratch)

    def _hopeless(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, str]]:
        for job in jobs:
            error = None if job.after is None else self.rows[job.after].get("error")
            if error is not None:
                yield job, f"It builds on {job.after}, which failed: {error}"

    def _keep(self, outcome: Outcome, pool: Pool) -> None:
        job = outcome.job
        who = {"experiment": self.experiment.name, "job": job.name, "method": job.method, "repeat": job.repeat}
        who |= {"seed": job.seed, **job.setting}
        how = {"config_hash": self.config_hash, "data_hash": self.experiment.data_hash, "versions": outcome.versions}
        row = plain({**who, **outcome.finished.row, **who, "seconds": outcome.seconds, **how, "finished": now()})
        trials = [plain({**who, **trial, **who}) for trial in outcome.finished.trials]
        if self.store is not None:
            self.store.add(row, trials)
        self.rows[job.name] = row
        self._tell("finished", pool, job, row)

    def _tell(
        self,
        kind: Literal["started", "resumed", "finished"],
        pool: Pool,
        job: Job | None = None,
        row: Row | None = None,
    ) -> None:
        if self.on_event is None:
            return
        finished = [(job, self.rows[job.name]) for job in self.experiment.jobs if job.name in self.rows]
        left = seconds_left(finished, self.left(), pool.workers)
        self.on_event(Event(kind, len(finished), len(self.experiment.jobs), job, row, left))


def _slowest_first(job: Job) -> int:
    return SLOWEST_FIRST.index(job.method) if job.method in SLOWEST_FIRST else len(SLOWEST_FIRST)


def _check(experiment: Experiment) -> None:
    """Mistakes in how an experiment was built: no user can cause them."""
    seen: set[str] = set()
    for job in experiment.jobs:
        if job.name in seen:
            raise ValueError(f"two jobs are named {job.name}")
        if job.after is not None and job.after not in seen:
            raise ValueError(f"{job.name} stands before {job.after}, which it needs")
        seen.add(job.name)
