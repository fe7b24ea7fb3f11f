"""The page of convergence: objective (7) and the residual over epochs, for the listing, exact Step 1 and monotone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from precisionnet import plots
from precisionnet.evaluation.statistics import failed
from precisionnet.paper.convergence_rows import NAMES, VARIANTS, by_table, convergence_frame
from precisionnet.plots.paper import Curves, curves_figure, curves_panel
from precisionnet.report.page import NONE, PageParts, TextTable, plus_minus
from precisionnet.runner.jobs import Row

READING = (
    "The objective is that of problem (7) with all training rows in one batch; drawn is how far it is above the lowest "
    "value that any variant reached on that table and repeat. The residual is the norm of the gradient in the weights "
    "and in θ_task, and of coupling times the distance of θ from the minimiser of Step 1: it is zero at a stationary "
    "point and nowhere else. Rises are epochs after which the objective was higher than before."
)
COLUMNS = ["epochs", "rises", "largest rise", "objective at the end", "residual at the start", "at the end", "MAE"]


def convergence_parts(rows: Sequence[Row], about: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> PageParts:
    """Return everything but what stands on every page."""
    fine = [row for row in rows if not failed(row)]
    tables = by_table(fine)
    drawn = {NAMES.get(table, table): _curves(found) for table, found in tables.items()}
    figures: dict[str, tuple[Any, str]] = {}
    panels = []
    with plots.styled():
        for (name, pair), table in zip(drawn.items(), tables, strict=True):
            for measure, curves in zip(("objective", "residual"), pair, strict=True):
                key = f"{table}-{measure}"
                figures[key] = curves_panel(curves), f"{name}: {curves.label} over epochs."
                panels.append(
                    {"name": key, "heading": f"{name}: {measure}", "caption": _caption(tables[table], measure)}
                )
        files = {"convergence": curves_figure(drawn)} if drawn else {}
    lines = [
        (NAMES.get(table, table), variant, _cells([row for row in found if row["method"] == variant]))
        for table, found in tables.items()
        for variant in VARIANTS
        if any(row["method"] == variant for row in found)
    ]
    repeats = len({row["repeat"] for row in rows})
    facts = [(len(tables), "tables"), (repeats, "repeats of each"), (max(_epochs(fine), default=0), "epochs")]
    return PageParts(
        _verdict(fine, claims),
        "convergence.html.j2",
        {"columns": COLUMNS, "lines": lines, "panels": panels, "reading": READING},
        figures,
        files,
        _how(repeats),
        [(f"{value:,}", what) for value, what in facts if value],
        [
            TextTable(
                "Objective (7) and residual of stationarity",
                ["table", "variant", "rises", "residual first", "last", "MAE"],
                [[table, variant, cells[1], cells[4], cells[5], cells[6]] for table, variant, cells in lines],
            )
        ],
        ["table", "repeat"],
    )


def convergence_summary(rows: Sequence[Row]) -> pd.DataFrame:
    """Return one line per table and variant, means over repeats."""
    frame = convergence_frame(rows)
    return frame.groupby(["table", "method"], sort=True).mean(numeric_only=True).drop(columns="repeat").reset_index()


def _curves(rows: Sequence[Row]) -> tuple[Curves, Curves]:
    lowest = {row["repeat"]: np.inf for row in rows}
    for row in rows:
        lowest[row["repeat"]] = min(lowest[row["repeat"]], *row["objective"])
    above: dict[str, list[Any]] = {}
    residual: dict[str, list[Any]] = {}
    for variant in VARIANTS:
        for row in rows:
            if row["method"] == variant:
                above.setdefault(variant, []).append(np.asarray(row["objective"]) - lowest[row["repeat"]])
                residual.setdefault(variant, []).append(np.asarray(row["stationarity"]))
    return Curves("objective above the lowest", above), Curves("residual of stationarity", residual)


def _cells(rows: Sequence[Row]) -> list[str]:
    objective = [row["objective"][-1] for row in rows]
    residual = [[row["stationarity"][place] for row in rows] for place in (0, -1)]
    return [
        _range(_epochs(rows), "{:.0f}"),
        _range([row["objective_rises"] for row in rows], "{:.0f}"),
        _range([row["objective_largest_rise"] for row in rows], "{:.2g}"),
        _range(objective, "{:.4g}"),
        *(_range(values, "{:.2g}") for values in residual),
        plus_minus([row["mae"] for row in rows if "mae" in row], 2),
    ]


def _range(values: Sequence[float], form: str) -> str:
    """Write the smallest and the largest; one number where they read the same."""
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return NONE
    low, high = form.format(min(known)), form.format(max(known))
    return low if low == high else f"{low} to {high}"


def _epochs(rows: Sequence[Row]) -> list[int]:
    return [row["n_epochs"] for row in rows]


def _caption(rows: Sequence[Row], measure: str) -> str:
    """Say whether the listing's step is short enough, below the objective; nothing below the residual."""
    if measure != "objective":
        return "How far from a stationary point."
    curvature, limit = max(row["curvature"] for row in rows), rows[0]["curvature_limit"]
    fine = "short enough" if curvature < limit else "too long"
    told = f"curvature + coupling {curvature:,.0f}, limit {limit:,.0f}"
    return f"The listing’s step is {fine} where training begins: {told}."


def _verdict(rows: Sequence[Row], claims: Sequence[Mapping[str, Any]]) -> str:
    """How often each variant raised the objective, then what was promised."""
    told = []
    for variant in VARIANTS:
        own = [row for row in rows if row["method"] == variant]
        if own:
            told.append(f"{variant} in {sum(row['objective_rises'] for row in own)} of {sum(_epochs(own)):,} epochs")
    if not told:
        return "No variant has finished yet."
    held = sum(claim["holds"] is True for claim in claims)
    judged = f" Of the {len(claims)} statements below, {held} hold." if claims else ""
    return f"The objective rose with {', '.join(told)}.{judged}"


def _how(repeats: int) -> list[str]:
    return [
        f"In each of {repeats} repeats the three variants train the same network from the same start on the same "
        "training rows (60 %); validation rows (20 %) choose the epoch that is kept, test rows (20 %) measure it.",
        "The table “smooth” meets every condition of the convergence theorem in docs/theory.md; the others have batch "
        "normalisation and ReLU, for which only the descent is proved.",
    ]
