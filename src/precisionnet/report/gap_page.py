"""One self-contained page about gaps: groups compared, how well the age bias is gone, and what drives a difference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from precisionnet import plots
from precisionnet.gap import GapStudy
from precisionnet.gap.study import difference_sentence, group_name
from precisionnet.plots.gap import BARS
from precisionnet.report.data_graph import LEVEL, interval_text, q_text
from precisionnet.report.page import NONE, Picture, template
from precisionnet.versions import versions

REGIONS_SHOWN, UNSURE_SHOWN = 20, 5
KIND_TEXT = {
    "none": "before correction",
    "scaled": "corrected: (predicted − a) / b − true",
    "subtractive": "subtractive: predicted − a − b · true",
    "smooth": "smooth: a spline in place of the line",
}
GAP_COLUMNS = {
    "group, site": "As in the table, where they were named.",
    "fold": "The outer fold whose regressor predicted the row, which never saw it, and whose correction was fitted "
    "without it.",
    "learned_from": "Whether the row is a control that the other folds' regressors learned from.",
    "true, predicted": "The target, and its uncorrected prediction.",
    "gap, gap_low, gap_high": "Predicted minus true, and an interval as wide as 95 % of the controls' gaps.",
    "corrected_gap, corrected_gap_low, corrected_gap_high": "The same without the age bias. Where the interval leaves "
    "0 out, the gap is larger than that of 95 % of controls.",
    "subtractive_gap": "predicted − a − b · true: b times the corrected gap, so b times a true shift.",
    "smooth_gap": "Corrected by a spline; empty where that is not possible.",
}
GROUP_COLUMNS = {
    "group_a, group_b, n_a, n_b": "The groups, and their numbers of people; differences are a minus b.",
    "kind": "none, scaled (the corrected gap), subtractive or smooth.",
    "mean_a, mean_b": "Mean gaps, not adjusted for anything.",
    "difference, low, high": "Adjusted difference and its 95 % interval; of the scaled and the smooth gap it also "
    "holds how well b is known.",
    "effect_size, effect_low, effect_high": "The difference in standard deviations of what is left (Cohen's d).",
    "p_value": "Permutation p-value (Freedman and Lane), not corrected for the number of pairs.",
}
REGION_COLUMNS = {
    "column": "The column; a covariate that is an input counts as one.",
    "difference, low, high": "Its part in the adjusted difference of corrected gaps; all parts add up to it, but for "
    "what folds' networks differ in at their base.",
    "p_value, q_value": "Permutation p-value, and the false discovery rate over all columns and pairs.",
}


@dataclass(frozen=True)
class GapPage:
    """A study, and what its page has to say of where it comes from."""

    study: GapStudy
    target: str
    by: str | None
    controls: Any
    source: str
    covariates: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    regress_out: list[str] = field(default_factory=list)
    combat: bool = False
    seed: int = 0

    @property
    def norm(self) -> str:
        """Who was learned from, in words."""
        return "everybody" if self.controls is None else f"{self.by} {self.controls}"


def render_gap(about: GapPage, created: str) -> str:
    """Return the page; it needs no network."""
    study = about.study
    files = {"gaps.csv": GAP_COLUMNS}
    files |= {"groups.csv": GROUP_COLUMNS} if len(study.groups) else {}
    files |= {"regions.csv": REGION_COLUMNS} if len(study.regions) else {}
    return template("gap.html.j2").render(
        about=about,
        study=study,
        created=created,
        verdict=_verdict(about),
        n_learned=int(study.gaps["learned_from"].sum()),
        n_rows=len(study.gaps),
        n_sites=study.gaps["site"].nunique() if "site" in study.gaps else 0,
        before=study.correlation("none"),
        after=study.correlation("scaled"),
        picture=_against_age(about),
        pairs=_pairs(about),
        calibration=_calibration_rows(study.calibration),
        correlations=[
            [
                row["rows"],
                KIND_TEXT[row["kind"]],
                str(row["n"]),
                f"{row['r']:+.3f}",
                interval_text(row["low"], row["high"], 2),
            ]
            for row in study.correlations.to_dict("records")
        ],
        curved=curved(study.calibration),
        folds=[
            [str(k + 1), f"{one.intercept:.2f}", f"{one.slope:.3f}", f"{one.slope_error:.3f}", str(one.n_rows)]
            for k, one in enumerate(study.model.corrections_)
        ],
        can=_can(about),
        cannot=_cannot(about),
        columns=files,
        versions=versions(),
    )


def curved(calibration: pd.DataFrame) -> bool:
    """Whether the mean corrected gap of some fifth is away from zero by more than chance: the bias is no line."""
    error = calibration["deviation"] / np.sqrt(calibration["n"])
    return bool((calibration["corrected_gap"].abs() > 3.0 * error).any())


def _verdict(about: GapPage) -> list[str]:
    study = about.study
    rows = [row for row in study.groups.to_dict("records") if row["kind"] == "scaled"]
    if rows:
        return [difference_sentence(row, study.by) for row in rows[:3]]
    return [
        f"Predictions are off by {study.accuracy['mae']:.3g} on average; the gap's correlation with {about.target} "
        f"goes from {study.correlation('none'):+.2f} to {study.correlation():+.2f} by the correction."
    ]


def _against_age(about: GapPage) -> Picture:
    with plots.styled():
        svg = plots.to_svg(plots.gap_against_age(about.study.gaps, about.target), "gap-against-age")
    return Picture(Markup(svg), "Gap against the target before and after correction, one dot per row.")


def _pairs(about: GapPage) -> list[dict[str, Any]]:
    found = []
    if not len(about.study.groups):
        return []
    for number, ((a, b), rows) in enumerate(about.study.groups.groupby(["group_a", "group_b"], sort=False)):
        first = rows.iloc[0]
        part = {
            "a": group_name(a, about.study.by),
            "b": group_name(b, about.study.by),
            "n_a": int(first["n_a"]),
            "n_b": int(first["n_b"]),
            "rows": [
                [
                    KIND_TEXT[row["kind"]],
                    f"{row['difference']:+.2f}",
                    interval_text(row["low"], row["high"], 2),
                    f"{row['effect_size']:+.2f} ({interval_text(row['effect_low'], row['effect_high'], 2)})",
                    q_text(row["p_value"]),
                ]
                for row in rows.to_dict("records")
            ],
            "regions": None,
        }
        if len(about.study.regions):
            regions = about.study.regions
            part["regions"] = _regions(regions[(regions["group_a"] == a) & (regions["group_b"] == b)], a, b, number)
        found.append(part)
    return found


def _regions(regions: pd.DataFrame, a: Any, b: Any, number: int) -> dict[str, Any]:
    regions = regions.assign(sure=regions["q_value"] <= LEVEL, size=regions["difference"].abs())
    with plots.styled():
        svg = plots.to_svg(plots.gap_regions(regions), f"gap-regions-{number}")
        names = regions["column"].astype(str)
        values, sure = (dict(zip(names, regions[part], strict=True)) for part in ("difference", "sure"))
        brains = [
            plots.to_svg(
                plots.brain_map(
                    values,
                    label="part in the difference of corrected gaps",
                    signed=True,
                    sure=sure,
                    measure=measure,
                    title=measure.capitalize(),
                ),
                f"gap-brain-{number}-{measure}",
            )
            for measure in plots.brain_measures(names)
        ]
    ranked = regions.sort_values(["sure", "size"], ascending=False, kind="stable")
    shown = pd.concat([ranked[ranked["sure"]].head(REGIONS_SHOWN), ranked[~ranked["sure"]].head(UNSURE_SHOWN)])
    return {
        "n": len(regions),
        "drawn": min(BARS, len(regions)),
        "n_sure": int(regions["sure"].sum()),
        "total": f"{regions['difference'].sum():+.2f}",
        "picture": Picture(Markup(svg), f"Parts of columns in the difference between {a} and {b}."),
        "brains": [
            Picture(Markup(svg), f"Parts of cortical regions in the difference between {a} and {b}, on the brain.")
            for svg in brains
        ],
        "rows": [
            (
                bool(row["sure"]),
                [
                    str(row["column"]),
                    f"{row['difference']:+.3f}",
                    interval_text(row["low"], row["high"]),
                    q_text(row["q_value"]),
                ],
            )
            for row in shown.to_dict("records")
        ],
    }


def _calibration_rows(calibration: pd.DataFrame) -> list[list[str]]:
    return [
        [
            f"{row['from']:.4g} to {row['to']:.4g}",
            str(int(row["n"])),
            f"{row['gap']:+.2f}",
            f"{row['corrected_gap']:+.2f}",
            NONE if np.isnan(row["smooth_gap"]) else f"{row['smooth_gap']:+.2f}",
            f"{row['holds_zero']:.0%}",
        ]
        for row in calibration.to_dict("records")
    ]


def _can(about: GapPage) -> list[str]:
    """Say what the numbers support."""
    study, said = about.study, list[str]()
    for row in [row for row in study.groups.to_dict("records") if row["kind"] == "scaled"][:3]:
        first, second = (group_name(row[name], study.by) for name in ("group_a", "group_b"))
        largest = max(abs(row["low"]), abs(row["high"]))
        if row["p_value"] <= LEVEL:
            said.append(
                f"On average the columns of {first} are like those of {second} with {about.target} "
                f"{abs(row['difference']):.2g} {'higher' if row['difference'] > 0 else 'lower'} than their own; so "
                f"large a difference comes about in {q_text(row['p_value'])} of tables with drawn groups."
            )
        else:
            said.append(
                f"A mean difference between {first} and {second} of more than {largest:.2g} in {about.target} is "
                "unlikely; smaller ones, and none at all, agree with these rows."
            )
    share = 1.0 - study.accuracy["mae"] / study.accuracy["guess_mae"]
    said.append(
        f"Out of fold the columns tell {about.target} with a mean error of {study.accuracy['mae']:.3g}, {share:.0%} "
        "less than guessing the median."
    )
    return said


def _cannot(about: GapPage) -> list[str]:
    """Say what they do not."""
    study = about.study
    beside = ", ".join(study.adjusted_for)
    said = [
        "The gap is what the regressor cannot explain: biology, but also noise of the measurement, movement, and "
        "whatever the table does not hold. One scan shows no change over time.",
        f"A single person's gap is no diagnosis: the interval of most people holds 0, and {1 - 0.95:.0%} of controls "
        "are outside theirs by construction.",
        "A corrected gap plus the true age is no prediction. It has used the age, so its error is not reported as "
        "accuracy anywhere.",
    ]
    if len(study.groups):
        said.append(
            f"Differences are adjusted for {beside} and for nothing else: medication, movement in the scanner, "
            "education or how people were recruited may be behind them, or hide them."
        )
        said.append(
            "Folds and networks are drawn, and another seed gives somewhat other numbers: a p-value near 0.05 may be "
            "on the other side of it."
        )
        said.append("Groups were not dealt at random, so a difference is no effect of what the groups are named after.")
    if "site" in study.gaps and not about.combat:
        said.append(
            "Sites were adjusted for in the comparison, not in the columns: what a site does to the columns is still "
            "in each person's gap, so gaps of people from different sites should not be compared one by one."
        )
    if about.combat:
        said.append(
            "Harmonising removes what differs between sites, also where that is because their people differ in age."
        )
    if about.by is not None and about.controls is None:
        said.append("Everybody was learned from, so differences between groups are understated.")
    if len(study.regions):
        said.append(
            "A column's part says what the regressor used, not where the groups differ most: correlated columns can "
            "stand in for each other, and parts of opposite sign cancel."
        )
    return said
