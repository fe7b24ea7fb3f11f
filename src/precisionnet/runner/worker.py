"""One job, done in the process it was sent to."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from precisionnet.errors import OutputError, PrecisionNetError, PrecisionNetWarning
from precisionnet.runner.jobs import Finished, Job, Row, Work
from precisionnet.runner.lines import FULL
from precisionnet.threads import limited_threads
from precisionnet.versions import versions

_ONE_AT_A_TIME = threading.Lock()
"""Warnings and thread limits belong to the process: a dask worker with several threads does its jobs one by one."""


@dataclass(frozen=True)
class Errand:
    """A job with all it needs: the row it builds on, and a folder to work in."""

    job: Job
    earlier: Row | None
    scratch: Path | None


@dataclass(frozen=True)
class JobResult:
    """What came of a job, and what it was made with."""

    job: Job
    finished: Finished
    seconds: float
    versions: dict[str, str]


def perform(work: Work, errand: Errand) -> JobResult:
    """Do the job. Errors that the user's data caused become the row's "error"; any other exception is raised."""
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
            raise OutputError(f"Cannot write ({error.strerror}): make room and run again.") from error
    if said:
        finished = Finished({**finished.row, "warnings": said}, finished.trials)
    return JobResult(errand.job, finished, time.perf_counter() - begun, versions())


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch, BLAS and OpenMP to one thread, also where no other worker needs a core.

    A sum over two threads rounds differently: rows must not depend on how many workers there were.
    """
    with threadpool_limits(limits=1, user_api="openmp"), limited_threads(1):
        yield


@contextmanager
def _collected(said: list[str]) -> Iterator[None]:
    """Collect warnings of this package for the row: nobody sees the output of a worker."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    ours = (str(warning.message) for warning in caught if issubclass(warning.category, PrecisionNetWarning))
    said.extend(dict.fromkeys(ours))
