"""Peak memory of large tables: csv files by several readers, parquet files batch by batch into ``partial_fit``.

    python -m benchmarks.data.memory        writes results/data_memory.csv; a few minutes, 1 GB of temporary disk
    python -m benchmarks.data.memory csv    measures the csv readers anew and keeps the other rows

Each case runs in a process of its own, one at a time. ``peak_mb`` is the highest resident memory above what imports
left, from ``VmHWM`` of /proc/self/status: ``getrusage`` would count the parent's memory at the fork, too. Linux only.

The csv readers all end with the same: the ids as text, and the numbers as one float64 array that a model can use. A
second file has one word in the last row of a column that holds numbers: what a reader then does is part of its price.
"""

from __future__ import annotations

import csv
import itertools
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
OUT = ROOT / "results" / "data_memory.csv"
CSV_CASE = "csv", 200_000, 500
READERS_CASE = 100_000, 200
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
    cpu_seconds: float
    versions: str


def main(*, csv_readers_only: bool = False) -> None:
    """Write, measure and delete one table after the other."""
    found = []
    if csv_readers_only:
        with OUT.open(encoding="utf-8", newline="") as file:
            found = [row for row in csv.DictReader(file) if not row["case"].startswith("csv reader")]
    for row in reader_cases() if csv_readers_only else itertools.chain(_cases(), reader_cases()):
        print(f"{row.case}: {row.rows} x {row.columns}, {row.peak_mb:.0f} MB, {row.seconds:.1f} s", flush=True)
        found.append({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in asdict(row).items()})
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
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


def reader_cases() -> Iterator[Row]:
    """Every csv reader on a clean file, and on one with a word in the last row."""
    n_rows, n_columns = READERS_CASE
    with tempfile.TemporaryDirectory() as folder:
        for what, late_word in (("numbers", False), ("a word in the last row", True)):
            path = Path(folder) / "table.csv"
            write_csv(path, n_rows, n_columns, late_word=late_word)
            for reader in READERS:
                yield measure(f"csv reader, {what}: {reader}", path, n_rows, n_columns, reader)
            path.unlink()


def write_csv(path: Path, n_rows: int, n_columns: int, *, late_word: bool = False) -> None:
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
    if late_word:
        with path.open("a", encoding="utf-8") as file:
            file.write(",".join(['"last"', "unknown", *["0.5"] * (n_columns - 1)]) + "\n")


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


def measure(case: str, path: Path, n_rows: int, n_columns: int, reader: str = "") -> Row:
    """Read the table in a new process."""
    command = [sys.executable, "-m", "benchmarks.data.memory", "--child", str(path), reader]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    got = json.loads(run.stdout.splitlines()[-1])
    if got["rows"] not in (n_rows, n_rows + 1):
        raise RuntimeError(f"{path} has {n_rows} rows, of which {got['rows']} arrived")
    array_mb = 8e-6 * n_rows * n_columns
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    made_with = " ".join(f"{name}={number}" for name, number in versions.items())
    peak = got["peak_mb"]
    ratio = peak / array_mb
    return Row(case, n_rows, n_columns, array_mb, peak, ratio, got["seconds"], got["cpu_seconds"], made_with)


def child(path: Path, reader: str = "") -> None:
    """Read, and say what it cost."""
    read = READERS[reader]() if reader else _load_table() if path.suffix == ".csv" else _stream_parquet()
    before, started, cpu = resident_mb("VmRSS"), time.perf_counter(), time.process_time()
    n_rows = read(path)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    peak_mb = resident_mb("VmHWM") - before
    print(json.dumps({"rows": n_rows, "peak_mb": peak_mb, "seconds": seconds, "cpu_seconds": cpu_seconds}))


def _load_table() -> Callable[[Path], int]:
    """Import now, read when called; the whole way to a data set with a target."""
    from precisionnet.datasets import load_table

    return lambda path: len(load_table(path, target="x0", id="id"))


def _own_reader() -> Callable[[Path], int]:
    from precisionnet.datasets.csv_files import read_numeric_csv

    return lambda path: _as_array(read_numeric_csv(path, text_columns=["id"]))


def _pandas(**options: Any) -> Callable[[], Callable[[Path], int]]:
    def prepare() -> Callable[[Path], int]:
        import pandas as pd
        import pyarrow.csv  # noqa: F401

        warnings.simplefilter("ignore")  # low_memory warns of columns that change their type
        return lambda path: _as_array(pd.read_csv(path, dtype={"id": str}, **options))

    return prepare


def _pandas_chunks() -> Callable[[Path], int]:
    """The nearest that a loop around pandas comes: chunks of rows copied into one array."""
    import pandas as pd

    def fill(path: Path, text: set[str]) -> int:
        with path.open("rb") as file:
            most_rows = sum(block.count(b"\n") for block in iter(lambda: file.read(2**21), b""))
        numbers, n_rows, labels = np.empty((0, 0)), 0, []
        types = dict.fromkeys(text, str)
        for chunk in pd.read_csv(path, dtype=types, chunksize=1_000, float_precision="round_trip"):  # type: ignore[call-overload]
            numeric = chunk.drop(columns=list(text))
            words = [name for name, kind in numeric.dtypes.items() if kind.kind not in "iuf"]
            if words:
                return fill(path, {*text, *words})
            if not n_rows:
                numbers = np.empty((numeric.shape[1], most_rows))
            numbers[:, n_rows : n_rows + len(chunk)] = numeric.to_numpy(dtype=np.float64).T
            labels += [chunk[name] for name in sorted(text)]
            n_rows += len(chunk)
        return n_rows

    return lambda path: fill(path, {"id"})


def _pyarrow(*, self_destruct: bool) -> Callable[[], Callable[[Path], int]]:
    def prepare() -> Callable[[Path], int]:
        import pandas as pd  # noqa: F401
        import pyarrow as pa
        from pyarrow import csv as pa_csv

        def read(path: Path) -> int:
            types = {"id": pa.string()}
            try:
                table = pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(column_types=types))
            except pa.ArrowInvalid as error:  # text further down: it names the column
                found = re.match(r"In CSV column #(\d+):", str(error))
                if found is None:
                    raise
                types[f"x{int(found[1]) - 1}"] = pa.string()
                table = pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(column_types=types))
            if self_destruct:
                frame = table.to_pandas(split_blocks=True, self_destruct=True)
                del table
            else:
                frame = table.to_pandas()
            return _as_array(frame)

        return read

    return prepare


def _as_array(frame: Any) -> int:
    """The numbers of the frame as one array: no copy where the frame is one already."""
    numbers = frame.select_dtypes("number")
    return len(numbers.to_numpy())


READERS: dict[str, Callable[[], Callable[[Path], int]]] = {
    "precisionnet": _own_reader,
    "pandas c": _pandas(),
    "pandas c, round_trip": _pandas(float_precision="round_trip"),
    "pandas c, low_memory=False": _pandas(low_memory=False),
    "pandas c, chunks into one array": lambda: _pandas_chunks(),
    "pandas pyarrow": _pandas(engine="pyarrow"),
    "pyarrow.csv": _pyarrow(self_destruct=False),
    "pyarrow.csv, self_destruct": _pyarrow(self_destruct=True),
}


def _stream_parquet() -> Callable[[Path], int]:
    from precisionnet.datasets.batches import iter_batches
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
        child(Path(sys.argv[2]), *sys.argv[3:4])
    else:
        main(csv_readers_only=sys.argv[1:2] == ["csv"])
