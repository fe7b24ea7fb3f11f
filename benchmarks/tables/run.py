"""Run the suite: the defaults beside tuned plain models and rivals, on the same ten splits of every table.

    make tables                                                  both halves; many hours on two cores
    python -m benchmarks.tables.run --part development --splits 2 --methods joint ridge logistic

A split is that of the comparisons: 60 % of the rows to learn from, 20 % to choose parameters by, 20 % to be judged on,
whole people. ``joint`` is PNNRegressor or PNNClassifier with nothing set and sees the 60 % alone; every other method
chooses from its grid in ``precisionnet.evaluation.methods`` on the validation rows. What is judged is the mean absolute
error, or the log loss of classes, beside that of a constant (the median, or the shares of the classes, of the rows to
learn from).

Rows go to results/tables/rows.csv, one per table, split and method, and are only ever added: a run goes on where an
earlier one was ended. A row of joint is of one version of the recipe; a new version makes new rows. What a row was made
with stands in made_with.jsonl. Support vector machines and Gaussian processes take a limited number of rows to learn
from (``MOST_ROWS``), a random part of them where there are more.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables.tables import ENTRIES, PARTS, load, names
from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.datasets import Dataset
from precisionnet.evaluation.baselines import BaselineCandidate, fit_baseline
from precisionnet.evaluation.methods import METHODS, RIVALS
from precisionnet.evaluation.metrics import judge
from precisionnet.evaluation.protocol import FitData, Fold, data_hash, make_folds, target_of
from precisionnet.evaluation.rivals import why_not
from precisionnet.evaluation.tuning import search_grid
from precisionnet.types import TaskName
from precisionnet.versions import RECIPE_VERSION, versions

OUT = Path(__file__).parents[2] / "results" / "tables"
SPLITS = 10
PLAIN: dict[TaskName, tuple[str, ...]] = {
    "regression": ("ridge", "svr", "gp", "hist_gb"),
    "classification": ("logistic", "svc", "gp", "hist_gb"),
}
"""The plain models that joint must not fall behind."""
MOST_ROWS = {
    ("svr", "regression"): 3000,
    ("svc", "classification"): 2000,
    ("gp", "regression"): 1500,
    ("gp", "classification"): 500,
}
"""Rows that a method learns from at most; the time of one fit grows with the square or the cube of their number."""


@dataclass(frozen=True)
class Result:
    """One row."""

    table: str
    split: int
    method: str
    loss: float | None
    constant_loss: float
    seconds: float
    n_train: int
    n_learnt_from: int
    n_test: int
    n_columns: int
    parameters: str
    recipe_version: int
    data: str
    made_with: str
    error: str = ""


COLUMNS = [field.name for field in fields(Result)]
Job = tuple[str, int, str]


def methods_of(task: TaskName, asked: Sequence[str] | None = None) -> list[str]:
    """List the methods for a task: joint, the plain models and the rivals that can run, or those asked for."""
    known = ["joint", *PLAIN[task], *(name for name in RIVALS if why_not(name) is None)]
    return known if not asked else [name for name in known if name in asked]


def jobs_of(tables: Sequence[str], splits: int, methods: Sequence[str] | None) -> Iterator[Job]:
    """Every fit that is asked for; the first split of every table comes first."""
    for split in range(splits):
        for table in tables:
            for method in methods_of(ENTRIES[table].task, methods):
                yield table, split, method


def run(job: Job, made_with: str = "") -> Result:
    """Choose, fit and judge one method on one split of a table."""
    table, split, method = job
    data, task, fold, digest = _split(table, split)
    train, validation, test = fold.split(data)
    constant = fit_baseline("median" if task == "regression" else "majority", {}, FitData(train, train, task, 0))
    learnt_from = _limited(train, MOST_ROWS.get((method, task)), fold.seed)
    started = time.perf_counter()
    loss, parameters, error = None, {}, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, parameters = _fitted(method, FitData(learnt_from, validation, task, fold.seed))
            loss = _loss(model, test, task)
    except Exception as failed:  # one fit that fails is a row that says why, and does not end a night's run
        error = f"{type(failed).__name__}: {failed}"
    return Result(
        table,
        split,
        method,
        loss,
        _loss(constant, test, task),
        round(time.perf_counter() - started, 3),
        len(train),
        len(learnt_from),
        len(test),
        data.X.shape[1],
        json.dumps(parameters),
        RECIPE_VERSION,
        digest,
        made_with,
        error,
    )


def _fitted(method: str, data: FitData) -> tuple[Any, dict[str, Any]]:
    if method == "joint":
        kind = PNNRegressor if data.task == "regression" else PNNClassifier
        return kind(random_state=data.seed).fit(data.train.X, target_of(data.train)), {}
    space = METHODS[method].space(data.task, {})
    best = search_grid(lambda parameters: BaselineCandidate(method, parameters, data), space, {}).best
    return best.model(), best.parameters


def _loss(model: Any, rows: Dataset, task: TaskName) -> float:
    if task == "regression":
        return judge(target_of(rows), model.predict(rows.X))
    return judge(target_of(rows), model.predict_proba(rows.X), model.classes_)


def _limited(train: Dataset, most: int | None, seed: int) -> Dataset:
    """Draw the rows that a method learns from, where it takes no more."""
    if most is None or len(train) <= most:
        return train
    order = np.random.default_rng(seed).permutation(len(train))
    return train.take(np.sort(order[:most]))


@lru_cache(maxsize=8)
def _table(name: str) -> tuple[Dataset, TaskName, str]:
    table = load(name)
    data = table.dataset()
    return data, table.task, data_hash(data)[:8]


@lru_cache(maxsize=64)
def _split(name: str, split: int) -> tuple[Dataset, TaskName, Fold, str]:
    data, task, digest = _table(name)
    return data, task, make_folds(data, split + 1, 0, task=task)[split], digest


def known_jobs(path: Path, again: bool = False) -> set[Job]:
    """The fits that the file has: those of joint by the present recipe; ``again`` leaves out failed ones."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["table"], int(row["split"]), row["method"])
        for row in rows
        if (row["method"] != "joint" or row["recipe_version"] == str(RECIPE_VERSION)) and not (again and row["error"])
    }


def write_made_with(out: Path) -> str:
    """Note the versions once, by a hash that rows carry."""
    packages = {**versions(), **{name: found for name in RIVALS if (found := _version(name)) is not None}}
    text = json.dumps({"versions": packages, "most_rows": {"/".join(key): rows for key, rows in MOST_ROWS.items()}})
    key = hashlib.sha256(text.encode()).hexdigest()[:8]
    path = out / "made_with.jsonl"
    line = json.dumps({"made_with": key, **json.loads(text)})
    if not path.exists() or line not in path.read_text().splitlines():
        with path.open("a") as file:
            file.write(line + "\n")
    return key


def _version(rival: str) -> str | None:
    from importlib.metadata import version

    return version(RIVALS[rival]) if why_not(rival) is None else None


def append(path: Path, result: Result) -> None:
    """Add one row."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerow({**asdict(result), "loss": "" if result.loss is None else f"{result.loss:.6g}"})


def _results(jobs: Sequence[Job], workers: int, made_with: str) -> Iterator[Result]:
    work = partial(run, made_with=made_with)
    if workers == 1:
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: list[Future[Result]] = [pool.submit(work, job) for job in jobs]
        for done in as_completed(waiting):
            yield done.result()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables.run", description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=PARTS, default="development", help="half of the suite, or all")
    parser.add_argument("--tables", nargs="+", help="only these, of that part")
    parser.add_argument("--methods", nargs="+", help="only these")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--jobs", type=int, default=1, help="processes, one thread each")
    parser.add_argument("--again", action="store_true", help="run fits again that failed")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tables = [name for name in names(asked.part) if asked.tables is None or name in asked.tables]
    if asked.tables is not None and (lost := set(asked.tables) - set(tables)):
        parser.error(f"not in part {asked.part}: {', '.join(sorted(lost))}")
    for name in RIVALS:
        if (reason := why_not(name)) is not None and (asked.methods is None or name in asked.methods):
            print(f"{name} is left out: {reason}", flush=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / "rows.csv"
    known = known_jobs(path, asked.again)
    jobs = [job for job in jobs_of(tables, asked.splits, asked.methods) if job not in known]
    made_with = write_made_with(asked.out)
    for count, result in enumerate(_results(jobs, asked.jobs, made_with), 1):
        append(path, result)
        found = result.error or f"{result.loss:.4g} (constant {result.constant_loss:.4g})"
        print(f"{count}/{len(jobs)} {result.table} {result.split} {result.method} {found} {result.seconds:.1f} s")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
