"""Rows of two tables that belong together: found by id, also where the two write their ids differently.

    as they stand             sub-01          = sub-01
    without BIDS' trimmings   sub-01_ses-2    = 01
    by their last number      Pitt_0050003    = 50003

The first way that brings the most rows together is taken, and said in a note unless it is the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from precisionnet.errors import InputError, some


def _as_is(scan: str) -> str:
    return scan


def _person(scan: str) -> str:
    """A subject label without 'sub-', folders, session, run and FreeSurfer's '.long.' ending."""
    name = scan.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"^sub-|[_-](ses|run|acq|rec)-.*$|\.(long|cross)\..*$", "", re.sub(r"^sub-", "", name))


def _last_number(scan: str) -> str:
    """Only a long one: two short numbers may well be equal by chance."""
    digits = re.findall(r"\d+", scan)
    number = digits[-1].lstrip("0") if digits else ""
    return number if len(number) >= LONG_NUMBER else scan


LONG_NUMBER = 4

WAYS: dict[str, Callable[[str], str]] = {
    "": _as_is,
    "without 'sub-', session and folder": _person,
    "by the last number in them": _last_number,
}


def person_of(scan: str) -> str:
    """Who a scan is of, where its id says so: 'sub-01' for 'sub-01_ses-2' and 'sub-01.long.base'."""
    found = re.fullmatch(r"(?:.*[/\\])?(sub-[A-Za-z0-9]+|.+?)(?:[_-]ses-.*|\.long\..*|\.cross\..*|/)?", scan)
    return found[1] if found else scan


def refuse_repeated(ids: pd.Series[Any], path: str) -> None:
    """A join needs one row an id."""
    twice = ids[ids.duplicated()].unique().tolist()
    if twice:
        rows = (ids == twice[0]).to_numpy().nonzero()[0][:2] + 1
        raise InputError(
            f"Id {some(twice)} stands more than once in {path!r} (rows {rows[0]} and {rows[1]}): a join needs one row "
            "an id; remove the others."
        )


def match_rows(left: pd.Series[Any], right: pd.Series[Any], left_path: str, right_path: str) -> tuple[Any, list[str]]:
    """For each row on the left the position of its partner on the right, -1 where there is none; and notes."""
    best, way = None, ""
    for name, key in WAYS.items():
        there = right.map(key)
        if there.duplicated().any():
            if name == "":
                refuse_repeated(right, right_path)
            continue  # two people would become one
        positions = pd.Series(range(len(right)), index=there)
        found = positions.reindex(left.map(key)).fillna(-1).astype(int).to_numpy()
        if best is None or (found >= 0).sum() > (best >= 0).sum():
            best, way = found, name
    assert best is not None
    alone_left = left[best < 0].tolist()
    alone_right = right[~pd.Series(range(len(right))).isin(best).to_numpy()].tolist()
    if len(alone_left) == len(left):
        raise InputError(
            f"No id of {left_path!r} ({len(alone_left)}: {some(alone_left)}) matches one of {right_path!r} "
            f"({len(alone_right)}: {some(alone_right)}): write them the same way in both."
        )
    notes = (
        [f"Ids of {left_path!r} and {right_path!r} were matched {way} ({left[best >= 0].iloc[0]!r})."] if way else []
    )
    for alone, n, path, other in (
        (alone_left, len(left), left_path, right_path),
        (alone_right, len(right), right_path, left_path),
    ):
        if alone:
            notes.append(
                f"{len(alone)} of {n} rows of {path!r} have no partner in {other!r} and were left out ({some(alone)})."
            )
    return best, notes
