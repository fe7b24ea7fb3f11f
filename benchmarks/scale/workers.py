"""A permutation test on a dask cluster: two workers against one, and with a worker killed in the middle.

    python -m benchmarks.scale.workers

``compare_graphs`` at N = 68 with 2 x 250 rows and 1,000 permutations, three times with each number of workers (separate
processes, one thread each), their order mixed; medians go to results/scale/workers.csv. ``same`` says whether every
number of the result is that of the run in this process, bit by bit. Needs two processors that do nothing else.
"""

from __future__ import annotations

import csv
import os
import signal
import time
from pathlib import Path
from threading import Timer
from typing import Any

import distributed
import numpy as np

from precisionnet.datasets import make_sparse_precision
from precisionnet.evidence import compare_graphs
from precisionnet.workers import on_scheduler

OUT = Path(__file__).parents[2] / "results" / "scale" / "workers.csv"
N, ROWS, PERMUTATIONS, REPEATS = 68, 250, 1000, 3
KILLED_AFTER = 2.0


def table() -> tuple[np.ndarray, np.ndarray]:
    """Rows of two groups with one graph."""
    rng = np.random.default_rng(0)
    theta = make_sparse_precision(N, 0.06, rng)
    X = rng.multivariate_normal(np.zeros(N), np.linalg.inv(theta), size=2 * ROWS)
    return X, np.repeat(["a", "b"], ROWS)


def compared(workers: int, *, killed: bool = False) -> tuple[float, Any]:
    """Return seconds and the result on a cluster of its own, its workers warm."""
    X, labels = table()
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        on_scheduler(cluster.scheduler_address),
    ):
        compare_graphs(X, labels, n_permutations=19, random_state=0)
        if killed:
            worker = next(iter(cluster.workers.values()))
            Timer(KILLED_AFTER, os.kill, (worker.process.pid, signal.SIGKILL)).start()
        started = time.perf_counter()
        found = compare_graphs(X, labels, n_permutations=PERMUTATIONS, random_state=0)
        return time.perf_counter() - started, found


def main() -> None:
    """Measure and write the rows."""
    expected = compare_graphs(*table(), n_permutations=PERMUTATIONS, random_state=0)

    def same(found: Any) -> bool:
        return all(getattr(found, name).equals(getattr(expected, name)) for name in ("tests", "edges", "nodes"))

    load = os.getloadavg()[0]

    def row(case: str, seconds: float, ratio: float, same: bool) -> dict[str, Any]:
        return {
            "case": case,
            "seconds": round(seconds, 2),
            "ratio": round(ratio, 2),
            "same": same,
            "load": round(load, 1),
        }

    runs: dict[int, list[tuple[float, Any]]] = {1: [], 2: []}
    for repeat in range(REPEATS):
        for workers in (1, 2) if repeat % 2 == 0 else (2, 1):
            runs[workers].append(compared(workers))
    seconds = {workers: float(np.median([one[0] for one in done])) for workers, done in runs.items()}
    rows = [
        row(f"{n} workers", seconds[n], seconds[1] / seconds[n], all(same(one[1]) for one in runs[n])) for n in runs
    ]
    taken, found = compared(2, killed=True)
    rows.append(row("2 workers, one killed", taken, float("nan"), same(found)))
    with OUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
