"""Calls for workers, in a module that imports next to nothing: a new process has it at once."""

from __future__ import annotations

import os
import signal
import time
from copy import deepcopy

from precisionnet.workers import count_for


def place(base: float, number: int) -> tuple[float, int, int]:
    return base + number, os.getpid(), count_for(None)


def noted(path: str, seconds: float, number: int) -> int:
    whole_line("begin", number, path)
    time.sleep(seconds)
    whole_line("end", number, path)
    return number * number


def whole_line(word: str, number: int, path: str) -> None:
    with open(path, "a") as file:
        file.write(f"{word} {number} {os.getpid()}\n")


def deadly(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def last_first(function, calls, n_jobs, *, shared=()):
    """Stand in for ``as_they_come``: what workers would return, with copies of all arguments and in another order."""
    for call in reversed(calls):
        yield function(*deepcopy((*shared, *call)))
