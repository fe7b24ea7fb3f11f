"""Options of every command that reads tables: which files, and which column is what."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from precisionnet.errors import InputError

FORMATS = "[auto|freesurfer|ants|adni|enigma|participants|regions|table]"

Tables = Annotated[list[str], typer.Argument(metavar="TABLE", help="csv, tsv, parquet or xlsx; several are joined.")]
IdColumn = Annotated[
    str | None, typer.Option("--id", metavar="COL", help="Column that identifies a row; not a feature.")
]
Person = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column that says whose row it is, where a person has several; else the id does."),
]
Site = Annotated[str | None, typer.Option(metavar="COL", help="Column that says where a row was measured.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COL", help="Column to leave out; may be repeated.")]
Format = Annotated[
    str, typer.Option(metavar=FORMATS, help="What the tables are; 'table' takes every column as it stands.")
]
Regions = Annotated[str, typer.Option(metavar="[all|dkt62]", help="Of Desikan-Killiany's 68 regions, all or DKT's 62.")]

CompleteRows = Annotated[
    bool, typer.Option("--complete-rows", help="Leave out rows in which the target or a feature is missing.")
]


def load_options(
    target: str | None,
    id_column: str | None,
    person: str | None,
    site: str | None,
    drop: list[str] | None,
    format: str,
    regions: str,
) -> dict[str, Any]:
    """What ``load_table`` takes; a column has one role."""
    roles = {"--target": target, "--id": id_column, "--site": site}
    if person is not None and person == target:
        raise InputError(f"Column {person!r} is named as --target and as --person: it can only be one of them.")
    named = [(option, name) for option, name in roles.items() if name is not None]
    named += [("--drop", name) for name in drop or []]
    for i, (option, name) in enumerate(named):
        for other, same in named[:i]:
            if name == same and option != other:
                raise InputError(f"Column {name!r} is named as {other} and as {option}: it can only be one of them.")
    return {
        "target": target,
        "id": id_column,
        "person": person,
        "site": "auto" if site is None else site,
        "drop": drop or [],
        "format": format,
        "regions": regions,
    }
