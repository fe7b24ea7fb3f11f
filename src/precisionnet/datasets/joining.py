"""Find the rows of two tables that belong together, by id, even if the two tables write their ids differently.

    as they stand             sub-01_ses-2       = sub-01_ses-2
    person and session        fs/sub-01_ses-02   = 01_ses-2      (zeros, 'sub-', and a folder that only one side has)
    person                    sub-01_ses-2       = 1             (only where one side has no sessions)
    a long number             Pitt_0050003       = 50003         (only where nothing else matches; one side is numbers)

A wrong join is worse than a refused one: a way of matching that would make one person of two is not taken, and a note
reports every way other than the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from precisionnet.datasets.neuro.regions import is_total
from precisionnet.errors import InputError, some
from precisionnet.types import IndexArray

PERSON = "person of the scan"
"""Name of the column that says whose row it is, where the id does not say so."""
LONG_NUMBER = 4
"""A number of at least so many digits is taken to belong to one person only."""
MANY = 0.05
"""If more than this share of the rows of both tables have no partner, their ids are probably written differently."""
_VISIT = re.compile(r"(?<=.)(?:[_/](?:ses|run|acq|rec)-(.*)|\.(?:long|cross)\..*|/+)$", re.IGNORECASE)


@dataclass(frozen=True)
class TablePart:
    """A table whose columns are sorted into ids, features and facts."""

    path: str
    format: str
    ids: pd.Series[Any] | None
    """One label per row, as text; None if no column names the rows."""
    features: pd.DataFrame
    """Numbers are float64, NaN where missing; some tables also have labels and dates."""
    facts: pd.DataFrame
    """All other columns, unchanged from the file."""
    original_names: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """Notes on things that are probably mistakes."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The file that a fact comes from, if that is not ``path``."""
    measure: str = ""
    """What was measured in the regions: thickness, area, volume, ..."""
    atlas: str = ""
    """The parcellation, as far as the header says it."""
    complaints: tuple[str, ...] = ()
    """Sentences on what cannot be used as it is in the file."""
    date_orders: Mapping[str, str] = field(default_factory=dict)
    """In which order the dates of a feature stand in the file, where the year does not come first."""

    def take(self, rows: Any) -> TablePart:
        """Return the table with the rows at these positions only, numbered from zero."""
        return replace(
            self,
            ids=None if self.ids is None else self.ids.iloc[rows].reset_index(drop=True),
            features=self.features.iloc[rows].reset_index(drop=True),
            facts=self.facts.iloc[rows].reset_index(drop=True),
        )

    def source(self, name: str) -> str:
        """Return the file that a column comes from."""
        return self.sources.get(name, self.path)

    def noting(self, *notes: str) -> TablePart:
        """Return the table with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def with_facts(self, **columns: Any) -> TablePart:
        """Return the table with further columns among its facts."""
        return replace(self, facts=self.facts.assign(**columns))

    def with_ids(self, ids: pd.Series[Any]) -> TablePart:
        """Return the table with other ids."""
        return replace(self, ids=ids)

    def keep(self, wanted: Any, why_not: str) -> TablePart:
        """Return the table with the wanted rows only, and with a note on how many others there were and why they went.

        ``why_not`` finishes the sentence "3 of 20 ...".
        """
        wanted = np.asarray(wanted, dtype=bool)
        if wanted.all():
            return self
        return self.take(np.flatnonzero(wanted)).noting(f"{int((~wanted).sum())} of {len(wanted)} {why_not}.")


def join(left: TablePart, right: TablePart) -> TablePart:
    """Join two tables by id: keep the rows that both have, with the features and facts of both."""
    if left.ids is None or right.ids is None:
        nameless = left if left.ids is None else right
        raise InputError(f"Table {nameless.path!r} has no id to join it by: name the id column with id=.")
    right_ids = right.ids
    if len(left.features.columns) and len(right.features.columns):
        refuse_repeated(left.ids, left.path)
    both = [name for name in right.facts.columns if name in left.facts.columns]
    same = [name for name in both if is_total(name)]  # eTIV is in the tables of both hemispheres
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
        complaints=(*left.complaints, *right.complaints),
        date_orders={**left.date_orders, **right.date_orders},
        sources={**left.sources, **dict.fromkeys(map(str, right.facts.columns), right.path), **right.sources},
    )


def combine(parts: Sequence[TablePart]) -> TablePart:
    """Combine tables of regions of one format.

    Tables with the same regions are put one below the other, as they hold other people. Tables with other regions are
    joined by id, as they hold the same people. If there are several measures (thickness and area), the names of the
    columns get the measure's name.
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


def apart(parts: Sequence[TablePart]) -> list[TablePart]:
    """Add the measure to the names of the columns if the tables hold several measures."""
    if len({part.measure for part in parts}) == 1:
        return list(parts)
    return [replace(_under_measure(part), measure="") for part in parts]


def _under_measure(part: TablePart) -> TablePart:
    names = {name: f"{name}_{part.measure}" for name in part.features.columns} if part.measure else {}
    return replace(
        part,
        features=part.features.rename(columns=names),
        original_names={names.get(name, name): old for name, old in part.original_names.items()},
    )


def _stack(parts: Sequence[TablePart]) -> TablePart:
    """Put the rows of several files with the same columns one below the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    ids = [
        part.ids if part.ids is not None else pd.Series(range(1, len(part.features) + 1)).astype(str) for part in parts
    ]
    facts = pd.concat([part.facts for part in parts], ignore_index=True)
    notes, doubts, complaints = (
        tuple(n for part in parts for n in getattr(part, which)) for which in ("notes", "doubts", "complaints")
    )
    files = pd.concat([pd.Series(names.unique()) for names in ids])
    repeated = files[files.duplicated()].unique().tolist()
    if repeated and first.format != "adni":  # in ADNI's table a person has several rows anyway
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
        complaints=complaints,
    )


def _file_labels(paths: Sequence[str]) -> list[str]:
    """Return a short name for every file: the folder is part of it only if two files have the same name."""
    names = [Path(path).stem for path in paths]
    return names if len(set(names)) == len(names) else [f"{Path(p).parent.name}/{Path(p).stem}" for p in paths]


def person_of(scan: str) -> str:
    """Return the person of a scan from its id: 'sub-01' for 'sub-01_ses-2', 'sub-01_run-1' and 'sub-01.long.base'.

    An id that names no visit is returned as it is.
    """
    return _VISIT.sub("", scan.strip())


class Scan(NamedTuple):
    """The parts of an id, each in one standard way of writing."""

    folder: str
    person: str
    session: str


def _read(scan: str) -> Scan:
    path = scan.strip().replace("\\", "/").rstrip("/")
    found = re.search(r"[_/]ses-([^_/]*)", path, re.IGNORECASE)
    folder, _, name = person_of(path).rpartition("/")
    return Scan(folder, _plain(re.sub(r"^sub-", "", name)), _plain(found[1]) if found else "")


def _plain(label: str) -> str:
    """Remove leading zeros and the '.0' of a spreadsheet from a number; other labels stay as they are."""
    found = re.fullmatch(r"([0-9]+)(?:\.0+)?", label)
    return str(int(found[1])) if found else label


def _last_number(scan: str) -> str:
    digits = re.findall(r"[0-9]+", person_of(scan))
    number = digits[-1].lstrip("0") if digits else ""
    return number if len(number) >= LONG_NUMBER else scan


def refuse_repeated(ids: pd.Series[Any], path: str) -> None:
    """Refuse a table in which an id occurs more than once: a join needs one row per id."""
    twice = ids[ids.duplicated()].unique().tolist()
    if twice:
        rows = (ids == twice[0]).to_numpy().nonzero()[0][:2] + 1
        raise InputError(
            f"Id {some(twice)} stands more than once in {path!r} (rows {rows[0]} and {rows[1]}): a join needs one row "
            "per id; remove the others."
        )


def match_rows(
    left: pd.Series[Any], right: pd.Series[Any], left_path: str, right_path: str
) -> tuple[IndexArray, list[str], list[str]]:
    """Find for each row on the left its partner on the right.

    Returns the partners' positions, -1 for a row without one; notes on how the rows were matched and which were left
    out; and a doubt if both tables lose many rows.
    """
    refuse_repeated(right, right_path)
    partner = _positions(left, right, str)
    notes = list[str]()
    for way, key in _ways(left, right).items():
        alone = partner < 0
        if not alone.any() or (key is _last_number and not alone.all()):
            break
        if _merges_people(left, key) or _merges_people(right, key):
            continue
        found = _positions(left, right, key)
        if (found[alone] >= 0).any():
            partner[alone] = found[alone]
            shown_id = left[alone & (found >= 0)].iloc[0]
            notes.append(f"Ids of {left_path!r} and {right_path!r} were matched {way} ({shown_id!r}).")
    alone_left = left[partner < 0].tolist()
    alone_right = right[~pd.Series(range(len(right))).isin(partner).to_numpy()].tolist()
    if len(alone_left) == len(left):
        raise InputError(
            f"No id of {left_path!r} ({len(alone_left)}: {some(alone_left)}) matches one of {right_path!r} "
            f"({len(alone_right)}: {some(alone_right)}): write them the same way in both."
        )
    for alone_ids, n, path, other in (
        (alone_left, len(left), left_path, right_path),
        (alone_right, len(right), right_path, left_path),
    ):
        if alone_ids:
            notes.append(
                f"{len(alone_ids)} of {n} rows of {path!r} have no partner in {other!r} and were left out "
                f"({some(alone_ids)})."
            )
    both_lose = min(len(alone_left) / len(left), len(alone_right) / len(right)) > MANY
    doubt = (
        f"{len(alone_left)} of {len(left)} rows of {left_path!r} and {len(alone_right)} of {len(right)} of "
        f"{right_path!r} found no partner ({some(alone_left, 2)}; {some(alone_right, 2)}): are their ids written "
        "differently?"
    )
    return partner, notes, [doubt] if both_lose else []


def _ways(left: pd.Series[Any], right: pd.Series[Any]) -> dict[str, Callable[[str], Any]]:
    """Return looser ways of matching ids, the safest first: for each its description, and the key it compares.

    A folder or a session that both sides write is always compared.
    """
    sides = [[_read(str(scan)) for scan in ids] for ids in (left, right)]
    folders = all(any(scan.folder for scan in side) for side in sides)
    sessions = all(any(scan.session for scan in side) for side in sides)

    def key(scan: str) -> tuple[str, ...]:
        read = _read(scan)
        return (read.folder if folders else "", read.person, read.session if sessions else "")

    ways: dict[str, Callable[[str], Any]] = {"by person" + (" and session" if sessions else ""): key}
    if any(ids.astype(str).str.fullmatch(r"[0-9]+").all() for ids in (left, right)):
        ways["by the last number in them"] = _last_number
    return ways


def _positions(left: pd.Series[Any], right: pd.Series[Any], key: Callable[[str], Any]) -> IndexArray:
    there: dict[Any, int] = {}
    for position, label in enumerate(right.map(key)):
        there[label] = -1 if label in there else position  # a key that occurs twice has no partner
    return np.array([there.get(label, -1) for label in left.map(key)], dtype=int)


def _merges_people(ids: pd.Series[Any], key: Callable[[str], Any]) -> bool:
    """Whether two different people would get the same key."""
    people = pd.DataFrame({"key": ids.map(key), "person": ids.map(person_of)}).drop_duplicates()
    return bool(people["key"].duplicated().any())
