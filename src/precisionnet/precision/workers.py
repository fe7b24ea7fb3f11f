"""Independent solves side by side, each on one BLAS thread: the number of workers changes no result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

Result = TypeVar("Result")


def in_workers(function: Callable[..., Result], calls: Iterable[tuple[Any, ...]], n_jobs: int | None) -> list[Result]:
    """``function(*call)`` for each call, in order; ``n_jobs`` as joblib has it."""
    with threadpool_limits(limits=1, user_api="blas"):
        here = os.getpid()
        results: list[Result] = Parallel(n_jobs=n_jobs)(delayed(_on_one_thread)(here, function, call) for call in calls)
    return results


def _on_one_thread(parent: int, function: Callable[..., Result], call: tuple[Any, ...]) -> Result:
    if os.getpid() == parent:
        return function(*call)
    with threadpool_limits(limits=1, user_api="blas"):  # a worker process has a limit of its own
        return function(*call)
