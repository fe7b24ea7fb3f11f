"""What an experiment is made of: jobs, each of which becomes one line of ``rows.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

Row = dict[str, Any]
"""JSON values by name."""


@dataclass(frozen=True)
class Job:
    """One fit to be: a method on one repeat of one setting."""

    method: str
    repeat: int
    seed: int
    setting: Mapping[str, Any] = field(default_factory=dict)
    """What else tells jobs apart, such as {"sparsity": 0.2}; goes into the row."""
    after: str | None = None
    """Name of an earlier job whose row this one is given, to reuse the parameters chosen there."""

    @property
    def name(self) -> str:
        """Unique in its experiment."""
        extra = "".join(f"/{key}={value}" for key, value in self.setting.items())
        return f"{self.method}/{self.repeat}{extra}"


@dataclass(frozen=True)
class Finished:
    """What a job leaves behind."""

    row: Row
    """Scores, chosen parameters, seconds; the runner adds who it was and how it was made."""
    trials: Sequence[Row] = ()
    """One a candidate that was tried on the way: parameters, validation score, epochs trained."""


class Work(Protocol):
    """Does a job; it travels to workers, so it must be picklable."""

    def __call__(self, job: Job, earlier: Row | None, scratch: Path | None) -> Finished:
        """``earlier`` is the row of ``job.after``; ``scratch`` a folder of this job's own that survives a restart."""
        ...


@dataclass(frozen=True)
class Experiment:
    """Everything the runner needs."""

    name: str
    config: Mapping[str, Any]
    """JSON values; their hash tells experiments apart. Nothing that cannot change a number (jobs, folder) is in it."""
    data_hash: str
    jobs: tuple[Job, ...]
    """A job stands behind the one it needs."""
    work: Work
    splits: pd.DataFrame | None = None
    """A row a sample, a column a repeat: train, validation or test."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for the page: kind, task, target, rows, columns, what to expect, the paper's figures."""
