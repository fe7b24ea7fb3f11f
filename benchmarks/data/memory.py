"""Peak memory of large tables: a csv into a frame, parquet files batch by batch into ``partial_fit``.

    python -m benchmarks.data.memory        writes results/data_memory.csv; a few minutes, 1 GB of temporary disk

Each case runs in a process of its own. ``peak_mb`` is the highest resident memory above what imports left, from
``VmHWM`` of /proc/self/status: ``getrusage`` would count the parent's memory at the fork, too. Linux only.
"""

from __future__ import annotations

import csv
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
OUT = ROOT / "results" / "data_memory.csv"
CSV_CASE = "csv", 200_000, 500
PARQUET_COLUMNS = 100
PARQUET_CASES = {"many groups": (100_000, 1_000_000), "one group": (200_000, 1_000_000)}
ROWS_AT_A_TIME = 5_000
GROUP_ROWS = 50_000
PACKAGES = "precisionnet", "numpy", "pandas", "pyarrow"


@dataclass(frozen=True)
class Row:
    """``ratio`` is the peak over the table as one float64 array."""

    case: str
    rows: int
    columns: int
    array_mb: float
    peak_mb: float
    ratio: float
    seconds: float
    versions: str


def main() -> None:
    """Write, measure and delete one table after the other."""
    found = []
    for row in _cases():
        print(f"{row.case}: {row.rows} x {row.columns}, {row.peak_mb:.0f} MB, {row.seconds:.1f} s", flush=True)
        found.append({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in asdict(row).items()})
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def _cases() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        case, n_rows, n_columns = CSV_CASE
        write_csv(path, n_rows, n_columns)
        yield measure(case, path, n_rows, n_columns)
        path.unlink()
        path = Path(folder) / "table.parquet"
        for layout, sizes in PARQUET_CASES.items():
            for n_rows in sizes:
                write_parquet(path, n_rows, PARQUET_COLUMNS, one_group=layout == "one group")
                yield measure(f"parquet, {layout}", path, n_rows, PARQUET_COLUMNS)
                path.unlink()


def write_csv(path: Path, n_rows: int, n_columns: int) -> None:
    """An id, and normal numbers with five decimals: about eight bytes each, as many as in memory."""
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    rng = np.random.default_rng(0)
    schema = _schema(n_columns).insert(0, pa.field("id", pa.string()))
    with pa_csv.CSVWriter(path, schema) as file:
        for first in range(0, n_rows, ROWS_AT_A_TIME):
            rows = range(first, min(first + ROWS_AT_A_TIME, n_rows))
            block = np.round(rng.standard_normal((n_columns, len(rows))), 5)
            columns = [pa.array([f"s{row:06d}" for row in rows]), *(pa.array(column) for column in block)]
            file.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def write_parquet(path: Path, n_rows: int, n_columns: int, *, one_group: bool) -> None:
    """Normal numbers, in groups of ``GROUP_ROWS`` rows or in a single one."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    schema = _schema(n_columns)
    if one_group:
        table = pa.table([pa.array(rng.standard_normal(n_rows)) for _ in range(n_columns)], schema=schema)
        parquet.write_table(table, path, row_group_size=n_rows)
        return
    with parquet.ParquetWriter(path, schema) as file:
        for first in range(0, n_rows, GROUP_ROWS):
            block = rng.standard_normal((n_columns, min(GROUP_ROWS, n_rows - first)))
            file.write_batch(pa.RecordBatch.from_arrays([pa.array(column) for column in block], schema=schema))


def _schema(n_columns: int) -> Any:
    import pyarrow as pa

    return pa.schema([(f"x{k}", pa.float64()) for k in range(n_columns)])


def measure(case: str, path: Path, n_rows: int, n_columns: int) -> Row:
    """Read the table in a new process."""
    command = [sys.executable, "-m", "benchmarks.data.memory", "--child", str(path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    got = json.loads(run.stdout.splitlines()[-1])
    if got["rows"] != n_rows:
        raise RuntimeError(f"{path} has {n_rows} rows, of which {got['rows']} arrived")
    array_mb = 8e-6 * n_rows * n_columns
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    made_with = " ".join(f"{name}={number}" for name, number in versions.items())
    peak = got["peak_mb"]
    return Row(case, n_rows, n_columns, array_mb, peak, peak / array_mb, got["seconds"], made_with)


def child(path: Path) -> None:
    """Read, and say what it cost."""
    read = _read_csv() if path.suffix == ".csv" else _stream_parquet()
    before, started = resident_mb("VmRSS"), time.perf_counter()
    n_rows = read(path)
    seconds = time.perf_counter() - started
    print(json.dumps({"rows": n_rows, "peak_mb": resident_mb("VmHWM") - before, "seconds": seconds}))


def _read_csv() -> Callable[[Path], int]:
    """Import now, read when called; the whole way to a data set with a target."""
    from precisionnet.datasets import load_table

    return lambda path: len(load_table(path, target="x0", id="id"))


def _stream_parquet() -> Callable[[Path], int]:
    from precisionnet.datasets.files.streaming import iter_batches
    from precisionnet.errors import PrecisionNetWarning
    from precisionnet.estimators import GraphicalLasso
    from precisionnet.precision import graphical_lasso

    warnings.simplefilter("ignore", PrecisionNetWarning)  # independent columns have no edges
    graphical_lasso(np.eye(3) + 0.5, 0.1)  # kernels are loaded as imports are

    def fit(path: Path) -> int:
        model = GraphicalLasso(l1_penalty=0.1)
        for batch in iter_batches(path):
            model.partial_fit(batch)
        return int(model.n_samples_)

    return fit


def resident_mb(which: str) -> float:
    """``VmRSS`` now or ``VmHWM`` at most, in MB of 10^6 bytes."""
    found = re.search(rf"^{which}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]))
    else:
        main()
