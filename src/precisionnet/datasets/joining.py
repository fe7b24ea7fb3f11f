"""Rows of two tables that belong together: found by id, also where the two write their ids differently.

    as they stand             sub-01_ses-2       = sub-01_ses-2
    person and session        fs/sub-01_ses-02   = 01_ses-2      (zeros, 'sub-', and a folder that only one side has)
    person                    sub-01_ses-2       = 1             (only where one side has no sessions)
    a long number             Pitt_0050003       = 50003         (only where nothing else matches; one side is numbers)

A wrong join is worse than a refused one: a way in which two people would become one is not taken, and every way but the
first is said in a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from precisionnet.errors import InputError, some
from precisionnet.types import IndexArray

LONG_NUMBER = 4
"""Digits of a number that two people do not share by chance."""
MANY = 0.05
"""Share of rows without a partner, on both sides, from which on something is probably wrong with the ids."""
_VISIT = re.compile(r"(?<=.)(?:[_/](?:ses|run|acq|rec)-(.*)|\.(?:long|cross)\..*|/+)$", re.IGNORECASE)


def person_of(scan: str) -> str:
    """Who a scan is of, where its id says so: 'sub-01' for 'sub-01_ses-2', 'sub-01_run-1' and 'sub-01.long.base'."""
    return _VISIT.sub("", scan.strip())


class Scan(NamedTuple):
    """What an id says, without the ways of writing it."""

    folder: str
    person: str
    session: str


def _read(scan: str) -> Scan:
    path = scan.strip().replace("\\", "/").rstrip("/")
    found = re.search(r"[_/]ses-([^_/]*)", path, re.IGNORECASE)
    folder, _, name = person_of(path).rpartition("/")
    return Scan(folder, _plain(re.sub(r"^sub-", "", name)), _plain(found[1]) if found else "")


def _plain(label: str) -> str:
    """A number without leading zeros and '.0', as a spreadsheet leaves it."""
    found = re.fullmatch(r"([0-9]+)(?:\.0+)?", label)
    return str(int(found[1])) if found else label


def _last_number(scan: str) -> str:
    digits = re.findall(r"[0-9]+", person_of(scan))
    number = digits[-1].lstrip("0") if digits else ""
    return number if len(number) >= LONG_NUMBER else scan


def refuse_repeated(ids: pd.Series[Any], path: str) -> None:
    """A join needs one row an id."""
    twice = ids[ids.duplicated()].unique().tolist()
    if twice:
        rows = (ids == twice[0]).to_numpy().nonzero()[0][:2] + 1
        raise InputError(
            f"Id {some(twice)} stands more than once in {path!r} (rows {rows[0]} and {rows[1]}): a join needs one row "
            "an id; remove the others."
        )


def match_rows(
    left: pd.Series[Any], right: pd.Series[Any], left_path: str, right_path: str
) -> tuple[IndexArray, list[str], list[str]]:
    """For each row on the left the position of its partner on the right, -1 where there is none; notes, and doubts."""
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
    """Looser ways, the safest first; what both sides write is never left out of account."""
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
        there[label] = -1 if label in there else position  # of two sessions on the right neither is the partner
    return np.array([there.get(label, -1) for label in left.map(key)], dtype=int)


def _merges_people(ids: pd.Series[Any], key: Callable[[str], Any]) -> bool:
    """Whether two different people get one key."""
    people = pd.DataFrame({"key": ids.map(key), "person": ids.map(person_of)}).drop_duplicates()
    return bool(people["key"].duplicated().any())
