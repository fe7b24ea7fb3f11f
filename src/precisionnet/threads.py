"""The one owner of the process's thread counts.

Small products lose more to starting threads than they gain, and a sum over two threads rounds differently from a sum
over one. So a fit says how many threads it computes with, by the shape of its problem alone, and this module sees to it
that it gets them. The counts of torch, MKL and OpenBLAS belong to the process, not to the thread that sets them:

- the first user sets them, the last one restores them (OpenMP's, which torch uses, every thread has for itself);
- a block that needs another count waits until the present users are done;
- in a forked child there is one thread, always: OpenMP's workers do not survive a fork, and a parallel region would
  wait for them for ever.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from threadpoolctl import ThreadpoolController

try:
    from threadpoolctl import get_cached_controller
except ImportError:  # before 3.8
    get_cached_controller = None

Returned = TypeVar("Returned")

SMALL = 1_000_000
"""Numbers in the largest tensor of a step up to which one thread is used."""


class _Owner:
    """The counts that are set, for how many users, and what they were before."""

    def __init__(self, *, forked: bool = False) -> None:
        self.forked = forked
        self.changed = threading.Condition()
        self.users, self.count = 0, 0
        self.of_thread = threading.local()
        self.torch_before: int | None = None
        self._libraries: Any = None
        self._limits: Any = None

    def begin(self, count: int, torch_count: int | None) -> None:
        """Set the counts for the first user."""
        self.count, self.torch_before = count, torch_count
        found = get_cached_controller() if get_cached_controller is not None else ThreadpoolController()
        self._libraries = found.select(user_api="blas")  # without OpenMP, whose count is set by way of torch
        _take_control(self._libraries)
        self._limits = self._libraries.limit(limits=count)

    def end(self) -> None:
        """Restore them after the last one."""
        _take_control(self._libraries)
        self._limits.restore_original_limits()
        _take_control(self._libraries)  # release it, so that any thread may set it
        self.changed.notify_all()


_OWNER = _Owner()


def _take_control(libraries: ThreadpoolController) -> None:
    """Let this thread set OpenBLAS's count: threadpoolctl leaves it to the first thread that did and ignores others."""
    for library in libraries.lib_controllers:
        release = getattr(library, "clear_controlling_thread", None)  # since threadpoolctl 3.8
        if release is not None:
            release(force=True)


def _after_fork() -> None:
    global _OWNER
    _OWNER = _Owner(forked=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def threads_for(largest: int) -> int:
    """Return how many threads a problem computes with.

    Parameters
    ----------
    largest : int
        Numbers in the largest tensor of a step.

    Returns
    -------
    int
        1 for a small problem, the number of processors otherwise.
    """
    return 1 if largest <= SMALL else os.cpu_count() or 1


@contextmanager
def limited_threads(count: int, *, wait: bool = True) -> Iterator[None]:
    """Compute with ``count`` threads inside the block.

    Parameters
    ----------
    count : int
        Threads of torch and BLAS.
    wait : bool, default=True
        Wait while others compute with another count. Without it, the block takes the count that is set, where one is:
        right for work whose last bit does not matter, such as a prediction.
    """
    owner, mine = _OWNER, _OWNER.of_thread
    count = 1 if owner.forked else count
    nested = getattr(mine, "depth", 0) > 0
    with owner.changed:
        if wait and not nested:
            owner.changed.wait_for(lambda: not owner.users or owner.count == count)
        torch = sys.modules.get("torch")
        found = None if torch is None else torch.get_num_threads()
        if not owner.users:
            owner.begin(count, found)
        owner.users += 1
        if not nested:  # a new thread has inherited the count that is held
            mine.before = owner.torch_before if found == owner.count else found
        if torch is not None:  # also where OpenMP has this count already: MKL, which torch sets, may have another
            torch.set_num_threads(owner.count)
    mine.depth = getattr(mine, "depth", 0) + 1
    try:
        yield
    finally:
        mine.depth -= 1
        with owner.changed:
            owner.users -= 1
            if not owner.users:
                owner.end()
            torch = sys.modules.get("torch")  # it may have been imported inside the block
            if not nested and mine.before is not None and torch is not None:
                torch.set_num_threads(mine.before)


def blas_threads() -> int:
    """Return how many threads a large product uses now; 1 in a forked child."""
    if _OWNER.forked:
        return 1
    found = get_cached_controller() if get_cached_controller is not None else ThreadpoolController()
    counts = [library.num_threads for library in found.select(user_api="blas").lib_controllers]
    return max(1, min(counts, default=1))


class Team:
    """Threads that do the same work on different parts of an array, again and again.

    Only for work that leaves Python's lock (``compiled_alongside``): the calls of one round run at the same time, and
    the round ends when all have.
    """

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size - 1) if size > 1 else None

    def __call__(self, call: Callable[[int], Returned]) -> list[Returned]:
        """Call with every number from 0 to ``size - 1``; what they return, in that order."""
        if self._pool is None:
            return [call(0)]
        others = [self._pool.submit(call, share) for share in range(1, self.size)]
        try:
            mine = call(0)
        finally:
            wait(others)  # they write into arrays that the caller owns
        return [mine, *(other.result() for other in others)]

    def part(self, n: int, share: int) -> tuple[int, int]:
        """Return the beginning and the end of one of ``size`` equal parts of ``range(n)``."""
        return n * share // self.size, n * (share + 1) // self.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
