"""Whole fits of this code beside those of an earlier checkout, on the same rows.

    python -m benchmarks.train.before --before PATH [--repeats N] [--only CASE] [--out FILE] [--quiet MINUTES]

``PATH`` is a checkout of an earlier commit. In every repeat each case is fitted once by either code, in processes of
their own that take turns in going first, so that both meet the same moods of the machine. A process warms up (imports,
compiled kernels, workers) and then times one fit. The ratio is this code's time over the earlier one's; its median over
the repeats is what counts. Rows are appended to ``results/rebuild.csv``, with the commits and versions.

On a machine that others use, two cores are rarely free. With ``--quiet`` a fit counts only if other processes took less
than a tenth of a core while it ran; it is done again until that is so, for so many minutes at most.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.train.task import Task, drawn_task, the_task
from precisionnet.paper.readings import CONVENTIONS
from precisionnet.versions import versions

ROOT = Path(__file__).parents[2]
OUT = ROOT / "results" / "rebuild.csv"


@dataclass(frozen=True)
class Case:
    """One fit: parameters that both codes know, those of this one alone, and the ratio that is asked for."""

    both: dict[str, Any]
    now: dict[str, Any]
    asked: float
    threads: int = 1


CASES = {
    "default fit": Case({}, {}, 1.05),
    "two layers": Case({"n_layers": 2}, {}, 1.05),
    # Patience as long as the run: both take the same number of epochs.
    "paper's recipe": Case({"recipe": "paper", "patience": 10, **CONVENTIONS["flattened"]}, {}, 1.2),
    "default fit, n_jobs=2": Case({}, {"n_jobs": 2}, 0.65, threads=2),
}

FIT = """
import glob, json, os, sys, time, warnings
import numpy as np
from precisionnet import PNNRegressor
warnings.simplefilter("ignore")
order = json.loads(sys.argv[1])
rows = np.load(order["rows"])
X, y = rows["X"], rows["y"]
PNNRegressor(**order["parameters"] | order["warm"]).fit(X, y)
def others():  # processor seconds of all processes but this one and its workers; Linux
    tick, mine = os.sysconf("SC_CLK_TCK"), 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            values = open(path).read().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if os.getpid() in (int(path.split("/")[2]), int(values[1])):
            mine += int(values[11]) + int(values[12])
    spent = [int(value) for value in open("/proc/stat").readline().split()[1:8]]
    return (sum(spent) - spent[3] - spent[4] - mine) / tick
until = time.monotonic() + order["quiet"]
def wait_for_free_cores():
    beside = np.inf
    while beside > 0.1:
        if time.monotonic() > until:
            sys.exit("something else ran beside every fit")
        beside = -others()
        time.sleep(1)
        beside += others()
while True:
    if order["quiet"]:
        wait_for_free_cores()
    model = PNNRegressor(**order["parameters"])
    beside = others() if order["quiet"] else 0.0
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if not order["quiet"] or others() - beside < 0.1 * wall:
        break
said = {"seconds": wall, "cpu": cpu, "epochs": model.n_iter_, "mae": float(abs(model.predict(X) - y).mean())}
if "n_jobs" in order["parameters"] and order["compare"]:
    alone = PNNRegressor(**order["parameters"] | {"n_jobs": None}).fit(X, y)
    said["identical"] = bool((alone.predict(X) == model.predict(X)).all() and alone.history_.equals(model.history_))
print(json.dumps(said))
"""


@dataclass(frozen=True)
class Row:
    """One case, all repeats of it."""

    case: str
    table: str
    threads: int
    repeats: int
    ratio: float
    """Median over the repeats of this code's seconds over the earlier one's."""
    lowest: float
    highest: float
    cpu_ratio: float | None
    """The same of processor time; None where workers compute."""
    asked: float
    seconds_before: float
    seconds_now: float
    epochs_before: int
    epochs_now: int
    mae_before: float
    """On the rows that were fitted, first repeat: both codes learn as well."""
    mae_now: float
    identical: str
    """Whether workers changed no bit, where there are any."""
    before: str
    now: str
    made_with: str


def main() -> None:
    """Parse, measure, append."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, metavar="PATH", help="checkout of an earlier commit")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--only", choices=list(CASES), action="append", help="one case; may be given again")
    parser.add_argument("--quick", action="store_true", help="a small drawn table and few epochs")
    parser.add_argument("--quiet", type=float, default=0.0, metavar="MINUTES", help="wait so long for free cores")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FILE")
    arguments = parser.parse_args()
    if not (arguments.before / "src" / "precisionnet").is_dir():
        parser.error("--before: there is no src/precisionnet in that folder; give a checkout of this repository.")
    task = drawn_task(100, 10) if arguments.quick else the_task()
    quicker = {"max_epochs": 3} if arguments.quick else {}
    for name in arguments.only or CASES:
        row = measure(name, task, arguments.before, arguments.repeats, quicker, 60 * arguments.quiet)
        append(arguments.out, row)
        print(f"{name:<22} {row.ratio:.3f} ({row.lowest:.3f} to {row.highest:.3f}), asked {row.asked:g}", flush=True)


def measure(name: str, task: Task, before: Path, repeats: int, quicker: dict[str, Any], quiet: float) -> Row:
    """Fit a case again and again, by either code in turn; wait ``quiet`` seconds at most for each fit's free cores."""
    case, pairs = CASES[name], []
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npz"
        np.savez(rows, X=task.raw_train.X.to_numpy(np.float64), y=np.asarray(task.raw_train.y, dtype=np.float64))
        for repeat in range(repeats):
            common = case.both | quicker | {"random_state": repeat}
            # Two epochs; in the standard recipe with Step 1 between them, so that workers have its kernels, too.
            warm = {"max_epochs": 2} | ({} if "recipe" in case.both else {"theta_every": 1})
            todo = [(before, common), (ROOT, common | case.now)]
            turns = todo if repeat % 2 == 0 else todo[::-1]
            done = [
                fit(folder, rows, parameters, case.threads, warm, repeat == 0, quiet) for folder, parameters in turns
            ]
            pairs.append(done if repeat % 2 == 0 else done[::-1])
    ratios = [now["seconds"] / old["seconds"] for old, now in pairs]
    (old, now), alone = pairs[0], not case.now
    return Row(
        name,
        task.name,
        case.threads,
        repeats,
        median(ratios),
        min(ratios),
        max(ratios),
        median(b["cpu"] / a["cpu"] for a, b in pairs) if alone else None,
        case.asked,
        median(a["seconds"] for a, _ in pairs),
        median(b["seconds"] for _, b in pairs),
        old["epochs"],
        now["epochs"],
        old["mae"],
        now["mae"],
        {True: "yes", False: "no"}.get(now.get("identical"), ""),
        commit(before),
        commit(ROOT),
        " ".join(f"{name}={number}" for name, number in versions().items()),
    )


def fit(
    checkout: Path,
    rows: Path,
    parameters: dict[str, Any],
    threads: int,
    warm: dict[str, Any],
    compare: bool,
    quiet: float,
) -> dict[str, Any]:
    """Fit once in a process of its own, with this checkout's code."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")} | dict.fromkeys(names, str(threads))
    order = json.dumps({"rows": str(rows), "parameters": parameters, "warm": warm, "compare": compare, "quiet": quiet})
    command = [sys.executable, "-c", FIT, order]
    done = subprocess.run(command, cwd=rows.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a fit failed:\n{done.stderr}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def commit(checkout: Path) -> str:
    """Return which code it is; ``+`` where files differ from the commit."""
    git = ["git", "-C", str(checkout)]
    name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True, check=True).stdout
    return name.strip() + "+" * bool(changed.strip())


def append(path: Path, row: Row) -> None:
    """Add a line, and the head where the file is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        if new:
            writer.writeheader()
        shown = {k: f"{v:.4g}" if isinstance(v, float) else "" if v is None else v for k, v in asdict(row).items()}
        writer.writerow(shown)


if __name__ == "__main__":
    main()
