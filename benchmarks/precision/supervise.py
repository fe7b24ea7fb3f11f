"""Workers from outside: started on one thread, given a problem and a time limit, killed when it is over."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.precision.measure import Attempt

ROOT = Path(__file__).parents[2]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")
START_SECONDS = 300.0
CHECK_SECONDS = 7200.0
"""Most time for the proof of an answer, which is not held against the solver."""


def one_thread() -> dict[str, str]:
    """The environment in which NumPy, R and numba use one thread."""
    return {**os.environ, **dict.fromkeys(THREADS, "1")}


def run_module(module: str, *arguments: str, threads: bool = False) -> dict[str, Any]:
    """A module of this package in a fresh process; its last line of output is JSON."""
    command = [sys.executable, "-m", f"benchmarks.precision.{module}", *arguments]
    environment = None if threads else one_thread()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or f"{module} gave up").splitlines()[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


@dataclass
class Outcome:
    """Everything a worker said about one problem."""

    attempts: list[Attempt] = field(default_factory=list)
    rung: int | None = None
    seconds: float | None = None
    inversion: float | None = None
    repeats: int = 0
    killed_after: float | None = None
    """Seconds into the attempt during which the limit was reached."""
    crashed: str = ""

    @property
    def passed(self) -> Attempt | None:
        """The loosest attempt that solved the problem."""
        return max((a for a in self.attempts if a.passed), key=lambda a: a.tol, default=None)


class Worker:
    """A solver's process; it lives from problem to problem and is replaced after it was killed."""

    def __init__(self, solver: str) -> None:
        self.solver = solver
        self.reason: str | None = None
        self.versions: dict[str, str] = {}
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()

    def start(self) -> None:
        """Start it unless it runs; ``reason`` says why it cannot."""
        if self._process is not None or self.reason is not None:
            return
        self._lines = queue.Queue()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.precision.worker", self.solver],
            cwd=ROOT,
            env=one_thread(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, args=(self._process, self._lines), daemon=True).start()
        ready = self._next(time.monotonic() + START_SECONDS)
        if ready is None:
            self.reason = "its process did not start"
        else:
            self.reason, self.versions = ready["reason"], ready["versions"]
        if self.reason is not None:
            self.stop()

    def solve(self, problem: Path, limit: float, *, first: int = 0, yardstick: bool = False) -> Outcome:
        """Give it a problem file; stop it after ``limit`` seconds."""
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        job = {"problem": str(problem), "first": first, "yardstick": yardstick}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        outcome, began = Outcome(), time.time()
        deadline, left, solving = time.monotonic() + START_SECONDS, limit, False
        while True:
            said = self._next(deadline)
            if said is None:
                if time.monotonic() >= deadline:
                    outcome.killed_after = time.time() - began
                else:
                    outcome.crashed = f"its process ended ({self._process.wait()})"
                self.stop()
                return outcome
            event = said.pop("event")
            if event == "began":
                began, solving = said["at"], True
                # Reading the problem and proving answers are not held against it.
                deadline = time.monotonic() + left
                continue
            if solving:
                left, solving = deadline - time.monotonic(), False
                deadline = time.monotonic() + CHECK_SECONDS
            if event == "tried":
                rung = said.pop("rung")
                outcome.attempts.append(Attempt(**said))
                outcome.rung = rung if outcome.attempts[-1].passed else outcome.rung
            elif event == "done":
                outcome.seconds, outcome.inversion = said.get("seconds"), said.get("inversion")
                outcome.repeats = said.get("repeats", 0)
                return outcome

    def stop(self) -> None:
        """End the process and whatever it started (R)."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _next(self, deadline: float) -> dict[str, Any] | None:
        try:
            line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            return None
        return None if line is None else json.loads(line)

    @staticmethod
    def _listen(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)
