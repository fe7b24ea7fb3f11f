"""The public cohorts, fetched and put together: ABIDE, and ANTs / Mindboggle (IXI, NKI, OASIS, Kirby)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from precisionnet.arguments import check_choice
from precisionnet.datasets.dataset import Dataset
from precisionnet.datasets.joining import TablePart, combine, join
from precisionnet.datasets.neuro.formats import join_hemispheres, pair_kirby, read_freesurfer, read_regions
from precisionnet.datasets.public.fetching import fetch_files
from precisionnet.datasets.public.registry import describe
from precisionnet.datasets.roles import ColumnRoles, assemble
from precisionnet.datasets.table_files import read_header, read_table
from precisionnet.errors import InputError

SEXES = {"1": "M", "2": "F"}
DIAGNOSES = {"1": "autism", "2": "control"}
ABIDE_TARGETS = ("age", "sex", "diagnosis")
COHORTS = {"I": "IXI", "K": "Kirby", "N": "NKI", "O": "OASIS"}


def fetch_abide(
    data_folder: str | Path | None = None, *, regions: str = "dkt62", target: str = "age", progress: bool = True
) -> Dataset:
    """Fetch ABIDE I: cortical thickness (FreeSurfer 6, Desikan-Killiany) of 1035 people at 20 sites, and their age.

    Parameters
    ----------
    data_folder : str, Path or None, default=None
        Where the files are kept, and downloaded to where they are not there yet. None takes the folder
        ``PRECISIONNET_DATA``, else the cache of your platform.
    regions : {"dkt62", "all"}, default="dkt62"
        The 62 regions of the DKT protocol, as in the paper, or all 68.
    target : {"age", "sex", "diagnosis"}, default="age"
        What to predict; the other two are covariates.
    progress : bool, default=True
        Draw a bar for each file while it comes, if standard error is a terminal.

    Returns
    -------
    Dataset
        One row per person, with ``site``.

    Raises
    ------
    FetchError
        A file could not be had, or what came is not that file.

    Examples
    --------
    >>> data = fetch_abide()  # doctest: +SKIP
    """
    check_choice("target", target, ABIDE_TARGETS)
    files = fetch_files("abide", data_folder, progress=progress)
    tables = [str(files[f"{side}.aparc_table_thickness.tsv"]) for side in ("lh", "rh")]
    thickness = join_hemispheres([read_freesurfer(path, read_header(path)) for path in tables])
    people = str(files["Phenotypic_V1_0b_preprocessed1.csv"])
    table = read_table(people, "SUB_ID", ["SEX", "DX_GROUP"])
    table = table[table["FILE_ID"] != "no_filename"].reset_index(drop=True)
    facts = pd.DataFrame(
        {
            "age": table["AGE_AT_SCAN"],
            "sex": table["SEX"].map(SEXES),
            "diagnosis": table["DX_GROUP"].map(DIAGNOSES),
            "site": table["SITE_ID"],
        }
    )
    joined = join(thickness, TablePart(people, "table", table["SUB_ID"], table[[]], facts))
    roles = ColumnRoles(target, regions=regions, covariates=[name for name in ABIDE_TARGETS if name != target])
    # How the two files write their ids, and that their mean is no feature, needs no note here.
    return assemble(replace(joined, notes=()), roles, describe("abide"))


def fetch_ants_mindboggle(
    data_folder: str | Path | None = None, *, cohorts: Iterable[str] = "INO", progress: bool = True
) -> Dataset:
    """Fetch ANTs thickness of 62 Mindboggle regions, and age.

    Parameters
    ----------
    data_folder : str, Path or None, default=None
        Where the files are kept, and downloaded to where they are not there yet. None takes the folder
        ``PRECISIONNET_DATA``, else the cache of your platform.
    cohorts : iterable of str, default="INO"
        Letters of the cohorts: I (IXI, 563 rows), N (NKI, 186), O (OASIS, 312), K (Kirby, 41). Kirby holds scan and
        rescan of 21 people; its scans of equal sex and age count as one person.
    progress : bool, default=True
        Draw a bar for each file while it comes, if standard error is a terminal.

    Returns
    -------
    Dataset
        One row per scan, with ``site`` and ``groups``.

    Raises
    ------
    FetchError
        A file could not be had, or what came is not that file.

    Examples
    --------
    >>> data = fetch_ants_mindboggle(cohorts="IKNO")  # doctest: +SKIP
    """
    wanted = list(dict.fromkeys(str(cohort).upper() for cohort in cohorts))
    unknown = [cohort for cohort in wanted if cohort not in COHORTS]
    if unknown or not wanted:
        known = ", ".join(f"{letter} ({name})" for letter, name in COHORTS.items())
        raise InputError(f"cohorts must be letters among {known}, got {cohorts!r}: for example 'INO'.")
    files = fetch_files("ants_mindboggle", data_folder, progress=progress)
    parts = []
    for cohort in wanted:
        path = str(files[f"labelresultsANTs{cohort}.csv"])
        part = read_regions(path, read_header(path), "ants", "ID", ["SEX"])
        assert part.ids is not None
        parts.append(part.with_ids((cohort + "-" + part.ids).rename("id")))
    part = pair_kirby(combine(parts))
    facts = part.facts.rename(columns={"AGE": "age", "SEX": "sex", "SITE": "site", "VOLUME": "brain_volume"})
    facts = facts.assign(sex=facts["sex"].map(SEXES))
    return assemble(replace(part, facts=facts), ColumnRoles(target="age"), describe("ants_mindboggle"))
