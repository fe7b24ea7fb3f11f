"""How much memory there is."""

from __future__ import annotations

import os


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
