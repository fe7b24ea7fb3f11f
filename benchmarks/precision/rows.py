"""The results file: one row a problem and solver, replaced when it is measured again."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

BASE = "precisionnet", "numpy", "scipy", "numba"


@dataclass(frozen=True)
class Row:
    """``status`` is certified, failed, timeout or skipped; at a timeout ``seconds`` and the ratio are lower bounds."""

    problem: str
    n: int
    solver: str
    status: str
    seconds: float | None = None
    gap: float | None = None
    inversions: float | None = None
    ratio_to_ours: float | None = None
    gigabytes: float | None = None
    note: str = ""
    versions: str = ""

    @property
    def key(self) -> tuple[str, int, str]:
        """What a new measurement replaces."""
        return self.problem, self.n, self.solver


NUMBERS = "seconds", "gap", "inversions", "ratio_to_ours", "gigabytes"


def read(path: Path) -> list[Row]:
    """Every row, or none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return [_parse(line) for line in csv.DictReader(lines)]


def _parse(line: dict[str, Any]) -> Row:
    numbers = {name: float(line[name]) if line[name] else None for name in NUMBERS}
    return Row(**(line | numbers | {"n": int(line["n"])}))


def merge(path: Path, new: Iterable[Row]) -> list[Row]:
    """Replace what was measured again, keep the rest in its order, write whole or not at all."""
    table = {row.key: row for row in read(path)}
    table.update({row.key: row for row in new})
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    with partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in table.values():
            writer.writerow({name: _text(value) for name, value in asdict(row).items()})
    os.replace(partial, path)
    return list(table.values())


def _text(value: Any) -> Any:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else value


def made_with(solver: dict[str, str]) -> str:
    """Versions of the library, what it stands on, and the solver."""
    found = {"precisionnet": "", "python": platform.python_version()} | {name: version(name) for name in BASE} | solver
    return " ".join(f"{name}={number}" for name, number in found.items())
