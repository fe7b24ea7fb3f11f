"""``load_table``: any table or tables, each recognised by its header, put together by id."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.arguments import refuse_two_roles
from precisionnet.datasets.neuro.regions import HEMISPHERES
from precisionnet.datasets.dataset import Dataset
from precisionnet.datasets.table_files import read_header
from precisionnet.datasets.neuro.adni import choose_scans
from precisionnet.datasets.neuro.adni import with_demographics
from precisionnet.datasets.neuro.formats import pair_kirby
from precisionnet.datasets.roles import AUTO, SITE_NAMES, Roles, assemble, find
from precisionnet.datasets.neuro.formats import OF_REGIONS, RECOGNISERS, check_format, expect, guess_id, recognise
from precisionnet.datasets.neuro.formats import join_hemispheres
from precisionnet.datasets.tables import read_participants
from precisionnet.datasets.joining import Part, apart, combine, join
from precisionnet.datasets.neuro.formats import (
    facts_of_frame,
    read_adni,
    read_ants,
    read_facts,
    read_freesurfer,
    read_plain,
    read_regions,
)
from precisionnet.errors import InputError, did_you_mean, some
from precisionnet.inputs import refuse_missing_table

Paths = str | Path | Iterable[str | Path]
Headers = dict[str, list[str]]


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
) -> Dataset:
    """Any wide csv, tsv, parquet or xlsx table; several are joined on their ids.

    Each table is recognised by its header (``format="auto"``) or taken for what you say: ``"freesurfer"``, ``"ants"``,
    ``"adni"``, ``"enigma"``, ``"participants"``, ``"regions"`` (any table with columns named after cortical regions)
    or ``"table"``. Where one of the tables holds regions, these are the features and everything else is known of the
    rows (target, site, covariates). In a plain table every column that is not named as ``target``, ``id``, ``person``,
    ``site`` or among ``covariates`` and ``drop`` is a feature; ``features`` names them one by one instead.

    ``person`` says who a row belongs to (several scans of one person stay on one side of every split); without it the
    ids do. ``regions="dkt62"`` keeps the 62 regions of the DKT protocol out of Desikan-Killiany's 68. ``adni`` says
    which scans of an ADNI table to keep, as ``load_adni`` does (``{"phase": None, "quality": "any", "scans": "all"}``
    keeps all).
    """
    check_format(format)
    drop = [drop] if isinstance(drop, str) else list(drop)
    features = [features] if isinstance(features, str) else features
    named = [("target", target), ("id", id), ("site", None if site == AUTO else site)]
    refuse_two_roles([*named, *(("drop", name) for name in drop), *(("features", name) for name in features or ())])
    headers = {path: read_header(path) for path in flatten(paths)}
    formats = {path: _format_of(path, headers, format) for path in headers}
    roles = _as_written(Roles(target, person, site, covariates, drop, regions, features), headers)
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
    roles: Roles,
    id: str | None,
    participants: str | Path | pd.DataFrame | None = None,
    adni: Mapping[str, Any] | None = None,
) -> Dataset:
    """Tables of regions, and what the others say of their rows."""
    beside = [] if participants is None else [_participants(participants, id, roles)]
    id = _known_id(id, headers, beside)
    by_format: dict[str, list[Part]] = {}
    facts = list[Part]()
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
    whole = list[Part]()
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
    files = [p for given in paths for p in ([given] if isinstance(given, str | Path) else list(given))]
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


def _as_written(roles: Roles, headers: Headers) -> Roles:
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


def _known_id(id: str | None, headers: Headers, beside: Sequence[Part] = ()) -> str | None:
    """The id column that was named stands in a table at least."""
    every = list(dict.fromkeys(name for header in headers.values() for name in header))
    every += [str(part.ids.name) for part in beside if part.ids is not None]
    if id is None or find(id, every) is not None:
        return id
    raise InputError(
        f"No table has a column {id!r}{did_you_mean(id, every)}: --id must name one of their columns ({some(every)})."
    )


def _text_columns(header: Sequence[str], roles: Roles) -> list[str]:
    """Labels keep their leading zeros."""
    wanted = [name for name in (roles.target, roles.person, roles.site) if name is not None]
    wanted += SITE_NAMES if roles.site == AUTO else []
    return [found for name in wanted if (found := find(name, header)) is not None]


def _participants(source: str | Path | pd.DataFrame, id: str | None, roles: Roles) -> Part:
    if isinstance(source, pd.DataFrame):
        return facts_of_frame(source, id)
    header = read_header(source)
    return read_facts(str(source), header, find(id, header), "participants", _text_columns(header, roles))


def _plain_tables(headers: Headers, id: str | None, roles: Roles) -> Part:
    """Plain tables, side by side."""
    if len(headers) > 1 and id is None:
        guesses = {guess_id(header) for header in headers.values()}
        id = guesses.pop() if len(guesses) == 1 else None
        if id is None:
            raise InputError(
                f"{len(headers)} tables were given, but no id to join them on: name the id column with --id."
            )
    aside = {*roles.named(), *roles.drop}
    if roles.features is not None:
        aside |= {name for header in headers.values() for name in header if name not in roles.features}
    parts = [read_plain(path, id, aside, _text_columns(header, roles)) for path, header in headers.items()]
    joined = functools.reduce(join, parts)
    named = guess_id(joined.features.columns)
    if id is None and named is not None and roles.features is None:
        doubt = f"Column {named!r} is named like an id and was taken for a feature: give it to --id, or rename it."
        joined = replace(joined, doubts=(*joined.doubts, doubt))
    return joined
