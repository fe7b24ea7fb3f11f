"""How long the rest will take, judged by what is finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from precisionnet.experiments.runner.jobs import Job, Row


def seconds_left(finished: Iterable[tuple[Job, Row]], left: Iterable[Job], workers: int) -> float | None:
    """None before the first job is finished.

    A job takes as long as those of its method did, a tuned one as long as the tuned ones. The sum is spread over the
    workers, and cannot be less than the longest job.
    """
    spent = defaultdict[tuple[str, bool], list[float]](list)
    for job, row in finished:
        if isinstance(row.get("seconds"), int | float):
            spent[_kind(job)].append(row["seconds"])
    if not spent:
        return None
    mean = {kind: fmean(seconds) for kind, seconds in spent.items()}
    unseen = fmean(second for seconds in spent.values() for second in seconds)
    guesses = [mean.get(_kind(job), unseen) for job in left]
    return max(sum(guesses) / workers, max(guesses, default=0.0))


def _kind(job: Job) -> tuple[str, bool]:
    return job.method, job.after is None
