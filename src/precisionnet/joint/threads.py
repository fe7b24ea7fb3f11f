"""How many threads a fit uses.

Small products lose more to starting threads than they gain, and threads that spin while they wait slow down whoever
shares the machine (a fit of 30 rows: well under a second on one thread, up to ten seconds on two while both cores were
busy). One thread also makes a fit bit-identical whether it runs alone or in a pool of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

SMALL = 1_000_000
"""Numbers in one layer's output (rows * nodes * filters) up to which one thread is used."""


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """One thread inside the block where the problem is small; what was set before otherwise, and afterwards."""
    if numbers > SMALL:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
