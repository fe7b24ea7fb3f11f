"""One file, understood: which rows, which features, and what else it says of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.datasets.neuro.regions import is_total, looks_like_region
from precisionnet.datasets.cells import MISSING_CODE, refuse_text, to_numbers
from precisionnet.datasets.joining import match_rows, refuse_repeated
from precisionnet.errors import InputError, some

DROPPABLE = "leave it out with --drop {name}, correct it, or give it to --id or --site if it says who or where"
NOT_DROPPABLE = "correct it"
PERSON = "person of the scan"
"""The fact that says whose row it is, where an id alone does not."""


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
    doubts: tuple[str, ...] = ()
    """Notes on what may well be a mistake."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The file of a fact, where it is not ``path``."""
    measure: str = ""
    """What was measured in the regions: thickness, area, volume, ..."""
    atlas: str = ""
    """The parcellation, as far as the header says it."""

    def take(self, rows: Any) -> Part:
        """The rows at these positions, numbered anew."""
        return replace(
            self,
            ids=None if self.ids is None else self.ids.iloc[rows].reset_index(drop=True),
            features=self.features.iloc[rows].reset_index(drop=True),
            facts=self.facts.iloc[rows].reset_index(drop=True),
        )

    def source(self, name: str) -> str:
        """The file that a column stands in."""
        return self.sources.get(name, self.path)

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
    if all(dtype == np.float64 for dtype in frame.dtypes) and not (frame.to_numpy() == MISSING_CODE).any():
        return frame, []  # a large table is not copied
    read = {str(name): to_numbers(column, str(name), path) for name, column in frame.items()}
    refuse_text(read, frame, path, way)
    notes = [note for numbers in read.values() for note in numbers.notes]
    if len(notes) > 3:
        notes = [*notes[:2], f"{len(notes) - 2} more columns of {path!r} were read in such a way."]
    return pd.DataFrame({name: numbers.values for name, numbers in read.items()}, index=frame.index), notes


def region_part(
    frame: pd.DataFrame,
    path: str | Path,
    format: str,
    columns: Mapping[str, str],
    ids: pd.Series[Any] | None,
    measure: str = "",
    atlas: str = "",
) -> Part:
    """Features are ``columns`` (name in the file -> one name); totals go, the rest are facts."""
    path = str(path)
    if not columns:
        raise InputError(
            f"Table {path!r} has no column of a known region ({some(list(frame.columns))}): Desikan-Killiany, DKT and "
            "Destrieux are known; take it as it stands with format 'table'."
        )
    totals = [name for name in frame.columns if name not in columns and is_total(name)]
    rest = [name for name in frame.columns if name not in columns and name not in totals]
    features, notes = numeric(frame[list(columns)], path, NOT_DROPPABLE)
    notes += frame.attrs.get("notes", [])
    if totals:
        notes.append(f"Totals of {path!r} are no features and were left out: {some(totals)}.")
    strangers = [name for name in rest if looks_like_region(name)]
    if strangers:
        notes.append(
            f"Of {path!r} {some(strangers)} {'are' if len(strangers) > 1 else 'is'} named like a region, but like none "
            "that is known: left out of the features."
        )
    names = {new: old for old, new in columns.items()}
    return Part(
        path,
        format,
        ids,
        features.rename(columns=dict(columns)),
        frame[[*rest, *totals]],
        names,
        tuple(notes),
        measure=measure,
        atlas=atlas,
    )


def join(left: Part, right: Part) -> Part:
    """Rows that both have; features and facts side by side."""
    if left.ids is None or right.ids is None:
        nameless = left if left.ids is None else right
        raise InputError(f"Table {nameless.path!r} has no id to join it by: name the id column with --id.")
    right_ids = right.ids
    if len(left.features.columns) and len(right.features.columns):
        refuse_repeated(left.ids, left.path)
    both = [name for name in right.facts.columns if name in left.facts.columns]
    same = [name for name in both if is_total(name)]  # eTIV stands in the tables of both hemispheres
    right = replace(right, facts=right.facts.drop(columns=same))
    shared = [name for name in right.features.columns if name in left.features.columns]
    shared += [name for name in both if name not in same]
    if shared:
        raise InputError(f"Column {some(shared)} stands in {left.path!r} and in {right.path!r}: rename or remove one.")
    people = PERSON in left.facts.columns and not len(right.features.columns)
    partner, notes, doubts = match_rows(left.facts[PERSON] if people else left.ids, right_ids, left.path, right.path)
    here, there = left.take(np.flatnonzero(partner >= 0)), right.take(partner[partner >= 0])
    return replace(
        here,
        features=pd.concat([here.features, there.features], axis=1),
        facts=pd.concat([here.facts, there.facts], axis=1),
        original_names={**left.original_names, **right.original_names},
        notes=(*left.notes, *right.notes, *notes),
        doubts=(*left.doubts, *right.doubts, *doubts),
        sources={**left.sources, **dict.fromkeys(map(str, right.facts.columns), right.path), **right.sources},
    )


def combine(parts: Sequence[Part]) -> Part:
    """Tables of regions of one format: the same regions of other people below, other regions of the same people beside.

    Two measures (thickness and area) of the same regions are told apart by their names.
    """
    parts = apart(parts)
    joined = parts[0]
    below = [joined]
    for part in parts[1:]:
        if set(part.features.columns) == set(joined.features.columns):
            below.append(part)
        elif set(part.features.columns) & set(joined.features.columns):
            odd = sorted(set(part.features.columns) ^ set(joined.features.columns))
            raise InputError(
                f"{part.path!r} and {joined.path!r} share some regions and not others ({some(odd)}): load them one by "
                "one."
            )
        elif len(below) > 1:
            raise InputError(
                f"{part.path!r} holds other regions than {joined.path!r} and {len(below) - 1} more: load them one by "
                "one."
            )
        else:
            joined = join(joined, part)
            below = [joined]
    return _stack(below)


def apart(parts: Sequence[Part]) -> list[Part]:
    """Where several measures come together, their names say which is which."""
    if len({part.measure for part in parts}) == 1:
        return list(parts)
    return [replace(_under_measure(part), measure="") for part in parts]


def _under_measure(part: Part) -> Part:
    names = {name: f"{name}_{part.measure}" for name in part.features.columns} if part.measure else {}
    return replace(
        part,
        features=part.features.rename(columns=names),
        original_names={names.get(name, name): old for name, old in part.original_names.items()},
    )


def _stack(parts: Sequence[Part]) -> Part:
    """Rows of several files with the same columns, one below the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    ids = [
        part.ids if part.ids is not None else pd.Series(range(1, len(part.features) + 1)).astype(str) for part in parts
    ]
    facts = pd.concat([part.facts for part in parts], ignore_index=True)
    notes, doubts = (tuple(n for part in parts for n in getattr(part, which)) for which in ("notes", "doubts"))
    files = pd.concat([pd.Series(names.unique()) for names in ids])
    repeated = files[files.duplicated()].unique().tolist()
    if repeated and first.format != "adni":  # there a person has several rows in any case
        labels = _file_labels([part.path for part in parts])
        scans = [label + ":" + names for label, names in zip(labels, ids, strict=True)]
        counters = first.format == "ants"  # label tables number their rows
        facts[PERSON] = pd.concat(scans if counters else ids, ignore_index=True)
        who = "different people, as ANTs' tables count their rows" if counters else "further scans of the same people"
        said = (
            f"{len(repeated)} ids ({some(repeated)}) stand in more than one of {some([part.path for part in parts])}: "
            f"taken for {who}."
        )
        notes, doubts = ((*notes, said), doubts) if counters else (notes, (*doubts, said))
        ids = scans
    return replace(
        first,
        path=f"{first.path} and {len(parts) - 1} more",
        ids=pd.concat(ids, ignore_index=True),
        features=pd.concat([part.features for part in parts], ignore_index=True)[list(first.features.columns)],
        facts=facts,
        notes=notes,
        doubts=doubts,
    )


def _file_labels(paths: Sequence[str]) -> list[str]:
    """Short names for files: without their folder where that is enough."""
    names = [Path(path).stem for path in paths]
    return names if len(set(names)) == len(names) else [f"{Path(p).parent.name}/{Path(p).stem}" for p in paths]
