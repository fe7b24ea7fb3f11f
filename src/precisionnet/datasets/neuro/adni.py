"""ADNI: which scans of its UCSF cross-sectional FreeSurfer table to keep, and what is known of the people at the scan.

By default what the paper uses: scans of ADNI2 that passed quality control, the first of each person.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from precisionnet.arguments import check_choice
from precisionnet.datasets.cells import to_numbers
from precisionnet.datasets.joining import TablePart
from precisionnet.datasets.neuro.formats import rids
from precisionnet.datasets.table_files import as_text, find
from precisionnet.errors import InputError, some
from precisionnet.preprocessing.column_kinds import DAYS_A_YEAR

QUALITIES = {"pass": ("pass",), "partial": ("pass", "partial"), "any": ()}
SCANS = ("first", "last", "all")
HALF_A_YEAR = 183
VISIT = ("VISCODE", "VISCODE2", "EXAMDATE")
"""Columns that say when a visit was."""
FIRST_VISITS = ("bl", "sc", "scmri", "v01", "v03")


def choose_scans(
    part: TablePart, *, phase: str | None = "ADNI2", quality: str = "pass", scans: str = "first"
) -> TablePart:
    """Keep the scans that are wanted, under the ids ``<RID>_<visit>``."""
    check_choice("quality", quality, tuple(QUALITIES))
    check_choice("scans", scans, SCANS)
    part = part.with_facts(RID=part.ids)
    if phase is not None:
        part = _of_phase(part, phase)
    if QUALITIES[quality]:
        part = _of_quality(part, quality)
    if scans != "all":
        part = _one_a_person(part, scans)
    return part.with_ids(_scan_ids(part.facts))


def with_demographics(part: TablePart, demographics: TablePart) -> TablePart:
    """Add to the scans what ADNIMERGE, PTDEMOG or another table by RID says about the person, and ``age`` at the scan.

    If the table has several visits of a person, the scan's own visit is used, else the nearest by date, or the first
    visit if there are no dates.
    """
    assert demographics.ids is not None
    visits = demographics.facts.assign(RID=rids(demographics.ids))
    rid = part.facts["RID"]
    known = rid.isin(visits["RID"])
    if not known.any():
        raise InputError(
            f"No RID of {part.path!r} ({len(rid)}: {some(rid.tolist())}) matches one of {demographics.path!r} "
            f"({visits['RID'].nunique()}: {some(visits['RID'].unique().tolist())}): both must hold ADNI's roster id."
        )
    part = part.keep(
        known, f"scans have no row in {demographics.path!r} and were left out ({some(rid[~known].tolist())})"
    )
    scan = scan_dates(part.facts)
    visit, how = _visit_of_scan(part.facts, visits)
    new = [c for c in visit.columns if c not in part.facts.columns and c.lower() != "age" and c not in VISIT]
    part = part.with_facts(**{str(c): visit[c] for c in new})
    if new and visits["RID"].duplicated().any():
        part = part.noting(f"{demographics.path!r} has several visits a person; a scan got {how}.")
    age, how = _age_at_scan(part.facts["RID"], scan, visits, demographics.path)
    return part if age is None else part.with_facts(age=age).noting(how)


def scan_dates(facts: pd.DataFrame) -> pd.Series[Any]:
    """Return the date of each scan, NaT where it is not known."""
    if "EXAMDATE" not in facts.columns:
        return pd.Series(pd.NaT, index=facts.index, dtype="datetime64[ns]")
    return pd.to_datetime(facts["EXAMDATE"], errors="coerce", format="mixed")


def _of_phase(part: TablePart, phase: str) -> TablePart:
    column = next((name for name in ("COLPROT", "PHASE", "Phase") if name in part.facts.columns), None)
    if column is None:
        return part.noting(f"{part.path!r} has no column COLPROT or PHASE: scans of every phase were kept.")
    label = part.facts[column].astype(str).str.strip()
    wanted = label.str.upper() == phase.upper()
    if not wanted.any():
        raise InputError(
            f"Table {part.path!r} has no scan of phase {phase!r}, but of {some(sorted(label.unique()))}: name one of "
            "them with phase= in load_adni, or keep all with phase=None."
        )
    return part.keep(wanted, f"scans of {part.path!r} are not of {phase} and were left out")


def _of_quality(part: TablePart, quality: str) -> TablePart:
    if "OVERALLQC" not in part.facts.columns:
        return part.noting(f"{part.path!r} has no column OVERALLQC: nothing is known of the quality of its scans.")
    verdict = part.facts["OVERALLQC"].astype(str).str.strip().str.lower()
    good = verdict.isin(QUALITIES[quality])
    if not good.any():
        raise InputError(
            f"No scan of {part.path!r} passed: OVERALLQC holds {some(sorted(verdict.unique()))}; choose quality='any' "
            "to keep them all the same."
        )
    return part.keep(good, f"scans of {part.path!r} did not pass quality control and were left out")


def _one_a_person(part: TablePart, which: str) -> TablePart:
    """Keep the first or last scan of each person by date.

    Of several scans on one day, one without acceleration is preferred, then the one that is first in the table.
    """
    kind = part.facts.get("IMAGETYPE", pd.Series("", index=part.facts.index)).astype(str).str.lower()
    order = pd.DataFrame({"date": scan_dates(part.facts), "accelerated": kind.str.startswith("accel")})
    order = order.sort_values(["date", "accelerated"], ascending=[which == "first", True], kind="stable")
    kept = part.facts.loc[order.index, "RID"].drop_duplicates().index
    mask = np.isin(np.arange(len(part.features)), kept)
    return part.keep(mask, f"scans are not the {which} of their person and were left out")


def _scan_ids(facts: pd.DataFrame) -> pd.Series[Any]:
    """Return one label per scan: the person and the visit, or the person alone if every person has one scan."""
    rid = facts["RID"].astype(str)
    visit = next((name for name in ("VISCODE2", "VISCODE", "EXAMDATE") if name in facts.columns), None)
    if visit is None or not rid.duplicated().any():
        return rid
    nth_scan = (rid.groupby(rid).cumcount() + 1).astype(str)
    label = rid + "_" + as_text(facts[visit]).where(facts[visit].notna(), nth_scan).astype(str)
    nth = label.groupby(label).cumcount() + 1
    return label.where(~label.duplicated(keep=False), label + "_" + nth.astype(str))


def _visit_of_scan(scans: pd.DataFrame, visits: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return one row of ``visits`` per scan, and a text that says how these rows were found."""
    visits = _first_visits_first(visits).assign(_day=lambda table: scan_dates(table), _code=_codes)
    wanted = pd.DataFrame(
        {"RID": scans["RID"], "_scan": scan_dates(scans), "_row": range(len(scans)), "_own": _codes(scans)}
    )
    pairs = wanted.merge(visits, on="RID", how="left")
    pairs["_other"] = (pairs["_own"] == "") | (pairs["_own"] != pairs["_code"])
    pairs["_far"] = (pairs["_day"] - pairs["_scan"]).abs().dt.days.fillna(np.inf)
    best = pairs.sort_values(["_other", "_far"], kind="stable").drop_duplicates("_row").sort_values("_row")
    same, dated = ~best["_other"], best["_other"] & np.isfinite(best["_far"])
    ways = {
        "that of its own visit code": int(same.sum()),
        "the nearest by date": int((dated & (best["_far"] <= HALF_A_YEAR)).sum()),
        "the nearest by date, more than half a year away": int((dated & (best["_far"] > HALF_A_YEAR)).sum()),
        "the first, for want of dates": int((best["_other"] & ~dated).sum()),
    }
    said = ", ".join(f"{way} ({n})" for way, n in ways.items() if n)
    return best[[c for c in visits.columns if c not in ("_day", "_code")]].reset_index(drop=True), said


def _codes(table: pd.DataFrame) -> pd.Series[str]:
    """Return the visit codes, with one way of writing the first visit; empty where there is none."""
    name = next((c for c in ("VISCODE2", "VISCODE") if c in table.columns), None)
    if name is None:
        return pd.Series("", index=table.index)
    code = table[name].astype("string").str.strip().str.lower().fillna("")
    return code.mask(code.isin(FIRST_VISITS), "bl").astype(object)


def _first_visits_first(visits: pd.DataFrame) -> pd.DataFrame:
    first = _is_first(visits)
    return pd.concat([visits[first], visits[~first]], ignore_index=True)


def _is_first(visits: pd.DataFrame) -> pd.Series[bool]:
    codes = [visits[name].astype(str).str.lower() for name in ("VISCODE", "VISCODE2") if name in visits.columns]
    return (
        pd.concat([code.isin(FIRST_VISITS) for code in codes], axis=1).any(axis=1) if codes else visits["RID"].notna()
    )


def _age_at_scan(
    rid: pd.Series[Any], scan: pd.Series[Any], visits: pd.DataFrame, path: str
) -> tuple[pd.Series[Any] | None, str]:
    """Return the age at each scan, None if the table has no age, and a note on how it was found.

    ADNIMERGE has the age at baseline (AGE) and the day of that visit (EXAMDATE_bl, or its EXAMDATE). PTDEMOG has the
    year and the month of birth.
    """
    name = find("AGE", visits.columns)
    if name is not None:
        base = visits.assign(_age=_positive(visits[name], name, path), _day=_baseline_day(visits))
        base = base.groupby("RID")[["_age", "_day"]].first().reindex(rid.tolist()).reset_index(drop=True)
        if base["_day"].isna().all() or scan.isna().all():
            return base["_age"], f"age is {name} of {path!r} as it stands: no date says how long after it the scan was."
        age = base["_age"] + (scan - base["_day"]).dt.days / DAYS_A_YEAR
        lost = int((age.isna() & base["_age"].notna()).sum())
        missing = f" It is not known for {lost} scans without one of the two dates." if lost else ""
        return age, f"age is {name} of {path!r}, at baseline, plus the time from there to the scan.{missing}"
    if "PTDOBYY" in visits.columns and scan.notna().any():
        year = _positive(visits["PTDOBYY"], "PTDOBYY", path)
        month = _positive(visits["PTDOBMM"], "PTDOBMM", path) if "PTDOBMM" in visits.columns else year * np.nan
        born = visits.assign(_born=year + (month.fillna(6.5) - 0.5) / 12).groupby("RID")["_born"].first()
        then = scan.dt.year + (scan.dt.day_of_year - 0.5) / DAYS_A_YEAR
        return then - born.reindex(rid.tolist()).reset_index(drop=True), "age is from the month of birth to the scan."
    return None, ""


def _baseline_day(visits: pd.DataFrame) -> pd.Series[Any]:
    if "EXAMDATE_bl" in visits.columns:
        return pd.to_datetime(visits["EXAMDATE_bl"], errors="coerce", format="mixed")
    return scan_dates(visits).where(_is_first(visits))


def _positive(column: pd.Series[Any], name: str, path: str) -> pd.Series[Any]:
    """Return a column of numbers above zero, the others missing: ADNI writes -4 and -1 for what is not known."""
    values = pd.Series(to_numbers(column, name, path).values, index=column.index)
    return values.where(values > 0)
