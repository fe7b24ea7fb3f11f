"""Options of every command that reads tables: which files, and which column is what."""

from __future__ import annotations

from typing import Annotated, Any

import typer

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
    from precisionnet.arguments import refuse_two_roles  # with NumPy, which --help does not need

    dropped = [("--drop", name) for name in drop or []]
    refuse_two_roles([("--target", target), ("--id", id_column), ("--site", site), *dropped])
    refuse_two_roles([("--target", target), ("--person", person)])  # a person may well be the id
    return {
        "target": target,
        "id": id_column,
        "person": person,
        "site": "auto" if site is None else site,
        "drop": drop or [],
        "format": format,
        "regions": regions,
    }
