"""How much faster is a whole grid than its fits one after another?

    python -m benchmarks.grid.run [synthetic abide ...]     appends nothing, rewrites results/grid_bench.csv

For each table and method the paper's grid (54 choices; 18 where the l1 penalty plays no part) is tuned on the same
rows in three ways: ``PNNRegressor.fit`` for one choice after another; the runner with every choice trained to the end;
the runner as it is by default, hopeless choices given up early. The runner tunes as many repeats as there are cores and
its time is divided by them, as in an experiment of many repeats; a number above 1 in ``times_faster`` says how much
sooner it was done. ``validation`` is the best score found (mean over those repeats for the runner): giving up early may
cost something, and this is where it would show.
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
from precisionnet.estimators.files import versions
from precisionnet.experiments.comparing import compare_experiment
from precisionnet.experiments.config import PAPER_GRID, Tuning
from precisionnet.experiments.methods.registry import METHODS
from precisionnet.experiments.runner.running import run_experiment
from precisionnet.experiments.tune_and_test import TuneAndTest

OUT = Path(__file__).parents[2] / "results" / "grid_bench.csv"
METHODS_TIMED = ("joint", "glasso", "sample")


def tables() -> dict[str, Dataset]:
    """The paper's synthetic size, and ABIDE where its files are."""
    return {
        "synthetic 100 x 20": make_gaussian_regression(100, 20, sparsity=0.2, random_state=0),
        "abide 1035 x 62": fetch_abide(),
    }


def one_after_another(data: Dataset, method: str, repeats: int) -> tuple[float, list[float]]:
    """Seconds for the first repeat's grid; its best validation score."""
    work = compare_experiment(data, "regression", [method], repeats).work
    assert isinstance(work, TuneAndTest)
    job = compare_experiment(data, "regression", [method], repeats).jobs[0]
    train, validation, _, _ = work.source.sides(job)
    space = METHODS[method].space("regression", PAPER_GRID)
    started, scores = time.perf_counter(), []
    for values in product(*space.values()):
        model = PNNRegressor(method, **dict(zip(space, values, strict=True)), random_state=job.seed)
        model.fit(train.X, train.y, X_val=validation.X, y_val=validation.y)
        scores.append(float(model.history_.set_index("epoch").loc[model.best_epoch_, "validation_metric"]))
    return time.perf_counter() - started, [min(scores)]


def through_the_runner(data: Dataset, method: str, repeats: int, race: bool) -> tuple[float, list[float]]:
    """Seconds a repeat, and each repeat's best validation score."""
    experiment = compare_experiment(data, "regression", [method], repeats, tuning=Tuning(race=race))
    started = time.perf_counter()
    rows = run_experiment(experiment, jobs=repeats)
    return (time.perf_counter() - started) / repeats, [row["validation"] for row in rows]


def main() -> None:
    """Measure and write."""
    cores = cpu_count()
    made_with = " ".join(f"{name}={version}" for name, version in versions().items())
    rows = []
    warm_up = make_gaussian_regression(60, 5, random_state=0)  # compile what is compiled at first use
    through_the_runner(warm_up, "joint", cores, race=True)
    PNNRegressor(max_epochs=1).fit(warm_up.X, warm_up.y)
    for (table, data), method in product(tables().items(), METHODS_TIMED):
        if sys.argv[1:] and not any(table.startswith(name) for name in sys.argv[1:]):
            continue
        plain, first = one_after_another(data, method, cores)
        for way, race in (("grid", False), ("grid, race", True)):
            seconds, found = through_the_runner(data, method, cores, race)
            rows.append(
                {
                    "table": table,
                    "method": method,
                    "way": way,
                    "cores": cores,
                    "seconds_one_after_another": round(plain, 1),
                    "seconds": round(seconds, 1),
                    "times_faster": round(plain / seconds, 2),
                    "validation_one_after_another": round(first[0], 4),
                    "validation_same_repeat": round(found[0], 4),
                    "validation_all_repeats": round(sum(found) / len(found), 4),
                    "made_with": made_with,
                }
            )
            print(rows[-1], flush=True)
    pd.DataFrame(rows).to_csv(OUT, index=False)


if __name__ == "__main__":
    main()
