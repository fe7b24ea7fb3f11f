"""Fixtures: small tables with a known graph, and the folder of real tables."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import precisionnet
from precisionnet.datasets import make_gaussian_regression

torch.set_num_threads(1)  # tiny tensors: a second thread only waits


EVERY_KERNEL = """
import numpy as np
from precisionnet.precision import graphical_lasso, graphical_lasso_path
two_groups = np.kron(np.eye(2), np.full((3, 3), 0.5)) + np.eye(6)
graphical_lasso_path(two_groups, [0.3, 0.1])
graphical_lasso(two_groups, np.full((6, 6), 0.1), anchor=np.eye(6), coupling=1.0)
graphical_lasso(np.full((450, 450), 0.2) + np.eye(450), 0.1)
"""


def pytest_configure(config: pytest.Config) -> None:
    """Throw stale kernels away (numba sees that a kernel's own file changed, not that one it calls did) and compile anew.

    In a process of its own, so that all others load the same machine code: a kernel that is compiled beside one loaded
    from disk can be inlined differently, and then differ in the last bit.
    """
    if hasattr(config, "workerinput"):
        return
    folder = Path(precisionnet.__file__).parent / "precision"
    newest = max(source.stat().st_mtime for source in folder.glob("*.py") if "compiled" in source.read_text())
    for kept in folder.glob("__pycache__/*.nb[ci]"):
        with suppress(FileNotFoundError):  # another run may have thrown it away
            if kept.stat().st_mtime < newest:
                kept.unlink()
    subprocess.run([sys.executable, "-c", EVERY_KERNEL], check=True)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def gaussian():
    """120 rows of the paper's recipe with 8 columns."""
    return make_gaussian_regression(n_samples=120, n_features=8, sparsity=0.3, random_state=0)


@pytest.fixture(scope="session")
def classes(gaussian) -> pd.Series:
    """Three classes cut from the same target."""
    return pd.Series(np.array(["low", "mid", "top"])[pd.qcut(gaussian.y, 3, labels=False)], name="level")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("PRECISIONNET_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the real tables are not here; set PRECISIONNET_DATA to the folder that holds them")
    return Path(folder)


def random_shift(n: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """A symmetric matrix with norm one."""
    matrix = torch.randn(n, n, generator=generator, dtype=dtype)
    matrix = matrix + matrix.T
    return matrix / torch.linalg.matrix_norm(matrix, 2)
