"""A results folder: what the experiment is, its splits, and a line for every finished fit.

=================== ==================================================================================================
``experiment.json`` name, config, hashes, versions and the list of jobs; there before the first row is
``splits.csv``      a row a sample, a column a repeat: train, validation or test
``rows.jsonl``      a line a finished fit; append-only, and locked by the one process that may write
``trials.jsonl``    a line a candidate that was tried for it; on the disk before the fit's own line
``scratch``         what fits in work keep to go on from; gone when they are finished
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

from precisionnet.errors import InputError, OutputError
from precisionnet.experiments.runner.jobs import Experiment, Row
from precisionnet.experiments.runner.lines import FULL, Lines, read_lines
from precisionnet.experiments.runner.lock import take_lock
from precisionnet.experiments.runner.manifest import MANIFEST, make_manifest, read_manifest, refuse_another
from precisionnet.outputs import whole_file

SPLITS, ROWS, TRIALS, SCRATCH = "splits.csv", "rows.jsonl", "trials.jsonl", "scratch"


@dataclass(frozen=True)
class Stored:
    """What a results folder holds."""

    manifest: dict[str, Any]
    rows: list[Row]
    """In the order they were finished."""
    trials: list[Row]


def read_folder(folder: str | Path) -> Stored:
    """Read a results folder; also one that is being written to, or that a killed run left behind."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(
            f"{str(folder)!r} is not a results folder: it has no {MANIFEST}; pass one that compare or reproduce made."
        )
    try:
        rows = [line.row for line in read_lines(folder / ROWS)]
        finished = {row.get("job") for row in rows}
        trials = [line.row for line in read_lines(folder / TRIALS) if line.row.get("job") in finished]
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be read ({error.strerror}): check its permissions.") from error
    return Stored(manifest, rows, trials)


class Store:
    """The folder of an experiment, open to append to; one process at a time has it so."""

    def __init__(self, folder: str | Path, experiment: Experiment) -> None:
        self.folder = Path(folder)
        self.manifest = make_manifest(experiment)
        self.finished: dict[str, Row] = {}
        """Rows by the name of their job."""
        self._files: list[Lines] = []
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
        """A folder of this job's own, for whoever does the job to make."""
        return self.folder.absolute() / SCRATCH / quote(job, safe="=")

    def close(self) -> None:
        """Let others write."""
        with suppress(OSError):  # not there, or it holds what interrupted fits go on from
            (self.folder / SCRATCH).rmdir()
        while self._files:
            self._files.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, splits: pd.DataFrame | None) -> None:
        self._rows = self._lines(ROWS)
        if not take_lock(self._rows.descriptor):
            raise InputError(
                f"Another run is writing to {str(self.folder)!r}: wait until it has ended, or name another folder."
            )
        for left_behind in self.folder.glob(".partial-*"):  # by a run that was killed while it wrote a file
            left_behind.unlink(missing_ok=True)
        there = read_manifest(self.folder)
        if there is not None:
            refuse_another(self.folder, there, self.manifest)
            self.manifest |= {"created": there.get("created"), "versions": there.get("versions")}
        if splits is not None:
            self._keep_splits(splits.to_csv(index_label=str(splits.index.name or "id"), lineterminator="\n"), there)
        if there != self.manifest:  # after the splits, so that a folder with a manifest is a whole one
            _write(self.folder / MANIFEST, json.dumps(self.manifest, indent=1, ensure_ascii=False) + "\n")
        self._trials = self._lines(TRIALS)
        self._read_back()

    def _lines(self, name: str) -> Lines:
        self._files.append(Lines(self.folder / name))
        return self._files[-1]

    def _keep_splits(self, splits: str, there: dict[str, Any] | None) -> None:
        path = self.folder / SPLITS
        if there is None or not path.exists():
            _write(path, splits)
        elif path.read_bytes() != splits.encode():
            raise InputError(
                f"{str(path)!r} has other splits than this run makes: it was edited, or another version made it; "
                "name another folder."
            )

    def _read_back(self) -> None:
        """The rows by job; what a killed run left half-written is cut off."""
        rows = read_lines(self._rows.path)
        self._rows.cut(rows[-1].end if rows else 0)
        self.finished = {line.row.get("job", ""): line.row for line in rows}
        # Trials are written just before their row, so those of a fit that was lost stand at the end.
        whole = [line.end for line in read_lines(self._trials.path) if line.row.get("job") in self.finished]
        self._trials.cut(whole[-1] if whole else 0)

    @contextmanager
    def _in_a_sentence(self) -> Iterator[None]:
        """Whatever the system refuses."""
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
                "are kept; make room there and run the same command again to go on."
            ) from error


def _refuse_foreign(folder: Path) -> None:
    """Nobody else's folder becomes ours; what a run has made before its manifest when it is killed is ours."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"Cannot write to {str(folder)!r}: it is a file; name a new or empty folder.")
    if not folder.exists() or (folder / MANIFEST).exists():
        return
    names = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".partial-")}
    if names - {SPLITS, ROWS} or any((folder / name).stat().st_size for name in names & {ROWS}):
        raise OutputError(
            f"Cannot write to {str(folder)!r}: the folder holds files that are not an experiment's results; name a "
            "new or empty folder."
        )


def _write(path: Path, text: str) -> None:
    with whole_file(path) as scratch, scratch.open("wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
