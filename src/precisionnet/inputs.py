"""Whether a table is there at all. No pandas here: a mistyped path should not cost seconds of imports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from precisionnet.errors import InputError

TABLE_ENDINGS = ".csv, .tsv, .parquet, .xlsx"


def refuse_missing_table(path: str | Path) -> None:
    """Name what is wrong with a path that is no readable file."""
    try:
        kind = "" if Path(path).is_file() else "is a folder" if Path(path).is_dir() else "does not exist"
    except (OSError, ValueError) as error:
        kind = f"cannot be reached ({getattr(error, 'strerror', None) or error})"
    if kind:
        raise InputError(f"Table {str(path)!r} {kind}: pass the path of a file ending in one of {TABLE_ENDINGS}.")


def refuse_missing_tables(paths: Iterable[str | Path]) -> None:
    """Name what is wrong with the first of several paths that is no readable file."""
    for path in paths:
        refuse_missing_table(path)
