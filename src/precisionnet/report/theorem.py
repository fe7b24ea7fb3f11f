"""The page of Theorem 1: the error of the precision on logarithmic axes, with the fitted slope beside the theorem's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from precisionnet import plots
from precisionnet.paper.errata import check_errata
from precisionnet.paper.theorem_slopes import Slope, bounds_frame, slopes, slopes_frame
from precisionnet.plots.paper import Rate, rate_figure, rate_panel
from precisionnet.report.page import NONE, PageParts, TextTable
from precisionnet.report.synthetic import claims_sentence
from precisionnet.runner.jobs import Row

CAPTIONS = {
    ("n_samples", "glasso"): "More rows, without coupling: the graphical lasso alone.",
    ("n_samples", "truth"): "More rows, tied to a θ_task that is the true precision: only the first term of the bound.",
    ("n_samples", "far"): "More rows, tied to a θ_task that is off: what stays is the second term of the bound.",
    ("sparsity", "glasso"): "More edges, the number of features kept.",
    ("n_features", "glasso"): "More features, each with as many neighbours as before.",
    ("nuclear_distance", "one"): "θ_task moved away from the truth along one direction.",
    ("nuclear_distance", "all"): "θ_task moved away from the truth in all directions at once.",
}
READING = (
    "On logarithmic axes a power law is a line, and its exponent the slope. The theorem is an upper bound for large N "
    "and T: it is judged on the filled marks, and where the error grows more slowly than the theorem’s line, or falls "
    "faster, the bound is kept. Over a limited range, as of the distances, it is kept by a steeper line as well, as "
    "long as that stays below the bound."
)

BOUNDS = (
    "Means over the draws. The paper’s bound grows with the square root of the nuclear distance, and the constants of "
    "its proof contain the error itself; the linear bounds of docs/theory.md grow with the Frobenius distance, as the "
    "error does, and contain nothing that they bound."
)
ERRATA_READING = (
    "Each line was tried on random draws: the share in which it is not true, as printed and as corrected. "
    "docs/theory.md has the proof with the corrections in."
)


def theorem_parts(rows: Sequence[Row], about: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> PageParts:
    """Return everything but what stands on every page."""
    found = slopes(rows)
    names = [f"{slope.vary}-{slope.series}" for slope in found]
    rates = [_rate(slope) for slope in found]
    with plots.styled():
        figures = {
            name: (rate_panel(rate), f"Error of the precision: {rate.title}.")
            for name, rate in zip(names, rates, strict=True)
        }
        files = {"theorem": rate_figure(rates)} if rates else {}
    panels = [
        {"name": name, "heading": _greek(slope.title), "caption": CAPTIONS.get((slope.vary, slope.series), "")}
        for name, slope in zip(names, found, strict=True)
    ]
    lines = [
        {
            "what": _greek(slope.title),
            "fitted": _slope(slope.slope, slope.deviation),
            "overall": _slope(slope.overall),
            "theory": NONE if slope.theory is None else f"{slope.theory:+g}",
            "draws": str(slope.draws),
        }
        for slope in found
    ]
    bounds = _bounds(rows)
    repeats, base = len({row["repeat"] for row in rows}), about.get("base", {})
    facts = [(base.get("n_samples"), "rows T at the base"), (base.get("n_features"), "features N at the base")]
    return PageParts(
        _verdict(found, claims),
        "theorem.html.j2",
        {
            "slopes": lines,
            "panels": panels,
            "reading": READING,
            "bounds": bounds,
            "bounds_reading": BOUNDS,
            "errata": _errata(),
            "errata_reading": ERRATA_READING,
        },
        figures,
        files,
        _how(repeats),
        [(f"{value:,}", what) for value, what in [*facts, (repeats, "draws of each"), (len(rows), "solves")] if value],
        [
            TextTable(
                "Error of the precision (Frobenius), slopes on logarithmic axes",
                ["against", "slope", "theorem", "all levels", "draws"],
                [[line[name] for name in ("what", "fitted", "theory", "overall", "draws")] for line in lines],
            )
        ],
        ["vary", "n_samples", "n_features", "repeat"],
        [*([bounds] if bounds.rows else []), _errata()],
    )


def slopes_summary(rows: Sequence[Row]) -> pd.DataFrame:
    """Return one line per sweep: the slope from ``first_level`` to ``last_level``, and its standard error."""
    frame = slopes_frame(rows).rename(columns={"deviation": "standard_error"})
    place, levels = list(frame.columns).index("levels"), frame.pop("levels")
    for i, name in enumerate(("first_level", "last_level")):
        frame.insert(place + i, name, [float(ends[i]) for ends in levels])
    return frame


def _rate(slope: Slope) -> Rate:
    return Rate(
        title=_greek(slope.title),
        axis=_greek(slope.axis),
        x=slope.x,
        error=slope.error,
        judged=slope.judged,
        slope=None if np.isnan(slope.slope) else slope.slope,
        deviation=None if np.isnan(slope.deviation) else slope.deviation,
        theory=slope.theory,
    )


def _verdict(found: Sequence[Slope], claims: Sequence[Mapping[str, Any]]) -> str:
    """The rate in rows, then how the other terms and the paper's claims came out."""
    by = {(slope.vary, slope.series): slope for slope in found}
    parts = [
        (("n_samples", "glasso"), "with the number of rows (T) to the power {}"),
        (("sparsity", "glasso"), "with the number of edges (N + S) to the power {}"),
        (("n_features", "glasso"), "with the number of features ((N + S) log N) to the power {}"),
    ]
    told = [
        f"{text.format(_slope(by[key].slope, by[key].deviation))} (theorem {by[key].theory:+g})"
        for key, text in parts
        if key in by and not np.isnan(by[key].slope)
    ]
    if not told:
        return "No sweep has two levels yet: there is no slope to compare with the theorem’s."
    listed = told[0] if len(told) == 1 else ", ".join(told[:-1]) + f" and {told[-1]}"
    return f"The error of the estimated precision scales {listed}. {claims_sentence(claims) if claims else ''}".strip()


def _slope(value: float, standard_error: float = np.nan) -> str:
    if np.isnan(value):
        return NONE
    return f"{value:+.2f}" + ("" if np.isnan(standard_error) else f" ± {standard_error:.2f}")


def _how(repeats: int) -> list[str]:
    return [
        f"Each of {repeats} repeats draws a true precision and Gaussian rows from it, and solves Step 1 of the paper "
        "to its minimum; one quantity is varied at a time. No network is trained.",
        "Slopes are fitted in every repeat by itself; ± is the standard error of their mean.",
    ]


def _bounds(rows: Sequence[Row]) -> TextTable:
    """Error and bounds by distance, as text."""
    names = {
        "nuclear_distance": "Nuclear distance",
        "frobenius_distance": "Frobenius distance",
        "frobenius_error": "Error",
        "sharper_bound": "Sharper bound",
        "linear_bound": "Linear bound",
        "paper_bound": "Paper’s bound",
    }
    lines = [
        [str(line["direction"]), *(_short(line[name]) for name in names), f"{line['kept']:.0%}"]
        for _, line in bounds_frame(rows).iterrows()
    ]
    columns = ["Directions", *names.values(), "Sharper one kept"]
    return TextTable("The paper’s bound beside a linear one", columns, lines)


def _short(value: float) -> str:
    """Two digits, and all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 99.5 else f"{value:.2g}"


@cache
def _errata() -> TextTable:
    columns = ["Place", "Printed", "Should be", "Printed fails", "Corrected fails"]
    lines = [
        [
            found.erratum.where,
            _greek(found.erratum.printed),
            _greek(found.erratum.corrected),
            f"{found.printed_fails:.0%}",
            f"{found.corrected_fails:.0%}",
        ]
        for found in check_errata()
    ]
    return TextTable("Errata of the text and the proof", columns, lines, texts=3)


def _greek(text: str) -> str:
    return text.replace("theta_task", "θ_task").replace("Theta_task", "Θ_task").replace("Theta", "Θ")
