"""``precisionnet gap``: predicted minus true age for everybody, without its age bias, compared between groups."""

from __future__ import annotations

import datetime
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from precisionnet.cli import console
from precisionnet.cli.progress import counted_fits
from precisionnet.cli.tables import (
    named_by_measure,
    report_loading,
    unknown_columns,
    whole_label,
    with_doubts_of_columns,
    without_labels,
)
from precisionnet.datasets import Dataset
from precisionnet.datasets.roles import SITE_NAMES
from precisionnet.datasets.table_files import find
from precisionnet.datasets.tables import read_dataset
from precisionnet.datasets.validation import bad_numbers, plain_target
from precisionnet.errors import InputError, PrecisionNetWarning, refuse_all, shown, some
from precisionnet.gap import GapStudy, gap_study
from precisionnet.gap.checks import is_disguised, looked_at
from precisionnet.outputs import names_in, whole_folder
from precisionnet.tables_out import write_table

if TYPE_CHECKING:
    from precisionnet.report.gap_page import GapPage

PERMUTATIONS, QUICK_PERMUTATIONS = 1999, 199
PAGE, GAPS, GROUPS, REGIONS = "gap.html", "gaps.csv", "groups.csv", "regions.csv"
WRITTEN = {PAGE, GAPS, GROUPS, REGIONS}


def run_gap(
    paths: list[str],
    loading: dict[str, Any],
    out: Path,
    parameters: dict[str, Any],
    *,
    by: str | None,
    controls: str | None,
    roles: dict[str, list[str]],
    combat: bool,
    folds: int,
    permutations: int | None,
    quick: bool,
    seed: int,
    complete_rows: bool,
) -> None:
    """Read the tables, run the study, write the output folder and print the answer; ``roles`` are the covariates'."""
    data, known, complaints = _rows(paths, loading, by, roles, complete_rows=complete_rows)
    read = {role: [name for name in names if name in known] for role, names in roles.items()}
    frames = {role: known[names] if names else None for role, names in read.items()}
    labels = None if by is None or by not in known else known[by].map(whole_label).rename(by)
    n_permutations = permutations or (QUICK_PERMUTATIONS if quick else PERMUTATIONS)
    given: dict[str, Any] = {
        "labels": labels,
        "controls": None if controls is None or labels is None else _label(controls, labels),
        "groups": data.groups if data.groups is not None and data.groups.duplicated().any() else None,
        "site": data.site,
        "combat": combat,
        **frames,
    }
    refuse_all([*complaints, *looked_at(data.y, len(data), **given)[1]])  # before torch is imported
    data = with_doubts_of_columns(data)
    assert data.y is not None
    report_loading(data)
    _say_of_features(data)
    from precisionnet.estimators import PNNRegressor
    from precisionnet.report.gap_page import GapPage

    with whole_folder(out, is_ours=is_gap_output) as folder:
        with counted_fits() as on_fit, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            study = gap_study(
                data.X,
                data.y,
                regressor=PNNRegressor(**parameters, random_state=seed),
                n_folds=folds,
                n_permutations=n_permutations,
                on_fit=on_fit,
                random_state=seed,
                **given,
            )
        said = [str(w.message) for w in caught if issubclass(w.category, PrecisionNetWarning)]
        study.notes.extend(sentence for sentence in dict.fromkeys(said) if sentence not in study.notes)
        about = GapPage(
            study=study,
            target=str(data.y.name),
            by=by,
            controls=controls,
            source=" + ".join(Path(path).name for path in paths),
            covariates=roles["adjust_for"],
            inputs=roles["inputs"],
            regress_out=roles["regress_out"],
            combat=combat,
            seed=seed,
        )
        _write(about, folder)
        written = names_in(folder)
    for name in WRITTEN - written:  # of an earlier run with groups
        (out / name).unlink(missing_ok=True)
    if quick and by is not None and permutations is None:
        console.note(f"--quick: {QUICK_PERMUTATIONS} drawn tables instead of {PERMUTATIONS}; p-values are coarser.")
    _say(study, out)


def is_gap_output(folder: Path) -> bool:
    """Whether a folder is what an earlier run wrote, and nothing else."""
    names = names_in(folder)
    return {PAGE, GAPS} <= names <= WRITTEN and all((folder / name).is_file() for name in names)


def _rows(
    paths: list[str], loading: dict[str, Any], by: str | None, roles: dict[str, list[str]], *, complete_rows: bool
) -> tuple[Dataset, pd.DataFrame, list[str]]:
    """Return the rows, the columns that are no features (groups and covariates), and what cannot be used."""
    options = {"inputs": "--input", "regress_out": "--regress-out", "adjust_for": "--covariate"}
    named = [(options[role], name) for role, names in roles.items() for name in names]
    site = None if loading["site"] == "auto" else loading["site"]
    given = [("--target", loading["target"]), ("--by", by), *named]
    given += [("--site", site), ("--id", loading["id"]), ("--person", loading["person"])]
    unknown = unknown_columns(paths, given)
    there = {name: None if name in unknown else name for _, name in given}
    beside = list(dict.fromkeys(name for _, name in [("--by", by), *named] if there[name] is not None))
    loading = {
        **loading,
        **{role: there[loading[role]] for role in ("target", "person")},
        "id": there[loading["id"]] or "auto",
        "site": there[site],
        "covariates": beside,
        "categories": True,
    }
    complaints = list(unknown.values())
    try:
        data, more = read_dataset(*paths, **loading)
    except InputError as error:
        refuse_all([*complaints, *getattr(error, "sentences", [str(error)])])
        raise
    complaints += more
    data = without_labels(
        named_by_measure(data),
        "name a covariate with --input, --regress-out or --covariate, and with --site what says where",
    )
    known = pd.DataFrame(index=data.X.index) if data.covariates is None else data.covariates.set_axis(beside, axis=1)
    if complete_rows:
        whole = data.X.notna().all(axis=1) & known.notna().all(axis=1)
        whole &= True if data.y is None else data.y.notna()
        whole &= True if data.site is None else data.site.notna()
        kept = np.flatnonzero(whole)
        if not len(kept):
            none_left = f"No row of {paths[0]!r} is complete, and --complete-rows leaves none: --drop columns."
            refuse_all([*complaints, none_left])
        if len(kept) < len(data):
            lost = f"{len(data) - len(kept)} of {len(data)} rows are not complete and were left out."
            data, known = replace(data.take(kept), notes=(*data.notes, lost)), known.iloc[kept]
    complaints += bad_numbers(data.X.rename(columns=dict(data.original_names)), missing="median")
    return data, known, complaints


def _say_of_features(data: Dataset) -> None:
    unnamed = [found for name in SITE_NAMES if (found := find(name, data.X.columns)) is not None]
    if unnamed:
        console.warn(f"Column {shown(unnamed[0])} is taken for a feature: if it says where, name it with --site.")
    y = plain_target(pd.Series(dtype=float) if data.y is None else data.y)
    same, loaded = [str(name) for name in data.X if is_disguised(data.X[name], y)], str(y.name)
    if same:
        console.warn(
            f"Column {some(same)} may be target {shown(loaded)} in disguise, and would leave no gap: leave out with "
            f"--drop {same[0]}."
        )
    if data.X.isna().to_numpy().any():
        console.note("Missing values of features are filled with the medians of the rows learned from.")


def _label(controls: str, labels: pd.Series[Any] | None) -> Any:
    """Return the label of the table that is written like ``controls``; 0 and 0.0 are the same."""
    every = [] if labels is None else labels.dropna().unique().tolist()
    return next((label for label in every if controls in (str(label), str(label) + ".0")), controls)


def _write(about: GapPage, folder: Path) -> None:
    from precisionnet.report.gap_page import render_gap

    study = about.study
    gaps = study.gaps
    label = str(gaps.index.name or "row")
    write_table(gaps.reset_index(names=f"{label}_id" if label in gaps else label), folder / GAPS)
    if len(study.groups):
        write_table(study.groups, folder / GROUPS)
    if len(study.regions):
        write_table(study.regions, folder / REGIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that is missing from a font is no news
        page = render_gap(about, datetime.date.today().isoformat())
    (folder / PAGE).write_text(page, encoding="utf-8")


def _say(study: GapStudy, out: Path) -> None:
    for sentence in study.notes:
        console.note(sentence)
    for line in study.summary().splitlines():
        console.say(line)
    before, after = study.correlation("none"), study.correlation("scaled")
    console.say(f"Correlation of the gap with the target: {before:+.2f} before, {after:+.3f} after correction.")
    rest = [name for name, table in ((GROUPS, study.groups), (REGIONS, study.regions)) if len(table)]
    console.say(f"Wrote {out / PAGE}, {', '.join([GAPS, *rest])}")
