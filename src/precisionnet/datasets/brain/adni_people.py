"""ADNI's demographics: one row a person, and how old the person was at the scan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from precisionnet.datasets.brain.adni import scan_dates
from precisionnet.datasets.files.values import to_numbers
from precisionnet.datasets.loading.assembling import find
from precisionnet.datasets.loading.parts import Part
from precisionnet.errors import InputError, some

DAYS_A_YEAR = 365.25
FIRST_VISITS = ("bl", "sc", "v01", "v03")


def with_demographics(part: Part, demographics: Part) -> Part:
    """Scans with what ADNIMERGE (or PTDEMOG) says of their person, at baseline if there, and ``age`` at the scan."""
    people = demographics.facts.assign(RID=demographics.ids)
    visit = next((name for name in ("VISCODE", "VISCODE2") if name in people.columns), None)
    if visit is not None:
        first = people[visit].astype(str).str.lower().isin(FIRST_VISITS)
        people = pd.concat([people[first], people[~first]])
    people = people.drop_duplicates("RID").set_index("RID")
    rid = part.facts["RID"].astype(str)
    known = rid.isin(people.index)
    if not known.any():
        raise InputError(
            f"No RID of {part.path!r} ({len(rid)}: {some(rid.tolist())}) matches one of {demographics.path!r} "
            f"({len(people)}: {some(people.index.tolist())}): both must hold ADNI's roster id."
        )
    part = part.keep(
        known, f"scans have no row in {demographics.path!r} and were left out ({some(rid[~known].tolist())})"
    )
    of_scan = people.loc[part.facts["RID"].astype(str).tolist()].reset_index(drop=True)
    age, how = _age_at_scan(of_scan, scan_dates(part.facts), demographics.path)
    new = [c for c in of_scan.columns if c not in part.facts.columns and c.lower() != "age"]
    return part.with_facts(**{str(c): of_scan[c] for c in new}, age=age).noting(how)


def _age_at_scan(of_scan: pd.DataFrame, scan: pd.Series[Any], path: str) -> tuple[pd.Series[Any], str]:
    """ADNIMERGE: AGE is the age at baseline, EXAMDATE_bl (or EXAMDATE of that row) its day. PTDEMOG: a birth month."""
    name = find("AGE", of_scan.columns)
    if name is not None:
        age = pd.Series(to_numbers(of_scan[name], name, path).values)
        day = next((d for d in ("EXAMDATE_bl", "EXAMDATE") if d in of_scan.columns), None)
        if day is None or scan.isna().all():
            return age, f"age is {name} of {path!r} as it stands: no date says how long after it the scan was."
        years = (scan - pd.to_datetime(of_scan[day], errors="coerce", format="mixed")).dt.days / DAYS_A_YEAR
        return age + years.fillna(0.0), f"age is {name} of {path!r} plus the time from {day} to the scan."
    if "PTDOBYY" in of_scan.columns and scan.notna().any():
        year = pd.Series(to_numbers(of_scan["PTDOBYY"], "PTDOBYY", path).values)
        month = pd.Series(np.nan, index=year.index)
        if "PTDOBMM" in of_scan.columns:
            month = pd.Series(to_numbers(of_scan["PTDOBMM"], "PTDOBMM", path).values)
        born = year + (month.fillna(6.5) - 0.5) / 12
        return scan.dt.year + (
            scan.dt.day_of_year - 0.5
        ) / DAYS_A_YEAR - born, "age is from the month of birth to the scan."
    return pd.Series(np.nan, index=of_scan.index), f"{path!r} has neither AGE nor PTDOBYY: the age is not known."
