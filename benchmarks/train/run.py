"""Run the benchmark and write its rows and its page.

python -m benchmarks.train.run [--quick] [--only PART] [--threads N ...] [--repeats N] [--limit SECONDS] [--out FOLDER]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.train import page
from benchmarks.train.epochs import joint_contestants, measure_epochs, weights_contestants
from benchmarks.train.fits import measure_fits
from benchmarks.train.rows import Row, made_with, write
from benchmarks.train.task import LARGE, SMALL, Task, drawn_task, the_task
from benchmarks.train.to_target import measure_to_target

OUT = Path(__file__).parents[2] / "results"
PARTS = ["joint epoch", "weights epoch", "default fit", "to the target"]


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small drawn table, one repeat")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], metavar="N", help="one column each")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="most time to the target")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")
    arguments = parser.parse_args()
    task = drawn_task(100, 10) if arguments.quick else the_task()
    repeats = 1 if arguments.quick else arguments.repeats
    parts = [arguments.only] if arguments.only else PARTS
    # On a busy machine two threads wait for each other far longer than they work: not in a quick look.
    threads = [1] if arguments.quick else arguments.threads
    with_versions = made_with()
    rows = []
    for row in measured(task, parts, threads, repeats, arguments.limit, arguments.quick):
        rows.append(replace(row, made_with=with_versions))
        print(progress(row), flush=True)
    write(arguments.out / "train_bench.csv", rows)
    page.write(arguments.out)


def measured(
    task: Task, parts: list[str], threads: list[int], repeats: int, limit: float, quick: bool
) -> Iterator[Row]:
    """Row after row."""
    for what in parts:
        if what == "to the target":
            yield from measure_to_target(task, SMALL, threads, max(repeats // 2, 1), limit)
            continue
        if what == "default fit":
            yield from measure_fits(task, threads, max(repeats // 2, 1), **({"max_epochs": 2} if quick else {}))
            continue
        for shape, tag_steps in ((SMALL, 2), (LARGE, 1)):
            made = (
                joint_contestants(task, shape, tag_steps) if what == "joint epoch" else weights_contestants(task, shape)
            )
            yield from measure_epochs(what, task, shape, made, threads, repeats)


def progress(row: Row) -> str:
    """One line as it goes."""
    return (
        f"{row.what:<14} {row.shape:<30} {row.threads} {row.contestant:<32} {row.status:<9} "
        f"{row.seconds or 0:9.4f} s {row.times_ours or 0:8.2f}x {row.mae or 0:6.3f} {row.note}"
    )


if __name__ == "__main__":
    main()
