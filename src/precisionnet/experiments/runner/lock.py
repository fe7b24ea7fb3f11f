"""One writer a folder: a lock that the system gives back when its holder dies, however it dies."""

from __future__ import annotations

import sys
import time
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def take_lock(descriptor: int, patience: float = 0.5) -> bool:
    """Whether this process is the one writer now; closing the descriptor gives the lock back.

    The wait is for :func:`is_locked`, which takes the lock for an instant to see whether it can be had.
    """
    if sys.platform == "win32":
        return True  # no such lock there: two runs at once are not noticed
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)


def is_locked(path: Path) -> bool:
    """Whether somebody is writing."""
    if sys.platform == "win32" or not path.exists():
        return False
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
