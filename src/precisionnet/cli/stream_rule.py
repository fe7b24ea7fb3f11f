"""Which tables are read piece by piece: folders of parquet files, and files that would fill the memory.

A table in memory is read, sorted, split and copied: it takes many times the bytes of its numbers. One whose numbers
take more than a twentieth of the free memory is read piece by piece.

Nothing heavy is imported here: refusals come quickly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from precisionnet.errors import InputError, refuse_all
from precisionnet.memory import free_memory, table_bytes

SHARE_OF_FREE_MEMORY = 0.05


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
            f"A table of {sizes[0] / 1e9:.2g} GB is too large to be joined in memory: join the tables beforehand, into "
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
