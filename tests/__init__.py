"""Settings that NumPy, numba and matplotlib read once, at their import. Processes that a test starts inherit them."""

import os

from tests.kernels import use_own_folder

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # torch's threads: see conftest.py
os.environ.setdefault("MPLBACKEND", "Agg")
use_own_folder()
