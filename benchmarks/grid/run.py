"""How much faster is a whole grid than its fits one after another?

    make bench-grid     writes results/grid_bench.csv; about a quarter of an hour on two quiet cores

The paper's grids (54 choices a method, 18 for ``sample``, which has no l1 penalty) are tuned on the same rows by
``PNNRegressor.fit`` for one choice after another, and by the runner: as it is by default, hopeless choices given up
early ("race"), and on the small table also with every choice trained to the end. The runner tunes as many repeats as
there are cores and its time is divided by them, as in an experiment of many repeats. ``validation_*`` are the best
validation errors found on the rows of the first repeat, ``*_before`` those of one after another: giving up early may
cost something, and this is where it shows. Both are minima over many choices on few rows, so part of a gap is luck.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd
from joblib import cpu_count

from precisionnet import PNNRegressor
from precisionnet.datasets import Dataset, fetch_abide, make_gaussian_regression
from precisionnet.evaluation.comparison import TuneAndTest, compare_experiment
from precisionnet.evaluation.methods import METHODS, PAPER_GRID
from precisionnet.evaluation.tuning import Tuning
from precisionnet.runner.jobs import Experiment
from precisionnet.runner.run import run_experiment
from precisionnet.versions import versions

OUT = Path(__file__).parents[2] / "results" / "grid_bench.csv"


@dataclass(frozen=True)
class Case:
    """A table, and what is timed on it."""

    table: str
    load: Callable[[], Dataset]
    methods: tuple[str, ...]
    races: tuple[bool, ...]


CASES = (
    Case(
        "synthetic 100 x 20",
        lambda: make_gaussian_regression(100, 20, sparsity=0.2, random_state=0),
        ("joint", "glasso", "sample"),
        (False, True),
    ),
    Case("abide 1035 x 62", fetch_abide, ("glasso",), (True,)),
)


def one_after_another(experiment: Experiment) -> tuple[float, list[list[float]]]:
    """Seconds for the grids of the first repeat, and the validation errors of each."""
    work = experiment.work
    assert isinstance(work, TuneAndTest)
    started, found = time.perf_counter(), []
    for job in (job for job in experiment.jobs if job.repeat == 0):
        train, validation, _ = work.source.split(job)
        space = METHODS[job.method].space("regression", PAPER_GRID)
        scores = []
        for values in product(*space.values()):
            model = PNNRegressor(job.method, **dict(zip(space, values, strict=True)), random_state=job.seed)
            model.fit(train.X, train.y, X_val=validation.X, y_val=validation.y)
            scores.append(float(model.history_.set_index("epoch").loc[model.best_epoch_, "validation_metric"]))
        found.append(scores)
    return time.perf_counter() - started, found


def through_the_runner(experiment: Experiment, repeats: int) -> tuple[float, list[float]]:
    """Seconds a repeat, and the best validation errors of the first one."""
    started = time.perf_counter()
    rows = run_experiment(experiment, jobs=repeats)
    return (time.perf_counter() - started) / repeats, [row["validation"] for row in rows if row["repeat"] == 0]


def measure(case: Case, cores: int) -> list[dict[str, object]]:
    """A row a way of the runner."""
    data = case.load()
    plain, before = one_after_another(compare_experiment(data, "regression", case.methods, cores, networks=PAPER_GRID))
    rows: list[dict[str, object]] = []
    for race in case.races:
        tuning = Tuning(race=race)
        tuned = compare_experiment(data, "regression", case.methods, cores, tuning=tuning, networks=PAPER_GRID)
        seconds, after = through_the_runner(tuned, cores)
        row: dict[str, object] = {
            "table": case.table,
            "way": "race" if race else "every choice",
            "cores": cores,
            "methods": " ".join(case.methods),
            "fits": sum(map(len, before)),
            "seconds_one_after_another": round(plain, 1),
            "seconds": round(seconds, 1),
            "times_faster": round(plain / seconds, 2),
        }
        for name, scores, best in zip(case.methods, before, after, strict=True):
            row |= {f"validation_{name}_before": round(min(scores), 3), f"validation_{name}": round(best, 3)}
        print(row, flush=True)
        rows.append(row)
    return rows


def main() -> None:
    """Measure and write."""
    warm_up = make_gaussian_regression(60, 5, random_state=0)  # compile what is compiled at first use
    PNNRegressor(max_epochs=1).fit(warm_up.X, warm_up.y)
    made_with = " ".join(f"{name}={version}" for name, version in versions().items())
    rows = [row for case in CASES for row in measure(case, int(cpu_count()))]
    pd.DataFrame(rows).assign(made_with=made_with).to_csv(OUT, index=False)


if __name__ == "__main__":
    main()
