"""Windows of a table that does not fit into memory: its rows, dealt at random into files that each do.

A pass over the table deals its rows into ``n_windows`` files; which one a row goes to follows from the seed and the
row's number, so that every window is a random sample of the whole table, however the table is sorted. An epoch then
goes over one window, and the next epoch over the next one. Rows beyond ``n_windows * window_rows`` are not dealt:
neither memory, nor disk, nor the time of a training grows with the table any more.

Rows of a group share a fold in every window: the fold is a hash of the group, or of the row's number.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from precisionnet.datasets.row_source import RowBlock, RowSource
from precisionnet.errors import InputError, shown
from precisionnet.estimators.rows import Scaler, fill
from precisionnet.estimators.survey import Hashes, mixed, random_numbers
from precisionnet.estimators.targets import Target
from precisionnet.joint.problem import TensorRows
from precisionnet.memory import gigabytes
from precisionnet.types import FloatArray, IndexArray

WINDOW_ROWS, WINDOW_NUMBERS = 2**15, 2**23
"""Rows of a window, and numbers in it at most."""
FEWEST_WINDOW_ROWS = 64
FEWEST_LEARNED = 8
"""Rows of a window that networks learn from, at least."""
MOST_WINDOWS = 64
"""Files that are written at once."""
SPARE_DISK = 2**28
"""Bytes that are left free."""


@dataclass(frozen=True)
class FoldDealer:
    """Deals rows into folds: says which fold leaves a row out.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    seed : int
        Of the hashes.
    groups : ndarray of uint64, optional
        Hashes of all groups, in order, where they are few: these are dealt one after the other.
    """

    n_folds: int
    seed: int
    groups: Hashes | None = None

    def folds(self, rows: RowBlock) -> IndexArray:
        """Return the fold of each row; rows of a group have the same one. Of a single group no row is left out: -1."""
        seed = self.seed + 1  # the fold has nothing to do with the window
        if rows.group is None:
            return _remainder(mixed(rows.row.astype(np.uint64), seed), self.n_folds)
        if self.groups is not None and len(self.groups) < 2:
            return np.full(len(rows), -1, dtype=np.intp)
        if self.groups is None:
            return _remainder(mixed(rows.group_hash, seed), self.n_folds)
        rank = np.argsort(np.argsort(mixed(self.groups, seed)))
        return np.asarray(rank[np.searchsorted(self.groups, rows.group_hash)] % self.n_folds, dtype=np.intp)


@dataclass(frozen=True)
class TableWindows:
    """The windows of a table, on disk; all of it travels to a worker on the same machine.

    Parameters
    ----------
    folder : Path
        Where the files are.
    kind : numpy.dtype
        Of a row: features in standard units, target, weight and fold.
    n_windows : int
        Number of files.
    device : torch.device
        Where the networks are.
    counts : ndarray of int of shape (n_windows, n_folds + 1)
        Rows of each window in each fold, and in the last column those that no fold leaves out.
    target : Target, optional
        How the target is learned.
    """

    folder: Path
    kind: Any
    n_windows: int
    device: torch.device
    counts: IndexArray
    target: Target | None = None
    _last: list[Any] = field(default_factory=list, repr=False)

    @property
    def mean_rows(self) -> int:
        """Rows of a window, on average."""
        return round(float(self.counts.sum()) / self.n_windows)

    def refuse_few_rows(self, n_folds: int, groups: str | None) -> None:
        """Refuse folds that leave so much out that hardly a row of a window is left to learn from.

        Parameters
        ----------
        n_folds : int
            Folds that networks leave out: the first ones.
        groups : str or None
            Column of the groups.
        """
        fewest = int((self.counts.sum(axis=1, keepdims=True) - self.counts[:, :n_folds]).min())
        if fewest < FEWEST_LEARNED:
            why = "" if groups is None else f", as the groups of {shown(groups)} are unequal"
            raise InputError(
                f"One fold holds nearly all rows{why}: "
                f"networks that leave it out would learn from {fewest} rows of a window, and need {FEWEST_LEARNED}. "
                "Leave groups out, raise window_rows, or use fit."
            )

    def learning(self, target: Target) -> TableWindows:
        """Return the windows with the target as networks learn it."""
        return replace(self, target=target, _last=[])

    def of_epoch(self, epoch: int) -> tuple[TensorRows, IndexArray]:
        """Return the rows of an epoch's window as networks take them, and their folds."""
        number = (epoch - 1) % self.n_windows
        if not self._last or self._last[0] != number:  # stacks of the same epoch ask for the same window
            self._last[:] = [number, self._read(number)]
        rows: tuple[TensorRows, IndexArray] = self._last[1]
        return rows

    def _read(self, number: int) -> tuple[TensorRows, IndexArray]:
        assert self.target is not None
        try:
            found = np.fromfile(_file(self.folder, number), dtype=self.kind)
        except OSError as error:
            raise InputError(
                f"A worker cannot read the rows in {str(self.folder)!r}, which are files of the machine that fits: use "
                "workers on that machine, or leave n_jobs out."
            ) from error
        x = torch.from_numpy(np.ascontiguousarray(found["x"])).unsqueeze(-1).to(self.device)
        y = self.target.tensor(found["y"].copy())
        y = (y.to(x.dtype) if y.is_floating_point() else y).to(self.device)
        weight = torch.from_numpy(found["weight"].copy()).to(x.dtype).to(self.device)
        return TensorRows(x, y, weight), found["fold"].astype(np.intp)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": []}


def window_size(window_rows: int | None, n_columns: int) -> int:
    """Return the rows of a window: what was asked for, or what memory holds easily."""
    if window_rows is None:
        return max(FEWEST_WINDOW_ROWS, min(WINDOW_ROWS, WINDOW_NUMBERS // n_columns))
    if (
        isinstance(window_rows, bool)
        or not isinstance(window_rows, int | np.integer)
        or window_rows < FEWEST_WINDOW_ROWS
    ):
        raise InputError(f"window_rows must be a whole number from {FEWEST_WINDOW_ROWS} on, got {window_rows!r}.")
    return int(window_rows)


def deal_windows(
    source: RowSource,
    folder: Path,
    *,
    n_rows: int,
    n_windows: int,
    window_rows: int,
    seed: int,
    dealer: FoldDealer,
    scaler: Scaler,
    middle: FloatArray | None,
    classes: Any,
    dtype: str,
    device: torch.device,
) -> TableWindows:
    """Go over a table and deal its rows into files.

    Parameters
    ----------
    source : RowSource
        The table.
    folder : Path
        An empty folder for the files.
    n_rows : int
        Rows of the table that have weight.
    n_windows : int
        Number of windows.
    window_rows : int
        Rows of a window; somewhat more where that deals all rows.
    seed : int
        What follows a row's window from its number.
    dealer : FoldDealer
        What tells a row's fold.
    scaler : Scaler
        Into standard units.
    middle : ndarray of shape (n_columns,) or None
        What takes the place of missing values.
    classes : ndarray or None
        Labels of the target, sorted; None of a number.
    dtype : {"float32", "float64"}
        What features are kept in.
    device : torch.device
        Where the networks are.

    Returns
    -------
    TableWindows
        To learn from.
    """
    kind = np.dtype([("x", dtype, (len(source.columns),)), ("y", "f8"), ("weight", "f8"), ("fold", "i4")])
    shares = n_windows if n_rows // window_rows <= n_windows else n_rows / window_rows
    _refuse_full_disk(folder, kind.itemsize * min(n_rows, n_windows * n_rows / shares))
    seen, counts = 0, np.zeros((n_windows, dealer.n_folds + 1), dtype=np.intp)
    with ExitStack() as stack:
        with _kept_in(folder):
            files = [stack.enter_context(_file(folder, i).open("wb", buffering=0)) for i in range(n_windows)]
        for block in source.blocks():
            seen += len(block)
            number = (random_numbers(block.row, seed) * shares).astype(np.intp)
            rows = np.empty(len(block), dtype=kind)
            rows["x"] = scaler.transform(block.X if middle is None else fill(block.X, middle))
            rows["y"] = block.y if classes is None else np.searchsorted(classes, block.y)
            rows["weight"], rows["fold"] = block.weight, dealer.folds(block)
            for i, file in enumerate(files):
                here = rows[number == i]
                np.add.at(counts[i], here["fold"], 1)
                with _kept_in(folder):
                    _write(file, here.tobytes())
    if seen != n_rows:
        raise InputError(
            f"{source.pieces.name} had {n_rows} rows at first and {seen} the second time: leave it as it is while it "
            "is fitted, and pass batches that are the same every time."
        )
    return TableWindows(folder, kind, n_windows, device, counts)


def scratch_folder() -> Any:
    """Return a folder for windows that is gone with its ``with`` block."""
    return tempfile.TemporaryDirectory(prefix="precisionnet-")


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """Turn what a full disk raises into a sentence; what the source itself raises is not about the disk."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"The rows to learn from cannot be kept in {str(folder.parent)!r} ({error.strerror or error}): set the "
            "environment variable TMPDIR to a folder with more room, or lower window_rows."
        ) from error


def _write(file: Any, text: bytes) -> None:
    """Write all bytes to a file without a buffer, whose last bytes would be written outside of a sentence."""
    rest = memoryview(text)
    while len(rest):
        rest = rest[file.write(rest) :]


def _remainder(hashes: Hashes, n: int) -> IndexArray:
    return (hashes % np.uint64(n)).astype(np.intp)


def _file(folder: Path, number: int) -> Path:
    return folder / f"window-{number}"


def _refuse_full_disk(folder: Path, wanted: float) -> None:
    free = shutil.disk_usage(folder).free
    if wanted + SPARE_DISK > free:
        raise InputError(
            f"The rows to learn from take {gigabytes(wanted)} in {str(folder.parent)!r}, where {gigabytes(free)} "
            "are free: set the environment variable TMPDIR to a folder with more room, or lower window_rows."
        )
