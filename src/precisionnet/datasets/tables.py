"""``load_table``: any table or tables, each recognised by its header, put together by id."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.arguments import refuse_two_roles
from precisionnet.datasets.cells import numeric, to_labels_or_numbers
from precisionnet.datasets.dataset import Dataset
from precisionnet.datasets.joining import TablePart, apart, combine, join
from precisionnet.datasets.neuro.adni import choose_scans, with_demographics
from precisionnet.datasets.neuro.formats import (
    OF_REGIONS,
    RECOGNISERS,
    check_format,
    expect,
    guess_id,
    join_hemispheres,
    pair_kirby,
    read_adni,
    read_ants,
    read_freesurfer,
    read_regions,
    recognise,
)
from precisionnet.datasets.neuro.regions import HEMISPHERES, is_total, parse_region
from precisionnet.datasets.roles import AUTO, SITE_NAMES, ColumnRoles, assemble
from precisionnet.datasets.table_files import as_text, check_names, find, ids_of, read_header, read_table
from precisionnet.errors import InputError, did_you_mean, shown, some
from precisionnet.inputs import refuse_missing_table

Paths = str | Path | Iterable[str | Path]
Headers = dict[str, list[str]]
SESSION_NAMES = ("session_id", "session", "ses")
DEMOGRAPHICS = ("age", "sex", "gender", "handedness", "group", "diagnosis", "dx", "species", "strain", "education")


def load_table(
    *paths: Paths,
    target: str | None = None,
    id: str | None = None,
    person: str | None = None,
    site: str | None = AUTO,
    covariates: Sequence[str] | str = AUTO,
    drop: Sequence[str] = (),
    format: str = AUTO,
    regions: str = "all",
    features: Sequence[str] | None = None,
    adni: Mapping[str, Any] | None = None,
    complete_rows: bool = False,
) -> Dataset:
    """Load any wide csv, tsv, parquet or xlsx table; several are joined on their ids.

    Where one of the tables holds cortical regions, these are the features and everything else is known of the rows
    (target, site, covariates). In a plain table every column is a feature that is not named as something else.

    Parameters
    ----------
    *paths : str, Path or iterable of them
        The files.
    target : str or None, default=None
        Column to predict.
    id : str or None, default=None
        Column that names the rows; None guesses it where tables are joined.
    person : str or None, default=None
        Column that says who a row belongs to. Rows of one person stay on one side of every split. None takes the
        person from the id.
    site : str or None, default="auto"
        Column that says where a row was measured; "auto" takes one named like a site, None none.
    covariates : sequence of str or "auto", default="auto"
        What else to keep of the rows; "auto" keeps every column that is nothing else.
    drop : sequence of str, default=()
        Columns to leave out.
    format : str, default="auto"
        "freesurfer", "ants", "adni", "enigma", "participants", "regions" (any table with columns named after cortical
        regions) or "table"; "auto" recognises each table by its header.
    regions : {"all", "dkt62"}, default="all"
        Keep all regions, or the 62 of the DKT protocol out of Desikan-Killiany's 68.
    features : sequence of str or None, default=None
        Exactly these columns as features, in this order; None takes all that are nothing else.
    adni : mapping or None, default=None
        Which scans of an ADNI table to keep, as the parameters of ``load_adni`` do:
        ``{"phase": None, "quality": "any", "scans": "all"}`` keeps all.
    complete_rows : bool, default=False
        Leave out rows in which a feature or the target is missing.

    Returns
    -------
    Dataset
        Features, target and the rest; ``notes`` say what was read as something else.

    Raises
    ------
    InputError
        A file cannot be read, or a column is missing or holds text. The sentence says where and what to do.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pd.DataFrame({"id": ["p", "q"], "a": [1.5, 2.5], "b": [0.5, 0.1], "age": [30, 40]})
    ...     table.to_csv(f"{folder}/table.csv", index=False)
    ...     load_table(f"{folder}/table.csv", target="age", id="id")
    Dataset(2 rows, 2 columns, 2 people, target 'age')
    """
    check_format(format)
    features, drop = check_names("features", features), check_names("drop", drop) or []
    if id is not None and not isinstance(id, str):
        raise InputError(f"id must be the name of a column, got {shown(id)}: give it as text.")
    named = [("target", target), ("id", id), ("site", None if site == AUTO else site)]
    refuse_two_roles([*named, *(("drop", name) for name in drop), *(("features", name) for name in features or ())])
    headers = {path: read_header(path) for path in flatten(paths)}
    formats = {path: _format_of(path, headers, format) for path in headers}
    roles = _as_written(ColumnRoles(target, person, site, covariates, drop, regions, features, complete_rows), headers)
    if any(kind in OF_REGIONS for kind in formats.values()):
        return load_regions(headers, formats, roles, id, adni=adni)
    id = _known_id(id, headers)
    if list(formats.values()) == ["participants"] and features is None:
        return assemble(read_participants(next(iter(headers)), next(iter(headers.values())), id, roles), roles)
    if site == AUTO:
        roles = replace(roles, site=None)
    return assemble(_plain_tables(headers, id, roles), roles)


def load_regions(
    headers: Headers,
    formats: dict[str, str],
    roles: ColumnRoles,
    id: str | None,
    participants: str | Path | pd.DataFrame | None = None,
    adni: Mapping[str, Any] | None = None,
) -> Dataset:
    """Tables of regions, and what the others say of their rows."""
    beside = [] if participants is None else [_participants(participants, id, roles)]
    id = _known_id(id, headers, beside)
    by_format: dict[str, list[TablePart]] = {}
    facts = list[TablePart]()
    for path, header in headers.items():
        kind, text, own_id = formats[path], _text_columns(header, roles), find(id, header)
        if kind == "freesurfer":
            part = read_freesurfer(path, header)
        elif kind == "ants":
            part = read_ants(path, header, own_id, text)
        elif kind == "adni":
            part = read_adni(path, header)
        elif kind in OF_REGIONS:
            part = read_regions(path, header, kind, own_id, text)
        else:
            roster = "RID" if "adni" in formats.values() else None
            facts.append(read_facts(path, header, find(roster, header) or own_id, kind, text))
            continue
        by_format.setdefault(kind, []).append(part)
    facts += beside
    whole = list[TablePart]()
    for kind, parts in by_format.items():
        if kind == "freesurfer":
            one = join_hemispheres(parts)
        elif kind == "adni":
            one = choose_scans(combine(parts), **(adni or {}))
            one = functools.reduce(with_demographics, facts, one)
            facts, roles = [], replace(roles, person=roles.person or "RID")
        elif kind == "ants":
            one = pair_kirby(combine(parts))
        else:
            one = combine(parts)
        whole.append(one)
    joined = functools.reduce(join, [*apart(whole), *facts])
    sides = {name[:2] for name in joined.features.columns}
    if len(sides) == 1 and sides <= set(HEMISPHERES):
        joined = joined.noting(f"Only the {HEMISPHERES[sides.pop()]} hemisphere is there.")
    return assemble(joined, roles)


def flatten(paths: Iterable[Paths]) -> list[str]:
    """One list of files from paths and lists of paths."""
    if any(isinstance(given, pd.DataFrame) for given in paths):
        raise InputError("A data frame was given where a path should be: make a Dataset(X, y) of it, or save it first.")
    listed = [[given] if isinstance(given, str | Path) or not isinstance(given, Iterable) else given for given in paths]
    files = [path for several in listed for path in several]
    if any(not isinstance(path, str | Path) for path in files):
        wrong = next(path for path in files if not isinstance(path, str | Path))
        raise InputError(f"The path of a table was expected, got {shown(wrong)}: give it as text or as a Path.")
    if not files:
        raise InputError("No table was given: pass the path of at least one.")
    twice = [str(p) for p in dict.fromkeys(files) if files.count(p) > 1]
    if twice:
        raise InputError(f"Table {some(twice)} was given more than once: every column stands in it and in itself.")
    for file in files:
        refuse_missing_table(file)
    return [str(file) for file in files]


def _format_of(path: str, headers: Headers, format: str) -> str:
    if format == AUTO:
        return recognise(headers[path])
    if format == "table" or RECOGNISERS[format](headers[path]):
        return format
    beside = any(RECOGNISERS[format](header) for header in headers.values())
    if not beside:
        expect(format, headers[path], path)
    return recognise(headers[path])


def _as_written(roles: ColumnRoles, headers: Headers) -> ColumnRoles:
    """The names of the columns as the files write them, where only upper and lower case differ."""
    every = list(dict.fromkeys(name for header in headers.values() for name in header))

    def written(name: str | None) -> str | None:
        return name if name is None or name == AUTO else find(name, every) or name

    covariates = roles.covariates
    if not isinstance(covariates, str):
        covariates = [str(written(name)) for name in covariates]
    return replace(
        roles,
        target=written(roles.target),
        person=written(roles.person),
        site=written(roles.site),
        covariates=covariates,
    )


def _known_id(id: str | None, headers: Headers, beside: Sequence[TablePart] = ()) -> str | None:
    """The id column that was named stands in a table at least."""
    every = list(dict.fromkeys(name for header in headers.values() for name in header))
    every += [str(part.ids.name) for part in beside if part.ids is not None]
    if id is None or find(id, every) is not None:
        return id
    raise InputError(
        f"No table has a column {id!r}{did_you_mean(id, every)}: id= must name one of their columns ({some(every)})."
    )


def _text_columns(header: Sequence[str], roles: ColumnRoles) -> list[str]:
    """Labels keep their leading zeros."""
    wanted = [name for name in (roles.target, roles.person, roles.site) if name is not None]
    wanted += SITE_NAMES if roles.site == AUTO else []
    return [found for name in wanted if (found := find(name, header)) is not None]


def _participants(source: str | Path | pd.DataFrame, id: str | None, roles: ColumnRoles) -> TablePart:
    if isinstance(source, pd.DataFrame):
        return facts_of_frame(source, id)
    header = read_header(source)
    return read_facts(str(source), header, find(id, header), "participants", _text_columns(header, roles))


def _plain_tables(headers: Headers, id: str | None, roles: ColumnRoles) -> TablePart:
    """Plain tables, side by side."""
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
    parts = [read_plain(path, id, aside, _text_columns(header, roles)) for path, header in headers.items()]
    joined = functools.reduce(join, parts)
    named = guess_id(joined.features.columns)
    if id is None and named is not None and roles.features is None:
        doubt = f"Column {named!r} is named like an id and was taken for a feature: name it with id=, or rename it."
        joined = replace(joined, doubts=(*joined.doubts, doubt))
    return joined


def read_facts(
    path: str, header: Sequence[str], id_column: str | None, format: str, text: Collection[str] = ()
) -> TablePart:
    """A table about people: no features, only facts."""
    name = id_column if id_column is not None and id_column in header else guess_id(header)
    if name is None:
        raise InputError(f"Table {path!r} has no column that names its rows ({some(list(header))}): name one with id=.")
    frame = read_table(path, name, text)
    notes = tuple(frame.attrs.get("notes", ()))
    ids = with_sessions(frame.pop(name), frame)
    return TablePart(path, format, ids, frame[[]], frame, notes=notes)


def with_sessions(ids: pd.Series[Any], frame: pd.DataFrame) -> pd.Series[Any]:
    """BIDS: where a column says the session, a row is a session of a person."""
    session = next((c for c in frame.columns if str(c).lower() in SESSION_NAMES), None)
    if session is None or ids.str.contains("_ses-").any():
        return ids
    label = as_text(frame[session]).astype(str).str.replace(r"^ses-", "", regex=True)
    return (ids + "_ses-" + label).rename(str(ids.name))


def read_plain(path: str, id_column: str | None, named: Collection[str], text: Collection[str]) -> TablePart:
    """Any wide table: every column that was not named as something else is a feature."""
    frame = read_table(path, id_column, text)
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
    values, notes = numeric(features, path)
    return TablePart(path, "table", ids, values, frame[facts], {}, (*notes, *frame.attrs.get("notes", ())))


def facts_of_frame(frame: pd.DataFrame, id_column: str | None) -> TablePart:
    """The same for a table that is already in memory; an index of names will do where no column names the rows."""
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
    """Columns of numbers are features, unless they describe the person or have another role."""
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
