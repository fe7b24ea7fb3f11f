"""Ctrl-C stops what is running once: what is cleaned up after it is not interrupted again. Training it asks to end.

Workers are killed, files are closed, and semaphores are given back in a fraction of a second. A second Ctrl-C in that
time would leave some of it undone, and Python would print a traceback of wherever it was.
"""

from __future__ import annotations

import atexit
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PAUSE = 5.0
"""Seconds after a Ctrl-C in which another one is not heeded; one that comes later interrupts a clean-up that hangs."""


@dataclass
class Wish:
    """A Ctrl-C that asks a training to end, and does not interrupt it."""

    answer: str
    """Printed when the Ctrl-C comes, as the end may take a while."""
    heard: bool = False
    """Whether a Ctrl-C asks at the moment; while it is False, it interrupts as ever."""
    came: bool = False
    """Whether it has come."""


class _CtrlC:
    """A handler of SIGINT that raises ``KeyboardInterrupt`` as Python's own does, with pauses."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._held = 0
        self._came = False
        self.wish: Wish | None = None

    def forget(self) -> None:
        """Heed the next one, however soon after the last of an earlier run."""
        self._last = -math.inf

    def __call__(self, *_: object) -> None:
        if self._held:
            self._came = True
        elif self.wish is not None and self.wish.heard and not self.wish.came:
            self.wish.came = True
            os.write(2, f"\n{self.wish.answer}\n".encode())  # a handler may come in the middle of another write
        elif time.monotonic() - self._last >= PAUSE:
            self._last = time.monotonic()
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if self._came:
                self._came = False
                self()


_ctrl_c = _CtrlC()


def heed_ctrl_c_once() -> None:
    """Let a second Ctrl-C soon after the first one do nothing, until this process ends: for a command's ``main``."""
    if _replace_default():
        # Python takes its handlers away before it has ended; what is registered first is called last.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def ctrl_c_once() -> Iterator[None]:
    """Let a second Ctrl-C soon after the first one do nothing inside the block."""
    replaced = _replace_default()
    try:
        yield
    finally:
        if replaced:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ctrl_c_asks(answer: str) -> Iterator[Wish]:
    """Yield what tells whether a Ctrl-C came while it was ``heard``; the next one interrupts.

    A handler that the user has set stays, and in other threads than the main one nothing is heard.
    """
    with ctrl_c_once():
        mine = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _ctrl_c
        wish = Wish(answer)
        before, _ctrl_c.wish = _ctrl_c.wish, wish if mine else _ctrl_c.wish
        try:
            yield wish
        finally:
            _ctrl_c.wish = before


@contextmanager
def ctrl_c_later() -> Iterator[None]:
    """Heed a Ctrl-C at the end of the block; processes that start in it do not get it until they ask for it.

    Inside :func:`ctrl_c_once`; elsewhere the block can be interrupted as ever.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    with _ctrl_c.held():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # children inherit it
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _replace_default() -> bool:
    """Replace Python's own handler, in the main thread alone; a handler that the user has set stays."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    _ctrl_c.forget()
    signal.signal(signal.SIGINT, _ctrl_c)
    return True
