"""Ctrl-C is heeded once, also where it comes at a bad moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from precisionnet import interrupts
from precisionnet.interrupts import ctrl_c_later, ctrl_c_once


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def pressed_twice(cleaned: list[str]) -> None:
    with ctrl_c_once():
        try:
            press()
        finally:
            press()
            cleaned.append("all")


def test_the_first_stops_and_the_second_does_not_interrupt_the_clean_up(monkeypatch):
    cleaned: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        pressed_twice(cleaned)
    assert cleaned == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.setattr(interrupts, "PAUSE", 0.0)
    with pytest.raises(KeyboardInterrupt):
        pressed_twice(cleaned)
    assert cleaned == ["all"]  # a clean-up that hangs for longer than the pause can be interrupted


def test_every_block_heeds_its_first_one():
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), ctrl_c_once():
            press()


def test_a_handler_of_somebody_else_stays():
    came = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        with ctrl_c_once():
            press()
            press()
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [signal.SIGINT] * 2


def test_another_thread_sets_no_handler():
    found = []

    def ask() -> None:
        with ctrl_c_once(), ctrl_c_later():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_a_block_is_completed_first_and_its_processes_are_not_reached():
    done: list[str] = []
    wait = "import signal, time; time.sleep(0.2); signal.signal(signal.SIGINT, signal.SIG_IGN); print('here')"

    def start() -> None:
        with ctrl_c_once(), ctrl_c_later():
            child = subprocess.Popen([sys.executable, "-c", wait], stdout=subprocess.PIPE, text=True)
            child.send_signal(signal.SIGINT)
            press()
            done.append(child.communicate(timeout=60)[0])

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["here\n"]
