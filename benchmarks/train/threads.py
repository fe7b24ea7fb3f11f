"""So many threads for everything: PyTorch's own and BLAS's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(limits=number):
            yield
    finally:
        torch.set_num_threads(before)
