"""``precisionnet compare``, once the table is read and checked: every method on it, and whether to use this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from precisionnet.cli import console
from precisionnet.cli.experiments import run_write_print
from precisionnet.datasets import Dataset
from precisionnet.datasets.checks import Finding
from precisionnet.evaluation.comparison import compare_experiment
from precisionnet.evaluation.methods import QUICK_GRID, quick_methods
from precisionnet.evaluation.tuning import Tuning
from precisionnet.types import TaskName

QUICK_REPEATS, REPEATS = 2, 5


def filled(data: Dataset) -> list[str]:
    """What happens to missing values, where there are some."""
    if not data.X.isna().any(axis=None):
        return []
    return ["Missing values are filled with their column's median of the training rows; boosting takes them as gaps."]


def prepare_cohort(cohort: str, folder: Path | None) -> tuple[Dataset, dict[str, str]]:
    """The rows of a cohort we know, fetched where they are not in the folder, and what its page says of them."""
    from precisionnet.paper.cohorts import cohort_about, load_cohort

    with console.working(f"loading {cohort}"):
        data = load_cohort(cohort, folder)
    return data, cohort_about(cohort)


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
    defaults: bool = False,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Build, run, write, print; ``about`` is what the page says differently."""
    if methods is None and quick:
        methods = list(quick_methods(task))
    told = [*data.notes, *(finding.sentence for finding in findings if finding.level != "note")]
    experiment = compare_experiment(
        replace(data, notes=(*told, *filled(data))),
        task,
        methods,
        repeats if repeats is not None else QUICK_REPEATS if quick else REPEATS,
        seed,
        tuning=Tuning("none" if defaults else search, **({} if trials is None else {"trials": trials})),  # type: ignore[arg-type]
        networks=QUICK_GRID if quick and not defaults else None,
        source=source,
        about=about,
    )
    how = f"{task} (guessed; --task sets it)" if guessed else task
    size = f"{len(data)} rows, {data.X.shape[1]} columns, {len(experiment.jobs)} fits"
    console.note(f"{experiment.about['target']}: {how}, {size}")
    run_write_print(experiment, out, jobs, scheduler, told)
