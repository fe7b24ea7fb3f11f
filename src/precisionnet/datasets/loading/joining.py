"""Rows of two tables that belong together: found by id, also where the two write their ids differently.

    as they stand             sub-01          = sub-01
    without BIDS' trimmings   sub-01_ses-2    = 01
    by their last number      Pitt_0050003    = 50003      (only where nothing else matches at all)

A wrong join is worse than a refused one: a way in which two people would become one is not taken, and every way but the
first is said in a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from precisionnet.errors import InputError, some
from precisionnet.types import IndexArray

LONG_NUMBER = 4
"""Digits of a number that two people do not share by chance."""
MANY = 0.05
"""Share of rows without a partner, on both sides, from which on something is probably wrong with the ids."""
_VISIT = re.compile(r"(?<=.)(?:_(?:ses|run|acq|rec)-.*|\.(?:long|cross)\..*|/+)$")


def person_of(scan: str) -> str:
    """Who a scan is of, where its id says so: 'sub-01' for 'sub-01_ses-2', 'sub-01_run-1' and 'sub-01.long.base'."""
    return _VISIT.sub("", scan.strip())


def _trimmed(scan: str) -> str:
    """The person without folders and 'sub-'; a number without leading zeros and '.0', as a spreadsheet leaves it."""
    name = re.sub(r"^sub-", "", person_of(scan.replace("\\", "/").rstrip("/")).rsplit("/", 1)[-1])
    return str(int(found[1])) if (found := re.fullmatch(r"([0-9]+)(?:\.0+)?", name)) else name


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
    for way, key in (
        ("without 'sub-', session, folder and leading zeros", _trimmed),
        ("by the last number in them", _last_number),
    ):
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


def _positions(left: pd.Series[Any], right: pd.Series[Any], key: Callable[[str], str]) -> IndexArray:
    there = right.map(key)
    unique = ~there.duplicated(keep=False)  # of two sessions on the right neither is the partner
    positions = pd.Series(range(len(right)), index=there)[unique.to_numpy()]
    return positions.reindex(left.map(key)).fillna(-1).astype(int).to_numpy().copy()


def _merges_people(ids: pd.Series[Any], key: Callable[[str], str]) -> bool:
    """Whether two different people get one key."""
    people = pd.DataFrame({"key": ids.map(key), "person": ids.map(person_of)}).drop_duplicates()
    return bool(people["key"].duplicated().any())
