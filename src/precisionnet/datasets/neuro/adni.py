"""ADNI's UCSF cross-sectional FreeSurfer table: which scans to keep.

By default what the paper uses: scans of ADNI2 that passed quality control, the first of each person.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from precisionnet.arguments import check_choice
from precisionnet.datasets.table_files import as_text
from precisionnet.datasets.joining import Part
from precisionnet.errors import InputError, some

QUALITIES = {"pass": ("pass",), "partial": ("pass", "partial"), "any": ()}
SCANS = ("first", "last", "all")


def choose_scans(part: Part, *, phase: str | None = "ADNI2", quality: str = "pass", scans: str = "first") -> Part:
    """The rows wanted, with the ids ``<RID>_<visit>``."""
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


def scan_dates(facts: pd.DataFrame) -> pd.Series[Any]:
    """When each scan was made, NaT where that is not known."""
    if "EXAMDATE" not in facts.columns:
        return pd.Series(pd.NaT, index=facts.index, dtype="datetime64[ns]")
    return pd.to_datetime(facts["EXAMDATE"], errors="coerce", format="mixed")


def _of_phase(part: Part, phase: str) -> Part:
    column = next((name for name in ("COLPROT", "PHASE", "Phase") if name in part.facts.columns), None)
    if column is None:
        return part.noting(f"{part.path!r} has no column COLPROT or PHASE: scans of every phase were kept.")
    label = part.facts[column].astype(str).str.strip()
    wanted = label.str.upper() == phase.upper()
    if not wanted.any():
        raise InputError(
            f"Table {part.path!r} has no scan of phase {phase!r}, but of {some(sorted(label.unique()))}: choose one of "
            "them with load_adni(..., phase=...) in Python, or None for all."
        )
    return part.keep(wanted, f"scans of {part.path!r} are not of {phase} and were left out")


def _of_quality(part: Part, quality: str) -> Part:
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


def _one_a_person(part: Part, which: str) -> Part:
    """The first or last by date; on one day the scan without acceleration, then the one that stands first."""
    kind = part.facts.get("IMAGETYPE", pd.Series("", index=part.facts.index)).astype(str).str.lower()
    order = pd.DataFrame({"date": scan_dates(part.facts), "accelerated": kind.str.startswith("accel")})
    order = order.sort_values(["date", "accelerated"], ascending=[which == "first", True], kind="stable")
    kept = part.facts.loc[order.index, "RID"].drop_duplicates().index
    mask = np.isin(np.arange(len(part.features)), kept)
    return part.keep(mask, f"scans are not the {which} of their person and were left out")


def _scan_ids(facts: pd.DataFrame) -> pd.Series[Any]:
    """One label a scan; the person alone where there is one scan each."""
    rid = facts["RID"].astype(str)
    visit = next((name for name in ("VISCODE2", "VISCODE", "EXAMDATE") if name in facts.columns), None)
    if visit is None or not rid.duplicated().any():
        return rid
    nth_scan = (rid.groupby(rid).cumcount() + 1).astype(str)
    label = rid + "_" + as_text(facts[visit]).where(facts[visit].notna(), nth_scan).astype(str)
    nth = label.groupby(label).cumcount() + 1
    return label.where(~label.duplicated(keep=False), label + "_" + nth.astype(str))
