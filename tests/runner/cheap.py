"""Experiments of jobs that take no time, or as much as a test needs to kill something; importable by workers."""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from precisionnet.errors import InputError, PrecisionNetWarning
from precisionnet.interrupts import heed_ctrl_c_once
from precisionnet.runner.jobs import Experiment, Finished, Job, Row
from precisionnet.runner.run import run_experiment

METHODS = {"ridge": 1.0, "joint": 20.0, "median": 1.0}
"""What each costs."""
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Cheap:
    """Arithmetic that several threads would round differently, and a diary of who did what."""

    diary: str | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    trouble: Mapping[str, str] = field(default_factory=dict)
    """By name of a job: what goes wrong there."""

    def __call__(self, job: Job, earlier: Row | None, scratch: Path | None) -> Finished:
        self._note(f"begin {job.name} {os.getpid()}")
        time.sleep(self.seconds.get(job.method, 0.0))
        broken = self._trouble(job, scratch)
        X = np.random.default_rng(job.seed).standard_normal((200, 200))
        total = float(torch.from_numpy(X @ X.T).sum())
        row = {
            "mae": np.float64(np.linalg.norm(X @ X)) if broken is None else broken,
            "total": total,
            "r2": np.nan,
            "threads": torch.get_num_threads(),
        }
        row["parameters"] = {"order": job.seed % 3} if earlier is None else earlier["parameters"]
        trials = [{"parameters": {"order": k}, "validation": np.float32(k), "stopped": k > 0} for k in range(2)]
        self._note(f"end {job.name} {os.getpid()}")
        return Finished(row, trials if earlier is None else [])

    def _note(self, line: str) -> None:
        if self.diary is not None:
            with open(self.diary, "a") as file:
                file.write(line + "\n")

    def _trouble(self, job: Job, scratch: Path | None) -> float | None:
        match self.trouble.get(job.name):
            case "input":
                raise InputError("Bring more rows.")
            case "bug":
                raise ZeroDivisionError("a bug")
            case "warning":
                warnings.warn("Mind the gap.", PrecisionNetWarning, stacklevel=1)
            case "nan":
                return np.nan
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "scratch":
                (scratch / "journal").write_text("half of the work")
                raise ZeroDivisionError("ended in the middle")
        return None


def cheap_experiment(work: Cheap | None = None, *, repeats: int = 2, reuse: bool = False, **changes) -> Experiment:
    """Three methods; with ``reuse`` a second level whose jobs wait for those of the first."""
    config = {"repeats": repeats, "seed": 0, "networks": {"order": [1, 2]}} | changes.pop("config", {})
    jobs = [
        Job(method, repeat, seed=1000 * repeat, setting={"level": 0.2} if reuse else {}, cost=cost)
        for repeat in range(repeats)
        for method, cost in METHODS.items()
    ]
    if reuse:
        jobs += [Job(job.method, job.repeat, job.seed + 1, {"level": 0.5}, after=job.name) for job in jobs]
    splits = pd.DataFrame(
        {str(repeat): ["train", "validation", "test"] for repeat in range(repeats)}, index=["a", "b", "ü"]
    )
    values = {"name": "cheap", "data_hash": "d" * 64, "splits": splits, "about": {"kind": "comparison"}}
    values |= {"metrics": ("mae",)} | changes
    return Experiment(config=config, jobs=tuple(jobs), work=work or Cheap(), **values)


def timeless(rows: list[Row]) -> list[Row]:
    """What must not depend on when and where rows were made."""
    return [{key: value for key, value in row.items() if key not in ("seconds", "finished")} for row in rows]


GONE = 5.0
"""Seconds after which no worker may outlive a run that was killed or stopped."""


def wait_until_gone(pids: set[int], seconds: float = GONE) -> None:
    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"still at work: {[pid for pid in pids if alive(pid)]}"
        time.sleep(0.05)


def wait_for_children(parent: int) -> set[int]:
    """Ids of the worker processes, as soon as there are two."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        found = set()
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                pid, ppid = int(path.parent.name), int(path.read_text().rsplit(")", 1)[1].split()[1])
                command = (path.parent / "cmdline").read_bytes()
                if ppid == parent and b"popen_loky" in command:
                    found.add(pid)
        if len(found) >= 2:
            return found
        time.sleep(0.01)
    raise AssertionError("no worker was started")


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def main() -> None:
    """FOLDER DIARY SECONDS REPEATS: a run in a process of its own, for tests that kill it."""
    folder, diary, seconds, repeats = sys.argv[1:]
    work = Cheap(diary, dict.fromkeys(METHODS, float(seconds)))
    heed_ctrl_c_once()  # as the command line does
    try:
        run_experiment(
            cheap_experiment(work, repeats=int(repeats), reuse=True),
            folder,
            on_event=lambda e: print(f"{e.done}\n", end="", flush=True),  # one write: Ctrl-C cannot come in between
        )
    except KeyboardInterrupt as stop:
        print(stop, flush=True)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
