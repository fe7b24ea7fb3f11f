"""The page of stability with few rows: how far predictions move over T, with the fitted slope beside -1/2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from precisionnet import plots
from precisionnet.evaluation.methods import label
from precisionnet.paper.stability_slopes import DRAWN, bound_ratios, stability_slopes
from precisionnet.paper.theorem_slopes import Slope
from precisionnet.plots.paper import Rate, rate_figure, rate_panel
from precisionnet.report.page import NONE, PageParts, TextTable
from precisionnet.runner.jobs import Row

READING = (
    "Weights are learned once and stay; the matrix under the network is estimated from T rows. What is shown is the "
    "root mean square of the change of its predictions, in the target’s units. On drawn rows it is measured from the "
    "matrix of the true covariance, against T; on a cohort from the matrix of all n rows, against T n / (n − T), "
    "because the T rows are a part of them. An estimate’s error falls with the power −1/2: slopes are judged on the "
    "filled marks. On a cohort GL and Joint may be steeper: what their l1 penalties differ by is a multiple of "
    "T^(−1/2) − n^(−1/2), which falls faster than (1/T − 1/n)^(1/2). The bound follows from the filters’ frequency "
    "responses and the distance of the two matrices; it is far from tight, because it takes the steepest place of "
    "every response."
)


def stability_parts(rows: Sequence[Row]) -> PageParts:
    """Return everything but what stands on every page."""
    found = stability_slopes(rows)
    names = [f"{slope.vary}-{slope.series}" for slope in found]
    rates = [_rate(slope) for slope in found]
    with plots.styled():
        figures = {
            name: (rate_panel(rate), f"Change of predictions: {rate.title}.")
            for name, rate in zip(names, rates, strict=True)
        }
        files = {"stability": rate_figure(rates)} if rates else {}
    ratios = bound_ratios(rows)
    lines = [
        {
            "what": slope.title,
            "fitted": _slope(slope.slope, slope.deviation),
            "overall": _slope(slope.overall),
            "fewest": f"{slope.mean(slope.x.min()):.3g}",
            "most": f"{slope.mean(slope.x.max()):.3g}",
            "bound": f"{np.median(ratios[slope.vary, slope.series]):.0f}x",
            "draws": str(slope.draws),
        }
        for slope in found
    ]
    repeats = len({row["repeat"] for row in rows})
    columns = ["what", "fitted", "overall", "fewest", "most", "bound"]
    return PageParts(
        _verdict(found),
        "stability.html.j2",
        {
            "lines": lines,
            "panels": [{"name": name, "heading": slope.title} for name, slope in zip(names, found, strict=True)],
            "reading": READING,
        },
        figures,
        files,
        [
            f"In each of {repeats} repeats one network per method and source of rows is trained, and its matrix "
            "estimated from every T once; rows are drawn without replacement.",
            "Slopes are fitted in every repeat by itself; ± is the standard error of their mean.",
        ],
        [(f"{value:,}", what) for value, what in [(repeats, "repeats"), (len(rows), "networks")]],
        [
            TextTable(
                "Change of predictions: slopes (expected -0.5), size at the fewest and most rows, bound over change",
                ["", "slope", "all T", "fewest", "most", "bound"],
                [[line[name] for name in columns] for line in lines],
            )
        ],
        ["source", "repeat"],
    )


def stability_summary(rows: Sequence[Row]) -> pd.DataFrame:
    """Return one line per source of rows and method: slope, standard error, differences and the bound."""
    ratios = bound_ratios(rows)
    return pd.DataFrame(
        [
            {
                "source": slope.vary,
                "method": slope.series,
                "slope": slope.slope,
                "standard_error": slope.deviation,
                "first_level": slope.levels[0],
                "last_level": slope.levels[1],
                "overall": slope.overall,
                "expected": slope.theory,
                "difference_at_fewest": slope.mean(slope.x.min()),
                "difference_at_most": slope.mean(slope.x.max()),
                "bound_ratio_median": float(np.median(ratios[slope.vary, slope.series])),
                "bound_ratio_min": float(ratios[slope.vary, slope.series].min()),
                "draws": slope.draws,
            }
            for slope in stability_slopes(rows)
        ]
    )


def _rate(slope: Slope) -> Rate:
    return Rate(
        title=slope.title,
        axis=slope.axis.replace(" - ", " − "),
        x=slope.x,
        error=slope.error,
        judged=slope.judged,
        slope=None if np.isnan(slope.slope) else slope.slope,
        deviation=None if np.isnan(slope.deviation) else slope.deviation,
        theory=slope.theory,
        measure="change of predictions",
        expected="expected slope",
    )


def _verdict(found: Sequence[Slope]) -> str:
    told = []
    for source in dict.fromkeys(slope.vary for slope in found):
        here = [slope for slope in found if slope.vary == source and not np.isnan(slope.slope)]
        listed = ", ".join(f"{label(slope.series)} {_slope(slope.slope)}" for slope in here)
        told.append(f"{'on drawn rows' if source == DRAWN else f'on {source.upper()}'} {listed}")
    if not told:
        return "No network has been measured at two numbers of rows yet."
    return f"Predictions move with the number of rows to these powers (expected -0.5): {'; '.join(told)}."


def _slope(value: float, standard_error: float = np.nan) -> str:
    if np.isnan(value):
        return NONE
    return f"{value:+.2f}" + ("" if np.isnan(standard_error) else f" ± {standard_error:.2f}")
