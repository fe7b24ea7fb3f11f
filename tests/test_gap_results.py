"""The committed rows of the gap reach their targets, and docs/gap.md says what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.gap.simulations import DRAWS, SETTINGS, SHIFTS, measure, summary

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "gap"


@pytest.fixture(scope="module")
def simulated() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "simulations.csv")


def page() -> str:
    return (ROOT / "docs" / "gap.md").read_text(encoding="utf-8")


def test_planted_shifts_are_held_and_false_alarms_rare(simulated):
    """Within what 200 draws can tell from 95 % and 5 %: four standard errors, three over all settings."""
    found = summary(simulated)
    assert len(simulated) == len(SETTINGS) * len(SHIFTS) * DRAWS
    error = np.sqrt(0.05 * 0.95 / DRAWS)
    assert (found["held"] > 0.95 - 4 * error).all()
    assert abs(simulated["held"].mean() - 0.95) < 3 * np.sqrt(0.05 * 0.95 / len(simulated))
    alarms = found["found"].xs(0.0, level="shift")
    assert (alarms < 0.05 + 4 * error).all()
    assert alarms.mean() < 0.05 + 3 * error / np.sqrt(len(SETTINGS))
    assert (abs(found["difference"] - found.index.get_level_values("shift")) < 0.25).all()


def test_simulations_on_the_page_are_the_committed_rows(simulated):
    found = summary(simulated)
    for setting in SETTINGS:
        rows = found.loc[setting]
        held = " | ".join(f"{100 * rows.loc[shift, 'held']:.1f} %" for shift in SHIFTS)
        both = f"{rows.loc[2.0, 'difference']:.2f}, {rows.loc[2.0, 'subtractive']:.2f}"
        assert f"| {setting} | {held} | {100 * rows.loc[0.0, 'found']:.1f} % | {both} |" in page()


@pytest.mark.slow
def test_a_simulation_is_made_again():
    """The same draw on any processor, to the digits that count."""
    stored = pd.read_csv(FOLDER / "simulations.csv").set_index(["setting", "shift", "draw"])
    for setting in SETTINGS:
        made = measure(setting, 2.0, 7)
        assert made["difference"] == pytest.approx(stored.loc[(setting, 2.0, 7), "difference"], abs=0.02)


def cohorts() -> pd.DataFrame:
    return pd.concat([pd.read_csv(path) for path in sorted(FOLDER.glob("cohorts_*.csv"))], ignore_index=True)


def test_corrected_gaps_do_not_go_with_age():
    """|r| < 0.05 on rows that the correction never saw, on both cohorts."""
    table = cohorts()
    assert set(table["cohort"]) == {"ABIDE", "IXI + NKI + OASIS"}
    assert set(table.loc[table["rows"] == "held out", "cohort"]) == {"ABIDE", "IXI + NKI + OASIS"}
    assert (table["r_after"].abs() < 0.05).all()
    assert (table["r_before"] < -0.4).all()


def test_cohorts_on_the_page_are_the_committed_rows():
    table = cohorts()
    for row in table[table["correction"] == "scaled"].itertuples():
        smooth = table[(table["correction"] == "smooth") & (table["cohort"] == row.cohort)]
        smooth = smooth[(smooth["regressor"] == row.regressor) & (smooth["rows"] == row.rows)]["r_after"].item()
        cells = [row.cohort, row.regressor, row.rows, str(row.n), f"{row.mae:.2f}", f"{row.slope:.2f}"]
        cells += [f"{row.r_before:+.2f}", f"{row.r_after:+.3f}", f"{smooth:+.3f}"]
        assert f"| {' | '.join(cells)} |" in page()


def test_autism_on_the_page_is_that_of_the_committed_rows():
    groups = pd.read_csv(FOLDER / "autism_groups.csv")
    names = {"none": "before correction", "scaled": "corrected", "subtractive": "subtractive", "smooth": "smooth"}
    for row in groups.itertuples():
        cells = f"{row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}] | {row.effect_size:+.2f} | {row.p_value:.2f}"
        assert f"| {names[row.kind]} | {cells} |" in page()
    text = " ".join(page().split())
    rows = pd.read_csv(FOLDER / "autism_correlations.csv").set_index(["rows", "kind"])
    before, after = (rows.loc[("learned from", kind), "r"] for kind in ("none", "scaled"))
    assert f"goes from {before:+.2f} to {after:+.3f}" in text
    assert abs(after) < 0.05
    others = rows.loc[("others", "scaled")]
    assert f"r = {others.r:+.2f} [{others.low:+.2f}, {others.high:+.2f}]" in text
    regions = pd.read_csv(FOLDER / "autism_regions.csv")
    assert f"smallest q {regions.q_value.min():.2f}" in text
    assert regions.q_value.min() > 0.05
    oldest = pd.read_csv(FOLDER / "autism_calibration.csv").iloc[-1]
    assert f"in {oldest.holds_zero:.0%}".replace("%", " %") in text
