"""The dense solver at 10,000 columns: one core and two in turns, each solve a fresh process.

    python -m benchmarks.scale.dense [--n N] [--repeats N] [--names large_rule large_true]

A process loads the covariance, solves, and reports its peak memory, the covariance (0.8 GB) included. The gap is proved
again from what was saved. One row per problem and number of threads goes to ``results/scale/dense.csv``: medians over
the repeats. Nothing else may run beside it.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.precision.large import COMPILING_SIZE, NAMES, SIZE
from benchmarks.precision.supervise import ROOT, run_module

OUT = ROOT / "results" / "scale" / "dense.csv"
FIELDS = "problem", "n", "threads", "seconds", "low", "high", "gigabytes", "gap", "n_edges", "repeats"


def measure(name: str, n: int, repeats: int) -> list[dict[str, Any]]:
    """Solve one problem with one thread and with all, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        for threads in (False, True):  # kernels are compiled once per kind of machine, not in what is measured
            run_module("large", "make", folder, "compile", str(COMPILING_SIZE), threads=True)
            run_module("large", "solve", folder, "compile", "0", threads=threads)
        run_module("large", "make", folder, name, str(n), threads=True)
        said: dict[str, list[dict[str, Any]]] = {"1": [], "all": []}
        for repeat in range(repeats):
            for threads in ("1", "all") if repeat % 2 else ("all", "1"):
                solved = run_module("large", "solve", folder, name, "0", threads=threads == "all")
                said[threads].append(solved)
                print(name, threads, solved, flush=True)
        gap = run_module("large", "check", folder, name, str(n), threads=True)["gap"]
    rows = []
    for threads, found in said.items():
        seconds = [one["seconds"] for one in found]
        figures = median(seconds), min(seconds), max(seconds)
        memory = max(one["gigabytes"] for one in found)
        shown = dict(zip(("seconds", "low", "high"), (f"{figure:.3g}" for figure in figures), strict=True))
        common = {"problem": name, "n": n, "threads": threads, "n_edges": found[0]["n_edges"], "repeats": repeats}
        rows.append({**common, **shown, "gigabytes": f"{memory:.3g}", "gap": f"{gap:.3g}"})
    return rows


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=SIZE)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--names", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    rows = [row for name in asked.names for row in measure(name, asked.n, asked.repeats)]
    with asked.out.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
