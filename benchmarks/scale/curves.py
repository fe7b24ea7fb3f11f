"""What size costs, drawn from the committed rows, with slopes and peers: against columns, rows, members and workers.

    python -m benchmarks.scale.curves          results/scale/curves.svg and curves.md, from the csv files alone

Peers are those of ``benchmarks.precision`` (time to a proved relative gap of 1e-6), scikit-learn's ``LassoCV``, and
PyTorch Geometric's ``TAGConv`` once results/scale/pyg.csv is there. The dense solver at 10,000 columns is that of
results/scale/dense.csv on one thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

RESULTS = Path(__file__).parents[2] / "results"
SCALE = RESULTS / "scale"
PEERS = ("scikit-learn tuned", "skglm", "gglasso", "R glasso")
COLOURS = "#0072b2", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#999999", "#e69f00", "#000000"
MARKERS = "osDP^vX*"


@dataclass(frozen=True)
class Curve:
    """One line of a panel."""

    panel: str
    name: str
    x: list[float]
    y: list[float]

    @property
    def slope(self) -> float:
        """That of log y against log x; NaN of fewer than two sizes."""
        if len(set(self.x)) < 2:
            return float("nan")
        return float(np.polyfit(np.log(self.x), np.log(self.y), 1)[0])


def curves() -> list[Curve]:
    """Every curve, from the rows."""
    fits = pd.read_csv(SCALE / "fit.csv")
    rows = pd.read_csv(SCALE / "rows.csv")
    solver = pd.read_csv(SCALE / "solver.csv")
    bench = pd.read_csv(RESULTS / "precision_bench.csv")
    large = pd.read_csv(SCALE / "dense.csv")
    seconds, memory = "Fits: processor seconds against columns", "Peak memory in GB against columns"
    sparse = fits[fits["case"].isin(["columns", "planted"])]
    dense = fits[fits["case"] == "dense"]
    lasso = fits[fits["peer"] == "LassoCV"]
    found = [
        _curve(seconds, "sparse support", sparse, "n_features", "cpu_seconds"),
        _curve(seconds, "all pairs", dense, "n_features", "cpu_seconds"),
        _curve(seconds, "LassoCV", lasso, "n_features", "peer_seconds"),
        _curve(memory, "fit, sparse support", sparse, "n_features", "peak_gb"),
        _curve(memory, "fit, all pairs", dense, "n_features", "peak_gb"),
    ]
    solving = "Graphical lasso to a proved gap of 1e-6: seconds against columns"
    one = bench[(bench["problem"] == "sparse_rule") & (bench["status"] == "certified")]
    large = large[(large["problem"] == "large_rule") & (large["threads"] == "1")].assign(solver="precisionnet")
    one = pd.concat([one[~((one["solver"] == "precisionnet") & one["n"].isin(large["n"]))], large])
    found += [_curve(solving, name, one[one["solver"] == name], "n", "seconds") for name in ("precisionnet", *PEERS)]
    for truth, part in solver.groupby("truth"):
        found.append(_curve(solving, f"from rows, {truth} (processor)", part, "n_features", "cpu_seconds"))
        found.append(_curve(memory, f"solver, {truth}", part, "n_features", "peak_gb"))
    passes = rows[rows["how"] == "passes"]
    against_rows = "fit_table: processor seconds against rows"
    found.append(_curve(against_rows, "50 columns, 3 epochs", passes, "n_rows", "cpu_seconds"))
    stream = rows[rows["how"] == "stream"]
    found.append(_curve(against_rows, "50 columns, 50 epochs", stream, "n_rows", "cpu_seconds"))
    found += members(fits)
    found.append(_workers(pd.read_csv(SCALE / "workers.csv")))
    if (SCALE / "pyg.csv").exists():
        found += filters(pd.read_csv(SCALE / "pyg.csv"))
    return [curve for curve in found if curve.x]


def members(fits: pd.DataFrame) -> list[Curve]:
    """Fits of one kind of network against their number, once rows of them are there."""
    panel, found = "Fits: processor seconds against members", []
    for (support, n), part in fits[fits["case"] == "members"].groupby(["support", "n_features"]):
        found.append(_curve(panel, f"{n:,} columns, {support} matrices", part, "n_members", "cpu_seconds"))
    return found


def _workers(rows: pd.DataFrame) -> Curve:
    """A permutation test against the workers of a cluster; the row of a killed worker is no point of it."""
    whole = rows[rows["case"].str.fullmatch(r"\d+ workers")]
    whole = whole.assign(n_workers=whole["case"].str.split().str[0].astype(int))
    panel = "compare_graphs on a cluster: seconds against workers"
    return _curve(panel, "1,000 permutations, 68 columns", whole, "n_workers", "seconds")


def filters(rows: pd.DataFrame) -> list[Curve]:
    """A filter beside PyTorch Geometric's: one panel for weights that are learnt, one for fixed ones."""
    found = []
    for weights in ("learnt", "fixed"):
        panel = f"A filter of order 3, {weights} weights, degree 4: seconds against nodes"
        part = rows[rows["weights"] == weights]
        found += [_curve(panel, who, part[part["who"] == who], "n_nodes", "seconds") for who in part["who"].unique()]
    return found


def _curve(panel: str, name: str, table: pd.DataFrame, x: str, y: str) -> Curve:
    table = table.dropna(subset=[x, y]).sort_values(x)
    return Curve(panel, name, table[x].tolist(), table[y].tolist())


def draw(found: list[Curve], path: Path) -> None:
    """One panel for each question, log against log."""
    panels = list(dict.fromkeys(curve.panel for curve in found))
    n_lines = -(-len(panels) // 2)
    figure = Figure(figsize=(11.0, 4.2 * n_lines), layout="constrained")
    places = list(figure.subplots(n_lines, 2, squeeze=False).flat)
    for axes in places[len(panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(places, panels, strict=False):
        for number, curve in enumerate(one for one in found if one.panel == panel):
            slope = "" if np.isnan(curve.slope) else f" (slope {curve.slope:.2f})"
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "markersize": 5}
            axes.loglog(curve.x, curve.y, label=curve.name + slope, **style)
        axes.set_title(panel, fontsize=9, loc="left")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, frameon=False)
    with rc_context({"svg.hashsalt": "scale", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})


def table(found: list[Curve]) -> str:
    """The same in words: sizes, numbers and slope of every curve."""
    lines = ["# What size costs", "", "Made by `python -m benchmarks.scale.curves` from the csv files beside it.", ""]
    lines += ["| what | curve | sizes | values | slope |", "|---|---|---|---|---|"]
    for curve in found:
        sizes, values = ", ".join(f"{x:,.0f}" for x in curve.x), ", ".join(f"{y:.4g}" for y in curve.y)
        slope = "" if np.isnan(curve.slope) else f"{curve.slope:.2f}"
        lines.append(f"| {curve.panel} | {curve.name} | {sizes} | {values} | {slope} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both."""
    found = curves()
    draw(found, SCALE / "curves.svg")
    (SCALE / "curves.md").write_text(table(found), encoding="utf-8")


if __name__ == "__main__":
    main()
