"""One job, done in whichever process it was sent to."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from threadpoolctl import threadpool_limits

from precisionnet.errors import OutputError, PrecisionNetError, PrecisionNetWarning
from precisionnet.experiments.runner.jobs import Finished, Job, Row, Work
from precisionnet.experiments.runner.lines import FULL
from precisionnet.joint.threads import threads_for
from precisionnet.versions import versions

_ONE_AT_A_TIME = threading.Lock()
"""Warnings and limits of threads belong to a process: a dask worker of several threads does its jobs one by one."""
LOOK_EVERY = 0.25
"""Seconds between a worker's looks at whether its run is still there."""


@dataclass(frozen=True)
class Errand:
    """A job with all it needs."""

    job: Job
    earlier: Row | None
    scratch: Path | None


@dataclass(frozen=True)
class Outcome:
    """What came of it, and what it was made with."""

    job: Job
    finished: Finished
    seconds: float
    versions: dict[str, str]


def perform(work: Work, errand: Errand) -> Outcome:
    """Do the job. What a user's data is to blame for becomes the row's "error"; any other exception is raised."""
    begun = time.perf_counter()
    said: list[str] = []
    with _ONE_AT_A_TIME, one_thread(), _collected(said):
        try:
            if errand.scratch is not None:
                errand.scratch.mkdir(parents=True, exist_ok=True)
            finished = work(errand.job, errand.earlier, errand.scratch)
        except OutputError:
            raise  # a full disk says nothing about the job: it is done again
        except PrecisionNetError as error:
            finished = Finished({"error": str(error)})
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise OutputError(f"Cannot write ({error.strerror}): make room and run the same command again.") from error
    if said:
        finished = Finished({**finished.row, "warnings": said}, finished.trials)
    return Outcome(errand.job, finished, time.perf_counter() - begun, versions())


def perform_in_worker(work: Work, errand: Errand) -> Outcome:
    """The same in a process that was started for it."""
    _settle_in()
    return perform(work, errand)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch, BLAS and OpenMP, also where no other worker wants a core.

    A sum over two threads rounds differently: rows must not depend on how many workers there were.
    """
    with threadpool_limits(limits=1, user_api="openmp"), threads_for(0):
        yield


@contextmanager
def _collected(said: list[str]) -> Iterator[None]:
    """Warnings of ours go into the row: on a worker nobody would see them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    ours = (str(warning.message) for warning in caught if issubclass(warning.category, PrecisionNetWarning))
    said.extend(dict.fromkeys(ours))


@cache
def _settle_in() -> None:
    """Once in each worker process: Ctrl-C is the run's business, and nobody works on for a run that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)
