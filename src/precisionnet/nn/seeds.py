"""Random numbers of torch's layers, first weights as well as dropout, from a seed of one's own.

Layers draw from the process's generator. It is borrowed for a moment, one user at a time, and given back as it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

_LOCK = RLock()


def _new_lock() -> None:
    global _LOCK
    _LOCK = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Let whatever draws inside the block draw from ``seed``, on the CPU and on ``device``."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with _LOCK, torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
