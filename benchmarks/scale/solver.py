"""The solver from rows: seconds, peak memory, gap and components against the number of columns.

Truths: ``blocks`` (about two edges a node within blocks of 1 to 3,000 columns, none between), ``band`` (each column
follows from the one before), ``tree`` (from the one at half its number) and ``grid`` (a square lattice). 1,000 rows
each, columns standardised.

    python -m benchmarks.scale.solver                       # all, each in a process of its own
    python -m benchmarks.scale.solver blocks 100000          # one

Rows are drawn to a file by one process and solved by another. Its peak memory and that of its workers are recorded; on
Linux a process inherits the peak of the one that starts it, so that one stays small. A row per case goes to
results/scale/solver.csv; ``load`` is the machine's one-minute average before the solve: above zero, others worked,
and ``seconds`` are too many; ``cpu_seconds`` count this process and its workers alone.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from joblib.externals.loky import get_reusable_executor
from scipy import sparse

OUT = Path(__file__).parents[2] / "results" / "scale" / "solver.csv"
N_ROWS = 1000
LARGEST_BLOCK = 3000
CASES = (
    ("blocks", 1_000),
    ("blocks", 10_000),
    ("blocks", 100_000),
    ("band", 100_000),
    ("tree", 100_000),
    ("grid", 99_856),
)
PENALTY = {"blocks": 0.22, "band": 0.3, "tree": 0.3, "grid": 0.3}
FIELDS = (
    "truth", "n_features", "n_rows", "l1_penalty", "seconds", "cpu_seconds", "peak_gb", "gap", "status", "n_components",
    "largest_component", "n_edges", "n_iter", "n_jobs", "n_processors", "load",
)  # fmt: skip


def block_sizes(n: int, rng: np.random.Generator) -> list[int]:
    """Largest ones first: a tenth of the columns each, up to 3,000, until half are used; then sizes from 1 to 50."""
    sizes, largest = [], min(LARGEST_BLOCK, n // 10)
    while sum(sizes) < n // 2:
        sizes.append(largest)
    while sum(sizes) < n:
        sizes.append(min(int(rng.integers(1, 51)), n - sum(sizes)))
    return sizes


def draw_blocks(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of a Gaussian whose columns depend on at most two earlier columns of their block."""
    X = rng.standard_normal((N_ROWS, n), dtype=np.float64)
    begin = 0
    for size in block_sizes(n, rng):
        for j in range(begin + 1, begin + size):
            X[:, j] *= 0.7
            X[:, j] += 0.6 * X[:, rng.integers(max(begin, j - 10), j)]
            if rng.random() < 0.5:
                X[:, j] += 0.3 * X[:, rng.integers(begin, j)]
        begin += size
    return X


def draw(truth: str, n: int) -> np.ndarray:
    """Standardised rows."""
    rng = np.random.default_rng(n)
    if truth == "blocks":
        X = draw_blocks(n, rng)
    elif truth in ("band", "tree"):
        X = rng.standard_normal((N_ROWS, n))
        for j in range(1, n):
            X[:, j] *= 0.8
            X[:, j] += 0.6 * X[:, j - 1 if truth == "band" else j // 2]
    else:
        side = round(n**0.5)
        X = draw_grid(side, rng)
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return X


def draw_grid(side: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of a Gaussian whose precision is a lattice: noise solved by the transposed factor."""
    from precisionnet.precision.sparse_cholesky import analyse, factorise, minimum_degree_order

    n = side * side
    node = np.arange(n).reshape(side, side)
    first = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    second = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    order = minimum_degree_order(first, second, n)
    place = np.argsort(order)
    low, high = np.sort([place[first], place[second]], axis=0)
    by_column = np.lexsort([low, high])
    low, high = low[by_column], high[by_column]
    pattern = analyse(np.searchsorted(high, np.arange(n + 1)), low.astype(np.int32), 10**9)
    assert pattern is not None
    factor = factorise(pattern, np.full(len(low), -0.24), np.ones(n))
    assert factor is not None
    L = sparse.csc_array((factor.value, factor.row, factor.start), shape=(n, n)) + sparse.eye_array(n)
    X = np.empty((N_ROWS, n))
    upper = sparse.csr_array(L.T)
    for begin in range(0, N_ROWS, 100):
        noise = rng.standard_normal((n, 100)) / np.sqrt(factor.diagonal)[:, None]
        X[begin : begin + 100, order] = sparse.linalg.spsolve_triangular(
            upper, noise, lower=False, unit_diagonal=True
        ).T
    return X


def solve(path: Path, truth: str, n_jobs: int) -> dict[str, object]:
    """The one that is measured."""
    from precisionnet.precision import graphical_lasso_from_rows

    load = os.getloadavg()[0]
    X = np.load(path)
    started = time.perf_counter()
    result = graphical_lasso_from_rows(X, PENALTY[truth], n_jobs=n_jobs)
    seconds = time.perf_counter() - started
    get_reusable_executor().shutdown(wait=True)  # the system counts a child's memory when it has ended
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, workers = (who.ru_maxrss for who in usage)
    return {
        "truth": truth,
        "n_features": X.shape[1],
        "n_rows": X.shape[0],
        "l1_penalty": PENALTY[truth],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(who.ru_utime + who.ru_stime for who in usage), 1),
        # Of the children the system keeps the largest peak: taken for each of them.
        "peak_gb": round((own + (n_jobs * workers if n_jobs > 1 else 0)) * 1024 / 1e9, 2),
        "gap": f"{result.gap:.2e}",
        "status": result.status,
        "n_components": result.n_components,
        "largest_component": result.largest_component,
        "n_edges": (result.precision.nnz - X.shape[1]) // 2,
        "n_iter": result.n_iter,
        "n_jobs": n_jobs,
        "n_processors": os.cpu_count(),
        "load": round(load, 1),
    }


def measure(truth: str, n: int, n_jobs: int = 2) -> None:
    """Draw, solve, record: two processes."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        module = [sys.executable, "-m", "benchmarks.scale.solver"]
        subprocess.run([*module, "--draw", truth, str(n), str(path)], check=True)
        done = subprocess.run(
            [*module, "--solve", truth, str(n_jobs), str(path)], check=True, stdout=subprocess.PIPE, text=True
        )
    row = json.loads(done.stdout)
    print(row, flush=True)
    rows = []
    if OUT.exists():
        with OUT.open(encoding="utf-8", newline="") as lines:
            rows = [old for old in csv.DictReader(lines) if (old["truth"], old["n_features"]) != (truth, str(n))]
    rows.append(row)
    names = [name for name, _ in CASES]
    rows.sort(key=lambda row: (names.index(str(row["truth"])), int(row["n_features"])))
    with OUT.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(arguments: list[str]) -> None:
    """All cases, one of them, or one of their processes."""
    if arguments[:1] == ["--draw"]:
        np.save(arguments[3], draw(arguments[1], int(arguments[2])))
    elif arguments[:1] == ["--solve"]:
        print(json.dumps(solve(Path(arguments[3]), arguments[1], int(arguments[2]))))
    else:
        for truth, n in [(arguments[0], int(arguments[1]))] if arguments else CASES:
            measure(truth, n)


if __name__ == "__main__":
    main(sys.argv[1:])
