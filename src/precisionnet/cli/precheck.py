"""What can be refused before anything heavy is imported: a typing mistake should not cost five seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from precisionnet.errors import InputError, ModelFileError
from precisionnet.parameters import BY_NAME

WRITERS = (".csv", ".tsv", ".parquet")
COHORTS = ("abide", "ants", "adni")
"""What ``compare`` takes in the place of a table; as ``paper.config`` has them."""


def check_parameters(parameters: dict[str, Any]) -> None:
    """Every model parameter in its range, named as the option it was given by."""
    for name, value in parameters.items():
        complaint = BY_NAME[name].complaint(value)
        if complaint is not None:
            raise InputError(f"--{name.replace('_', '-')} {complaint}.")


def check_fit(task: str, test_fraction: float) -> None:
    """What ``fit`` takes beside columns and model parameters."""
    if task not in ("auto", "regression", "classification"):
        raise InputError(f"--task must be auto, regression or classification, got {task!r}.")
    if not 0.0 < test_fraction < 1.0:
        raise InputError(f"--test-fraction must be between 0 and 1, got {test_fraction:g}; 0.2 holds out a fifth.")


def check_model(folder: str) -> None:
    """The model folder is there, and is a folder."""
    place = Path(folder)
    try:
        kind = "is a file" if place.is_file() else "does not exist"
        if place.is_dir():
            kind = "" if any(place.iterdir()) else "is empty"
    except (OSError, ValueError) as error:
        kind = f"cannot be reached ({getattr(error, 'strerror', None) or error})"
    if kind:
        raise ModelFileError(f"Model folder {folder!r} {kind}: pass the folder that precisionnet fit wrote.")


def check_out(out: str) -> None:
    """An output folder with a name; '' would mean the current folder."""
    if not out.strip():
        raise InputError("--out is empty: name a folder for the results.")


def named_cohort(tables: list[str]) -> str | None:
    """The cohort that stands in the place of a table; a file of that name is a table."""
    (first, *more) = tables
    return first if first in COHORTS and not more and not Path(first).exists() else None


def check_target(target: str | None, cohort: str | None, data: str | None) -> None:
    """A table needs a target, a cohort has one."""
    if cohort is None and target is None:
        raise InputError("--target is missing: name the column to predict.")
    if cohort is None and data is not None:
        raise InputError(f"--data is where the tables of {', '.join(COHORTS)} are: leave it out with a table.")
    if cohort is not None and target not in (None, "age"):
        raise InputError(f"{cohort} is compared on age: leave --target {target} out.")


def check_search(repeats: int | None, search: str, trials: int | None, *, defaults: bool = False) -> None:
    """What ``compare`` takes beside columns and methods."""
    if defaults and (search != "grid" or trials is not None):
        raise InputError("--defaults tunes nothing, --search and --trials say how to tune: give one of them.")
    if repeats is not None and repeats < 1:
        raise InputError(f"--repeats must be at least 1, got {repeats}; 5 is usual.")
    if search not in ("grid", "optuna"):
        raise InputError(f"--search must be grid or optuna, got {search!r}.")
    if trials is not None and trials < 1:
        raise InputError(f"--trials must be at least 1, got {trials}.")
    if trials is not None and search == "grid":
        raise InputError("--trials is the budget of --search optuna: add that, or leave --trials out.")


def check_workers(jobs: int | None, scheduler: str | None) -> None:
    """Where fits run: on this machine or on a cluster."""
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}; leave it out to use every core.")
    if jobs is not None and scheduler is not None:
        raise InputError("--jobs counts processes on this machine, a scheduler has its own workers: give one of them.")


def check_data(folder: str | None) -> None:
    """A folder of tables that is there."""
    if folder is not None and not Path(folder).is_dir():
        raise InputError(f"--data {folder!r} is not a folder: pass the one that holds the tables.")


def check_results(folder: str) -> None:
    """A folder that an experiment was stored in."""
    if not (Path(folder) / "experiment.json").is_file():
        raise InputError(f"{folder!r} is not a results folder: pass one that precisionnet compare or reproduce made.")


def check_ending(output: str | None) -> None:
    """An output we can write."""
    if output is not None and Path(output).suffix.lower() not in WRITERS:
        raise InputError(f"Cannot write {output!r}: its ending must be one of {', '.join(WRITERS)}.")
