"""The rows as a picture: every solver's time over ours, one line a problem, on a log scale.

python -m benchmarks.precision.plot [FOLDER]         redraws it from the rows alone
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "precision_bench", "svg.fonttype": "none", "font.size": 9})

from matplotlib import pyplot  # noqa: E402

from benchmarks.precision.rows import Row, read  # noqa: E402
from benchmarks.precision.solvers import PEERS, SOLVERS  # noqa: E402

OURS = next(iter(SOLVERS))
COLOURS = "#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7"
MARKERS = "o", "P", "s", "^", "D"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Filled: solved. Hollow: stopped at the time limit, so at least this slow. A cross at the edge: failed."""
    table = {row.key: row for row in rows}
    shown = [r for r in rows if r.solver == OURS and any((r.problem, r.n, p) in table for p in PEERS) and r.seconds]
    figure, axes = pyplot.subplots(figsize=(8.0, 1.6 + 0.24 * len(shown)), layout="constrained")
    edge = 3.0 * max((row.ratio_to_ours or 1.0 for row in rows), default=1.0)
    for k, (peer, colour, marker) in enumerate(zip(PEERS, cycle(COLOURS), cycle(MARKERS), strict=False)):
        apart = 0.12 * (k - 0.5 * (len(PEERS) - 1))  # equal figures stay visible beside each other
        beside = {y + apart: table.get((row.problem, row.n, peer)) for y, row in enumerate(shown)}
        for status, style in (
            ("certified", {"marker": marker, "color": colour}),
            ("timeout", {"marker": marker, "color": colour, "markerfacecolor": "none"}),
            ("failed", {"marker": "x", "color": colour}),
        ):
            points = [(y, row) for y, row in beside.items() if row is not None and row.status == status]
            x = [edge if status == "failed" else row.ratio_to_ours for _, row in points]
            label = peer if status == "certified" else None
            axes.plot(x, [y for y, _ in points], linestyle="none", markersize=5, label=label, **style)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), [f"{row.problem}, N = {row.n}" for row in shown])
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(f"time / {OURS}'s time, to a relative gap of 1e-6 (hollow: stopped at the limit; x: failed)")
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.4, 1.0 + 0.9 / (1 + 0.24 * len(shown))), ncols=len(PEERS), frameon=False
    )
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def write(folder: Path) -> None:
    """``precision_bench.svg`` beside the rows."""
    draw(read(folder / "precision_bench.csv"), folder / "precision_bench.svg")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
