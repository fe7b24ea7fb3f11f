"""What docs/large.md says of rows is what was measured."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
from benchmarks.scale import curves

ROOT = Path(__file__).parents[1]


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
