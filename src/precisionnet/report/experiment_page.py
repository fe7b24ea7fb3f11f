"""The page of an experiment, its figures and its summary: all from the stored rows, so that they can be made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from precisionnet import plots
from precisionnet.errors import InputError
from precisionnet.evaluation.protocol import HELD_OUT
from precisionnet.evaluation.statistics import summarise_paired
from precisionnet.outputs import whole_file
from precisionnet.paper.claims import judge_claims
from precisionnet.paper.readings import reading_of
from precisionnet.report.comparison import comparison_parts
from precisionnet.report.convergence import convergence_parts, convergence_summary
from precisionnet.report.page import (
    PageParts,
    Picture,
    TextTable,
    chosen,
    failures,
    labels,
    marks,
    method_clauses,
    settings,
    template,
    unfinished,
)
from precisionnet.report.stability import stability_parts, stability_summary
from precisionnet.report.synthetic import sparsity_parts
from precisionnet.report.theorem import slopes_summary, theorem_parts
from precisionnet.runner.jobs import Row
from precisionnet.runner.store import read_folder
from precisionnet.tables_out import write_table
from precisionnet.versions import older_recipe, recipe_version

PAGE, SUMMARY = "index.html", "summary.csv"
SENTENCES = {
    "paper": "The networks are trained in the paper’s reading: the mean node under a perceptron, the target in its own "
    "units, the matrix not scaled.",
    "flattened": "The networks are trained in the flattened reading: a readout with weights for every node, the target "
    "standardised, the matrix scaled to norm one.",
}
"""A sentence on each of the two readings of the paper."""
NOT_PRINTED = {
    "convergence": "What is said of convergence, and what came out here",
    "stability": "What is expected of an estimate, and what came out",
}
"""Headings over claims that are not the paper's: those of experiments on questions that it leaves open."""


@dataclass(frozen=True)
class ExperimentPage:
    """All that the page and the terminal say about an experiment."""

    about: dict[str, Any]
    verdict: str
    warnings: list[str]
    tables: list[TextTable]
    wide: list[TextTable]
    """Tables that are too wide for the terminal."""
    claims: list[dict[str, Any]]
    failed: list[dict[str, str]]
    html: str
    figures: dict[str, Any]
    """Figures by name, which are written beside the page."""


def build_page(manifest: Mapping[str, Any], rows: Sequence[Row], total: int | None = None) -> ExperimentPage:
    """Everything that is shown, from the head of the store and its rows; ``total`` fits belong to it."""
    rows = in_order(rows)
    about = {"title": manifest.get("name", ""), "source": "", "description": "", **manifest.get("about", {})}
    if about["kind"] in NOT_PRINTED:
        about["claims_heading"] = NOT_PRINTED[about["kind"]]
    complete = total is None or len(rows) >= total
    judged = judge_claims(about["kind"], rows, _cohort(manifest)) if complete and of_the_paper(manifest, about) else []
    claims = [dict(claim) for claim in judged]
    parts = _parts(rows, about, claims)
    warnings = [*unfinished(len(rows), total), *_older(manifest, about, rows), *about.get("notes", [])]
    failed = failures(rows, parts.where)
    with plots.styled():
        pictures = {
            name: Picture(Markup(plots.to_svg(figure, name)), text) for name, (figure, text) in parts.figures.items()
        }
    html = template(parts.template).render(
        about=about,
        created=_last_day(rows),
        verdict=parts.verdict,
        facts=parts.facts,
        warnings=warnings,
        claims=claims,
        failed=failed,
        how=[*parts.how, *_conventions(manifest, about)],
        methods=method_clauses(rows) if about["kind"] not in ("theorem", "convergence", "stability") else [],
        chosen=chosen(rows, parts.where),
        chosen_columns=parts.where,
        settings=settings(manifest, rows),
        labels=labels(rows),
        marks=marks(rows),
        pictures=pictures,
        **parts.context,
    )
    return ExperimentPage(
        about=about,
        verdict=parts.verdict,
        warnings=warnings,
        tables=parts.terminal,
        wide=parts.wide,
        claims=claims,
        failed=failed,
        html=html,
        figures=parts.files,
    )


def write_results(folder: Path) -> ExperimentPage:
    """Write ``summary.csv``, the figures and ``index.html`` beside the rows, each whole or not at all."""
    stored = read_folder(folder)
    if not stored.rows:
        raise InputError(f"Folder {str(folder)!r} holds no finished fit yet: run its experiment first.")
    rows = in_order(stored.rows)
    page = build_page(stored.manifest, rows, stored.manifest["total"])
    write_table(summary(page.about["kind"], rows), folder / SUMMARY)
    for name, figure in page.figures.items():
        for ending in ("svg", "png"):
            with whole_file(folder / f"figure-{name}.{ending}") as scratch:
                plots.to_file(figure, scratch, ending, name)
    with whole_file(folder / PAGE) as scratch:
        scratch.write_text(page.html, encoding="utf-8")
    return page


def summary(kind: str, rows: Sequence[Row]) -> pd.DataFrame:
    """Summarise an experiment: every measure by method and sparsity level, and each score's difference to joint.

    An experiment on a rate of convergence has a table of slopes instead.
    """
    if kind == "theorem":
        return slopes_summary(rows)
    if kind == "convergence":
        return convergence_summary(rows)
    if kind == "stability":
        return stability_summary(rows)
    drawn = kind == "synthetic"  # repeats of a drawn table are independent; those of another table share rows
    by = ("sparsity",) if drawn else (HELD_OUT,) if any(row.get(HELD_OUT) for row in rows) else ()
    rows = rows if by != (HELD_OUT,) else [{**row, HELD_OUT: bool(row.get(HELD_OUT))} for row in rows]
    return summarise_paired(rows, by, resampled=not drawn).reset_index()


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Sort rows, so that the order in which fits finished does not change the last digits of a sum."""
    return sorted(rows, key=lambda row: (row["repeat"], str(row.get("job"))))


def _parts(rows: Sequence[Row], about: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> PageParts:
    if about["kind"] == "synthetic":
        return sparsity_parts(rows, about, claims)
    if about["kind"] == "theorem":
        return theorem_parts(rows, about, claims)
    if about["kind"] == "convergence":
        return convergence_parts(rows, about, claims)
    if about["kind"] == "stability":
        return stability_parts(rows)
    return comparison_parts(rows, about)


def of_the_paper(manifest: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
    """Whether the paper made claims about this: it made none about a user's own table or about another recipe."""
    networks = manifest.get("config", {}).get("networks") or {}
    return networks.get("recipe", ["paper"]) == ["paper"] and (about["kind"] != "comparison" or "published" in about)


def _conventions(manifest: Mapping[str, Any], about: Mapping[str, Any]) -> list[str]:
    """Say in which reading of the paper the networks were trained."""
    reading = reading_of(manifest.get("config", {})) if of_the_paper(manifest, about) else None
    return [] if reading is None or about["kind"] == "theorem" else [SENTENCES[reading]]


def _cohort(manifest: Mapping[str, Any]) -> str | None:
    """Return the cohort as the config names it; the experiment itself may have any name."""
    return (manifest.get("config", {}).get("data") or {}).get("cohort")


def _older(manifest: Mapping[str, Any], about: Mapping[str, Any], rows: Sequence[Row]) -> list[str]:
    """Say when rows were made with an earlier recipe; Theorem 1 is about Step 1 alone, which has none."""
    present = recipe_version(manifest.get("config", {}).get("networks"))
    told = None if about["kind"] == "theorem" else older_recipe((row.get("recipe_version") for row in rows), present)
    return [] if told is None else [told]


def _last_day(rows: Sequence[Row]) -> str:
    """Return the day of the last row, not today: the same rows make the same page."""
    return max((str(row["finished"])[:10] for row in rows if row.get("finished")), default="")
