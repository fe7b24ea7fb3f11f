"""How far the experiment in a results folder has come, whoever runs it."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from precisionnet.errors import InputError
from precisionnet.experiments.runner.lock import is_locked
from precisionnet.experiments.runner.manifest import MANIFEST, read_manifest
from precisionnet.experiments.runner.store import ROWS, read_folder


@dataclass(frozen=True)
class MethodStatus:
    """Fits of one method."""

    method: str
    done: int
    """Those that failed among them."""
    failed: int
    total: int


@dataclass(frozen=True)
class Status:
    """Fits done and to be done."""

    folder: Path
    name: str
    done: int
    failed: int
    total: int
    methods: tuple[MethodStatus, ...]
    """In the order of the jobs."""
    last_finished: str | None
    """When the newest row was written (ISO 8601, UTC)."""
    running: bool
    """Whether a process is at it now."""

    @property
    def state(self) -> Literal["running", "complete", "interrupted"]:
        """In a word; what was interrupted goes on where it was when it is run again."""
        if self.done == self.total:
            return "complete"
        return "running" if self.running else "interrupted"


def status(folder: str | Path) -> Status:
    """Read from the folder alone; it may be in use."""
    folder = Path(folder)
    running = is_locked(folder / ROWS)  # first: a run that ends meanwhile has then written all of its rows
    stored = read_folder(folder)
    rows = {row["job"]: row for row in stored.rows if "job" in row}
    jobs = [(entry["job"], entry["method"]) for entry in stored.manifest["jobs"]]
    total = Counter(method for _, method in jobs)
    done = Counter(method for job, method in jobs if job in rows)
    failed = Counter(method for job, method in jobs if "error" in rows.get(job, {}))
    return Status(
        folder=folder,
        name=stored.manifest["name"],
        done=done.total(),
        failed=failed.total(),
        total=len(jobs),
        methods=tuple(MethodStatus(method, done[method], failed[method], total[method]) for method in total),
        last_finished=max((row["finished"] for row in rows.values()), default=None),
        running=running,
    )


def results_folders(root: str | Path) -> list[Path]:
    """The results folders at and below ``root``, in order of name; hidden folders are passed over."""
    found = []
    for place, below, files in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if MANIFEST in files:
            with suppress(InputError):  # another tool's file of that name
                read_manifest(Path(place))
                found.append(Path(place))
    return found
