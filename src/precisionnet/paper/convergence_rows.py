"""Rows of the convergence experiment: as a table, and what the monotone variant promises, judged by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from precisionnet.paper.theorem_claims import Judged
from precisionnet.runner.jobs import Row

VARIANTS = ("listing", "exact", "monotone")
"""In the order of every table."""
NAMES = {"abide": "ABIDE", "ants": "ANTs", "synthetic": "Synthetic", "smooth": "Smooth, float64"}
"""Tables for people."""
FALL = 1e3
"""By so much the residual must fall where the theorem's conditions are met."""
AS_ACCURATE = 0.02
"""By so much the error at the kept epoch may exceed that of exact Step 1 with Adam alone."""


def by_table(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each table, cohorts first."""
    found = {str(row["table"]) for row in rows}
    order = [*(name for name in NAMES if name in found), *sorted(found - set(NAMES))]
    return {name: [row for row in rows if row["table"] == name] for name in order}


def convergence_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the finished runs as a table, with the first and the last value of each curve."""
    columns = ["table", "method", "repeat", "n_epochs", "curvature", "curvature_limit", "objective_rises"]
    columns += ["objective_largest_rise", "graph_rises", "graph_largest_rise", "kept_epoch", "mae"]
    lines = []
    for row in rows:
        if "stationarity" in row:
            ends = {
                f"{name}_{when}": row[name][place]
                for name in ("objective", "stationarity")
                for when, place in (("first", 0), ("last", -1))
            }
            lines.append({name: row.get(name) for name in columns} | ends)
    return pd.DataFrame(lines)


def convergence_claims(rows: Sequence[Row]) -> Iterable[Judged | None]:
    """Judge descent, the fall of the residual, the accuracy, and where the others raise the objective."""
    tables = by_table([row for row in rows if "stationarity" in row])
    monotone = [row for found in tables.values() for row in found if row["method"] == "monotone"]
    if monotone:
        yield _descent(monotone)
    smooth = [row for row in monotone if row["table"] == "smooth"]
    if smooth:
        yield _residual(smooth)
    cohorts = {name: found for name, found in tables.items() if name != "smooth"}
    yield _accuracy(cohorts)
    yield _condition(tables)


def _descent(rows: Sequence[Row]) -> Judged:
    count, epochs = sum(row["objective_rises"] for row in rows), sum(row["n_epochs"] for row in rows)
    return (
        "The monotone variant never raises objective (7)",
        count == 0,
        f"{count} rises in {epochs:,} epochs of {len(rows)} runs",
        "no epoch of any run ends with a higher objective than the one before",
    )


def _residual(rows: Sequence[Row]) -> Judged:
    falls = [row["stationarity"][0] / max(min(row["stationarity"]), np.finfo(float).tiny) for row in rows]
    return (
        "Where the theorem's conditions are met, the monotone variant goes to a stationary point",
        bool(min(falls) >= FALL),
        f"the residual falls by a factor of {min(falls):.2g} or more in {max(row['n_epochs'] for row in rows)} epochs",
        f"on the table smooth the residual falls by {FALL:,.0f} or more in every repeat",
    )


def _accuracy(tables: dict[str, list[Row]]) -> Judged | None:
    """Compare the mean error at the kept epoch, table by table."""
    off = {}
    for name, rows in tables.items():
        errors = {v: {row["repeat"]: row["mae"] for row in rows if row["method"] == v} for v in ("exact", "monotone")}
        shared = sorted(set(errors["exact"]) & set(errors["monotone"]))
        if shared:
            ours, theirs = (float(np.mean([errors[v][r] for r in shared])) for v in ("monotone", "exact"))
            off[name] = ours / theirs - 1.0
    if not off:
        return None
    told = ", ".join(f"{NAMES.get(name, name)} {value:+.1%}" for name, value in off.items())
    return (
        f"At the kept epoch the monotone variant predicts within {AS_ACCURATE:.0%} of Adam alone, or better",
        max(off.values()) <= AS_ACCURATE,
        f"mean absolute error less that of exact: {told}",
        f"on no table is the mean error on test rows more than {AS_ACCURATE:.0%} above that of exact",
    )


def _condition(tables: dict[str, list[Row]]) -> Judged | None:
    """Say of the listing whether breaking its condition shows."""
    listing = {name: [row for row in rows if row["method"] == "listing"] for name, rows in tables.items()}
    listing = {name: rows for name, rows in listing.items() if rows}
    if not listing:
        return None
    broken = {name for name, rows in listing.items() if any(row["curvature"] >= row["curvature_limit"] for row in rows)}
    told = ", ".join(
        f"{NAMES.get(name, name)} {max(row['curvature'] for row in rows):,.0f} (largest rise of the graph's part "
        f"{max(row['graph_largest_rise'] for row in rows):.2g})"
        for name, rows in listing.items()
    )
    return (
        "The listing's step is short enough where training begins",
        not broken,
        f"curvature + coupling: {told}; the limit is {next(iter(listing.values()))[0]['curvature_limit']:,.0f}",
        "curvature + coupling is below 2 / learning_rate on every table",
    )
