"""How many threads a fit uses.

Small products lose more to starting threads than they gain, and threads that spin while they wait slow down whoever
shares the machine (a fit of 30 rows: well under a second on one thread, up to ten seconds on two while both cores were
busy). One thread also makes a fit bit-identical whether it runs alone or in a pool of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch
from threadpoolctl import threadpool_limits

SMALL = 1_000_000
"""Numbers in one layer's output (rows * nodes * filters) up to which one thread is used."""


class _OneBlasThread:
    """BLAS has one limit for the whole process: the first fit to need it sets it, the last one lifts it."""

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limits = threadpool_limits(limits=1, user_api="blas")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limits.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """One thread inside the block where the problem is small; what was set before otherwise, and afterwards."""
    if numbers > SMALL:
        yield
        return
    before = torch.get_num_threads()  # torch counts for each thread that calls it
    torch.set_num_threads(1)
    try:
        with _ONE_BLAS_THREAD:
            yield
    finally:
        torch.set_num_threads(before)
