"""How safe a saved model is: kills during a save, readers beside writers; and the memory that predictions take.

    python -m benchmarks.files.run    writes results/files.csv; about ten minutes

- ``kills``: a forked child saves two models in turn, over and over, until SIGKILL comes after a random time. *Failed*
  is a kill after which the path does not hold one of the two, whole. *Halfway* counts kills that left a scratch file,
  *left behind* what is beside the model after the next save.
- ``readers``: the parent loads, over and over, beside two children who save. *Failed* is a load that does not give one
  of the two models. ``output folder`` is the same for what ``precisionnet fit`` writes: a folder with a model in it.
- ``predict``: growth of the resident memory beyond the process with the table loaded, from ``VmHWM``.

Linux only.
"""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from precisionnet import PNNRegressor, load
from precisionnet.datasets import make_gaussian_regression
from precisionnet.errors import PrecisionNetError
from precisionnet.outputs import whole_folder
from precisionnet.versions import versions

ROOT = Path(__file__).parents[2]
OUT = ROOT / "results" / "files.csv"
KILLS, READ_SECONDS = 1000, 10.0
LONGEST_WAIT = 0.08
"""Seconds until a kill; a save takes about half as long."""
TABLE = 1_000_000, 50
OUTPUTS = {"model", "predictions.csv", "report.html"}


@dataclass(frozen=True)
class Row:
    """One line of the results; what does not apply is empty."""

    case: str
    attempts: int | str = ""
    failed: int | str = ""
    halfway: int | str = ""
    left_behind: int | str = ""
    table_gb: float | str = ""
    growth_gb: float | str = ""
    made_with: str = " ".join(f"{name}={version}" for name, version in versions().items())


def main() -> None:
    """Measure everything."""
    models = two_models()
    rows = []
    for case, save in {"model": save_model, "output folder": save_output}.items():
        with tempfile.TemporaryDirectory(dir=ROOT) as folder:  # on a disk: /tmp may be memory
            rows.append(Row(f"kills, {case}", KILLS, *kills(Path(folder), models, KILLS, save)))
        with tempfile.TemporaryDirectory(dir=ROOT) as folder:
            n_reads, failed = reads(Path(folder), models, READ_SECONDS, save)
        rows.append(Row(f"readers, {case}", n_reads, failed))
    for kind in ("float64 array", "float32 array", "data frame of two dtypes"):
        command = [sys.executable, "-m", "benchmarks.files.run", kind, *map(str, TABLE)]
        grown = float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
        size = TABLE[0] * TABLE[1] * (4e-9 if kind.startswith("float32") else 8e-9)
        rows.append(Row(f"predict, {kind}", table_gb=round(size, 3), growth_gb=round(grown, 3)))
    with OUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    print(OUT.read_text())


def two_models() -> list[Any]:
    """Return two fitted models that predict different numbers."""
    data = make_gaussian_regression(n_samples=60, n_features=12, random_state=0)
    return [
        PNNRegressor(n_members=2, max_epochs=1, random_state=seed).fit(data.X, data.y + 100 * seed) for seed in (0, 1)
    ]


def save_model(model: Any, place: Path) -> None:
    """Save as ``model.save`` does."""
    model.save(place)


def save_output(model: Any, place: Path) -> None:
    """Write a folder as ``precisionnet fit`` does."""
    with whole_folder(place, lambda folder: {path.name for path in folder.iterdir()} == OUTPUTS) as scratch:
        model.save(scratch / "model")
        (scratch / "predictions.csv").write_text("id,predicted\n")
        (scratch / "report.html").write_text("<p>" * 1000)


def kills(
    folder: Path, models: list[Any], count: int, save: Callable[[Any, Path], None] = save_model
) -> tuple[int, int, int]:
    """Return how many kills lost the model, how many left a scratch, and how many files the next save left behind."""
    place, failed, halfway, left, draw = folder / "m", 0, 0, 0, random.Random(0)
    save(models[0], place)
    whole = files_below(folder)
    for _ in range(count):
        with saving(models, place, save):
            time.sleep(draw.uniform(0.0, LONGEST_WAIT))
        failed += which(models, place) is None
        halfway += files_below(folder) != whole
        if draw.random() < 0.2:  # mostly the next child cleans up
            save(models[1], place)
            left += len(files_below(folder) - whole)
    save(models[0], place)
    return failed + (which(models, place) != 0), halfway, left + len(files_below(folder) - whole)


def reads(
    folder: Path, models: list[Any], seconds: float, save: Callable[[Any, Path], None] = save_model
) -> tuple[int, int]:
    """Return how often a model was loaded beside two writers, and how many loads failed."""
    place, n_reads, failed = folder / "m", 0, 0
    save(models[0], place)
    with saving(models, place, save), saving(models[::-1], place, save):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            failed += which(models, place) is None
            n_reads += 1
    return n_reads, failed


@contextmanager
def saving(models: list[Any], place: Path, save: Callable[[Any, Path], None]) -> Iterator[int]:
    """Save in a forked child, the models in turn, until the block ends and SIGKILL comes."""
    child = os.fork()
    if child == 0:
        try:
            while True:
                for model in models:
                    save(model, place)
        except BaseException as error:
            os.write(2, f"the writer failed: {error!r}\n".encode())
        finally:
            os._exit(1)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise RuntimeError("the writer ended before it was killed")


def which(models: list[Any], place: Path) -> int | None:
    """Return which of the models is at a place, None where it is none of them."""
    try:
        found = load(place)
    except PrecisionNetError:
        return None
    same = [np.array_equal(found.oob_prediction_, model.oob_prediction_, equal_nan=True) for model in models]
    return same.index(True) if True in same else None


def files_below(folder: Path) -> set[Path]:
    """List everything below a folder."""
    return set(folder.rglob("*"))


def growth(kind: str, n_rows: int, n_columns: int) -> float:
    """Return by how many gigabytes ``predict`` grows beyond the process with the table loaded."""
    import pandas as pd

    draw = np.random.default_rng(0)
    few = draw.standard_normal((200, n_columns))
    model = PNNRegressor(max_epochs=1, l1_penalty=0.3, random_state=0).fit(few, few[:, 0])
    X: Any = draw.standard_normal((n_rows, n_columns), dtype=np.float32 if kind == "float32 array" else np.float64)
    if kind.startswith("data frame"):
        X = pd.DataFrame({f"c{i}": X[:, i].astype(np.int64) if i % 2 else X[:, i].copy() for i in range(n_columns)})
        X.columns = range(n_columns)  # no names, as in the fit
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    model.predict(X)
    return _status("VmHWM") - before


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024e-9 for line in lines if line.startswith(name))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(growth(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
