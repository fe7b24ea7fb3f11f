"""A fit to a parquet file against the number of rows: seconds, peak memory, and the error on rows kept aside.

50 columns that depend on each other along a sparse graph; the target is a sum of straight, bent and multiplied columns
and of noise. Every case is tested on the same 100,000 further rows. ``stream`` is ``fit_table``, ``memory`` is ``fit``
on the whole table, both with two workers; ``passes`` is ``fit_table`` with two small networks in one process, which
shows what the passes over the table take.

    python -m benchmarks.scale.rows                  # all, each in a process of its own
    python -m benchmarks.scale.rows stream 1000000 50   # one, with 50 epochs

The table is drawn by one process and fitted by another, whose peak memory and that of its workers the operating system
measures (see ``benchmarks.scale.solver``). A row per case goes to results/scale/rows.csv and replaces an earlier one
of the same case; a cell is empty where a row is older than its column. ``load`` is the machine's one-minute average
before the fit: above zero, others worked, and ``seconds`` are too many. ``forecast_seconds`` and ``forecast_gb`` are
what was said before, of one worker and without the passes; of ``passes`` they would say nothing.
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
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from joblib.externals.loky import get_reusable_executor
from pyarrow import parquet

OUT = Path(__file__).parents[2] / "results" / "scale" / "rows.csv"
N_COLUMNS, N_TEST, N_JOBS = 50, 100_000, 2
CASES = (
    ("memory", 100_000, 50),
    ("stream", 100_000, 50),
    ("stream", 1_000_000, 50),
    ("passes", 100_000, 3),
    ("passes", 300_000, 3),
    ("passes", 1_000_000, 3),
)
"""How, rows and epochs; 50 is the default."""
FIELDS = (
    "how", "n_rows", "n_features", "max_epochs", "seconds", "cpu_seconds", "peak_gb", "peak_worker_gb", "mae_test",
    "mae_noise", "oob_mae", "coverage_95", "best_epoch", "kinds", "n_jobs", "n_processors", "load", "forecast_seconds",
    "forecast_gb", "recipe_version",
)  # fmt: skip
NOISE = 0.5


def draw(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and their target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_COLUMNS))
    for j in range(1, N_COLUMNS):  # each follows from one before it, the graph is a tree
        X[:, j] = 0.8 * X[:, j] + 0.6 * X[:, (j - 1) // 2]
    weights = np.linspace(1.0, -1.0, 10)
    y = X[:, :10] @ weights + X[:, 10] * X[:, 11] + np.sin(2 * X[:, 12]) + np.abs(X[:, 13]) + X[:, 14] * X[:, 30]
    return X, y + NOISE * rng.standard_normal(n_rows)


def write(path: Path, n_rows: int) -> None:
    """Write a parquet file piece by piece."""
    names = [f"x{i}" for i in range(N_COLUMNS)]
    writer = None
    for seed, begin in enumerate(range(0, n_rows, 100_000)):
        X, y = draw(min(100_000, n_rows - begin), seed)
        table = pa.table({**dict(zip(names, X.T, strict=True)), "y": y})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def fit(path: Path, how: str, max_epochs: int, n_jobs: int) -> dict[str, Any]:
    """The one that is measured."""
    from precisionnet import PNNRegressor
    from precisionnet.versions import RECIPE_VERSION

    load = os.getloadavg()[0]
    few = {"n_members": 2} if how == "passes" else {"n_jobs": n_jobs}
    model = PNNRegressor(max_epochs=max_epochs, random_state=0, **few)
    coming: list[Any] = []
    started = time.perf_counter()
    if how != "memory":
        model.fit_table(path, target="y", on_forecast=coming.append)
    else:
        table = pd.read_parquet(path)
        coming.append(model.forecast(table.drop(columns="y"), table["y"]))
        started = time.perf_counter()
        model.fit(table.drop(columns="y"), table["y"])
    seconds = time.perf_counter() - started
    get_reusable_executor().shutdown(wait=True)  # the system counts a child's memory when it has ended
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    X, y = draw(N_TEST, 10**6)
    X = pd.DataFrame(X, columns=model.feature_names_in_)
    low, high = model.predict_interval(X.iloc[:10_000]).T
    return {
        "how": how,
        "n_rows": model.n_rows_["training"],
        "n_features": N_COLUMNS,
        "max_epochs": max_epochs,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(who.ru_utime + who.ru_stime for who in usage), 1),
        "peak_gb": round(usage[0].ru_maxrss * 1024 / 1e9, 3),
        "peak_worker_gb": 0.0 if how == "passes" else round(usage[1].ru_maxrss * 1024 / 1e9, 3),
        "mae_test": round(float(np.abs(model.predict(X) - y).mean()), 4),
        "mae_noise": round(NOISE * float(np.sqrt(2 / np.pi)), 4),
        "oob_mae": round(model.oob_mae_, 4),
        "coverage_95": round(float(((low <= y[:10_000]) & (y[:10_000] <= high)).mean()), 3),
        "best_epoch": model.best_epoch_,
        "kinds": " ".join(f"{kind}:{weight:.2f}" for kind, weight in model.kind_weights_.items()),
        "n_jobs": model.n_jobs or 1,
        "n_processors": os.cpu_count(),
        "load": round(load, 1),
        "forecast_seconds": "" if how == "passes" else round(coming[0].seconds, 1),
        "forecast_gb": "" if how == "passes" else round(coming[0].memory / 1e9, 3),
        "recipe_version": RECIPE_VERSION,
    }


def measure(how: str, n_rows: int, max_epochs: int) -> None:
    """Draw, fit, record: two processes."""
    OUT.parent.mkdir(parents=True, exist_ok=True)
    module = [sys.executable, "-m", "benchmarks.scale.rows"]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table.parquet")
        subprocess.run([*module, "--draw", str(n_rows), path], check=True)
        done = subprocess.run(
            [*module, "--fit", how, str(max_epochs), str(N_JOBS), path], check=True, stdout=subprocess.PIPE, text=True
        )
    row = json.loads(done.stdout)
    print(row, flush=True)
    rows = []
    if OUT.exists():
        with OUT.open(encoding="utf-8", newline="") as lines:
            rows = [old for old in csv.DictReader(lines) if _case(old) != (how, n_rows, max_epochs)]
    rows.append(row)
    rows.sort(key=lambda row: CASES.index(_case(row)))
    with OUT.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _case(row: dict[str, Any]) -> tuple[str, int, int]:
    return str(row["how"]), int(row["n_rows"]), int(row["max_epochs"])


def main(arguments: list[str]) -> None:
    """All cases, one of them, or one of their processes."""
    if arguments[:1] == ["--draw"]:
        write(Path(arguments[2]), int(arguments[1]))
    elif arguments[:1] == ["--fit"]:
        print(json.dumps(fit(Path(arguments[4]), arguments[1], int(arguments[2]), int(arguments[3]))))
    else:
        for how, n_rows, max_epochs in CASES:
            if not arguments or arguments == [how, str(n_rows), str(max_epochs)]:
                measure(how, n_rows, max_epochs)


if __name__ == "__main__":
    main(sys.argv[1:])
