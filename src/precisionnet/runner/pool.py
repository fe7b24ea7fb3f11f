"""Where jobs are done: in this process, in one process per core, or on a dask.distributed cluster.

A pool takes the work and its errands and yields results as they come, in any order. On a cluster joblib's own dask
backend is not used (``workers`` says why): it would hide which job was lost with a worker, and repeat whole batches.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config

from precisionnet.arguments import check_count
from precisionnet.interrupts import ctrl_c_later
from precisionnet.runner.jobs import Work
from precisionnet.runner.worker import Errand, JobResult, perform
from precisionnet.workers import WorkerLostError, connected, end_with_parent

IDLE = 5.0
"""Seconds after which a worker process without a job ends."""
FEEDER = 5.0
"""Seconds that the thread which sends jobs to workers is given to end."""

JobResults = Generator[JobResult, None, None]


@dataclass(frozen=True)
class Pool:
    """Workers that are ready: their number, how to give them jobs, and whether they see this machine's folders."""

    workers: int
    results: Callable[[Work, Sequence[Errand]], JobResults]
    same_disk: bool = True


def count_workers(jobs: int | None) -> int:
    """Return the number of worker processes: all cores by default, and never more than there are cores."""
    if jobs is not None:
        check_count("jobs", jobs, 1)
    cores = int(cpu_count())
    return cores if jobs is None else min(jobs, cores)


def in_this_process() -> Pool:
    """Do one job after the other in this process."""

    def results(work: Work, errands: Sequence[Errand]) -> JobResults:
        yield from (perform(work, errand) for errand in errands)

    return Pool(1, results)


def on_cores(workers: int) -> Pool:
    """Start one process per worker. They end soon after the last job, or with this process, however it ends.

    joblib's own processes (loky) are used rather than ``concurrent.futures``: a script needs no ``if __name__ ==
    "__main__"`` for them, and they are killed when a run is stopped in the middle.
    """

    def results(work: Work, errands: Sequence[Errand]) -> JobResults:
        with parallel_config(backend="loky", inner_max_num_threads=1):
            # A batch would come back as one, and be lost as one; arrays shared by file would be read-only in workers.
            parallel = Parallel(
                workers,
                return_as="generator_unordered",
                batch_size=1,
                max_nbytes=None,
                idle_worker_timeout=IDLE,
                initializer=end_with_parent(ignore_ctrl_c=True),
                initargs=(os.getpid(),),
            )
        found = calls = None
        complete = False
        try:
            with ctrl_c_later():
                found = parallel(delayed(perform)(work, errand) for errand in errands)
                calls = getattr(getattr(parallel._backend, "_workers", None), "_call_queue", None)
            for result in found:  # noqa: UP028 - "yield from" would close it before warnings are off
                yield result
            complete = True
        except BrokenProcessPool as error:
            what = "A worker process was killed, most likely because memory ran out"
            raise WorkerLostError(what, "run again with fewer jobs at a time") from error
        finally:
            if found is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # that jobs are given up: this is what stopping means
                    found.close()
            if not complete:
                _end_feeder(calls)

    return Pool(workers, results)


def _end_feeder(calls: Any) -> None:
    """Wait for the thread that sent jobs to workers which are killed now.

    loky does not. Where jobs are large, the thread waits for ever for a worker that reads. Otherwise it ends at about
    the same time as this process may, and it is the last one to hold the queue's semaphores: caught between removing
    one and signing it off, it would leave a warning of "leaked semlock objects" behind.
    """
    feeder = getattr(calls, "_thread", None)
    if feeder is not None:
        calls._reader.close()  # nobody reads: it gives up
        feeder.join(FEEDER)


@contextmanager
def on_cluster(address: str) -> Iterator[Pool]:
    """Use the workers of a running dask scheduler; they stay when the run is over."""
    with connected(address) as cluster:

        def results(work: Work, errands: Sequence[Errand]) -> JobResults:
            calls, names = [(errand,) for errand in errands], [errand.job.name for errand in errands]
            yield from (result for _, result in cluster.results(perform, calls, shared=(work,), names=names))

        yield Pool(cluster.workers, results, same_disk=False)
