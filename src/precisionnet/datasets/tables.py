"""``load_table``: any table or tables, each recognised by its header, put together by id."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.arguments import check_choice, refuse_two_roles
from precisionnet.datasets.dataset import Dataset
from precisionnet.datasets.joining import TablePart, apart, combine, join
from precisionnet.datasets.neuro.adni import choose_scans, with_demographics
from precisionnet.datasets.neuro.formats import (
    OF_REGIONS,
    RECOGNISERS,
    check_format,
    check_measures,
    expect,
    hint_at_volumes,
    join_hemispheres,
    pair_kirby,
    read_adni,
    read_ants,
    read_aseg,
    read_freesurfer,
    read_regions,
    recognise,
    with_measures,
)
from precisionnet.datasets.neuro.regions import HEMISPHERES
from precisionnet.datasets.plain_tables import (
    Headers,
    facts_of_frame,
    plain_tables,
    read_facts,
    read_participants,
    text_columns,
)
from precisionnet.datasets.repeats import WAYS, without_repeats
from precisionnet.datasets.roles import AUTO, ColumnRoles, assembled, finished, no_such_column
from precisionnet.datasets.table_files import check_names, find, read_header
from precisionnet.errors import InputError, did_you_mean, refuse_all, shown, some
from precisionnet.inputs import refuse_missing_table
from precisionnet.preprocessing.column_kinds import DATE_ORDERS

Paths = str | Path | Iterable[str | Path]


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
    categories: Sequence[str] | bool = False,
    duplicates: str = AUTO,
    measures: Sequence[str] | None = None,
    inputs: Sequence[str] = (),
    date_orders: Mapping[str, str] | None = None,
) -> Dataset:
    """Load any wide csv, tsv, parquet or xlsx table; several are joined on their ids.

    Where one of the tables holds cortical regions, these are the features and everything else is known of the rows
    (target, site, covariates). In a plain table every column is a feature that is not named as something else.

    Parameters
    ----------
    *paths : str, Path or iterable of them
        The files.
    target : str or None, default=None
        Column to predict; rows without a value in it are left out, and the notes say which.
    id : str or None, default=None
        Column that names the rows; None guesses it where tables are joined, "auto" in a single table as well.
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
        "freesurfer", "aseg", "ants", "adni", "enigma", "participants", "regions" (any table with columns named after
        cortical regions) or "table"; "auto" recognises each table by its header.
    regions : {"all", "dkt62"}, default="all"
        Keep all regions, or the 62 of the DKT protocol out of Desikan-Killiany's 68.
    features : sequence of str or None, default=None
        Exactly these columns as features, in this order; None takes all that are nothing else.
    adni : mapping or None, default=None
        Which scans of an ADNI table to keep, as the parameters of ``load_adni`` do:
        ``{"phase": None, "quality": "any", "scans": "all"}`` keeps all.
    complete_rows : bool, default=False
        Leave out rows in which a feature or the target is missing.
    categories : sequence of str or bool, default=False
        Columns of a plain table that hold labels or dates; True takes every column that holds text for one. Such
        features stay text and dates, which ``PNNRegressor`` and ``PNNClassifier`` encode. By default text is refused.
    duplicates : {"auto", "first", "mean", "drop", "keep"}, default="auto"
        Which rows to keep of an id whose rows differ. "auto" leaves all of them out and lists them, unless the table
        shows that they are several rows of one person: ``person`` names the id, a column tells visits apart, or most
        ids have several rows. "keep" takes them for that. Exact repeats count once in any case.
    measures : sequence of str or None, default=None
        Measures of brain regions to take together, such as ``["thickness", "volume"]``; with "volume" also those of
        subcortical structures. None takes the cortical regions of one measure.
    inputs : sequence of str, default=()
        Columns that are features beside the regions, such as sex; text stays text, which the networks encode. In a
        plain table every column is a feature anyway.
    date_orders : mapping of str to {"day/month/year", "month/day/year"} or None, default=None
        In which order dates such as 03/02/2024 stand in a column of labels. None finds it where a number is above 12,
        and else guesses, which is one of the ``doubts``.

    Returns
    -------
    Dataset
        Features, target and the rest; ``notes`` say what was read as something else.

    Raises
    ------
    InputError
        A file cannot be read, or a column is missing or holds text: every such thing that was found, and what to do.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pd.DataFrame({"id": ["p", "q"], "a": [1.5, 2.5], "b": [0.5, 0.1], "age": [30, 40]})
    ...     table.to_csv(f"{folder}/table.csv", index=False)
    ...     load_table(f"{folder}/table.csv", target="age", id="id")
    Dataset(2 rows, 2 columns, 2 people, target 'age')
    """
    data, complaints = read_dataset(
        *paths,
        target=target,
        id=id,
        person=person,
        site=site,
        covariates=covariates,
        drop=drop,
        format=format,
        regions=regions,
        features=features,
        adni=adni,
        complete_rows=complete_rows,
        categories=categories,
        duplicates=duplicates,
        measures=measures,
        inputs=inputs,
        date_orders=date_orders,
    )
    return finished(data, complaints)


def read_dataset(
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
    categories: Sequence[str] | bool = False,
    duplicates: str = AUTO,
    measures: Sequence[str] | None = None,
    inputs: Sequence[str] = (),
    date_orders: Mapping[str, str] | None = None,
    keep_empty: bool = False,
) -> tuple[Dataset, list[str]]:
    """Do what ``load_table`` does, and return what cannot be used instead of raising it.

    ``keep_empty`` keeps features without any value, which rows to be predicted may have.
    """
    check_format(format)
    check_choice("duplicates=", duplicates, WAYS)
    if not isinstance(date_orders, Mapping | None):
        raise InputError(f"date_orders must map columns to one of {some(DATE_ORDERS)}, got {shown(date_orders)}.")
    for order in (date_orders or {}).values():
        check_choice("date_orders=", order, DATE_ORDERS)
    measures = check_measures(measures)
    if not isinstance(categories, bool):
        categories = check_names("categories", categories) or []
    features, drop = check_names("features", features), check_names("drop", drop) or []
    inputs = check_names("inputs", inputs) or []
    if id is not None and not isinstance(id, str):
        raise InputError(f"id must be the name of a column, got {shown(id)}: give it as text.")
    named = [("target", target), ("id", id), ("site", None if site == AUTO else site)]
    refuse_two_roles([*named, *(("drop", name) for name in drop), *(("features", name) for name in features or ())])
    refuse_two_roles([("target", target), ("id", id), *(("drop", n) for n in drop), *(("inputs", n) for n in inputs)])
    headers = {path: read_header(path) for path in flatten(paths)}
    formats = {path: _format_of(path, headers, format) for path in headers}
    roles = _as_written(
        ColumnRoles(target, person, site, covariates, drop, regions, features, complete_rows, inputs, keep_empty),
        headers,
    )
    if any(kind in OF_REGIONS for kind in formats.values()):
        id = None if id == AUTO else id
        return read_region_tables(headers, formats, roles, id, adni=adni, duplicates=duplicates, measures=measures)
    alone = list(formats.values()) == ["participants"] and features is None
    if site == AUTO and not alone:
        roles = replace(roles, site=None)
    id, roles, misnamed = _known_names(id, roles, headers)
    every = [name for header in headers.values() for name in header]
    misnamed += [no_such_column(name, "date_orders=", every) for name in date_orders or {} if name not in every]
    try:
        if measures is not None:
            raise InputError(f"measures= is for tables of brain regions, and {next(iter(headers))!r} is none.")
        if alone:
            id = None if id == AUTO else id
            part = read_participants(next(iter(headers)), next(iter(headers.values())), id, roles)
            part = without_repeats(part, duplicates, one_row=False, of_people=_of_people(part, roles))
        else:
            part = plain_tables(headers, id, roles, categories, duplicates, date_orders)
        data, complaints = assembled(part, roles)
    except InputError as error:
        refuse_all([*misnamed, *getattr(error, "sentences", [str(error)])])
        raise
    return data, [*misnamed, *complaints]


def read_region_tables(
    headers: Headers,
    formats: dict[str, str],
    roles: ColumnRoles,
    id: str | None,
    participants: str | Path | pd.DataFrame | None = None,
    adni: Mapping[str, Any] | None = None,
    duplicates: str = AUTO,
    measures: Sequence[str] | None = None,
) -> tuple[Dataset, list[str]]:
    """Tables of regions, and what the others say of their rows; and what cannot be used."""
    beside = [] if participants is None else [_participants(participants, id, roles)]
    refuse_all(_unknown_id(id, headers, beside))
    by_format: dict[str, list[TablePart]] = {}
    facts, unused = list[TablePart](), list[str]()
    for path, header in headers.items():
        kind, text, own_id = formats[path], text_columns(header, roles), find(id, header)
        if kind == "freesurfer":
            part = read_freesurfer(path, header)
        elif kind == "ants":
            part = read_ants(path, header, own_id, text)
        elif kind == "aseg":
            part = read_aseg(path, header)
        elif kind == "adni":
            part = read_adni(path, header)
        elif kind in OF_REGIONS:
            part = read_regions(path, header, kind, own_id, text)
        else:
            roster = "RID" if "adni" in formats.values() else None
            fact = read_facts(path, header, find(roster, header) or own_id, kind, text)
            facts.append(fact if roster else without_repeats(fact, duplicates, one_row=True))
            continue
        beside_others = sum(other in OF_REGIONS for other in formats.values()) > 1 or len(measures or ()) > 1
        one_row = beside_others or kind in ("freesurfer", "aseg")
        if kind != "adni":
            part = without_repeats(part, duplicates, one_row=one_row, of_people=_of_people(part, roles))
        if measures is None:
            by_format.setdefault(kind, []).append(hint_at_volumes(part))
        else:
            of_measures = with_measures(part, measures)
            unused += [] if of_measures else [path]
            for of_one in of_measures:
                by_format.setdefault(f"{kind} {of_one.measure}", []).append(of_one)
    facts += beside
    if not by_format:
        raise InputError(f"Table {some(unused)} holds no {' or '.join(measures or ())} of regions: change measures=.")
    whole = list[TablePart]()
    for name, parts in by_format.items():
        kind = name.split()[0]
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
    if unused:
        joined = joined.noting(f"Nothing of {some(unused)} is of a measure that was asked for.")
    sides = {name[:2] for name in joined.features.columns}
    if len(sides) == 1 and sides <= set(HEMISPHERES):
        joined = joined.noting(f"Only the {HEMISPHERES[sides.pop()]} hemisphere is there.")
    return assembled(joined, roles)


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
    """Return the roles with columns named as in the files; upper and lower case need not agree."""
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
        inputs=[str(written(name)) for name in roles.inputs],
    )


def _unknown_id(id: str | None, headers: Headers, beside: Sequence[TablePart] = ()) -> list[str]:
    """Return a complaint if no table has the id column that was named."""
    every = list(dict.fromkeys(name for header in headers.values() for name in header))
    every += [str(part.ids.name) for part in beside if part.ids is not None]
    if id is None or id == AUTO or find(id, every) is not None:
        return []
    return [
        f"No table has a column {id!r}{did_you_mean(id, every)}: id= must name one of their columns ({some(every)})."
    ]


def _known_names(id: str | None, roles: ColumnRoles, headers: Headers) -> tuple[str | None, ColumnRoles, list[str]]:
    """Remove from the roles of plain tables the names that are in no header.

    Returns the id, the roles, and a complaint for each name that was removed, the target's first.
    """
    every = list(dict.fromkeys(name for header in headers.values() for name in header))

    def known(option: str, name: str | None) -> tuple[str | None, list[str]]:
        if name is None or name == AUTO or find(name, every) is not None:
            return name, []
        return None, [no_such_column(name, f"{option}=", every)]

    target, no_target = known("target", roles.target)
    person, no_person = known("person", roles.person)
    site, no_site = known("site", roles.site)
    no_id = _unknown_id(id, headers)
    no_drop = [no_such_column(name, "drop=", every) for name in roles.drop if name not in every]
    drop = [name for name in roles.drop if name in every]
    complaints = [*no_target, *no_id, *no_person, *no_site, *no_drop]
    return None if no_id else id, replace(roles, target=target, person=person, site=site, drop=drop), complaints


def _of_people(part: TablePart, roles: ColumnRoles) -> bool:
    """Whether the column that names the rows was said to name people."""
    return part.ids is not None and roles.person is not None and part.ids.name == roles.person


def _participants(source: str | Path | pd.DataFrame, id: str | None, roles: ColumnRoles) -> TablePart:
    if isinstance(source, pd.DataFrame):
        return facts_of_frame(source, id)
    header = read_header(source)
    return read_facts(str(source), header, find(id, header), "participants", text_columns(header, roles))
