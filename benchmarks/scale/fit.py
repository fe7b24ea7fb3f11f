"""Fits: seconds, peak memory and error against the number of columns and of members; sparse against dense products.

    python -m benchmarks.scale.fit                        # all, each in a process of its own
    python -m benchmarks.scale.fit defaults 2000           # one: case and columns
    python -m benchmarks.scale.fit members 2000 8          # one: case, columns and members

Cases:

``defaults``  300 rows, nothing set: one giant component of chance edges.
``dense``     the same with matrices of all pairs.
``planted``   500 rows, the target a sum of 20 columns and noise; 500 other rows judge, beside scikit-learn's LassoCV.
``columns``   500 rows, 1,000 to 10,000 columns at a fixed number of edges per node; with ``planted`` the slope of time.
``members``   networks of kind "both": 300 columns with matrices of all pairs, 2,000 on a sparse support.
``predict``   a matrix of 5,000 nodes with 1 % edges: rows per second on it, sparse against dense.
``error``     the same table with both supports: drawn ones, and ABIDE where PRECISIONNET_DATA is set.

Columns come in chains of ten, each 0.6 of the one before and 0.8 noise. Every case runs in a process of its own whose
peak memory the operating system tells; kernels are compiled before, once a machine. Rows go to results/scale/fit.csv
and replace earlier ones of the same case; a cell is empty where a row is older than its column. ``load`` is the
machine's one-minute average before the fit: above zero, others worked, and ``seconds`` are too many; ``cpu_seconds``
count this process alone. ``forecast_seconds`` and ``forecast_gb`` are what ``forecast`` said before.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).parents[2] / "results" / "scale" / "fit.csv"
N_PLANTED = 20
L1_SCALE = 1.5
CASES: tuple[tuple[Any, ...], ...] = (
    ("defaults", 2000),
    ("dense", 200),
    ("dense", 400),
    ("dense", 1000),
    ("columns", 1000),
    ("columns", 2000),
    ("columns", 5000),
    ("columns", 10000),
    ("planted", 20000),
    *(("members", n, n_members) for n in (300, 2000) for n_members in (4, 8, 16)),
    ("predict", 5000),
    ("error", 300),
    ("error", 600),
    ("error", 0),
)
"""Case, columns and, of one, members; ``error 0`` is ABIDE."""
FIELDS = (
    "case", "support", "n_rows", "n_features", "l1_scale", "seconds", "cpu_seconds", "peak_gb", "n_edges", "error",
    "peer", "peer_error", "peer_seconds", "planted", "found", "difference", "kinds", "load", "n_members",
    "forecast_seconds", "forecast_gb", "recipe_version",
)  # fmt: skip


def table(n_rows: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, target and planted columns."""
    rng = np.random.default_rng([seed, n])
    planted = np.sort(rng.choice(n, N_PLANTED, replace=False))
    signs = rng.choice([-1.0, 1.0], N_PLANTED)
    X = rng.standard_normal((n_rows, n))
    for j in range(1, n):
        if j % 10:
            X[:, j] *= 0.8
            X[:, j] += 0.6 * X[:, j - 1]
    return X, X[:, planted] @ signs + rng.standard_normal(n_rows), planted


def fit(X: np.ndarray, y: np.ndarray, **parameters: Any) -> tuple[Any, dict[str, Any]]:
    """The fit that is measured."""
    from precisionnet import PNNRegressor
    from precisionnet.versions import RECIPE_VERSION

    row: dict[str, Any] = {"n_rows": len(X), "n_features": X.shape[1], "load": round(os.getloadavg()[0], 1)}
    model = PNNRegressor(random_state=0, **parameters)
    coming = model.forecast(X, y)
    started, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more columns than rows
        model.fit(X, y)
    row |= {
        "forecast_seconds": round(coming.seconds, 1),
        "forecast_gb": round(coming.memory / 1e9, 2),
        "recipe_version": RECIPE_VERSION,
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(time.process_time() - used, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
        "support": "sparse" if model.fitted.on_support else "dense",
        "l1_scale": model.l1_scale,
        "n_edges": len(model.to_edge_frame()),
        "kinds": " ".join(f"{name}={weight:.2f}" for name, weight in model.kind_weights_.items()),
    }
    return model, row


def defaults(n: int) -> list[dict[str, Any]]:
    """Nothing set."""
    X, y, _ = table(300, n)
    return [fit(X, y)[1]]


def dense(n: int) -> list[dict[str, Any]]:
    """All pairs."""
    X, y, _ = table(300, n)
    return [fit(X, y, support="dense")[1]]


def columns(n: int) -> list[dict[str, Any]]:
    """A fixed number of edges per node."""
    X, y, _ = table(500, n)
    return [fit(X, y, l1_scale=L1_SCALE, support="sparse")[1]]


def planted(n: int) -> list[dict[str, Any]]:
    """Recovery and error beside a cross-validated lasso."""
    from sklearn.linear_model import LassoCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, true = table(1000, n)
    model, row = fit(X[:500], y[:500], l1_scale=L1_SCALE)
    strongest = np.argsort(-np.abs(model.task_nodes_))[: 2 * N_PLANTED]
    row |= {"planted": N_PLANTED, "found": int(np.isin(true, strongest).sum())}
    row["error"] = round(float(np.abs(model.predict(X[500:]) - y[500:]).mean()), 4)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = make_pipeline(StandardScaler(), LassoCV(random_state=0)).fit(X[:500], y[:500])
    row |= {"peer": "LassoCV", "peer_seconds": round(time.perf_counter() - started, 1)}
    return [row | {"peer_error": round(float(np.abs(peer.predict(X[500:]) - y[500:]).mean()), 4)}]


def members(n: int, n_members: int) -> list[dict[str, Any]]:
    """One kind of network, so many of them."""
    X, y, _ = table(300, n)
    shape = {"support": "dense"} if n <= 500 else {"support": "sparse", "l1_scale": L1_SCALE}
    return [fit(X, y, n_members=n_members, readout="both", **shape)[1] | {"n_members": n_members}]


def warm() -> None:
    """Compile what the cases use: that of the solvers, and of both supports; it is kept on disk."""
    from benchmarks.precision.solvers import SOLVERS
    from precisionnet import PNNRegressor

    SOLVERS["precisionnet"].warm_up()
    X, y, _ = table(60, 120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more columns than rows
        for support in ("dense", "sparse"):
            PNNRegressor(support=support, max_epochs=2, random_state=0).fit(X, y).predict(X)


def predict(n: int) -> list[dict[str, Any]]:
    """Networks as a default fit has them, on one sparse matrix, by sparse products and by dense ones."""
    import torch
    from scipy import sparse

    from precisionnet.nn import PrecisionNetwork
    from precisionnet.nn.sparse_shift import SparseShift
    from precisionnet.sparse_matrices import Support

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    half = sparse.random_array((n, n), density=0.005, rng=rng)
    matrix = sparse.csr_array(half + half.T + sparse.eye_array(n))
    support = Support.of(matrix)
    shifts = {
        "sparse": SparseShift(torch.from_numpy(support.values_of(matrix)), support),
        "dense": torch.from_numpy(matrix.toarray()),
    }
    network = PrecisionNetwork(n, n_filters=8, order=3, readout="mean").double().eval()
    x = torch.from_numpy(rng.standard_normal((512, n, 1)))
    rows, outputs = [], {}
    for name, shift in shifts.items():
        at_once = 32 if name == "sparse" else 13  # as Fitted takes them
        load = round(os.getloadavg()[0], 1)
        with torch.no_grad():
            network(x[:at_once], shift)
            started, used = time.perf_counter(), time.process_time()
            outputs[name] = torch.cat([network(x[i : i + at_once], shift) for i in range(0, len(x), at_once)])
            seconds, cpu = time.perf_counter() - started, time.process_time() - used
        row = {"support": name, "n_rows": len(x), "n_features": n, "n_edges": support.n_edges, "load": load}
        rows.append(row | {"seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2)})
    largest = float(outputs["dense"].abs().max())
    rows[0]["difference"] = f"{float((outputs['sparse'] - outputs['dense']).abs().max()) / largest:.1e}"
    return rows


def error(n: int) -> list[dict[str, Any]]:
    """Both supports on the same rows: linear and not, or ABIDE."""
    if n:
        X, y, true = table(800, n)
        y = y + 2.0 * X[:, true[0]] * X[:, true[1]]
    else:
        from precisionnet.datasets import fetch_abide

        data = fetch_abide(progress=False)
        X, y = np.asarray(data.X), np.asarray(data.y)
    order = np.random.default_rng(1).permutation(len(X))
    train, test = np.split(order, [int(0.6 * len(order))])
    rows = []
    for support in ("dense", "sparse"):
        model, row = fit(X[train], y[train], support=support)
        rows.append(row | {"error": round(float(np.abs(model.predict(X[test]) - y[test]).mean()), 4)})
    return rows


def measure(case: str, *numbers: int) -> None:
    """Run one case in a process of its own and record its rows."""
    command = [sys.executable, "-m", "benchmarks.scale.fit", "--run", case, *map(str, numbers)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    new = [{"case": case} | row for row in json.loads(done.stdout.splitlines()[-1])]
    print(*new, sep="\n", flush=True)
    rows: list[dict[str, Any]] = []
    if OUT.exists():
        with OUT.open(encoding="utf-8", newline="") as lines:
            known = {_key(row) for row in new}
            rows = [old for old in csv.DictReader(lines) if _key(old) not in known]
    rows += new
    rows.sort(key=lambda row: (*_key(row), row["support"]))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with OUT.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    slope = cost_slope([row for row in rows if row["case"] in ("columns", "planted")])
    if slope is not None:
        print(f"processor seconds grow with the number of columns to the power {slope:.2f}")


def _key(row: dict[str, Any]) -> tuple[int, int, int]:
    """Rows with the same one are of the same case."""
    names = list(dict.fromkeys(name for name, *_ in CASES))
    return names.index(row["case"]), int(row["n_features"]), int(row.get("n_members") or 0)


def cost_slope(rows: list[dict[str, Any]]) -> float | None:
    """Slope of the logarithm of processor seconds against that of the columns."""
    if len(rows) < 2:
        return None
    n, seconds = (np.log([float(row[name]) for row in rows]) for name in ("n_features", "cpu_seconds"))
    return float(np.polyfit(n, seconds, 1)[0])


def main(arguments: list[str]) -> None:
    """All cases, one of them, or the process of one."""
    if arguments[:1] == ["--run"]:
        run = {function.__name__: function for function in (defaults, dense, columns, planted, members, predict, error)}
        print(json.dumps(run[arguments[1]](*map(int, arguments[2:]))))
    elif arguments == ["--warm"]:
        warm()
    else:
        subprocess.run([sys.executable, "-m", "benchmarks.scale.fit", "--warm"], check=True)
        for case, *numbers in [(arguments[0], *map(int, arguments[1:]))] if arguments else CASES:
            if (case, *numbers) != ("error", 0) or os.environ.get("PRECISIONNET_DATA"):
                measure(case, *numbers)


if __name__ == "__main__":
    main(sys.argv[1:])
