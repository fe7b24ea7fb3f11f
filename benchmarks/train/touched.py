"""The files and functions that one ``PNNRegressor().fit`` goes through: how much there is to read to follow it.

    python -m benchmarks.train.touched [--list] [--out results/fit_size.csv]

Counts the distinct functions of ``src/precisionnet`` that are entered, and the files they stand in, on rows of
ABIDE's size. What Python makes itself (comprehensions, lambdas, the methods of data classes) and the solver's compiled
kernels are not counted.
"""

from __future__ import annotations

import argparse
import csv
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from numba.core.dispatcher import Dispatcher

import precisionnet
from benchmarks.train.task import the_task
from precisionnet import PNNRegressor

PACKAGE = Path(precisionnet.__file__).parent


def main() -> None:
    """Fit once under watch and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print every function, by file")
    parser.add_argument("--out", type=Path, help="write the functions of each file, and of all, as csv")
    arguments = parser.parse_args()
    rows = the_task().raw_train
    warnings.simplefilter("ignore")
    touched = functions_entered(lambda: PNNRegressor(random_state=0).fit(rows.X, rows.y))
    counts = sorted(Counter(file for file, _, _ in touched).items())
    for file, count in counts:
        print(f"{count:4d}  {file}")
        if arguments.list:
            for _, line, name in sorted(one for one in touched if one[0] == file):
                print(f"        {line:4d}  {name}")
    print(f"{len(counts)} files, {len(touched)} functions")
    if arguments.out is not None:
        with arguments.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("file", "functions"), *counts, ("all", len(touched))])


def functions_entered(run: Callable[[], Any]) -> set[tuple[str, int, str]]:
    """Return file, line and name of each function of the package that ``run`` enters."""
    seen: set[CodeType] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("precisionnet.")]
    kernels = {
        one.py_func.__code__ for module in modules for one in vars(module).values() if isinstance(one, Dispatcher)
    }
    return {
        (str(Path(code.co_filename).relative_to(PACKAGE)), code.co_firstlineno, code.co_qualname)
        for code in seen - kernels
        if code.co_filename.startswith(f"{PACKAGE}/") and not code.co_name.startswith("<")
    }


if __name__ == "__main__":
    main()
