"""The dense solver of this code beside that of an earlier checkout, on the same matrices, one thread.

    python -m benchmarks.precision.before --before PATH [--repeats N] [--sizes N,N] [--out FILE]

``PATH`` is a checkout of an earlier commit. In every repeat each code solves all problems in a process of its own, and
they take turns in going first; a process solves a problem once to compile, and then reports the shortest of several
solves. The ratio is this code's time over the earlier one's. A row per problem goes to ``results/scale/before.csv``.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.precision.graphs import sample_correlation, sparse_precision
from benchmarks.precision.hard import FAMILIES
from benchmarks.precision.problems import rule_penalty
from benchmarks.precision.supervise import ROOT, one_thread

OUT = ROOT / "results" / "scale" / "before.csv"
SIZES = 20, 50, 100, 200, 2000
SHARES = 0.5, 0.05
"""Of the smallest penalty at which the graph is empty."""
FIELDS = "problem", "n", "seconds_before", "seconds", "ratio", "low", "high", "repeats", "before"

SOLVE = """
import json, sys, time
import numpy as np
from precisionnet.precision import graphical_lasso
seconds = {}
for name, problem in json.loads(sys.argv[1]).items():
    emp_cov = np.load(problem["path"])
    graphical_lasso(emp_cov, problem["l1"])
    found, until = [], time.perf_counter() + problem["budget"]
    while len(found) < 5 or time.perf_counter() < until:
        started = time.perf_counter()
        graphical_lasso(emp_cov, problem["l1"])
        found.append(time.perf_counter() - started)
    seconds[name] = min(found)
print(json.dumps(seconds))
"""


def problems(sizes: list[int], folder: Path) -> dict[str, dict[str, object]]:
    """Sparse graphs at the rule's penalty at every size, and some hard families at the small ones."""
    found: dict[str, dict[str, object]] = {}
    for n in sizes:
        rng = np.random.default_rng(n)
        drawn = {"sparse_rule": (sample_correlation(sparse_precision(n, rng), 2 * n, rng), rule_penalty(n, 2 * n))}
        if n <= 200:
            for family in ("factor1", "few_rows", "chain"):
                emp_cov = FAMILIES[family](n, np.random.default_rng(n))
                largest = np.abs(emp_cov - np.diag(np.diag(emp_cov))).max()
                drawn |= {f"{family}_{share:g}": (emp_cov, share * largest) for share in SHARES}
        for name, (emp_cov, l1) in drawn.items():
            path = folder / f"{name}_{n}.npy"
            np.save(path, emp_cov)
            found[f"{name} {n}"] = {"path": str(path), "l1": float(l1), "budget": 0.3}
    return found


def solve(source: Path, order: dict[str, dict[str, object]]) -> dict[str, float]:
    """All problems by one code."""
    environment = one_thread() | {"PYTHONPATH": str(source / "src")}
    done = subprocess.run(
        [sys.executable, "-c", SOLVE, json.dumps(order)], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout)


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, metavar="PATH", help="checkout of the earlier code")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), metavar="N,N")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FILE")
    arguments = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        order = problems([int(n) for n in arguments.sizes.split(",")], Path(folder))
        codes = arguments.before.resolve(), ROOT
        for repeat in range(arguments.repeats):
            said = {code: solve(code, order) for code in (codes if repeat % 2 else codes[::-1])}
            for name in order:
                times.setdefault(name, []).append((said[codes[0]][name], said[codes[1]][name]))
    commit = subprocess.run(
        ["git", "-C", str(arguments.before), "rev-parse", "--short", "HEAD"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.strip()
    with arguments.out.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(FIELDS)
        for name, pairs in times.items():
            problem, n = name.rsplit(" ", 1)
            ratios = [now / before for before, now in pairs]
            figures = median(before for before, _ in pairs), median(now for _, now in pairs), median(ratios)
            row = [*(f"{figure:.4g}" for figure in (*figures, min(ratios), max(ratios))), len(pairs), commit]
            writer.writerow([problem, n, *row])
            print(problem, n, *row, flush=True)


if __name__ == "__main__":
    main()
