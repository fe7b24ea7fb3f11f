"""Run an experiment: what is finished stays, the rest is done, and the rows are the same however that went.

Nothing about a row but its seconds depends on the number of workers, the order in which they finish, or how often the
run was interrupted: each job is done from its own seed on one thread, and rows are read back as they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from precisionnet.errors import InputError
from precisionnet.interrupts import ctrl_c_once
from precisionnet.runner.jobs import Experiment, Finished, Job, Row, check_jobs, seconds_left
from precisionnet.runner.lines import digest, plain
from precisionnet.runner.manifest import missing_metric, now
from precisionnet.runner.pool import Pool, count_workers, in_this_process, on_cluster, on_cores
from precisionnet.runner.store import Store
from precisionnet.runner.worker import Errand, JobResult
from precisionnet.versions import versions
from precisionnet.workers import WorkerLostError


@dataclass(frozen=True)
class Event:
    """Where a run stands.

    Parameters
    ----------
    kind : {"started", "resumed", "finished"}
        The first event of a run is "started", or "resumed" where earlier rows were found. Then there is one
        "finished" per job.
    done : int
        Number of finished jobs.
    total : int
        Number of all jobs.
    job : Job, default=None
        The job that was finished.
    row : dict, default=None
        Its row.
    seconds_left : float, default=None
        Estimated time until the run is complete; None before the first job is finished.

    Examples
    --------
    >>> from precisionnet.runner import Event
    >>> event = Event("finished", done=3, total=10)
    >>> f"{event.done} of {event.total}"
    '3 of 10'
    """

    kind: Literal["started", "resumed", "finished"]
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
    """Do every job that ``folder`` has no row of yet, and return the rows of all jobs.

    Ctrl-C ends the workers and is raised again as a ``KeyboardInterrupt`` whose text says what is kept. Workers are
    processes that import this package anew, so the work must be picklable.

    Parameters
    ----------
    experiment : Experiment
        The jobs, and the work that does them.
    folder : str or Path, default=None
        Where rows are kept. Without a folder nothing is written.
    jobs : int, default=None
        Number of worker processes on this machine, by default one per core; 1 is this process itself.
    scheduler : str, default=None
        Address of a dask.distributed scheduler whose workers do the jobs instead.
    on_event : callable, default=None
        Called with an :class:`Event` when the run starts and after every job.

    Returns
    -------
    list of dict
        One row per job, in the order of the jobs.

    Examples
    --------
    >>> from precisionnet.runner import Experiment, Finished, Job, run_experiment
    >>> def work(job, earlier, scratch):
    ...     return Finished({"mae": 1.0 + job.repeat})
    >>> experiment = Experiment("demo", {}, "no data", (Job("mean", 0, 0), Job("mean", 1, 1)), work)
    >>> [row["mae"] for row in run_experiment(experiment, jobs=1)]
    [1.0, 2.0]
    """
    check_jobs(experiment.jobs)
    if scheduler is not None and jobs is not None:
        raise InputError("jobs counts processes on this machine, a scheduler has its own workers: give one of the two.")
    workers = count_workers(jobs)
    # A scheduler that does not answer must not leave a folder behind, so it is asked first.
    with (
        ctrl_c_once(),
        nullcontext() if scheduler is None else on_cluster(scheduler) as cluster,
        nullcontext() if folder is None else Store(folder, experiment) as store,
    ):
        run = _Run(experiment, store, on_event)
        try:
            run.go_on(cluster or _local_pool(min(workers, len(run.left()))))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(run.ended("Stopped", "run again to go on")) from None
        except WorkerLostError as lost:
            raise WorkerLostError(run.ended(*lost.args)) from lost
        return [run.rows[job.name] for job in experiment.jobs]


def _local_pool(workers: int) -> Pool:
    return on_cores(workers) if workers > 1 else in_this_process()


class _Run:
    """The rows so far, and what is to be done for the others."""

    def __init__(self, experiment: Experiment, store: Store | None, on_event: Callable[[Event], object] | None) -> None:
        self.experiment, self.store, self.on_event = experiment, store, on_event
        self.rows: dict[str, Row] = {} if store is None else dict(store.finished)
        self.config_hash = digest(experiment.config)

    def left(self) -> list[Job]:
        return [job for job in self.experiment.jobs if job.name not in self.rows]

    def go_on(self, pool: Pool) -> None:
        """Work in waves: first the jobs that need nothing, then those that build on them."""
        self._tell("resumed" if self.rows else "started", pool)
        while left := self.left():
            ready = [job for job in left if job.after is None or job.after in self.rows]
            if pool.workers > 1:  # a long job that comes last keeps everyone waiting
                ready.sort(key=lambda job: -job.cost)
            for job, sentence in self._hopeless(ready):
                self._keep(JobResult(job, Finished({"error": sentence}), 0.0, versions()), pool)
            errands = [self._errand(job, pool) for job in ready if job.name not in self.rows]
            with closing(pool.results(self.experiment.work, errands)) as results:
                for result in results:
                    self._keep(result, pool)

    def ended(self, what: str, remedy: str) -> str:
        """Say in a sentence what is kept of a run that ended early."""
        if self.store is None:
            return f"{what}: no folder was named, so nothing is kept; {remedy}."
        # A row that was stored just before a Ctrl-C may not be among self.rows yet.
        done = f"{len(self.store.finished)} of {len(self.experiment.jobs)} fits are kept in {str(self.store.folder)!r}"
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

    def _keep(self, result: JobResult, pool: Pool) -> None:
        job, found = result.job, dict(result.finished.row)
        missing = None if "error" in found else missing_metric(plain(found), self.experiment.metrics)
        if missing is not None:
            found = {"error": f"{job.method} gave no finite number for {missing}."}
        who = {"experiment": self.experiment.name, "job": job.name, "method": job.method, "repeat": job.repeat}
        who |= {"seed": job.seed, **job.setting}
        how: Row = {
            "config_hash": self.config_hash,
            "data_hash": self.experiment.data_hash,
            "versions": result.versions,
        }
        if self.experiment.recipe_version is not None:
            how["recipe_version"] = self.experiment.recipe_version
        row = plain({**who, **found, **who, "seconds": result.seconds, **how, "finished": now()})
        trials = [plain({**who, **trial, **who}) for trial in result.finished.trials]
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
