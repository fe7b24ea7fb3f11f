"""An append-only file of JSON objects, one per line, that survives being killed at any moment.

A line counts once its line break is on the disk. What a killed process left behind it is cut off before the next line
is written; a line that could not be written whole is taken back. Values are converted to JSON's own types first, so
that a row in memory equals the row that is read back.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precisionnet.errors import InputError
from precisionnet.runner.jobs import Row

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""System errors that mean a file cannot grow: full disk, quota, largest size of a file."""


class StoredLine(NamedTuple):
    """An object, the number of its line, and the position in the file where the line ends."""

    row: Row
    number: int
    end: int


def read_lines(path: Path) -> list[StoredLine]:
    """Read the whole lines; another process may be appending one."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    found, end = list[StoredLine](), 0
    pieces = content.split(b"\n")[:-1]  # behind the last line break is nothing, or a torn line
    for number, piece in enumerate(pieces, start=1):
        end += len(piece) + 1
        row = _parsed(piece)
        if row is not None:
            found.append(StoredLine(row, number, end))
        elif number < len(pieces):  # the last one may be what a crash of the machine left of a line
            raise InputError(
                f"Line {number} of {str(path)!r} is not a JSON object: the file was damaged or edited; "
                "delete that line, and its fit is done again."
            )
    return found


class LinesFile:
    """The file, open for appending."""

    def __init__(self, path: Path) -> None:
        self.path = path
        binary = getattr(os, "O_BINARY", 0)  # Windows would write two bytes for a line break
        self.descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | binary, 0o666)

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return os.fstat(self.descriptor).st_size

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write one line per row; they are on the disk when this returns."""
        left = memoryview(b"".join(map(to_line, rows)))
        while left:
            left = left[os.write(self.descriptor, left) :]
        os.fsync(self.descriptor)

    def cut(self, size: int) -> None:
        """Remove everything after ``size`` bytes."""
        if self.size > size:
            os.ftruncate(self.descriptor, size)
            os.fsync(self.descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)


def plain(value: Any) -> Any:
    """Convert to JSON's own types; a number that is not finite, which JSON cannot write, becomes None."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    raise TypeError(f"cannot write {type(value).__name__} to JSON")


def parse_json(text: bytes | str) -> Any:
    """Parse JSON; None where it is not JSON, nested too deeply to be read, or has a number too long to be one."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def to_line(values: Mapping[str, Any]) -> bytes:
    """Write one line, its end included; no value can hold a bare line break."""
    return json.dumps(plain(values), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def digest(values: Mapping[str, Any]) -> str:
    """Hash JSON values; the order of keys does not matter."""
    text = json.dumps(plain(values), sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """List what tells two JSON values apart, in words: "repeats 5, not 2"."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        keys = {**there, **here}
        inner = ((f"{name}.{key}" if name else key, there.get(key), here.get(key)) for key in keys)
        return [found for path, left, right in inner for found in differences(left, right, path)]
    return [] if there == here else [f"{name} {_word(there)}, not {_word(here)}"]


def _word(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_word, value)) + "]"
    return value if isinstance(value, str) else json.dumps(value)


def _parsed(line: bytes) -> Row | None:
    row = parse_json(line)
    return row if isinstance(row, dict) else None
