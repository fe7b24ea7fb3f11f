"""One file, understood: which rows, which features, and what else it says of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.datasets.brain.regions import is_total
from precisionnet.datasets.files.values import refuse_text, to_numbers
from precisionnet.datasets.loading.joining import match_rows, refuse_repeated
from precisionnet.errors import InputError, some

DROPPABLE = "leave it out with --drop {name}, correct it, or give it to --id or --site if it says who or where"
NOT_DROPPABLE = "correct it"


@dataclass(frozen=True)
class Part:
    """A table whose columns have found their place."""

    path: str
    format: str
    ids: pd.Series[Any] | None
    """A label a row, as text; None where nothing names the rows."""
    features: pd.DataFrame
    """float64, NaN where missing."""
    facts: pd.DataFrame
    """The other columns, as they stand in the file."""
    original_names: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def take(self, rows: Any) -> Part:
        """The rows at these positions, numbered anew."""
        return replace(
            self,
            ids=None if self.ids is None else self.ids.iloc[rows].reset_index(drop=True),
            features=self.features.iloc[rows].reset_index(drop=True),
            facts=self.facts.iloc[rows].reset_index(drop=True),
        )

    def noting(self, *notes: str) -> Part:
        """The same with something more to say."""
        return replace(self, notes=(*self.notes, *notes))

    def with_facts(self, **columns: Any) -> Part:
        """The same with more facts."""
        return replace(self, facts=self.facts.assign(**columns))

    def with_ids(self, ids: pd.Series[Any]) -> Part:
        """The same under other names."""
        return replace(self, ids=ids)

    def keep(self, wanted: Any, why_not: str) -> Part:
        """The rows of a mask; how many others there were is said."""
        wanted = np.asarray(wanted, dtype=bool)
        if wanted.all():
            return self
        return self.take(np.flatnonzero(wanted)).noting(f"{int((~wanted).sum())} of {len(wanted)} {why_not}.")


def numeric(frame: pd.DataFrame, path: str, way: str = DROPPABLE) -> tuple[pd.DataFrame, list[str]]:
    """The columns as float64, and what was read as what; text is refused by file, column and row."""
    if all(dtype == np.float64 for dtype in frame.dtypes) and not (frame.to_numpy() == -9999).any():
        return frame, []  # a large table is not copied
    read = {str(name): to_numbers(column, str(name), path) for name, column in frame.items()}
    refuse_text(read, frame, path, way)
    notes = [note for numbers in read.values() for note in numbers.notes]
    if len(notes) > 3:
        notes = [*notes[:2], f"{len(notes) - 2} more columns of {path!r} were read in such a way."]
    return pd.DataFrame({name: numbers.values for name, numbers in read.items()}, index=frame.index), notes


def region_part(
    frame: pd.DataFrame, path: str | Path, format: str, columns: Mapping[str, str], ids: pd.Series[Any] | None
) -> Part:
    """Features are ``columns`` (name in the file -> one name); totals go, the rest are facts."""
    path = str(path)
    totals = [name for name in frame.columns if name not in columns and is_total(name)]
    rest = [name for name in frame.columns if name not in columns and name not in totals]
    features, notes = numeric(frame[list(columns)], path, NOT_DROPPABLE)
    if totals:
        notes.append(f"Totals of {path!r} are no features and were left out: {some(totals)}.")
    names = {new: old for old, new in columns.items()}
    return Part(path, format, ids, features.rename(columns=dict(columns)), frame[[*rest, *totals]], names, tuple(notes))


def join(left: Part, right: Part) -> Part:
    """Rows that both have; features and facts side by side."""
    if left.ids is None or right.ids is None:
        nameless = left if left.ids is None else right
        raise InputError(f"Table {nameless.path!r} has no id to join it by: name the id column with --id.")
    if len(left.features.columns) and len(right.features.columns):
        refuse_repeated(left.ids, left.path)
    right_ids = right.ids
    both = [name for name in right.facts.columns if name in left.facts.columns]
    right = replace(
        right, facts=right.facts.drop(columns=[name for name in both if is_total(name)])
    )  # eTIV in lh and rh
    shared = [name for name in right.features.columns if name in left.features.columns]
    shared += [name for name in both if not is_total(name)]
    if shared:
        raise InputError(f"Column {some(shared)} stands in {left.path!r} and in {right.path!r}: rename or remove one.")
    partner, notes = match_rows(left.ids, right_ids, left.path, right.path)
    here, there = left.take(np.flatnonzero(partner >= 0)), right.take(partner[partner >= 0])
    return replace(
        here,
        features=pd.concat([here.features, there.features], axis=1),
        facts=pd.concat([here.facts, there.facts], axis=1),
        original_names={**left.original_names, **right.original_names},
        notes=(*left.notes, *right.notes, *notes),
    )


def stack(parts: Sequence[Part]) -> Part:
    """Rows of several files with the same columns, one below the other; ids that collide get their file's name."""
    first = parts[0]
    for part in parts[1:]:
        odd = sorted(set(part.features.columns) ^ set(first.features.columns))
        if odd:
            raise InputError(
                f"{part.path!r} and {first.path!r} do not have the same regions ({some(odd)}): load them one by one."
            )
    if len(parts) == 1:
        return first
    ids = [
        part.ids if part.ids is not None else pd.Series(range(1, len(part.features) + 1)).astype(str) for part in parts
    ]
    if pd.concat(ids).duplicated().any():
        ids = [Path(part.path).stem + ":" + names for part, names in zip(parts, ids, strict=True)]
    return replace(
        first,
        path=f"{first.path} and {len(parts) - 1} more",
        ids=pd.concat(ids, ignore_index=True),
        features=pd.concat([part.features for part in parts], ignore_index=True)[list(first.features.columns)],
        facts=pd.concat([part.facts for part in parts], ignore_index=True),
        notes=tuple(note for part in parts for note in part.notes),
    )
