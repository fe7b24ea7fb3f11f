"""Tables by their paths: whether one is there at all, and whether it is read piece by piece.

A table in memory is read, sorted, split and copied: it takes many times the bytes of its numbers. One whose numbers
take more than a twentieth of the free memory is read piece by piece, and so is a folder of parquet files.

No pandas here: a mistyped path should not cost seconds of imports.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from precisionnet.errors import InputError, refuse_all
from precisionnet.memory import free_memory, gigabytes, table_bytes

TABLE_ENDINGS = ".csv, .tsv, .parquet, .xlsx"
SHARE_OF_FREE_MEMORY = 0.05


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


def is_parquet_folder(tables: list[str]) -> bool:
    """Whether the one table that is given is a folder with a parquet file in it."""
    place = Path(tables[0])
    try:
        return len(tables) == 1 and place.is_dir() and next(place.rglob("*.parquet"), None) is not None
    except OSError:
        return False


def is_huge(tables: list[str]) -> bool:
    """Whether the numbers of a file would take more than a share of the free memory."""
    sizes = [size for table in tables if (size := table_bytes(Path(table))) > SHARE_OF_FREE_MEMORY * free_memory()]
    if sizes and len(tables) > 1:
        raise InputError(
            f"A table of {gigabytes(sizes[0])} is too large to be joined in memory: join the tables beforehand, into "
            "one parquet file, which is then read piece by piece."
        )
    return bool(sizes)


def refuse_for_stream(tables: list[str], given: dict[str, Any]) -> None:
    """Refuse several tables, and options that need a whole table in memory."""
    wrong = []
    if len(tables) > 1:
        wrong.append("Only one table can be read piece by piece: join the tables beforehand, into one parquet file.")
    wrong += [
        f"{option} cannot be had while {tables[0]!r} is read piece by piece: leave it out."
        for option, value in given.items()
        if value
    ]
    refuse_all(wrong)
