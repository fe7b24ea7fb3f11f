"""The table formats of neuroimaging: each is recognised by its header, and read as one part of a data set.

The readers return all rows of a file; the loaders decide which of them to keep.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.arguments import check_choice
from precisionnet.datasets.cells import NOT_DROPPABLE, read_columns
from precisionnet.datasets.joining import PERSON, TablePart, join
from precisionnet.datasets.neuro.regions import (
    ADNI_CODES,
    HEMISPHERES,
    LABELS,
    MEASURES,
    is_total,
    looks_like_region,
    parse_region,
    parse_structure,
    region_names,
)
from precisionnet.datasets.table_files import as_text, find, read_table
from precisionnet.errors import InputError, some

APARC = re.compile(r"([lr]h)\.(.*?)\.?(thickness|area|volume|thicknessstd|meancurv|gauscurv|foldind|curvind)")
"""The first header cell of aparcstats2table: hemisphere, parcellation, measure."""
ASEG = re.compile(r"Measure:\s*(volume|\w+)", re.IGNORECASE)
"""The first header cell of asegstats2table."""
ROI_MEAN = re.compile(r"Mean_(\d{4})(?:\.0)?")
"""A column of ANTs' per-subject region files."""
FEW = 10
"""A table with at least so many region columns counts as a table of regions."""
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
KIRBY = "kirby"


def recognise(names: Sequence[str]) -> str:
    """Return the format of a table with these column names."""
    return next(name for name, fits in RECOGNISERS.items() if fits(names))


def check_format(format: str) -> None:
    """Refuse the name of a format that does not exist."""
    check_choice("format", format, FORMATS)


def expect(format: str, names: Sequence[str], path: str | Path) -> None:
    """Refuse a file that does not have the header of the format it was said to be in."""
    if not RECOGNISERS[format](names):
        looks = recognise(names)
        instead = "" if looks == "table" else f"; it looks like {looks!r}"
        raise InputError(
            f"Table {str(path)!r} does not have the header of format {format!r} (its first column is "
            f"{names[0] if names else ''!r}){instead}: let the format be recognised, or name another."
        )


def guess_id(names: Collection[str]) -> str | None:
    """Guess which column names the rows, from the names that such columns usually have."""
    lowered = {name.lower(): name for name in reversed(list(names))}
    return next((lowered[name] for name in ID_NAMES if name in lowered), None)


def _is_freesurfer(names: Sequence[str]) -> bool:
    return bool(names) and APARC.fullmatch(names[0]) is not None


def _is_aseg(names: Sequence[str]) -> bool:
    return bool(names) and ASEG.fullmatch(names[0]) is not None and any(parse_structure(name) for name in names[1:])


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
    "aseg": _is_aseg,
    "adni": _is_adni,
    "ants": _is_ants,
    "enigma": _is_enigma,
    "participants": _is_participants,
    "regions": _is_regions,
    "table": lambda names: True,
}
"""A test of the header for each format, in the order in which they are tried."""
FORMATS = ("auto", *RECOGNISERS)
OF_REGIONS = ("freesurfer", "aseg", "adni", "ants", "enigma", "regions")
"""Formats whose tables have the features; the other tables say which people the rows are of."""


def read_freesurfer(path: str, header: Sequence[str]) -> TablePart:
    """Read a table of aparcstats2table: one hemisphere and one measure.

    The first column holds the ids, and its name says which hemisphere and measure.
    """
    first = header[0]
    found = APARC.fullmatch(first)
    frame = read_table(path, first)
    columns, measure = region_names(header[1:])
    side = found[1] if found else None
    foreign = [c for c in columns if (region := parse_region(c)) is not None and side not in (None, region.side)]
    if foreign:
        raise InputError(
            f"Table {path!r} says {first!r} and holds {some(foreign)} of the other hemisphere: make the table anew."
        )
    atlas = found[2] if found else ""
    ids = frame.pop(first).rename("id")
    return region_part(frame, path, "freesurfer", columns, ids, measure, atlas)


def read_aseg(path: str, header: Sequence[str]) -> TablePart:
    """Read a table of asegstats2table: volumes of subcortical structures, with the ids in the first column."""
    frame = read_table(path, header[0])
    columns = {name: structure for name in header[1:] if (structure := parse_structure(name)) is not None}
    return region_part(frame, path, "aseg", columns, frame.pop(header[0]).rename("id"), "volume")


def check_measures(measures: Sequence[str] | None) -> list[str] | None:
    """Names of measures that we know, as a list; None stays None."""
    if measures is None:
        return None
    known = list(dict.fromkeys(MEASURES.values()))
    for measure in measures:
        check_choice("measures=", measure, known)
    if not measures:
        raise InputError("measures names no measure: give at least one, such as measures='thickness'.")
    return list(dict.fromkeys(measures))


def with_measures(part: TablePart, measures: Sequence[str]) -> list[TablePart]:
    """Cut a table of regions into one part per measure that was asked for.

    A measure that the table does not have gives no part. "volume" includes subcortical volumes. Columns count as
    thickness if the table does not say what they measure.
    """
    below = {n: s for n in part.facts.columns if (s := parse_structure(n)) is not None} if "volume" in measures else {}
    volumes = read_columns(part.facts[list(below)], part.path, NOT_DROPPABLE)
    regions = {name: parse_region(name) for name in part.features.columns}
    measure_of = {n: part.measure or (r.measure if r is not None else "") or "thickness" for n, r in regions.items()}
    foreign = [name for name, measure in measure_of.items() if measure not in measures]
    said = [f"Of {part.path!r} {some(foreign)} were left out: another measure than those asked for."] if foreign else []
    whole = replace(
        part,
        ids=pd.Series(range(1, len(part.features) + 1)).astype(str) if part.ids is None else part.ids,
        facts=part.facts.drop(columns=list(below)),
        notes=(*part.notes, *said),
        complaints=(*part.complaints, *volumes.complaints),
    )
    parts = list[TablePart]()
    for measure in measures:
        names = {n: n if r is None else r.name for n, r in regions.items() if measure_of[n] == measure}
        features = part.features[list(names)].rename(columns=names)
        original = {new: part.original_names[old] for old, new in names.items()}
        if measure == "volume":
            features = features.join(volumes.values.rename(columns=below))
            original |= {new: old for old, new in below.items()}
        if features.shape[1]:
            own = replace(whole, features=features, measure=measure, original_names=original)
            parts.append(replace(own, facts=own.facts[[]], notes=(), complaints=()) if parts else own)
    return parts


def hint_at_volumes(part: TablePart) -> TablePart:
    """Say that a table has volumes of subcortical structures, which are features when asked for."""
    below = [name for name in part.facts.columns if parse_structure(str(name)) is not None]
    if not below:
        return part
    return part.noting(
        f"Volumes of {part.path!r} below the cortex ({some(below)}) are features with measures=['volume']."
    )


def read_ants(path: str, header: Sequence[str], id_column: str | None = None, text: Collection[str] = ()) -> TablePart:
    """Read a table of ANTs: a region file of one subject (Mean_<label>), or a table of Mindboggle labels in words."""
    if any(ROI_MEAN.fullmatch(name) for name in header):
        return _read_roi_file(path)
    return read_regions(path, header, "ants", id_column, text)


def _read_roi_file(path: str) -> TablePart:
    frame = read_table(path)
    if len(frame) != 1:
        raise InputError(f"Table {path!r} has {len(frame)} rows: a region file of one subject has one.")
    labels = {name: int(found[1]) for name in frame.columns if (found := ROI_MEAN.fullmatch(name))}
    columns = {name: LABELS[label] for name, label in labels.items() if label in LABELS}
    scan = re.sub(r"_roi_thickness$", "", Path(path).stem)
    features, notes, complaints, *_ = read_columns(frame[list(columns)], path, NOT_DROPPABLE)
    names = {new: old for old, new in columns.items()}
    return TablePart(
        path,
        "ants",
        pd.Series([scan]),
        features.rename(columns=columns),
        frame[[]],
        names,
        tuple(notes),
        measure="thickness",
        complaints=tuple(complaints),
    )


def read_adni(path: str, header: Sequence[str]) -> TablePart:
    """Read ADNI's UCSF table: thickness by ST code, one row per scan."""
    frame = read_table(path, "RID", [name for name in ("VISCODE", "VISCODE2", "IMAGEUID") if name in header])
    columns = {code: name for code, name in ADNI_CODES.items() if code in frame.columns}
    other = [c for c in frame.columns if re.fullmatch(r"ST\d+[A-Z]+", c) and c not in columns]
    frame = frame.drop(columns=other)
    return region_part(frame, path, "adni", columns, rids(frame.pop("RID")), "thickness")


def rids(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return ADNI's roster ids in one way of writing: '0023', '23.0' and 23 become '23'."""
    return (
        column.astype(str)
        .str.strip()
        .str.replace(r"\.0+$", "", regex=True)
        .str.replace(r"^0+(?=.)", "", regex=True)
        .rename("RID")
    )


def read_regions(
    path: str, header: Sequence[str], format: str = "regions", id_column: str | None = None, text: Collection[str] = ()
) -> TablePart:
    """Read any table with region columns: of ENIGMA, with Mindboggle labels, or made by hand."""
    id_column = id_column if id_column is not None else guess_id(header)
    frame = read_table(path, id_column, text)
    ids = None if id_column is None else frame.pop(id_column)
    columns, measure = region_names(frame.columns)
    return region_part(frame, path, format, columns, ids, measure)


def region_part(
    frame: pd.DataFrame,
    path: str | Path,
    format: str,
    columns: Mapping[str, str],
    ids: pd.Series[Any] | None,
    measure: str = "",
    atlas: str = "",
) -> TablePart:
    """Make a part of a table of regions.

    Its features are ``columns``, a mapping from the names in the file to standard names. Totals such as the whole
    brain's volume are no features, and all other columns are facts.
    """
    path = str(path)
    if not columns:
        raise InputError(
            f"Table {path!r} has no column of a known region ({some(list(frame.columns))}): Desikan-Killiany, DKT and "
            "Destrieux are known; take it as it stands with format='table'."
        )
    totals = [name for name in frame.columns if name not in columns and is_total(name)]
    rest = [name for name in frame.columns if name not in columns and name not in totals]
    features, notes, complaints, *_ = read_columns(frame[list(columns)], path, NOT_DROPPABLE)
    notes += frame.attrs.get("notes", [])
    if totals:
        notes.append(f"Totals of {path!r} are no features and were left out: {some(totals)}.")
    strangers = [name for name in rest if looks_like_region(name) and parse_structure(name) is None]
    if strangers:
        notes.append(
            f"Of {path!r} {some(strangers)} {'are' if len(strangers) > 1 else 'is'} named like a region, but like none "
            "that is known: left out of the features."
        )
    names = {new: old for old, new in columns.items()}
    return TablePart(
        path,
        format,
        ids,
        features.rename(columns=dict(columns)),
        frame[[*rest, *totals]],
        names,
        tuple(notes),
        measure=measure,
        atlas=atlas,
        complaints=tuple(complaints),
    )


def join_hemispheres(parts: Sequence[TablePart]) -> TablePart:
    """Join the tables of the left and the right hemisphere that have the same measure and atlas."""
    for what in ("atlas", "measure"):
        for part in parts[1:]:
            mine, other = getattr(parts[0], what), getattr(part, what)
            if mine != other:
                raise InputError(
                    f"{parts[0].path!r} and {part.path!r} differ in their {what} ({mine!r} and {other!r}): left and "
                    "right must be of one kind; load the kinds one by one, or name both measures with measures=."
                )
    seen: dict[str, TablePart] = {}
    for part in parts:
        side = part.features.columns[0][:2]
        other = seen.setdefault(side, part)
        if other is not part:
            raise InputError(
                f"{other.path!r} and {part.path!r} both hold the {HEMISPHERES[side]} hemisphere ({part.measure}): give "
                "one table per hemisphere, and load cohorts one by one."
            )
    return functools.reduce(join, parts)


def pair_kirby(part: TablePart) -> TablePart:
    """Add the person of each row of the Kirby data set, if the table has such rows."""
    names = [find(name, part.facts.columns) for name in ("SITE", "SEX", "AGE")]
    if None in names or part.ids is None:
        return part
    site, sex, age = (as_text(part.facts[name]) for name in names if name is not None)
    is_kirby = site.str.lower() == KIRBY
    if not is_kirby.any():
        return part
    person = part.facts[PERSON] if PERSON in part.facts.columns else part.ids
    person = person.where(~is_kirby, "kirby-sex" + sex.astype(str) + "-age" + age.astype(str))
    note = (
        f"{int(is_kirby.sum())} Kirby rows are scan and rescan without a person id: rows of equal sex and age count as "
        "one person."
    )
    return part.with_facts(**{PERSON: person}).noting(note)
