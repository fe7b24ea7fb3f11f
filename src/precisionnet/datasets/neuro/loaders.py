"""The loaders of the field's formats: ``load_table`` with the format said, and the options that only it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.datasets.dataset import Dataset
from precisionnet.datasets.neuro.formats import RECOGNISERS, expect
from precisionnet.datasets.roles import AUTO, ColumnRoles
from precisionnet.datasets.table_files import DELIMITED, read_header
from precisionnet.datasets.tables import Paths, flatten, load_regions, load_table
from precisionnet.errors import InputError

People = str | Path | pd.DataFrame | None


def load_freesurfer(
    *tables: Paths,
    participants: People = None,
    target: str | None = AUTO,
    id: str | None = None,
    person: str | None = None,
    site: str | None = AUTO,
    covariates: Sequence[str] | str = AUTO,
    drop: Sequence[str] = (),
    regions: str = "all",
) -> Dataset:
    """``aparcstats2table`` thickness, area or volume: the table of each hemisphere (or their folder).

    Desikan-Killiany, DKT and Destrieux, in both spellings. ``participants`` is a table (file or DataFrame) of what is
    known of the people, joined by id; ``target`` is a column of it, the age where it has one and you name no other.
    """
    return _load("freesurfer", tables, ColumnRoles(target, person, site, covariates, drop, regions), id, participants)


def load_ants(
    *tables: Paths,
    participants: People = None,
    target: str | None = AUTO,
    id: str | None = None,
    person: str | None = None,
    site: str | None = AUTO,
    covariates: Sequence[str] | str = AUTO,
    drop: Sequence[str] = (),
    regions: str = "all",
) -> Dataset:
    """ANTs thickness: per-subject region files (``<FILE_ID>_roi_thickness.txt`` or their folder), or label tables.

    Region files are read by label number (1002, ..., 2035), never by position, and named after their file. Label tables
    (Mindboggle names, with ID, SITE, SEX, AGE) are put one below the other.
    """
    return _load("ants", tables, ColumnRoles(target, person, site, covariates, drop, regions), id, participants)


def load_enigma(
    *tables: Paths,
    participants: People = None,
    target: str | None = AUTO,
    id: str | None = None,
    person: str | None = None,
    site: str | None = AUTO,
    covariates: Sequence[str] | str = AUTO,
    drop: Sequence[str] = (),
    regions: str = "all",
) -> Dataset:
    """ENIGMA tables: ``SubjID, L_bankssts_thickavg, ..., R_insula_thickavg``, then totals, which are left out."""
    return _load("enigma", tables, ColumnRoles(target, person, site, covariates, drop, regions), id, participants)


def load_adni(
    table: str | Path,
    demographics: People = None,
    *,
    phase: str | None = "ADNI2",
    quality: str = "pass",
    scans: str = "first",
    target: str | None = AUTO,
    site: str | None = AUTO,
    covariates: Sequence[str] | str = AUTO,
    drop: Sequence[str] = (),
    regions: str = "all",
) -> Dataset:
    """ADNI's ``UCSFFSX*.csv`` (cross-sectional FreeSurfer), 68 thickness columns by their ST codes.

    ``phase`` keeps the scans of one phase (None: all), ``quality`` those that passed (``"partial"``: also in part;
    ``"any"``), ``scans`` one scan a person (``"first"``, ``"last"``) or ``"all"``, grouped by person.
    ``demographics`` is ADNIMERGE or PTDEMOG; ``age`` is then the age at the scan.
    """
    chosen = {"phase": phase, "quality": quality, "scans": scans}
    roles = ColumnRoles(target, None, site, covariates, drop, regions)
    return _load("adni", [table], roles, "RID", demographics, chosen)


def load_participants(
    path: str | Path, *, target: str | None = AUTO, site: str | None = AUTO, id: str | None = None
) -> Dataset:
    """BIDS ``participants.tsv``: target (the age, unless named), site and covariates; other numbers are features.

    ``n/a`` is missing, ``89+`` is read as 89.
    """
    return load_table(path, target=target, site=site, id=id, format="participants")


def _load(
    format: str,
    tables: Sequence[Paths],
    roles: ColumnRoles,
    id: str | None,
    participants: People,
    adni: dict[str, Any] | None = None,
) -> Dataset:
    headers = {path: read_header(path) for path in flatten(_unfold(tables, format))}
    for path, header in headers.items():
        expect(format, header, path)
    return load_regions(headers, dict.fromkeys(headers, format), roles, id, participants, adni)


def _unfold(tables: Sequence[Paths], format: str) -> list[Paths]:
    """A folder stands for the tables of this format in it."""
    files: list[Paths] = []
    for given in tables:
        if not isinstance(given, str | Path) or not Path(given).is_dir():
            files.append(given)
            continue
        inside = sorted(f for f in Path(given).iterdir() if f.suffix.lower() in DELIMITED and f.is_file())
        fitting = [f for f in inside if RECOGNISERS[format](read_header(f))]
        if not fitting:
            raise InputError(f"Folder {str(given)!r} has no table of format {format!r} among its {len(inside)} tables.")
        files.extend(fitting)
    return files
