"""How far the experiment in a results folder has come, read from the folder alone."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from precisionnet.errors import InputError
from precisionnet.runner.manifest import MANIFEST, read_manifest
from precisionnet.runner.store import is_locked, read_folder


@dataclass(frozen=True)
class MethodStatus:
    """How far one method of an experiment is.

    Parameters
    ----------
    method : str
        Name of the method.
    done : int
        Number of finished fits, failed ones included.
    failed : int
        Number of failed fits.
    total : int
        Number of fits to be done.

    Examples
    --------
    >>> from precisionnet.runner import MethodStatus
    >>> MethodStatus("joint", done=3, failed=0, total=5).total
    5
    """

    method: str
    done: int
    failed: int
    total: int


@dataclass(frozen=True)
class Status:
    """How far an experiment is.

    Parameters
    ----------
    folder : Path
        The results folder.
    name : str
        Name of the experiment.
    done : int
        Number of finished fits, failed ones included.
    failed : int
        Number of failed fits.
    total : int
        Number of fits to be done.
    methods : tuple of MethodStatus
        The same by method, in the order of the jobs.
    last_finished : str or None
        When the newest row was written (ISO 8601, UTC).
    running : bool
        Whether a process is working on it now.

    Examples
    --------
    >>> from pathlib import Path
    >>> from precisionnet.runner import Status
    >>> Status(Path("results"), "demo", 5, 0, 5, (), None, running=False).state
    'complete'
    """

    folder: Path
    name: str
    done: int
    failed: int
    total: int
    methods: tuple[MethodStatus, ...]
    last_finished: str | None
    running: bool

    @property
    def state(self) -> Literal["running", "complete", "interrupted"]:
        """The state in a word; an interrupted experiment goes on when it is run again."""
        if self.done == self.total:
            return "complete"
        return "running" if self.running else "interrupted"


def status(folder: str | Path) -> Status:
    """Say how far the experiment in a folder is; the folder may be in use.

    Parameters
    ----------
    folder : str or Path
        A results folder.

    Returns
    -------
    Status
        Numbers of fits that are done, failed and to be done, and whether a process is working on it.

    Examples
    --------
    >>> status("results/abide").state  # doctest: +SKIP
    'complete'
    """
    folder = Path(folder)
    running = is_locked(folder)  # first: a run that ends meanwhile has then written all of its rows
    stored = read_folder(folder)
    rows = {row["job"]: row for row in stored.rows}
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
        last_finished=max((str(row["finished"]) for row in rows.values() if "finished" in row), default=None),
        running=running,
    )


def results_folders(root: str | Path) -> list[Path]:
    """Find the results folders at and below ``root``, in order of name; hidden folders are skipped.

    Parameters
    ----------
    root : str or Path
        Where to look.

    Returns
    -------
    list of Path
        The results folders.

    Examples
    --------
    >>> results_folders("results")  # doctest: +SKIP
    [PosixPath('results/abide'), PosixPath('results/ants')]
    """
    found = []
    for place, below, files in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if MANIFEST in files:
            with suppress(InputError):  # another tool's file of that name
                read_manifest(Path(place))
                found.append(Path(place))
    return found
