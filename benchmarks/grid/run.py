"""How much faster is a whole grid than its fits one after another?

    python -m benchmarks.grid.run [synthetic abide]     writes results/grid_bench.csv

For each table the paper's grids of ``joint`` and ``glasso`` (54 choices each) and ``sample`` (18, without the l1 penalty)
are tuned on the same rows in three ways: ``PNNRegressor.fit`` for one choice after another; the runner with every choice
trained to the end; the runner as it is by default, hopeless choices given up early. The runner tunes as many repeats as
there are cores and its time is divided by them, as in an experiment of many repeats. ``validation_...`` are the best
validation errors found on the rows of the first repeat: giving up early may cost something, and this is where it shows.
"""

from __future__ import annotations

import sys
import time
from itertools import product
from pathlib import Path

import pandas as pd
from joblib import cpu_count

from precisionnet import PNNRegressor
from precisionnet.datasets import Dataset, fetch_abide, make_gaussian_regression
from precisionnet.experiments.comparing import compare_experiment
from precisionnet.experiments.config import PAPER_GRID, Tuning
from precisionnet.experiments.methods.registry import METHODS
from precisionnet.experiments.runner.jobs import Experiment
from precisionnet.experiments.runner.running import run_experiment
from precisionnet.experiments.tune_and_test import TuneAndTest
from precisionnet.versions import versions

OUT = Path(__file__).parents[2] / "results" / "grid_bench.csv"
TIMED = ("joint", "glasso", "sample")


def one_after_another(experiment: Experiment) -> tuple[float, list[float]]:
    """Seconds for the grids of the first repeat, and the best validation error of each."""
    work = experiment.work
    assert isinstance(work, TuneAndTest)
    started, best = time.perf_counter(), []
    for job in (job for job in experiment.jobs if job.repeat == 0):
        train, validation, *_ = work.source.sides(job)
        space = METHODS[job.method].space("regression", PAPER_GRID)
        scores = []
        for values in product(*space.values()):
            model = PNNRegressor(job.method, **dict(zip(space, values, strict=True)), random_state=job.seed)
            model.fit(train.X, train.y, X_val=validation.X, y_val=validation.y)
            scores.append(float(model.history_.set_index("epoch").loc[model.best_epoch_, "validation_metric"]))
        best.append(min(scores))
    return time.perf_counter() - started, best


def through_the_runner(experiment: Experiment, repeats: int) -> tuple[float, list[float]]:
    """Seconds a repeat, and what the first one found."""
    started = time.perf_counter()
    rows = run_experiment(experiment, jobs=repeats)
    return (time.perf_counter() - started) / repeats, [row["validation"] for row in rows if row["repeat"] == 0]


def measure(table: str, data: Dataset, cores: int) -> list[dict[str, object]]:
    """Two rows: every choice to the end, and the race."""
    plain, first = one_after_another(compare_experiment(data, "regression", TIMED, cores))
    rows: list[dict[str, object]] = []
    for way, race in (("every choice", False), ("race", True)):
        tuned = compare_experiment(data, "regression", TIMED, cores, tuning=Tuning(race=race))
        seconds, found = through_the_runner(tuned, cores)
        rows.append(
            {"table": table, "way": way, "cores": cores, "fits": 126}
            | {"seconds_one_after_another": round(plain, 1), "seconds": round(seconds, 1)}
            | {"times_faster": round(plain / seconds, 2)}
            | {
                f"validation_{name}_one_after_another": round(value, 3)
                for name, value in zip(TIMED, first, strict=True)
            }
            | {f"validation_{name}": round(value, 3) for name, value in zip(TIMED, found, strict=True)}
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and write."""
    tables = {
        "synthetic 100 x 20": lambda: make_gaussian_regression(100, 20, sparsity=0.2, random_state=0),
        "abide 1035 x 62": fetch_abide,
    }
    warm_up = make_gaussian_regression(60, 5, random_state=0)  # compile what is compiled at first use
    PNNRegressor(max_epochs=1).fit(warm_up.X, warm_up.y)
    wanted = sys.argv[1:] or list(tables)
    made_with = " ".join(f"{name}={version}" for name, version in versions().items())
    rows = [
        row
        for table, load in tables.items()
        if any(table.startswith(name) for name in wanted)
        for row in measure(table, load(), int(cpu_count()))
    ]
    pd.DataFrame(rows).assign(made_with=made_with).to_csv(OUT, index=False)


if __name__ == "__main__":
    main()
