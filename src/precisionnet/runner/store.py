"""A results folder: what the experiment is, its splits, and one line per finished fit.

=================== ==================================================================================================
``experiment.json`` name, config, hashes, versions and the list of jobs; there before the first row is
``splits.csv``      one row per sample, one column per repeat: train, validation or test
``rows.jsonl``      one line per finished fit; append-only
``trials.jsonl``    one line per candidate that was tried; on the disk before the fit's own line
``scratch``         what unfinished fits keep to go on from; gone when they are finished
``.lock``           held by the one process that may write; the system releases it when that process ends
=================== ==================================================================================================

A run that is killed loses the fits it had in work and nothing else: the folder can be opened again after it ended
between any two instructions. Whatever else lies in the folder is left alone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import pandas as pd
from filelock import FileLock, Timeout

from precisionnet.errors import InputError, OutputError
from precisionnet.outputs import whole_file
from precisionnet.runner.jobs import Experiment, Row
from precisionnet.runner.lines import FULL, LinesFile, read_lines
from precisionnet.runner.manifest import MANIFEST, check_rows, make_manifest, read_manifest, refuse_another
from precisionnet.tables_out import spreadsheet_safe

SPLITS, ROWS, TRIALS, SCRATCH, LOCK = "splits.csv", "rows.jsonl", "trials.jsonl", "scratch", ".lock"
PATIENCE = 0.5
"""Seconds to wait for the lock: ``is_locked`` takes it for an instant to see whether it is free."""


@dataclass(frozen=True)
class Stored:
    """What a results folder holds.

    Parameters
    ----------
    manifest : dict
        The content of ``experiment.json``.
    rows : list of dict
        One row per finished fit, in the order they were finished.
    trials : list of dict
        One row per candidate that was tried.

    Examples
    --------
    >>> stored = read_folder("results/abide")  # doctest: +SKIP
    >>> len(stored.rows)  # doctest: +SKIP
    55
    """

    manifest: dict[str, Any]
    rows: list[Row]
    trials: list[Row]


def read_folder(folder: str | Path) -> Stored:
    """Read a results folder, also one that is being written to or that a killed run left behind.

    Parameters
    ----------
    folder : str or Path
        A folder that a run has made.

    Returns
    -------
    Stored
        The manifest, the rows and the trials.

    Raises
    ------
    InputError
        If the folder is no results folder, or a row is damaged, comes twice, belongs to another experiment or lacks
        a number that it must have.

    Examples
    --------
    >>> read_folder("results/abide").manifest["name"]  # doctest: +SKIP
    'abide'
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(
            f"{str(folder)!r} is not a results folder: it has no {MANIFEST}; pass one that compare or reproduce made."
        )
    try:
        lines, tried = read_lines(folder / ROWS), read_lines(folder / TRIALS)
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be read ({error.strerror}): check its permissions.") from error
    check_rows(folder / ROWS, lines, manifest)
    finished = {line.row["job"] for line in lines}
    return Stored(manifest, [line.row for line in lines], [t.row for t in tried if _job(t.row) in finished])


def is_locked(folder: Path) -> bool:
    """Whether a process is writing to the folder; nothing is made there to find out."""
    path = folder / LOCK
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a folder that may only be read: nobody can tell
        return False


class Store:
    """The folder of an experiment, open for appending; one process at a time can have it open."""

    def __init__(self, folder: str | Path, experiment: Experiment) -> None:
        self.folder = Path(folder)
        self.manifest = make_manifest(experiment)
        self.finished: dict[str, Row] = {}
        """Rows by the name of their job."""
        self._files: list[LinesFile] = []
        self._lock = FileLock(self.folder / LOCK, timeout=PATIENCE)
        with self._in_a_sentence():
            _refuse_foreign(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with self._in_a_sentence():
                self._open(experiment.splits)
        except BaseException:
            self.close()
            raise

    def add(self, row: Row, trials: Sequence[Row]) -> None:
        """Keep a finished fit: all of it, or none of it and a sentence."""
        before = self._trials.size, self._rows.size
        try:
            with self._in_a_sentence():
                self._trials.append(trials)  # first: a row says that everything about its fit is there
                self._rows.append([row])
        except BaseException:
            with suppress(OSError):  # what cannot be taken back now is cut off when the folder is opened again
                self._rows.cut(before[1])
                self._trials.cut(before[0])
            raise
        self.finished[row["job"]] = row
        shutil.rmtree(self.scratch(row["job"]), ignore_errors=True)

    def scratch(self, job: str) -> Path:
        """Return the path of a folder for this job alone; the worker makes it."""
        return self.folder.absolute() / SCRATCH / quote(job, safe="=")

    def close(self) -> None:
        """Close the files and release the lock."""
        with suppress(OSError):  # not there, or it holds what interrupted fits go on from
            (self.folder / SCRATCH).rmdir()
        while self._files:
            self._files.pop().close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, splits: pd.DataFrame | None) -> None:
        try:
            self._lock.acquire()
        except Timeout as error:
            raise InputError(
                f"Another run is writing to {str(self.folder)!r}: wait until it has ended, or name another folder."
            ) from error
        self._rows = self._lines(ROWS)
        for left_behind in self.folder.glob(".partial-*"):  # by a run that was killed while it wrote a file
            left_behind.unlink(missing_ok=True)
        there = read_manifest(self.folder)
        if there is not None:
            refuse_another(self.folder, there, self.manifest)
            self.manifest |= {"created": there.get("created"), "versions": there.get("versions")}
        if splits is not None:
            self._keep_splits(_splits_text(splits), there)
        if there != self.manifest:  # after the splits, so that a folder with a manifest is a whole one
            _write(self.folder / MANIFEST, json.dumps(self.manifest, indent=1, ensure_ascii=False) + "\n")
        self._trials = self._lines(TRIALS)
        self._read_back()

    def _lines(self, name: str) -> LinesFile:
        self._files.append(LinesFile(self.folder / name))
        return self._files[-1]

    def _keep_splits(self, splits: str, there: dict[str, Any] | None) -> None:
        path = self.folder / SPLITS
        if there is None or not path.exists():
            _write(path, splits)
        elif not _begins_alike(stored := path.read_text(encoding="utf-8"), splits):
            raise InputError(
                f"{str(path)!r} has other splits than this run makes: it was edited, or another version made it; "
                "name another folder."
            )
        elif stored != splits:
            _write(path, splits)

    def _read_back(self) -> None:
        """Read the rows by job; what a killed run left half-written is cut off."""
        rows = read_lines(self._rows.path)
        check_rows(self._rows.path, rows, self.manifest)
        self._rows.cut(rows[-1].end if rows else 0)
        self.finished = {line.row["job"]: line.row for line in rows}
        # Trials are written just before their row, so those of a fit that was lost stand at the end.
        whole = [line.end for line in read_lines(self._trials.path) if _job(line.row) in self.finished]
        self._trials.cut(whole[-1] if whole else 0)

    @contextmanager
    def _in_a_sentence(self) -> Iterator[None]:
        """Say in a sentence what the system refused."""
        try:
            yield
        except OutputError:
            raise
        except OSError as error:
            where = str(self.folder)
            if error.errno not in FULL:
                raise OutputError(f"Cannot write to {where!r}: {error.strerror}; choose another place.") from error
            raise OutputError(
                f"Cannot write to {where!r} ({error.strerror}): {len(self.finished)} of {self.manifest['total']} fits "
                "are kept; make room there and run again to go on."
            ) from error


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder with other files; what a killed run made there before its manifest is ours."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"Cannot write to {str(folder)!r}: it is a file; name a new or empty folder.")
    if not folder.exists() or (folder / MANIFEST).exists():
        return
    names = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".partial-")} - {LOCK}
    if names - {SPLITS, ROWS} or any((folder / name).stat().st_size for name in names & {ROWS}):
        raise OutputError(
            f"Cannot write to {str(folder)!r}: the folder holds files that are not an experiment's results; name a "
            "new or empty folder."
        )


def _splits_text(splits: pd.DataFrame) -> str:
    """Return the splits as csv, with the ids in the first column."""
    table = splits.reset_index(names=str(splits.index.name or "id"), allow_duplicates=True)
    return spreadsheet_safe(table).to_csv(index=False, lineterminator="\n")


def _begins_alike(one: str, other: str) -> bool:
    """Whether two tables have the same rows, one of them with more columns at their ends."""
    lines = one.splitlines(), other.splitlines()
    longer, shorter = sorted(lines, key=lambda table: len(table[0]) if table else 0, reverse=True)
    return len(longer) == len(shorter) and all(
        f"{line},".startswith(f"{beginning},") for line, beginning in zip(longer, shorter, strict=True)
    )


def _job(row: Row) -> str:
    """The name of a trial's job; an empty text where it has none."""
    job = row.get("job")
    return job if isinstance(job, str) else ""


def _write(path: Path, text: str) -> None:
    with whole_file(path) as scratch, scratch.open("wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
