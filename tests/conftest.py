"""What every test shares: threads, kernels, hypothesis profiles; small tables with a known graph; the real tables.

What must be set before numba is imported is in ``tests/__init__.py``. The process that deals tests to workers reads this
file too, before they start, and runs none: what takes seconds to import is imported where it is used.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests import kernels

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import torch

# Few examples, the same in every run, so that a failure is never luck. ``HYPOTHESIS_PROFILE=thorough`` draws many, new
# in every run. A test gives max_examples itself only where its examples are dear.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("default", max_examples=20, derandomize=True, **COMMON)
settings.register_profile("thorough", max_examples=300, print_blob=True, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# A shell starts what it runs in the background with Ctrl-C ignored, and children inherit that: tests send it for real.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Compile the kernels before the first test, where no run before this one did; not to list tests, not per worker.

    Threads in tests: torch has one on the main thread, as small products only wait for a second one. Where fits are
    tested BLAS and new threads keep the machine's number, as for a user; elsewhere they have one, too, as a second one
    that spins takes more time than all the sums. A test about threads asks for the fixture ``two_threads``.
    """
    worker = hasattr(config, "workerinput")
    if not worker and not config.option.collectonly:
        kernels.warm()
    if worker or not getattr(config.option, "numprocesses", None):
        import torch

        torch.set_num_threads(1)


def pytest_collection_finish() -> None:
    """Leave what is there before the first test out of every later search for garbage."""
    gc.collect()
    gc.freeze()


AS_FOR_A_USER = {"nn", "runner", "test_threads", "test_foreign_networks", "test_fit", "test_files_processes"}
"""Rooms and modules whose tests would show fits that change each other's number of threads.

A trainer that a test drives by itself has one thread, as it has inside a fit: a second one would only spin.
"""


@pytest.fixture(scope="module", autouse=True)
def _one_thread(request):
    from precisionnet.runner.worker import one_thread

    if {request.path.parent.name, request.path.stem} & AS_FOR_A_USER:
        yield
    else:
        with one_thread():
            yield


@pytest.fixture(scope="module", autouse=True)
def _short_weighing(request):
    """Ensembles find the weights of their kinds in few steps: all of them are half of a small fit.

    ``test_kinds``, which is about the weights, takes them all, and so does every run that includes slow tests.
    """
    from precisionnet.estimators import combination
    from tests.cheap import without_slow

    with pytest.MonkeyPatch.context() as patch:
        if request.path.stem != "test_kinds" and without_slow(request):
            patch.setattr(combination, "STEPS", 15)
        yield


@pytest.fixture
def two_threads():
    """Two threads for torch inside the test, whatever the machine has; one again afterwards."""
    import torch

    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(1)


@pytest.fixture
def rng() -> np.random.Generator:
    import numpy as np

    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def gaussian():
    """120 rows of the paper's recipe with 8 columns."""
    from precisionnet.datasets import make_gaussian_regression

    return make_gaussian_regression(n_samples=120, n_features=8, sparsity=0.3, random_state=0)


@pytest.fixture(scope="session")
def classes(gaussian) -> pd.Series:
    """Three classes cut from the same target."""
    import numpy as np
    import pandas as pd

    return pd.Series(np.array(["low", "mid", "top"])[pd.qcut(gaussian.y, 3, labels=False)], name="level")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("PRECISIONNET_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the real tables are not here; set PRECISIONNET_DATA to the folder that holds them")
    return Path(folder)


def random_shift(n: int, generator: torch.Generator, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A symmetric matrix with norm one, of 64 bits unless told otherwise."""
    import torch

    dtype = torch.float64 if dtype is None else dtype
    matrix = torch.randn(n, n, generator=generator, dtype=dtype)
    matrix = matrix + matrix.T
    return matrix / torch.linalg.matrix_norm(matrix, 2)
