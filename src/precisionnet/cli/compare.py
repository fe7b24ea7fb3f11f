"""``precisionnet compare``, once the table is read and checked: every method on it, and whether to use this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from precisionnet.cli import console
from precisionnet.cli.experiments import run_write_print
from precisionnet.datasets import Dataset
from precisionnet.datasets.checks import Finding
from precisionnet.experiments.comparing import QUICK_GRID, compare_experiment
from precisionnet.experiments.config import Tuning
from precisionnet.types import TaskName

QUICK_REPEATS, REPEATS = 2, 5


def filled(data: Dataset) -> list[str]:
    """What happens to missing values, where there are some."""
    if not data.X.isna().any(axis=None):
        return []
    return ["Missing values are filled with their column's median of the training rows; boosting takes them as gaps."]


def run_compare(
    data: Dataset,
    findings: Sequence[Finding],
    task: TaskName,
    methods: list[str] | None,
    repeats: int | None,
    seed: int,
    search: str,
    trials: int | None,
    out: Path,
    source: str,
    jobs: int | None,
    scheduler: str | None,
    *,
    quick: bool,
    guessed: bool,
) -> None:
    """Build, run, write, print."""
    told = [*data.notes, *(finding.sentence for finding in findings if finding.level != "note")]
    experiment = compare_experiment(
        replace(data, notes=(*told, *filled(data))),
        task,
        methods,
        repeats if repeats is not None else QUICK_REPEATS if quick else REPEATS,
        seed,
        tuning=Tuning(search=search, **({} if trials is None else {"trials": trials})),  # type: ignore[arg-type]
        networks=QUICK_GRID if quick else None,
        source=source,
    )
    how = f"{task} (guessed; --task sets it)" if guessed else task
    size = f"{len(data)} rows, {data.X.shape[1]} columns, {len(experiment.jobs)} fits"
    console.note(f"{experiment.about['target']}: {how}, {size}")
    run_write_print(experiment, out, jobs, scheduler, told)
