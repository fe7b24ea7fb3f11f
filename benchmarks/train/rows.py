"""The results file: a row a measurement."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from precisionnet.versions import versions

OURS = "precisionnet"
NUMBERS = "seconds", "times_ours", "fastest", "slowest", "mae"


@dataclass(frozen=True)
class Row:
    """``status`` is measured, timeout or missed; at a timeout ``seconds`` and ``times_ours`` are lower bounds."""

    what: str
    """joint epoch, weights epoch, or to the target."""
    table: str
    shape: str
    threads: int
    contestant: str
    status: str = "measured"
    seconds: float | None = None
    """Median of the repeats."""
    times_ours: float | None = None
    """Median of ``seconds`` over ours in the same repeat."""
    fastest: float | None = None
    slowest: float | None = None
    mae: float | None = None
    """Validation error that was reached, in the target's units."""
    repeats: int = 1
    note: str = ""
    made_with: str = ""


def made_with() -> str:
    """Versions of everything timed."""
    found = versions() | {"torch-geometric": version("torch-geometric")}
    return " ".join(f"{name}={number}" for name, number in found.items())


def read(path: Path) -> list[Row]:
    """Every row."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [_parse(line) for line in csv.DictReader(lines)]


def _parse(line: dict[str, Any]) -> Row:
    numbers = {name: float(line[name]) if line[name] else None for name in NUMBERS}
    return Row(**(line | numbers | {"threads": int(line["threads"]), "repeats": int(line["repeats"])}))


def write(path: Path, rows: Sequence[Row]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    with partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _text(value) for name, value in asdict(row).items()})
    os.replace(partial, path)


def _text(value: Any) -> Any:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else value
