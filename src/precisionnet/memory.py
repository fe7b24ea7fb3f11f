"""How much memory there is, and how much a table takes."""

from __future__ import annotations

import os
from pathlib import Path

NUMBER_BYTES = 8
SMALLEST_FILE = 2**26
"""Bytes of a parquet file from which on its numbers are counted: compressed, they may be many more."""


def free_memory() -> float:
    """Bytes that can be had without pushing anything else out, or all there are where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        try:
            return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, OSError, ValueError):
            return 4e9


def gigabytes(n_bytes: float) -> str:
    """Write bytes in gigabytes: two digits, and all digits of a hundred and more."""
    many = n_bytes / 1e9
    return f"{many:.2g} GB" if many < 99.5 else f"{many:,.0f} GB"


def table_bytes(path: Path) -> float:
    """Return how many bytes the numbers of a file take in memory; text about as many as in the file."""
    size = path.stat().st_size
    if path.suffix.lower() not in (".parquet", ".pq") or size < SMALLEST_FILE:
        return float(size)
    from pyarrow import parquet

    try:
        known = parquet.read_metadata(path)
    except Exception:  # a file that cannot be read is refused where it is read
        return float(size)
    return float(NUMBER_BYTES * known.num_rows * known.num_columns)
