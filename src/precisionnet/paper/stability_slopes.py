"""Stability read off stored rows: slopes of the difference on logarithmic axes beside -1/2, and the bound.

The slope is fitted in every repeat by itself and averaged. -1/2 is the rate for many rows, so as with Theorem 1 slopes
are judged on the upper half of the levels, and the slope over all of them stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from precisionnet.evaluation.methods import METHODS, label
from precisionnet.paper.theorem_claims import Judged
from precisionnet.paper.theorem_slopes import Slope
from precisionnet.runner.jobs import Row
from precisionnet.types import FloatArray

DRAWN = "drawn"
"""Where rows come from, if not from a cohort."""
EXPECTED, NEAR = -0.5, 0.1
"""The rate of an estimate, and how far a slope may be from it."""


def stability_slopes(rows: Sequence[Row]) -> list[Slope]:
    """Fit a slope for every source of rows and method."""
    found = []
    done = [row for row in rows if "difference" in row]
    for source in sorted({row["source"] for row in done}, key=lambda name: (name != DRAWN, name)):
        for method in (name for name in METHODS if any(row["method"] == name for row in done)):
            here = [row for row in done if row["source"] == source and row["method"] == method]
            x = _flat(here, "effective_rows")
            levels = np.unique(x)
            where = "drawn rows" if source == DRAWN else source.upper()
            found.append(
                Slope(
                    vary=source,
                    series=method,
                    title=f"{label(method)}, {where}",
                    axis="rows T" if source == DRAWN else "T n / (n - T)",
                    theory=EXPECTED,
                    x=x,
                    error=_flat(here, "difference"),
                    repeat=np.concatenate([np.full(len(row["n_rows"]), float(row["repeat"])) for row in here]),
                    judged=x >= levels[min(len(levels) // 2, max(len(levels) - 3, 0))],
                )
            )
    return found


def bound_ratios(rows: Sequence[Row]) -> dict[tuple[str, str], FloatArray]:
    """Return how many times each difference the bound is, by source and method."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if "difference" in row:
            found.setdefault((row["source"], row["method"]), []).append(row)
    return {key: _flat(some, "bound") / _flat(some, "difference") for key, some in found.items()}


def stability_claims(rows: Sequence[Row]) -> Iterable[Judged]:
    """Judge the rate of every method, and the bound."""
    for slope in stability_slopes(rows):
        off = abs(slope.slope - EXPECTED) - NEAR
        open_ = np.isnan(off) or 0 < off < 2.0 * np.nan_to_num(slope.deviation, nan=np.inf)
        low, high = slope.levels
        spread = "" if np.isnan(slope.deviation) else f" ± {slope.deviation:.3f}"
        yield (
            f"{slope.title}: predictions move with the number of rows to a power within {NEAR:g} of -1/2",
            None if open_ else bool(off <= 0),
            f"slope {slope.slope:+.2f}{spread} for {slope.axis} from {low:,.0f} to {high:,.0f}, {slope.overall:+.2f} "
            "over all",
            f"slope within {NEAR:g} of -1/2 over the upper half of the levels",
        )
    ratios = bound_ratios(rows)
    if ratios:
        every = np.concatenate(list(ratios.values()))
        yield (
            "The Lipschitz bound from the frequency responses is kept",
            bool((every >= 1.0).all()),
            f"it is {every.min():.3g} to {every.max():.3g} times the difference, in the middle {np.median(every):.3g}",
            "no difference is above its bound",
        )


def _flat(rows: Sequence[Row], name: str) -> FloatArray:
    return np.concatenate([np.asarray(row[name], dtype=float) for row in rows])
