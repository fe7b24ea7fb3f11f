"""One page over several experiments of the paper: both readings side by side, beside the paper's own figures.

It is made from the results folders below a root, whatever they are: one experiment in two readings, or all of them.
Each folder keeps its own page, which this one links to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from precisionnet import plots
from precisionnet.errors import InputError
from precisionnet.evaluation.methods import label
from precisionnet.evaluation.statistics import failed, is_number, methods_of, paired
from precisionnet.outputs import whole_file
from precisionnet.paper.claims import VERDICTS
from precisionnet.paper.config import experiments
from precisionnet.paper.readings import READING_LABELS, READINGS, reading_of
from precisionnet.report.experiment_page import NOT_PRINTED, PAGE, ExperimentPage, of_the_paper, write_results
from precisionnet.report.page import NONE, Picture, TextTable, decimals_of, plus_minus, template, with_interval
from precisionnet.report.theorem import BOUNDS, ERRATA_READING
from precisionnet.runner.jobs import Row
from precisionnet.runner.progress import results_folders
from precisionnet.runner.store import read_folder

MEASURES = {
    "mae": "MAE",
    "mse": "MSE",
    "l1_error": "l1 error of θ",
    "density": "Density",
    "n_zeros": "Zeros",
    "n_near_zeros": "Below 1e-8",
}
TABLES = {"Error of the prediction": ("mae", "mse"), "The estimated precision": tuple(MEASURES)[2:]}
NOT_SHOWN = ("repeats",)
"""Figures that stay on an experiment's own page."""
ABSENT = {
    "adni": "ADNI is given to registered users only: its two tables come from ida.loni.usc.edu, and the experiment "
    "runs on the folder that holds them."
}
"""Why an experiment may not be among the others."""


@dataclass(frozen=True)
class ResultsFolder:
    """One results folder: an experiment in one reading, or one that has no readings."""

    name: str
    reading: str | None
    folder: Path
    about: dict[str, Any]
    rows: list[Row]
    page: ExperimentPage

    @property
    def label(self) -> str:
        """What stands over its column."""
        return READING_LABELS[self.reading] if self.reading in READINGS else "here"


@dataclass(frozen=True)
class Overview:
    """What a person is told of several experiments, on the page and in the terminal."""

    html: str
    verdicts: list[tuple[str, str]]
    """Heading and sentence of each part."""


def write_overview(root: Path, written: Mapping[Path, ExperimentPage] | None = None) -> Overview:
    """Write every experiment's page below ``root``, but for those just ``written``, and ``index.html`` over them."""
    parts = []
    for folder in results_folders(root):
        stored = read_folder(folder)
        about = stored.manifest.get("about", {})
        if not stored.rows or not of_the_paper(stored.manifest, about):
            continue
        reading = reading_of(stored.manifest.get("config", {})) if about["kind"] != "theorem" else None
        name = str(stored.manifest["name"])
        page = (written or {}).get(folder) or write_results(folder)
        parts.append(ResultsFolder(name, reading, folder, about, stored.rows, page))
    if not parts:
        raise InputError(f"Folder {str(root)!r} holds no finished fit of the paper's experiments: run one first.")
    overview = build_overview(parts, root)
    with whole_file(root / PAGE) as scratch:
        scratch.write_text(overview.html, encoding="utf-8")
    return overview


def build_overview(parts: Sequence[ResultsFolder], root: Path) -> Overview:
    """Everything that is shown, from the parts; links are relative to ``root``."""
    order = [*experiments(), *(part.name for part in parts)]
    by_name: dict[str, list[ResultsFolder]] = {}
    for part in sorted(parts, key=lambda part: (order.index(part.name), _place(part.reading))):
        by_name.setdefault(part.name, []).append(part)
    sections = [_section(name, found, root) for name, found in by_name.items()]
    absent = [(name, ABSENT.get(name, "It was not run.")) for name in experiments() if name not in by_name]
    title = sections[0]["title"] if len(sections) == 1 else "The paper's experiments"
    html = template("overview.html.j2").render(
        title=title,
        sections=sections,
        counts=_counts(by_name),
        not_printed=[name for name, found in by_name.items() if found[0].about["kind"] in NOT_PRINTED],
        absent=absent if len(sections) > 1 else [],
        several=len(sections) > 1,
    )
    verdicts = [(_heading(part), part.page.verdict) for found in by_name.values() for part in found]
    return Overview(html, verdicts)


def _place(reading: str | None) -> int:
    return READINGS.index(reading) if reading in READINGS else len(READINGS)


def _heading(part: ResultsFolder) -> str:
    return part.name if part.reading is None else f"{part.name}, {part.label}"


def _section(name: str, parts: Sequence[ResultsFolder], root: Path) -> dict[str, Any]:
    with plots.styled():
        pictures = [
            Picture(Markup(plots.to_svg(figure, f"{name}-{part.reading}-{kind}")), _caption(part, kind))
            for part in parts
            for kind, figure in part.page.figures.items()
            if kind not in NOT_SHOWN
        ]
    kind = parts[0].about["kind"]
    tables = [_side_by_side(parts, title) for title in TABLES] if kind in ("comparison", "synthetic") else []
    return {
        "id": name,
        "title": parts[0].page.about["title"],
        "source": parts[0].page.about.get("description", ""),
        "verdicts": [(part.label, part.page.verdict) for part in parts],
        "tables": tables or [table for part in parts for table in (*part.page.tables, *part.page.wide)],
        "notes": _notes(parts, kind),
        "details": [(part.label, table) for part in parts for table in part.page.tables] if tables else [],
        "pictures": pictures,
        "readings": [part.label for part in parts],
        "claims": _claims(parts),
        "heading": NOT_PRINTED.get(kind),
        "links": [(part.label, (part.folder / PAGE).relative_to(root).as_posix()) for part in parts],
        "warnings": _warnings(parts),
    }


def _warnings(parts: Sequence[ResultsFolder]) -> list[str]:
    """List what is worth knowing; what concerns one of two readings says which."""
    found: dict[str, list[str]] = {}
    for part in parts:
        for sentence in part.page.warnings:
            found.setdefault(sentence, []).append(part.label)
    return [
        sentence if len(of) == len(parts) else f"{' and '.join(of).capitalize()}: {sentence}"
        for sentence, of in found.items()
    ]


def _caption(part: ResultsFolder, figure: str) -> str:
    what = {"sparsity": "Figure 2", "differences": "Difference to Joint"}.get(figure, part.page.about["title"])
    return f"{what}, {part.label}" if part.reading else what


def _side_by_side(parts: Sequence[ResultsFolder], title: str) -> TextTable:
    """Methods by measures: the paper's figure where it prints one, then ours in each reading.

    On drawn rows the measures are averaged over the sparsity levels.
    """
    printed = (parts[0].about.get("published") or {}).get("rows", {})
    drawn = parts[0].about["kind"] == "synthetic"
    methods = methods_of([row for part in parts for row in part.rows])
    columns, cells = ["Method"], [[label(method)] for method in methods]
    for metric in TABLES[title]:
        rows = [_over_levels(part.rows, metric) if drawn else part.rows for part in parts]
        if not any(is_number(row.get(metric)) for one in rows for row in one):
            continue
        if any(metric in known for known in printed.values()):
            columns.append(f"{MEASURES[metric]}, printed")
            _append(cells, [str(printed.get(method, {}).get(metric, "")) for method in methods])
        for part, one in zip(parts, rows, strict=True):
            columns.append(f"{MEASURES[metric]}, {part.label}")
            _append(cells, _means(one, methods, metric))
        for part, one in zip(parts, rows, strict=True) if metric == "mae" else ():
            columns.append(f"to Joint [95 %], {part.label}")
            _append(cells, _differences(one, methods, resampled=not drawn))
    return TextTable(title, columns, [line for line in cells if set(line[1:]) - {NONE, ""}])


def _append(cells: list[list[str]], column: Sequence[str]) -> None:
    for line, cell in zip(cells, column, strict=True):
        line.append(cell)


def _means(rows: Sequence[Row], methods: Sequence[str], metric: str) -> list[str]:
    values = {
        method: [
            row[metric] for row in rows if row["method"] == method and not failed(row) and is_number(row.get(metric))
        ]
        for method in methods
    }
    whole = metric in ("n_zeros", "n_near_zeros")
    digits = 0 if whole else decimals_of([np.mean(known) for known in values.values() if known])
    return [plus_minus(known, digits) for known in values.values()]


def _differences(rows: Sequence[Row], methods: Sequence[str], *, resampled: bool) -> list[str]:
    table = paired(rows, "joint", "mae", resampled=resampled)
    digits = decimals_of([row["mae"] for row in rows if is_number(row.get("mae"))])
    found = {
        str(method): with_interval(float(line["difference"]), float(line["low"]), float(line["high"]), digits)
        for method, line in table.iterrows()
    }
    return [found.get(method, NONE) for method in methods]


def _over_levels(rows: Sequence[Row], metric: str) -> list[Row]:
    """Average over the levels in each repeat, where none is missing."""
    levels = {row["sparsity"] for row in rows}
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if not failed(row) and is_number(row.get(metric)):
            found.setdefault((row["method"], row["repeat"]), []).append(row[metric])
    return [
        {"method": method, "repeat": repeat, metric: float(np.mean(values))}
        for (method, repeat), values in found.items()
        if len(values) == len(levels)
    ]


def _notes(parts: Sequence[ResultsFolder], kind: str) -> list[str]:
    zeros = (
        "Zeros are entries of θ that are exactly zero; beside them those below 1e-8, as the paper does not say which."
    )
    if kind == "comparison":
        caption = (parts[0].about.get("published") or {}).get("caption", "")
        printed = (
            f"Printed: {caption} The paper has no MSE." if caption else "The paper has no figures for this cohort."
        )
        return [f"Mean ± standard deviation over the repeats; differences are paired by split. {printed} {zeros}"]
    if kind == "synthetic":
        return [
            "Averaged over the sparsity levels, mean ± standard deviation over the repeats; differences are paired by "
            f"draw. The paper prints Figure 2 without numbers. {zeros}"
        ]
    if kind == "theorem":
        return [BOUNDS, ERRATA_READING]
    return []


def _claims(parts: Sequence[ResultsFolder]) -> list[dict[str, Any]]:
    """List every claim once, with its outcome in each reading."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for part in parts:
        for claim in part.page.claims:
            found.setdefault(claim["claim"], {})[part.label] = claim
    return [
        {
            "claim": text,
            "rule": next(iter(by.values()))["rule"],
            "judged": [(part.label, by.get(part.label)) for part in parts],
        }
        for text, by in found.items()
    ]


def _counts(by_name: Mapping[str, Sequence[ResultsFolder]]) -> list[tuple[str, str, list[int]]]:
    """Count the claims by verdict, in one line per experiment and reading."""
    return [
        (
            name,
            part.label if part.reading else NONE,
            [sum(claim["verdict"] == verdict for claim in part.page.claims) for verdict in VERDICTS],
        )
        for name, parts in by_name.items()
        for part in parts
        if part.page.claims
    ]
