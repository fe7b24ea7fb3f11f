"""Which column is what: the target, the person, the site, covariates, features; from a TablePart to a Dataset."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.arguments import check_switch
from precisionnet.datasets.cells import DROPPABLE, read_columns, to_labels_or_numbers
from precisionnet.datasets.dataset import NO_ID, Dataset
from precisionnet.datasets.joining import PERSON, TablePart, person_of
from precisionnet.datasets.neuro.formats import OF_REGIONS
from precisionnet.datasets.neuro.regions import DESIKAN, DESTRIEUX, HEMISPHERES, is_total, parse_region, reduce_regions
from precisionnet.datasets.table_files import as_text, check_names, find
from precisionnet.errors import InputError, did_you_mean, refuse_all, shown, some
from precisionnet.preprocessing.column_kinds import WRITTEN_AS

AUTO = "auto"
SITE_NAMES = ("site", "site_id", "scanner", "scanner_id", "center", "centre")


@dataclass(frozen=True)
class ColumnRoles:
    """The roles that the user gave to columns; "auto" means the column with a usual name for the role, if any."""

    target: str | None = AUTO
    person: str | None = None
    site: str | None = AUTO
    covariates: Collection[str] | str = AUTO
    drop: Sequence[str] = ()
    regions: str = "all"
    features: Sequence[str] | None = None
    """Exactly these features, in this order."""
    complete_rows: bool = False
    """Leave out rows in which a feature is missing; those without a target that was named are left out anyway."""
    inputs: Sequence[str] = ()
    """Columns that are features beside the regions, such as sex."""
    keep_empty: bool = False
    """Keep features without any value: rows to be predicted have the columns of the fit, measured or not."""

    def __post_init__(self) -> None:
        for name in ("target", "person", "site"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"{name} must be the name of a column, got {shown(value)}: give it as text.")
        check_names("drop", self.drop)
        check_names("features", self.features)
        check_names("covariates", self.covariates)
        check_names("inputs", self.inputs)
        if isinstance(self.covariates, str) and self.covariates != AUTO:
            raise InputError(f"covariates must be a list of column names, got {self.covariates!r}.")
        check_switch("complete_rows", self.complete_rows)

    def named(self) -> set[str]:
        """Every column the user named as something other than a feature."""
        covariates = () if isinstance(self.covariates, str) else self.covariates
        return {name for name in (self.target, self.person, self.site, *covariates) if name is not None}


def assemble(part: TablePart, roles: ColumnRoles, description: str = "") -> Dataset:
    """Give every column its role; what stands in the way is refused, all of it at once."""
    return finished(*assembled(part, roles, description))


def finished(data: Dataset, complaints: Sequence[str]) -> Dataset:
    """Refuse what stands in the way, and note the gaps of what is left; the command line's checks tell more of them."""
    refuse_all(complaints)
    return replace(data, notes=(*data.notes, *_missing_note(data.X, data.y)))


def assembled(part: TablePart, roles: ColumnRoles, description: str = "") -> tuple[Dataset, list[str]]:
    """Give every column its role, and say what cannot be used: first a target that is not there, then the rest."""
    complaints = list[str]()
    index: pd.Index[Any] = pd.RangeIndex(1, len(part.features) + 1, name=NO_ID)
    if part.ids is not None:
        index = pd.Index(part.ids, name=part.ids.name or "id")
    facts, taken, notes = part.facts, set[str](), list(part.notes)
    called = {old: new for new, old in part.original_names.items()}

    def fact(name: str, option: str) -> pd.Series[Any] | None:
        found = find(called.get(name, name), [*facts.columns, *part.features.columns])
        if found is None:
            complaints.append(no_such_column(name, option, [*part.features.columns, *facts.columns]))
            return None
        taken.add(found)
        return facts[found] if found in facts.columns else part.features[found]

    target = _auto(roles.target, ("age",), facts.columns)
    y = None
    if target is not None:
        column = fact(target, "target=")
        if column is not None:
            try:
                y, said = to_labels_or_numbers(column, part.source(str(column.name)), refuse_mixed=True)
                notes += said
            except InputError as error:
                complaints.append(str(error))
    site_name = _auto(roles.site, SITE_NAMES, [c for c in facts.columns if c not in taken])
    where = None if site_name is None else fact(site_name, "site=")
    site = None if where is None else as_text(where).rename("site")
    named_by_id = part.ids is not None and roles.person is not None and part.ids.name == roles.person
    groups = _people(part, None if roles.person is None or named_by_id else fact(roles.person, "person="))
    features, said = _chosen(part, roles)
    complaints += said
    beside = [name for name in roles.inputs if find(called.get(name, name), list(features.columns)) is None]
    entered = [column for name in beside if (column := fact(name, "inputs=")) is not None]
    if roles.covariates == AUTO:
        others = [facts[c] for c in facts.columns if c not in taken and c not in roles.drop and c != PERSON]
        measured = [str(c.name) for c in others if not is_total(str(c.name))]
        if measured and part.format in OF_REGIONS:
            notes.append(f"Regions are the features; kept as covariates: {some(measured)}.")
    else:
        named = [fact(name, "covariates=") for name in roles.covariates]
        others = [column for column in named if column is not None]
    if entered:
        notes.append(f"Inputs beside the regions: {some([str(c.name) for c in entered])}.")
    inputs, read = (
        {str(c.name): to_labels_or_numbers(c, part.source(str(c.name))) for c in columns}
        for columns in (entered, others)
    )
    notes += _at_most(3, [note for _, said in inputs.values() for note in said])
    notes += _at_most(3, [note for _, said in read.values() for note in said])
    covariates = pd.DataFrame({n: values for n, (values, _) in read.items()}, index=facts.index)
    if roles.features is not None and (both := [n for n in features.columns if n in taken]):
        complaints.append(
            f"Column {some(both)} is named as a feature and as target, site or person: it can only be one."
        )
    X = features.drop(columns=[c for c in features.columns if c in taken])
    judged = X if roles.target in (None, AUTO) or y is None or y.isna().all() else X[y.notna().to_numpy()]
    if roles.features is None and not roles.keep_empty and (empty := [n for n in X.columns if judged[n].isna().all()]):
        names = some([part.original_names.get(name, name) for name in empty])
        which, are = (f"Column {names} has", "is") if len(empty) == 1 else (f"Columns {names} have", "are")
        of = "" if judged is X or X[empty].isna().all(axis=None) else " with a target"
        notes.append(f"{which} no value in any row{of} and {are} left out.")
        X = X.drop(columns=empty)
    X = X.assign(**{name: values for name, (values, _) in inputs.items()})
    if orders := {name: order for name, order in part.date_orders.items() if name in X.columns}:
        X.attrs[WRITTEN_AS] = orders
    data = Dataset(
        X.set_axis(index),
        None if y is None else y.set_axis(index),
        None if groups is None else groups.set_axis(index),
        None if site is None else site.set_axis(index),
        covariates.set_axis(index) if read else None,
        description,
        tuple(dict.fromkeys(notes)),
        part.doubts,
        {name: part.original_names.get(name, name) for name in X.columns},
        part.measure,
    )
    complaints += part.complaints
    if roles.target not in (None, AUTO):
        data = _with_target(data)
    if roles.complete_rows:
        data, none_left = _complete(data, part.path)
        complaints += none_left
    return data, complaints


def no_such_column(name: str, option: str, every: Sequence[str]) -> str:
    """Say that a name is none of the table's, with the nearest one."""
    return (
        f"There is no column {shown(name)}{did_you_mean(name, every)}: {option} must name one of the table's columns "
        f"({some(every)})."
    )


def _with_target(data: Dataset) -> Dataset:
    """Leave out the rows in which the target is missing, and say which; where it is missing in all, leave none out."""
    if data.y is None or not data.y.isna().any() or data.y.isna().all():
        return data
    known = data.y.notna().to_numpy()
    lost, kept = data.X.index[~known].tolist(), data.take(np.flatnonzero(known))
    if kept.y is not None and _are_whole(kept.y):  # as they would have been read without the gaps: class 1, not 1.0
        kept = replace(kept, y=kept.y.astype(np.int64))
    has, are = ("has", "is") if len(lost) == 1 else ("have", "are")
    which = f"{'row ' if data.X.index.name == NO_ID else ''}{some(lost)}"
    rows, target = f"{len(lost)} of {len(data)} rows", f"target {shown(str(data.y.name))}"
    said = f"{rows} {has} no value of {target} and {are} left out ({which})"
    if len(lost) > len(data) / 2:
        return replace(kept, doubts=(*kept.doubts, f"{said}: is it the column that you mean?"))
    return replace(kept, notes=(*kept.notes, f"{said}."))


def _are_whole(y: pd.Series[Any]) -> bool:
    values = y.to_numpy(dtype=np.float64) if pd.api.types.is_float_dtype(y.dtype) else np.empty(0)
    return bool(len(values) and (np.abs(values) < 1e15).all() and (values % 1.0 == 0.0).all())


def _complete(data: Dataset, path: str) -> tuple[Dataset, list[str]]:
    """Leave out rows with a gap; where every row has one, leave out none and say what to do."""
    kept = data.without_missing()
    if not len(kept):
        return data, [
            f"No row of {path!r} is complete, so complete_rows=True leaves none: leave out columns with drop=."
        ]
    lost = len(data) - len(kept)
    said = f"{lost} of {len(data)} rows {'is' if lost == 1 else 'are'} not complete and left out."
    return (replace(kept, notes=(*data.notes, said)) if lost else kept), []


def _auto(name: str | None, candidates: Sequence[str], columns: Collection[str]) -> str | None:
    if name != AUTO or AUTO in columns:
        return name
    return next((found for candidate in candidates if (found := find(candidate, columns)) is not None), None)


def _people(part: TablePart, person: pd.Series[Any] | None) -> pd.Series[Any] | None:
    """Return the person of each row: as named, else from the id; a row without one is a person of its own."""
    if person is None and PERSON in part.facts.columns:
        person = part.facts[PERSON].map(person_of)
    if person is not None:
        label = as_text(person)
        own = pd.Series([f"row {i + 1}" for i in range(len(label))], index=label.index)
        return label.where(label.notna(), own).rename("person")
    if part.ids is None:
        return None
    return part.ids.map(person_of).rename("person")


def _chosen(part: TablePart, roles: ColumnRoles) -> tuple[pd.DataFrame, list[str]]:
    """The features, without those dropped, in the order of the atlas; and names and cells that cannot be used."""
    features, original = part.features, part.original_names
    every = [*features.columns, *part.facts.columns]
    unknown = [n for n in roles.drop if n not in features and n not in original.values() and n not in part.facts]
    complaints = [no_such_column(name, "drop=", every) for name in unknown]
    if roles.features is not None:
        twice = sorted({n for n in roles.features if list(roles.features).count(n) > 1})
        if twice:
            raise InputError(f"Column {some(twice)} stands more than once in features: name it once.")
        called = {old: new for new, old in original.items()}
        wanted = [called.get(n, n) for n in roles.features]
        missing = [n for n in wanted if n not in features.columns and n not in part.facts.columns]
        _refuse_half(missing, part)
        if missing:
            raise InputError(
                f"Table {part.path!r} has no column {some(missing)} ({len(missing)} of {len(roles.features)} are "
                f"missing){did_you_mean(missing[0], features.columns)}: add them or rename the table's columns."
            )
        for n in wanted:
            if n not in features.columns:
                read = read_columns(part.facts[[n]], part.source(n), DROPPABLE)
                features, complaints = features.join(read.values), [*complaints, *read.complaints]
        return features[wanted], complaints
    dropped = [n for n in features.columns if n in roles.drop or original.get(n) in roles.drop]
    features = features.drop(columns=dropped) if dropped else features
    if part.format in OF_REGIONS:
        kept: list[str] = list(reduce_regions({str(n): str(n) for n in features.columns}, roles.regions))
        kept.sort(key=_atlas_order)
        return features[kept], complaints
    if roles.regions != "all":
        complaints.append(f"regions={roles.regions!r} needs a table of cortical regions, and {part.path!r} is none.")
    return features, complaints


def _refuse_half(missing: list[str], part: TablePart) -> None:
    """Refuse the table if all missing regions are of one hemisphere, whose table was probably forgotten."""
    sides = {name[:2] for name in missing}
    if part.format in OF_REGIONS and len(missing) > 1 and len(sides) == 1 and sides <= set(HEMISPHERES):
        side = HEMISPHERES[sides.pop()]
        raise InputError(
            f"The {side} hemisphere is missing in {part.path!r} ({len(missing)} columns, {some(missing)}): give its "
            "table, too."
        )


_ORDER = {region: position for position, region in enumerate([*DESIKAN, *DESTRIEUX])}


def _atlas_order(name: str) -> tuple[str, int, str]:
    region = parse_region(name)
    return ("", 0, name) if region is None else (region.side, _ORDER[region.region], name)


def _at_most(n: int, notes: list[str]) -> list[str]:
    return (
        notes if len(notes) <= n else [*notes[: n - 1], f"{len(notes) - n + 1} more columns were read in such a way."]
    )


def gaps_note(counts: pd.Series[Any], n_incomplete: int, n_rows: int) -> list[str]:
    """Say how many values each column misses, the worst first, and how many rows miss any; nothing if none does."""
    counts = counts[counts > 0].sort_values(ascending=False, kind="stable")
    if not len(counts):
        return []
    listed = ", ".join(f"{shown(name)} {count}" for name, count in counts.iloc[:3].items())
    n_more = len(counts) - 3
    more = f" and {n_more:,} column{'s' * (n_more > 1)} more" if n_more > 0 else ""
    return [f"Values are missing in {n_incomplete:,} of {n_rows:,} rows: {listed}{more}."]


def _missing_note(X: pd.DataFrame, y: pd.Series[Any] | None) -> list[str]:
    """Missing values by column, the worst first."""
    gaps = X.isna()
    notes = gaps_note(gaps.sum(), int(gaps.any(axis=1).sum()), len(X))
    if y is not None and y.isna().any():
        notes.append(f"Target {shown(str(y.name))} is missing in {int(y.isna().sum())} of {len(y)} rows.")
    return notes
