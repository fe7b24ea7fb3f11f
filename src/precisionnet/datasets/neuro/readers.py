"""From a file to a Part, format by format. Rows are as in the file; choosing among them is for the loaders."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from precisionnet.datasets.neuro.regions import ADNI_CODES, LABELS
from precisionnet.datasets.neuro.regions import is_total, parse_region, region_names
from precisionnet.datasets.table_files import as_text, ids_of, read_table
from precisionnet.datasets.neuro.formats import APARC, ROI_MEAN, guess_id
from precisionnet.datasets.joining import NOT_DROPPABLE, Part, numeric, region_part
from precisionnet.errors import InputError, some

SESSION_NAMES = ("session_id", "session", "ses")


def read_freesurfer(path: str, header: Sequence[str]) -> Part:
    """aparcstats2table: one hemisphere, one measure; the first column holds the ids under the table's own name."""
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


def read_ants(path: str, header: Sequence[str], id_column: str | None = None, text: Collection[str] = ()) -> Part:
    """ANTs: a region file of one subject (Mean_<label>), or a table of Mindboggle labels in words."""
    if any(ROI_MEAN.fullmatch(name) for name in header):
        return _read_roi_file(path)
    return read_regions(path, header, "ants", id_column, text)


def _read_roi_file(path: str) -> Part:
    frame = read_table(path)
    if len(frame) != 1:
        raise InputError(f"Table {path!r} has {len(frame)} rows: a region file of one subject has one.")
    labels = {name: int(found[1]) for name in frame.columns if (found := ROI_MEAN.fullmatch(name))}
    columns = {name: LABELS[label] for name, label in labels.items() if label in LABELS}
    scan = re.sub(r"_roi_thickness$", "", Path(path).stem)
    features, notes = numeric(frame[list(columns)], path, NOT_DROPPABLE)
    names = {new: old for old, new in columns.items()}
    ids = pd.Series([scan])
    return Part(
        path, "ants", ids, features.rename(columns=columns), frame[[]], names, tuple(notes), measure="thickness"
    )


def read_adni(path: str, header: Sequence[str]) -> Part:
    """ADNI's UCSF table: thickness by ST code, one row a scan."""
    frame = read_table(path, "RID", [name for name in ("VISCODE", "VISCODE2", "IMAGEUID") if name in header])
    columns = {code: name for code, name in ADNI_CODES.items() if code in frame.columns}
    other = [c for c in frame.columns if re.fullmatch(r"ST\d+[A-Z]+", c) and c not in columns]
    frame = frame.drop(columns=other)
    return region_part(frame, path, "adni", columns, rids(frame.pop("RID")), "thickness")


def rids(column: pd.Series[Any]) -> pd.Series[Any]:
    """ADNI's roster ids, one way of writing them: '0023', '23.0' and 23 are '23'."""
    return (
        column.astype(str)
        .str.strip()
        .str.replace(r"\.0+$", "", regex=True)
        .str.replace(r"^0+(?=.)", "", regex=True)
        .rename("RID")
    )


def read_regions(
    path: str, header: Sequence[str], format: str = "regions", id_column: str | None = None, text: Collection[str] = ()
) -> Part:
    """Any table with region columns: ENIGMA, Mindboggle labels, or one made by hand."""
    id_column = id_column if id_column is not None else guess_id(header)
    frame = read_table(path, id_column, text)
    ids = None if id_column is None else frame.pop(id_column)
    columns, measure = region_names(frame.columns)
    return region_part(frame, path, format, columns, ids, measure)


def read_facts(
    path: str, header: Sequence[str], id_column: str | None, format: str, text: Collection[str] = ()
) -> Part:
    """A table about people: no features, only facts."""
    name = id_column if id_column is not None and id_column in header else guess_id(header)
    if name is None:
        raise InputError(
            f"Table {path!r} has no column that names its rows ({some(list(header))}): say which with --id."
        )
    frame = read_table(path, name, text)
    notes = tuple(frame.attrs.get("notes", ()))
    ids = with_sessions(frame.pop(name), frame)
    return Part(path, format, ids, frame[[]], frame, notes=notes)


def with_sessions(ids: pd.Series[Any], frame: pd.DataFrame) -> pd.Series[Any]:
    """BIDS: where a column says the session, a row is a session of a person."""
    session = next((c for c in frame.columns if str(c).lower() in SESSION_NAMES), None)
    if session is None or ids.str.contains("_ses-").any():
        return ids
    label = as_text(frame[session]).astype(str).str.replace(r"^ses-", "", regex=True)
    return (ids + "_ses-" + label).rename(str(ids.name))


def read_plain(path: str, id_column: str | None, named: Collection[str], text: Collection[str]) -> Part:
    """Any wide table: every column that was not named as something else is a feature."""
    frame = read_table(path, id_column, text)
    ids = None if id_column is None else ids_of(frame, id_column, path)
    facts = [name for name in frame.columns if name in named and name != id_column]
    features = frame.drop(columns=[*facts, *([] if id_column is None else [id_column])])
    nameless = [c for c in features.columns if c.startswith("Unnamed: ")]
    if nameless:
        position = list(frame.columns).index(nameless[0]) + 1
        raise InputError(
            f"Column {position} of the table has no name (a row number saved along?): "
            f"name it in the header, or leave it out with --drop {nameless[0]!r}."
        )
    totals = [c for c in features.columns if is_total(c)]
    if totals and any(parse_region(c) is not None for c in features.columns):
        features = features.drop(columns=totals)
        frame.attrs.setdefault("notes", []).append(f"Totals of {path!r} are no features: {some(totals)} left out.")
    values, notes = numeric(features, path)
    return Part(path, "table", ids, values, frame[facts], {}, (*notes, *frame.attrs.get("notes", ())))


def facts_of_frame(frame: pd.DataFrame, id_column: str | None) -> Part:
    """The same for a table that is already in memory; an index of names will do where no column names the rows."""
    frame = frame.copy()
    frame.columns = [str(name) for name in frame.columns]
    lowered = {name.lower(): name for name in frame.columns}
    name = lowered.get(id_column.lower()) if id_column is not None else None
    name = name or guess_id(frame.columns)
    if name is None:
        if frame.index.name is None and pd.api.types.is_numeric_dtype(frame.index.dtype):
            raise InputError(
                f"The table of participants has no column that names its rows ({some(list(frame.columns))}): say which "
                "with id=..., or make it the index."
            )
        name = str(frame.index.name or "id")
        frame = frame.reset_index(names=name)
    frame = frame.reset_index(drop=True)
    ids = ids_of(frame, name, "participants")
    frame = frame.drop(columns=name)
    return Part("participants", "table", with_sessions(ids, frame), frame[[]], frame)
