"""What docs/large.md says of rows is what was measured."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.scale import curves, fit

from precisionnet.versions import RECIPE_VERSION

ROOT = Path(__file__).parents[1]
FORECAST_FROM = 10.0
"""Seconds from which on docs/large.md claims that an estimate is right within a factor of two."""


def test_curves_are_drawn_from_the_committed_rows():
    """Slopes are rounded, so that processors agree on them."""
    found = curves.curves()
    assert (curves.SCALE / "curves.md").read_text(encoding="utf-8") == curves.table(found)
    (fits,) = (curve for curve in found if curve.name == "sparse support")
    assert fits.x[0] == 1_000
    assert fits.x[-1] == 20_000
    assert fits.slope <= 1.2


def test_fits_against_columns_are_the_committed_rows():
    rows = pd.read_csv(ROOT / "results" / "scale" / "fit.csv")
    text = (ROOT / "docs" / "large.md").read_text(encoding="utf-8").split("<!-- results/scale/fit.csv -->")[1]
    table = [line for line in text.split("\n\n")[0].splitlines() if re.match(r"\| \d", line)]
    assert len(table) == 6
    for line in table:
        fit, columns, scale, edges, seconds, memory = [cell.strip() for cell in line.strip("|").split("|")]
        case = "defaults" if "defaults" in fit else "planted" if "planted" in fit else "columns"
        (row,) = rows[(rows["case"] == case) & (rows["n_features"] == int(columns.replace(",", "")))].itertuples()
        assert (float(scale), int(edges.replace(",", ""))) == (row.l1_scale, row.n_edges)
        assert (seconds, memory) == (f"{row.cpu_seconds:.0f}", f"{row.peak_gb:.2f} GB")


def test_sentences_about_fits_against_columns_are_the_committed_rows():
    rows = pd.read_csv(ROOT / "results" / "scale" / "fit.csv")
    text = " ".join((ROOT / "docs" / "large.md").read_text(encoding="utf-8").split())
    sparse = rows[rows["case"].isin(["columns", "planted"])]
    older = (rows.loc[rows["case"].isin(["defaults", "columns", "planted"]), "recipe_version"] != RECIPE_VERSION).any()
    assert ("Some of these fits are of an earlier recipe." in text) == older
    slopes = [fit.cost_slope(part.to_dict("records")) for part in (sparse, sparse[sparse["n_features"] <= 10_000])]
    assert f"grow to the power {slopes[0]:.2f}, up to 10,000 to the power {slopes[1]:.2f}." in text
    assert max(slopes) <= 1.2
    dense = rows[rows["case"] == "dense"].set_index("n_features")
    few, more, many = (dense.loc[n] for n in (200, 400, 1000))
    assert f"200 columns take {few.cpu_seconds:.0f} processor seconds, of 400 columns {more.cpu_seconds:.0f}," in text
    assert f"{many.cpu_seconds:.0f} and {many.peak_gb:.1f} GB" in text
    (planted,) = rows[rows["case"] == "planted"].itertuples()
    assert planted.found == planted.planted
    assert f"is {planted.error:.3f}, that of scikit-learn's `LassoCV` {planted.peer_error:.3f}" in text
    ways = rows[rows["case"] == "predict"].set_index("support")
    seconds = ways["cpu_seconds"]
    assert f"takes {seconds['sparse']} processor seconds for 512 rows, {seconds['dense']:.1f} with a dense" in text
    assert (
        f"({seconds['dense'] / seconds['sparse']:.0f} times), and differs by {float(ways.difference['sparse']):.0e}"
        in text
    )


@pytest.mark.parametrize(("name", "taken"), [("fit", "seconds"), ("rows", "cpu_seconds")])
def test_forecasts_are_within_a_factor_of_two(name, taken):
    """Two workers of ``rows`` share what the estimate says of one, so that their processor seconds are held to it."""
    rows = pd.read_csv(ROOT / "results" / "scale" / f"{name}.csv")
    rows = rows[rows["forecast_seconds"].notna()]
    assert len(rows), "a test of nothing"
    memory = rows["peak_gb"] / rows["forecast_gb"]
    assert memory.between(0.5, 2.0).all(), rows[~memory.between(0.5, 2.0)]
    long = rows[rows["forecast_seconds"] >= FORECAST_FROM]
    time = long[taken] / long["forecast_seconds"]
    assert time.between(0.5, 2.0).all(), long[~time.between(0.5, 2.0)]


def test_a_row_of_the_same_case_is_replaced_and_others_stay(tmp_path, monkeypatch):
    """The process that fits is left out: what it prints is given."""
    monkeypatch.setattr(fit, "OUT", tmp_path / "fit.csv")
    said = {"support": "dense", "n_features": 300, "cpu_seconds": 1.0}

    def ran(command, **_):
        n_members = int(command[-1]) if "members" in command else ""
        seconds = 2.0 if (tmp_path / "again").exists() else 1.0
        row = said | {"n_members": n_members, "seconds": seconds}
        return type("Done", (), {"stdout": f"noise\n{fit.json.dumps([row])}\n"})

    monkeypatch.setattr(fit.subprocess, "run", ran)
    for numbers in ((8,), (4,)):
        fit.measure("members", 300, *numbers)
    fit.measure("dense", 300)
    (tmp_path / "again").touch()
    fit.measure("members", 300, 8)
    rows = pd.read_csv(tmp_path / "fit.csv")
    assert tuple(rows.columns) == fit.FIELDS
    assert rows["case"].tolist() == ["dense", "members", "members"]
    assert rows["n_members"].tolist()[1:] == [4, 8]
    assert rows["seconds"].tolist() == [1.0, 1.0, 2.0]
    (curve,) = curves.members(rows)
    assert (curve.x, curve.y) == ([4, 8], [1.0, 1.0])


def test_the_solver_from_rows_is_the_committed_rows():
    rows = pd.read_csv(ROOT / "results" / "scale" / "solver.csv")
    text = (ROOT / "docs" / "large.md").read_text(encoding="utf-8").split("<!-- results/scale/solver.csv -->")[1]
    table = [line for line in text.split("\n\n")[0].splitlines() if re.match(r"\| [a-z]+ \| \d", line)]
    assert len(table) == len(rows)
    for line in table:
        truth, *shown = [cell.strip() for cell in line.strip("|").split("|")]
        columns, largest = (int(cell.replace(",", "")) for cell in shown[:2])
        (row,) = rows[(rows["truth"] == truth) & (rows["n_features"] == columns)].itertuples()
        assert largest == row.largest_component
        seconds = f"{row.seconds:.1f}" if row.seconds < 10 else f"{row.seconds:.0f}"
        processor = f"{row.cpu_seconds:.1f}" if row.cpu_seconds < 2 else f"{row.cpu_seconds:.0f}"
        assert shown[2:] == [f"{seconds} ({row.load})", processor, f"{row.peak_gb:.2f} GB", f"{row.gap:.1e}"]


def test_fits_against_rows_are_the_committed_rows():
    rows = pd.read_csv(ROOT / "results" / "scale" / "rows.csv")
    text = (ROOT / "docs" / "large.md").read_text(encoding="utf-8").split("<!-- results/scale/rows.csv -->")[1]
    table = [line for line in text.split("\n\n")[0].splitlines() if line.startswith("| `")]
    assert len(table) == len(rows)
    for line in table:
        how, n_rows, epochs, *shown = [cell.strip(" `") for cell in line.strip("|").split("|")]
        how = {"fit": "memory", "fit_table": "stream", "fit_table`, two networks": "passes"}[how]
        (row,) = rows[
            (rows["how"] == how)
            & (rows["n_rows"] == int(n_rows.replace(",", "")))
            & (rows["max_epochs"] == int(epochs))
        ].itertuples()
        seconds, load = re.fullmatch(r"(\d+) \((\d+)\)", shown[0]).groups()
        assert (int(seconds), int(load)) == (round(row.seconds), round(row.load))
        assert int(shown[1]) == round(row.cpu_seconds)
        workers = "" if how == "passes" else f" + 2 x {row.peak_worker_gb:.2f}"
        assert shown[2] == f"{row.peak_gb:.2f}{workers} GB"
        assert shown[3] == f"{row.mae_test:.4f}"
    older = (rows["recipe_version"] != RECIPE_VERSION).any()
    assert ("The rows are of an earlier recipe." in (ROOT / "docs" / "large.md").read_text(encoding="utf-8")) == older
    stream = rows[(rows["how"] == "stream") & (rows["n_rows"] == 1_000_000)].iloc[0]
    decision = (ROOT / "docs" / "decisions" / "0021-rows-without-end.md").read_text(encoding="utf-8")
    assert f"a million rows of 50 columns in {stream.cpu_seconds:.0f} processor seconds" in decision


def test_the_dense_solver_is_the_committed_rows():
    rows = pd.read_csv(ROOT / "results" / "scale" / "dense.csv").set_index("threads")
    before = pd.read_csv(ROOT / "results" / "scale" / "before.csv")
    text = (ROOT / "docs" / "large.md").read_text(encoding="utf-8").split("<!-- results/scale/dense.csv -->")[1]
    text = " ".join(text.split("\n\n")[0].split())
    assert f"{rows.seconds['1']:.2f} s on one core and {rows.seconds['all']:.2f} s on two" in text
    assert rows.seconds["1"] >= 1.6 * rows.seconds["all"]
    assert f"the peak is {rows.gigabytes.max():.2f} GB" in text
    small = before[before["n"] <= 200]
    assert (
        f"{len(small)} problems of 20 to 200 columns, {small.ratio.min():.2f} to {small.ratio.max():.2f} times" in text
    )
