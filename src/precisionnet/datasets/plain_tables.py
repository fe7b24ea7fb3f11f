"""Plain tables, in which every column is a feature that is not named as something else, and tables about people."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from precisionnet.datasets.cells import read_columns, to_labels_or_numbers
from precisionnet.datasets.joining import TablePart, join
from precisionnet.datasets.neuro.formats import guess_id
from precisionnet.datasets.neuro.regions import is_total, parse_region
from precisionnet.datasets.repeats import without_repeats
from precisionnet.datasets.roles import AUTO, SITE_NAMES, ColumnRoles
from precisionnet.datasets.table_files import as_text, find, ids_of, read_table
from precisionnet.errors import InputError, shown, some

Headers = dict[str, list[str]]
SESSION_NAMES = ("session_id", "session", "ses")
DEMOGRAPHICS = ("age", "sex", "gender", "handedness", "group", "diagnosis", "dx", "species", "strain", "education")


def plain_tables(
    headers: Headers,
    id: str | None,
    roles: ColumnRoles,
    categories: Collection[str] | bool,
    duplicates: str,
    date_orders: Mapping[str, str] | None = None,
) -> TablePart:
    """Plain tables, side by side."""
    guessed = id == AUTO
    if guessed:
        free = [n for header in headers.values() for n in header if n not in {*roles.named(), *roles.drop}]
        id = guess_id([n for n in free if n not in (roles.features or ())]) if len(headers) == 1 else None
        if id is None and len(headers) == 1 and roles.person is not None:
            id = guess_id([roles.person])
    if len(headers) > 1 and id is None:
        guesses = {guess_id(header) for header in headers.values()}
        id = guesses.pop() if len(guesses) == 1 else None
        if id is None:
            raise InputError(
                f"{len(headers)} tables were given, but no id to join them on: name the id column with id=."
            )
    aside = {*roles.named(), *roles.drop}
    if roles.features is not None:
        aside |= {name for header in headers.values() for name in header if name not in roles.features}
    parts = [
        without_repeats(
            read_plain(path, id, aside, text_columns(header, roles), categories, date_orders),
            duplicates,
            one_row=len(headers) > 1,
            of_people=id is not None and id == roles.person,
        )
        for path, header in headers.items()
    ]
    joined = functools.reduce(join, parts)
    if guessed and id is not None:
        joined = joined.noting(f"Column {shown(id)} is taken for the rows' id by its name; id= names another.")
    named = guess_id(joined.features.columns)
    if id is None and named is not None and roles.features is None:
        doubt = f"Column {named!r} is named like an id and was taken for a feature: name it with id=, or rename it."
        joined = replace(joined, doubts=(*joined.doubts, doubt))
    return joined


def read_facts(
    path: str, header: Sequence[str], id_column: str | None, format: str, text: Collection[str] = ()
) -> TablePart:
    """Read a table about people, which has facts and no features."""
    name = id_column if id_column is not None and id_column in header else guess_id(header)
    if name is None:
        raise InputError(f"Table {path!r} has no column that names its rows ({some(list(header))}): name one with id=.")
    frame = read_table(path, name, text)
    notes = tuple(frame.attrs.get("notes", ()))
    ids = with_sessions(frame.pop(name), frame)
    return TablePart(path, format, ids, frame[[]], frame, notes=notes)


def with_sessions(ids: pd.Series[Any], frame: pd.DataFrame) -> pd.Series[Any]:
    """Add the session to the ids if the table has a column for it, as BIDS has: a row is then a session of a person."""
    session = next((c for c in frame.columns if str(c).lower() in SESSION_NAMES), None)
    if session is None or ids.str.contains("_ses-").any():
        return ids
    label = as_text(frame[session]).astype(str).str.replace(r"^ses-", "", regex=True)
    return (ids + "_ses-" + label).rename(str(ids.name))


def read_plain(
    path: str,
    id_column: str | None,
    named: Collection[str],
    text: Collection[str],
    categories: Collection[str] | bool = False,
    date_orders: Mapping[str, str] | None = None,
) -> TablePart:
    """Read any wide table: every column that was not named as something else is a feature."""
    labels = [] if isinstance(categories, bool) else categories
    frame = read_table(path, id_column, [*text, *labels])
    ids = None if id_column is None else ids_of(frame, id_column, path)
    facts = [name for name in frame.columns if name in named and name != id_column]
    features = frame.drop(columns=[*facts, *([] if id_column is None else [id_column])])
    nameless = [c for c in features.columns if c.startswith("Unnamed: ")]
    if nameless:
        position = list(frame.columns).index(nameless[0]) + 1
        raise InputError(
            f"Column {position} of the table has no name (a row number saved along?): "
            f"name it in the header, or leave it out with drop=[{nameless[0]!r}]."
        )
    totals = [c for c in features.columns if is_total(c)]
    if totals and any(parse_region(c) is not None for c in features.columns):
        features = features.drop(columns=totals)
        frame.attrs.setdefault("notes", []).append(f"Totals of {path!r} are no features: {some(totals)} left out.")
    read = read_columns(features, path, categories=categories, date_orders=date_orders)
    return TablePart(
        path,
        "table",
        ids,
        read.values,
        frame[facts],
        notes=(*read.notes, *frame.attrs.get("notes", ())),
        doubts=tuple(read.doubts),
        complaints=tuple(read.complaints),
        date_orders=read.date_orders,
    )


def facts_of_frame(frame: pd.DataFrame, id_column: str | None) -> TablePart:
    """Make facts of a table that is already in memory; its index may name the rows if no column does."""
    frame = frame.copy()
    frame.columns = [str(name) for name in frame.columns]
    lowered = {name.lower(): name for name in frame.columns}
    name = lowered.get(id_column.lower()) if id_column is not None else None
    name = name or guess_id(frame.columns)
    if name is None:
        if frame.index.name is None and pd.api.types.is_numeric_dtype(frame.index.dtype):
            raise InputError(
                f"The table of participants has no column that names its rows ({some(list(frame.columns))}): name one "
                "with id=, or make it the index."
            )
        name = str(frame.index.name or "id")
        frame = frame.reset_index(names=name)
    frame = frame.reset_index(drop=True)
    ids = ids_of(frame, name, "participants")
    frame = frame.drop(columns=name)
    return TablePart("participants", "table", with_sessions(ids, frame), frame[[]], frame)


def read_participants(path: str, header: Sequence[str], id: str | None, roles: ColumnRoles) -> TablePart:
    """Read a participants table: columns of numbers are features, unless they have a role or describe the person."""
    part = read_facts(
        path, header, id, "participants", [n for n in (roles.target, roles.site) if n is not None and n in header]
    )
    aside = {name.lower() for name in [*DEMOGRAPHICS, *SESSION_NAMES, *roles.named()]}
    features: dict[str, pd.Series[float]] = {}
    notes = list(part.notes)
    for name, column in part.facts.items():
        plain = str(name).lower()
        if plain in aside or plain.startswith("site"):
            continue
        values, said = to_labels_or_numbers(column, path)
        if values.dtype.kind in "if":
            features[str(name)] = values.astype(float)
            notes += said
    return replace(
        part,
        features=pd.DataFrame(features, index=part.facts.index),
        facts=part.facts.drop(columns=list(features)),
        notes=tuple(notes),
    )


def text_columns(header: Sequence[str], roles: ColumnRoles) -> list[str]:
    """Labels keep their leading zeros."""
    wanted = [name for name in (roles.target, roles.person, roles.site) if name is not None]
    wanted += SITE_NAMES if roles.site == AUTO else []
    return [found for name in wanted if (found := find(name, header)) is not None]
