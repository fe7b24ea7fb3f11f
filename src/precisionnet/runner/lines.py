"""An append-only file of JSON objects, one a line, that survives being killed at any moment.

A line counts once its line break is on the disk. What a killed process left behind it is cut off before the next line
is written; a line that could not be written whole is taken back.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from precisionnet.errors import InputError
from precisionnet.experiments.runner.jobs import Row
from precisionnet.experiments.runner.json_values import to_line

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where a file cannot grow: disk, quota or largest size of a file."""


class Line(NamedTuple):
    """An object and the position in the file where its line ends."""

    row: Row
    end: int


def read_lines(path: Path) -> list[Line]:
    """The whole lines; also while somebody is writing another one."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    found, end = list[Line](), 0
    pieces = content.split(b"\n")[:-1]  # behind the last line break is nothing, or a torn line
    for number, piece in enumerate(pieces, start=1):
        end += len(piece) + 1
        row = _parsed(piece)
        if row is not None:
            found.append(Line(row, end))
        elif number < len(pieces):  # the last one may be what a crash of the machine left of a line
            raise InputError(
                f"Line {number} of {str(path)!r} is not a JSON object: the file was damaged or edited; "
                "delete that line, and its fit is done again."
            )
    return found


class Lines:
    """The file, open to append to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return os.fstat(self.descriptor).st_size

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write one line each; they are on the disk when this returns."""
        left = memoryview(b"".join(map(to_line, rows)))
        while left:
            left = left[os.write(self.descriptor, left) :]
        os.fsync(self.descriptor)

    def cut(self, size: int) -> None:
        """Take back what stands behind."""
        if self.size > size:
            os.ftruncate(self.descriptor, size)
            os.fsync(self.descriptor)

    def close(self) -> None:
        """Give up the file and the lock on it."""
        os.close(self.descriptor)


def _parsed(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
