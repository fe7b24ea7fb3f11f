"""How long the rest will take, judged by what is finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from precisionnet.experiments.runner.jobs import Job, Row

RELATIVE = {"joint": 1.0, "naive": 0.4, "glasso": 0.3, "sample": 0.1, "vnn": 0.1}
"""Roughly, of tuned methods on one table; every other one takes less. Only until a method has a time of its own."""
OTHERS = 0.05
REUSED = 0.03
"""A fit with parameters chosen elsewhere is one of some dozen candidates."""


def seconds_left(finished: Iterable[tuple[Job, Row]], left: Iterable[Job], workers: int) -> float | None:
    """None before the first job is finished.

    A job takes as long as those of its method did, a tuned one as long as the tuned ones; what has not been seen yet is
    guessed from the others. The sum is spread over the workers, and cannot be less than the longest job.
    """
    spent = defaultdict[tuple[str, bool], list[float]](list)
    for job, row in finished:
        if isinstance(row.get("seconds"), int | float):
            spent[_kind(job)].append(row["seconds"])
    if not spent:
        return None
    mean = {kind: fmean(seconds) for kind, seconds in spent.items()}
    pace = sum(mean.values()) / sum(map(_prior, mean))
    guesses = [mean.get(_kind(job), pace * _prior(_kind(job))) for job in left]
    return max(sum(guesses) / workers, max(guesses, default=0.0))


def _kind(job: Job) -> tuple[str, bool]:
    return job.method, job.after is None


def _prior(kind: tuple[str, bool]) -> float:
    method, tuned = kind
    return RELATIVE.get(method, OTHERS) * (1.0 if tuned else REUSED)
