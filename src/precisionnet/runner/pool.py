"""Where jobs are done: in this process, or in one process a core.

A pool is a function: it takes the work and its errands and yields outcomes as they come, in any order.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor

from precisionnet.arguments import check_count
from precisionnet.errors import PrecisionNetError
from precisionnet.experiments.runner.jobs import Work
from precisionnet.experiments.runner.performing import Errand, Outcome, perform, perform_in_worker

Outcomes = Generator[Outcome, None, None]


class WorkerLostError(PrecisionNetError, RuntimeError):
    """Whoever did a job ended without a word; a pool raises it with what happened and what to do."""


@dataclass(frozen=True)
class Pool:
    """Workers, ready."""

    workers: int
    outcomes: Callable[[Work, Sequence[Errand]], Outcomes]
    same_disk: bool = True
    """Whether they see this machine's folders."""


def count_workers(jobs: int | None) -> int:
    """All cores by default, and never more workers than cores."""
    if jobs is not None:
        check_count("jobs", jobs, 1)
    cores = int(cpu_count())
    return cores if jobs is None else min(jobs, cores)


def here() -> Pool:
    """One job after the other, in this process."""

    def outcomes(work: Work, errands: Sequence[Errand]) -> Outcomes:
        yield from (perform(work, errand) for errand in errands)

    return Pool(1, outcomes)


@contextmanager
def on_cores(workers: int) -> Iterator[Pool]:
    """Processes of our own, which end with the block or with this process, however it ends."""

    def outcomes(work: Work, errands: Sequence[Errand]) -> Outcomes:
        with parallel_config(backend="loky", inner_max_num_threads=1):
            # A batch would come back as one, and be lost as one; arrays shared by file would be read-only in workers.
            parallel = Parallel(workers, return_as="generator_unordered", batch_size=1, max_nbytes=None)
        found = parallel(delayed(perform_in_worker)(work, errand) for errand in errands)
        try:
            for outcome in found:  # noqa: UP028 - "yield from" would close it before warnings are off
                yield outcome
        except BrokenProcessPool as error:
            what = "A worker process was killed, most likely because memory ran out"
            raise WorkerLostError(what, "run the same command again with fewer --jobs") from error
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that jobs are given up is what whoever stops wants
                found.close()

    try:
        yield Pool(workers, outcomes)
    finally:
        get_reusable_executor(reuse=True, kill_workers=True).shutdown(wait=True, kill_workers=True)
