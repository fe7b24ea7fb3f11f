"""The kernels' compile time is paid once, and where it cannot be kept the solver works all the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FIRST_CALL = """
import time
import numpy as np
from precisionnet.precision import graphical_lasso
X = np.random.default_rng(0).normal(size=(100, 50))
started = time.process_time()
solved = graphical_lasso(X.T @ X / 100, 0.1)
print(time.process_time() - started, solved.status)
"""


def first_call(**environment: str) -> tuple[float, str]:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    seconds, status = done.stdout.split()
    return float(seconds), status


@pytest.mark.slow
def test_the_first_call_of_a_new_process_does_not_compile_again(tmp_path):
    """With the kernels on disk; the first of these processes puts them there."""
    cold, _ = first_call(NUMBA_CACHE_DIR=str(tmp_path))
    warm = min(first_call(NUMBA_CACHE_DIR=str(tmp_path))[0] for _ in range(3))
    assert any(tmp_path.rglob("*.nbc"))
    assert warm < 0.2 * cold


@pytest.mark.slow
def test_without_a_writable_cache_it_still_works():
    """No place to keep kernels: numba refuses to cache, and they are compiled in this process alone."""
    nowhere = "numba.core.caching._IPythonCacheLocator"
    _, status = first_call(NUMBA_CACHE_LOCATOR_CLASSES=nowhere)
    assert status == "optimal"
