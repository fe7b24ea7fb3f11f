"""The table formats of the field, recognised by their headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from precisionnet.arguments import check_choice
from precisionnet.datasets.neuro.regions import ADNI_CODES
from precisionnet.datasets.neuro.regions import parse_region
from precisionnet.errors import InputError

APARC = re.compile(r"([lr]h)\.(.*?)\.?(thickness|area|volume|thicknessstd|meancurv|gauscurv|foldind|curvind)")
"""The first header cell of aparcstats2table: hemisphere, parcellation, measure."""
ROI_MEAN = re.compile(r"Mean_(\d{4})(?:\.0)?")
"""A column of ANTs' per-subject region files."""
FEW = 10
"""Region columns from which on a table is one of regions."""
ID_NAMES = (
    "participant_id",
    "subjid",
    "subject_id",
    "subject",
    "sub_id",
    "subjectid",
    "scan_id",
    "id",
    "src_subject_id",
)


def _is_freesurfer(names: Sequence[str]) -> bool:
    return bool(names) and APARC.fullmatch(names[0]) is not None


def _is_adni(names: Sequence[str]) -> bool:
    return "RID" in names and sum(name in ADNI_CODES for name in names) >= FEW


def _is_ants(names: Sequence[str]) -> bool:
    if sum(ROI_MEAN.fullmatch(name) is not None for name in names) >= FEW:
        return True
    spelled = [name for name in names if re.match(r"(left|right) ", name, re.IGNORECASE)]
    return sum(parse_region(name) is not None for name in spelled) >= FEW


def _is_enigma(names: Sequence[str]) -> bool:
    spelled = [name for name in names if re.fullmatch(r"[LR]_\w+_(thickavg|surfavg)", name)]
    return sum(parse_region(name) is not None for name in spelled) >= FEW


def _is_participants(names: Sequence[str]) -> bool:
    return bool(names) and names[0].lower() == "participant_id" and not _is_regions(names)


def _is_regions(names: Sequence[str]) -> bool:
    return sum(parse_region(name) is not None for name in names) >= FEW


RECOGNISERS: dict[str, Callable[[Sequence[str]], bool]] = {
    "freesurfer": _is_freesurfer,
    "adni": _is_adni,
    "ants": _is_ants,
    "enigma": _is_enigma,
    "participants": _is_participants,
    "regions": _is_regions,
    "table": lambda names: True,
}
"""In the order in which they are tried."""
FORMATS = ("auto", *RECOGNISERS)
OF_REGIONS = ("freesurfer", "adni", "ants", "enigma", "regions")
"""Formats that bring the features; beside them the other tables say who the rows are."""


def recognise(names: Sequence[str]) -> str:
    """The format whose header this is."""
    return next(name for name, fits in RECOGNISERS.items() if fits(names))


def check_format(format: str) -> None:
    """A name that we know."""
    check_choice("format", format, FORMATS)


def expect(format: str, names: Sequence[str], path: str | Path) -> None:
    """A file that was said to be of a format has its header."""
    if not RECOGNISERS[format](names):
        looks = recognise(names)
        instead = "" if looks == "table" else f"; it looks like {looks!r}"
        raise InputError(
            f"Table {str(path)!r} does not have the header of format {format!r} (its first column is "
            f"{names[0] if names else ''!r}){instead}: let the format be recognised, or name another."
        )


def guess_id(names: Collection[str]) -> str | None:
    """The column that names the rows, by the names such columns have."""
    lowered = {name.lower(): name for name in reversed(list(names))}
    return next((lowered[name] for name in ID_NAMES if name in lowered), None)
