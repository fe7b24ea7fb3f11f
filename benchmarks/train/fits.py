"""A whole fit with the defaults: eight members, beside single networks with the one and with the other readout."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.train.epochs import seconds
from benchmarks.train.rows import OURS, Row
from benchmarks.train.task import Task
from benchmarks.train.threads import threads
from precisionnet import PNNRegressor

FITS: dict[str, dict[str, Any]] = {
    OURS: {},
    "one member, mean readout": {"n_members": 1, "readout": "mean"},
    "one member, flattened readout": {"n_members": 1, "readout": "mlp"},
}


def measure_fits(task: Task, numbers: list[int], repeats: int, **quicker: Any) -> Iterator[Row]:
    """A row a fit and number of threads; ``quicker`` are parameters for a quick look."""
    X, y = task.raw_train.X, np.asarray(task.raw_train.y, dtype=np.float64)
    times: dict[tuple[str, int], list[float]] = {(name, number): [] for name in FITS for number in numbers}
    for repeat in range(repeats + 1):  # the first one warms up
        for (name, number), taken in times.items():
            model = PNNRegressor(random_state=repeat, **FITS[name] | quicker)
            with threads(number), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                took = seconds(partial(model.fit, X, y))
            if repeat:
                taken.append(took)
    for (name, number), taken in times.items():
        ratio = median(t / ours for t, ours in zip(taken, times[OURS, number], strict=True))
        yield Row(
            "default fit",
            task.name,
            "PNNRegressor()",
            number,
            name,
            seconds=median(taken),
            times_ours=ratio,
            fastest=min(taken),
            slowest=max(taken),
            repeats=repeats,
        )
