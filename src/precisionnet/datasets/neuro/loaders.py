"""The loaders of the field's formats: ``load_table`` with the format said, and the options that only it has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.datasets.dataset import Dataset
from precisionnet.datasets.neuro.formats import RECOGNISERS, expect
from precisionnet.datasets.roles import AUTO, ColumnRoles, finished
from precisionnet.datasets.table_files import DELIMITED, read_header
from precisionnet.datasets.tables import Paths, flatten, load_table, read_region_tables
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
    complete_rows: bool = False,
) -> Dataset:
    """Load ``aparcstats2table`` tables of thickness, area or volume: Desikan-Killiany, DKT or Destrieux.

    Parameters
    ----------
    *tables : str, Path or iterable of them
        The table of each hemisphere, or their folder.
    participants : str, Path, pandas.DataFrame or None, default=None
        Table of what is known of the people, joined by id.
    target : str or None, default="auto"
        Column to predict; "auto" takes the age where there is one.
    id : str or None, default=None
        Column that names the rows; None guesses it.
    person : str or None, default=None
        Column that says who a row belongs to. Rows of one person stay on one side of every split. None takes the
        person from the id.
    site : str or None, default="auto"
        Column that says where a row was measured; "auto" takes one named like a site, None none.
    covariates : sequence of str or "auto", default="auto"
        What else to keep of the rows; "auto" keeps every column that is nothing else.
    drop : sequence of str, default=()
        Columns to leave out.
    regions : {"all", "dkt62"}, default="all"
        Keep all regions, or the 62 of the DKT protocol out of Desikan-Killiany's 68.
    complete_rows : bool, default=False
        Leave out rows in which a feature or the target is missing.

    Returns
    -------
    Dataset
        One column per region, such as ``lh_insula``.

    Examples
    --------
    >>> data = load_freesurfer("lh.tsv", "rh.tsv", participants="people.csv")  # doctest: +SKIP
    """
    return _load(
        "freesurfer",
        tables,
        ColumnRoles(target, person, site, covariates, drop, regions, complete_rows=complete_rows),
        id,
        participants,
    )


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
    complete_rows: bool = False,
) -> Dataset:
    """Load ANTs thickness: region files of one subject each, or label tables.

    Region files (``<FILE_ID>_roi_thickness.txt``) are read by label number (1002, ..., 2035), never by position, and
    named after their file. Label tables (Mindboggle names, with ID, SITE, SEX, AGE) are put one below the other.

    Parameters
    ----------
    *tables : str, Path or iterable of them
        The files, or their folder.
    participants : str, Path, pandas.DataFrame or None, default=None
        Table of what is known of the people, joined by id.
    target : str or None, default="auto"
        Column to predict; "auto" takes the age where there is one.
    id : str or None, default=None
        Column that names the rows; None guesses it.
    person : str or None, default=None
        Column that says who a row belongs to. Rows of one person stay on one side of every split. None takes the
        person from the id.
    site : str or None, default="auto"
        Column that says where a row was measured; "auto" takes one named like a site, None none.
    covariates : sequence of str or "auto", default="auto"
        What else to keep of the rows; "auto" keeps every column that is nothing else.
    drop : sequence of str, default=()
        Columns to leave out.
    regions : {"all", "dkt62"}, default="all"
        Keep all regions, or the 62 of the DKT protocol out of Desikan-Killiany's 68.
    complete_rows : bool, default=False
        Leave out rows in which a feature or the target is missing.

    Returns
    -------
    Dataset
        One column per region, such as ``lh_insula``.

    Examples
    --------
    >>> data = load_ants("thickness", participants="people.csv", id="FILE_ID")  # doctest: +SKIP
    """
    return _load(
        "ants",
        tables,
        ColumnRoles(target, person, site, covariates, drop, regions, complete_rows=complete_rows),
        id,
        participants,
    )


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
    complete_rows: bool = False,
) -> Dataset:
    """Load ENIGMA tables: ``SubjID, L_bankssts_thickavg, ..., R_insula_thickavg``, then totals, which are left out.

    Parameters
    ----------
    *tables : str, Path or iterable of them
        The files, or their folder.
    participants : str, Path, pandas.DataFrame or None, default=None
        Table of what is known of the people, joined by id.
    target : str or None, default="auto"
        Column to predict; "auto" takes the age where there is one.
    id : str or None, default=None
        Column that names the rows; None guesses it.
    person : str or None, default=None
        Column that says who a row belongs to. Rows of one person stay on one side of every split. None takes the
        person from the id.
    site : str or None, default="auto"
        Column that says where a row was measured; "auto" takes one named like a site, None none.
    covariates : sequence of str or "auto", default="auto"
        What else to keep of the rows; "auto" keeps every column that is nothing else.
    drop : sequence of str, default=()
        Columns to leave out.
    regions : {"all", "dkt62"}, default="all"
        Keep all regions, or the 62 of the DKT protocol out of Desikan-Killiany's 68.
    complete_rows : bool, default=False
        Leave out rows in which a feature or the target is missing.

    Returns
    -------
    Dataset
        One column per region, such as ``lh_insula``.

    Examples
    --------
    >>> data = load_enigma("CorticalMeasuresENIGMA_ThickAvg.csv", participants="people.csv")  # doctest: +SKIP
    """
    return _load(
        "enigma",
        tables,
        ColumnRoles(target, person, site, covariates, drop, regions, complete_rows=complete_rows),
        id,
        participants,
    )


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
    complete_rows: bool = False,
) -> Dataset:
    """Load ADNI's ``UCSFFSX*.csv`` (cross-sectional FreeSurfer): 68 thickness columns by their ST codes.

    Parameters
    ----------
    table : str or Path
        The UCSF table.
    demographics : str, Path, pandas.DataFrame or None, default=None
        ADNIMERGE or PTDEMOG; ``age`` is then the age at the scan.
    phase : str or None, default="ADNI2"
        Keep the scans of one phase; None keeps all.
    quality : {"pass", "partial", "any"}, default="pass"
        Keep scans that passed quality control, also those that passed in part, or any.
    scans : {"first", "last", "all"}, default="first"
        Keep one scan per person, or all; these are grouped by person.
    target : str or None, default="auto"
        Column to predict; "auto" takes the age where there is one.
    site : str or None, default="auto"
        Column that says where a row was measured; "auto" takes one named like a site, None none.
    covariates : sequence of str or "auto", default="auto"
        What else to keep of the rows; "auto" keeps every column that is nothing else.
    drop : sequence of str, default=()
        Columns to leave out.
    regions : {"all", "dkt62"}, default="all"
        Keep all regions, or the 62 of the DKT protocol out of Desikan-Killiany's 68.
    complete_rows : bool, default=False
        Leave out rows in which a feature or the target is missing.

    Returns
    -------
    Dataset
        One row per scan, one column per region; ``groups`` are the people.

    Examples
    --------
    >>> data = load_adni("UCSFFSX51.csv", "ADNIMERGE.csv", regions="dkt62")  # doctest: +SKIP
    """
    chosen = {"phase": phase, "quality": quality, "scans": scans}
    roles = ColumnRoles(target, None, site, covariates, drop, regions, complete_rows=complete_rows)
    return _load("adni", [table], roles, "RID", demographics, chosen)


def load_participants(
    path: str | Path, *, target: str | None = AUTO, site: str | None = AUTO, id: str | None = None
) -> Dataset:
    """Load a BIDS ``participants.tsv``: target, site and covariates; other numbers are features.

    ``n/a`` is missing, ``89+`` is read as 89.

    Parameters
    ----------
    path : str or Path
        The file.
    target : str or None, default="auto"
        Column to predict; "auto" takes the age where there is one.
    site : str or None, default="auto"
        Column that says where a row was measured; "auto" takes one named like a site, None none.
    id : str or None, default=None
        Column that names the rows; None guesses it.

    Returns
    -------
    Dataset
        One row per participant.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "participants.tsv")
    ...     _ = path.write_text("participant_id\\tage\\tvolume\\nsub-1\\t45\\t1.2\\nsub-2\\t89+\\t1.1\\n")
    ...     load_participants(path).y.tolist()
    [45.0, 89.0]
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
    return finished(*read_region_tables(headers, dict.fromkeys(headers, format), roles, id, participants, adni))


def _unfold(tables: Sequence[Paths], format: str) -> list[Paths]:
    """Replace every folder by the tables of this format in it."""
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
