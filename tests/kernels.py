"""The numba kernels of a test run: compiled once, by a process of its own, into a folder that nothing else writes.

Numba keys what it keeps by signature, processor name and features, but three things it does not see:

- an edit of a kernel that another file's kernel calls;
- a second process that saves beside the first: both read the index, both take the next number, and one's entry then
  leads to the other's machine code, which may be for another processor (``NUMBA_CPU_NAME``);
- that a kernel compiled beside one loaded from disk may be inlined differently, and then differ in the last bit.

So a folder is named after the kernels' sources, the processor and numba's version. It is filled under a lock by one
process that calls every kernel; whoever finds the mark of a finished one only loads.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

ROOT = Path(__file__).parents[1]
EVERY_KERNEL = """
import numpy as np
from precisionnet.precision import graphical_lasso, graphical_lasso_path
two_groups = np.kron(np.eye(2), np.full((3, 3), 0.5)) + np.eye(6)
graphical_lasso_path(two_groups, [0.3, 0.1])
graphical_lasso(two_groups, np.full((6, 6), 0.1), anchor=np.eye(6), coupling=1.0)
graphical_lasso(np.full((450, 450), 0.2) + np.eye(450), 0.1)
from precisionnet.precision import block_descent, component_solver
block_descent.LARGE = component_solver.LARGE = 10
chain = 0.5 ** np.abs(np.subtract.outer(np.arange(450.0), np.arange(450.0)))
for n in (60, 450):
    graphical_lasso(chain[:n, :n].copy(), 0.2)
    graphical_lasso(chain[:n, :n].copy(), np.full((n, n), 0.2))
from precisionnet.precision import graphical_lasso_from_rows, rows, sparse_solver
walk = np.random.default_rng(0).normal(size=(90, 12)).cumsum(axis=1)
graphical_lasso_from_rows(walk, 0.5)
rows.DENSE_MOST = 2
graphical_lasso_from_rows(walk, 0.5)
sparse_solver.SMALL_ROUNDING = 0.0
graphical_lasso_from_rows(walk, 0.5)
from precisionnet.evidence import edge_inference
edge_inference(np.random.default_rng(0).normal(size=(90, 10)).cumsum(axis=1), method="desparsified")
"""


def use_own_folder() -> None:
    """Point numba to this state's folder, below ``NUMBA_CACHE_DIR`` where that is set; before numba is imported."""
    base = Path(os.environ.get("NUMBA_CACHE_DIR", ROOT / ".numba_cache"))
    if base.name != (name := state()):  # a worker and a pytest inside a test inherit the folder itself
        os.environ["NUMBA_CACHE_DIR"] = str(base / name)


def state() -> str:
    """A name for the kernels' sources and where they are, the processor they are compiled for, and numba."""
    from llvmlite import binding

    processor = [binding.get_host_cpu_name(), *(os.environ.get(f"NUMBA_CPU_{x}", "") for x in ("NAME", "FEATURES"))]
    digest = hashlib.sha256("\0".join([version("numba"), *processor]).encode())
    found = find_spec("precisionnet")
    assert found is not None
    assert found.origin is not None
    for source in sorted(Path(found.origin).parent.glob("*/*.py")):
        if b"compiled" in (text := source.read_bytes()):
            digest.update(str(source).encode() + text)
    return digest.hexdigest()[:16]


def warm() -> None:
    """Fill the folder unless it is full. Where compiling fails nothing is marked, and the tests say what is wrong."""
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    full = folder / "full"
    if full.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not full.exists() and subprocess.run([sys.executable, "-c", EVERY_KERNEL], check=False).returncode == 0:
            full.touch()
