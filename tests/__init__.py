"""Settings that numba and matplotlib read once, at their import. Processes that a test starts inherit them.

The number of BLAS threads is not among them: with one thread from the start, fits that disagree because they change each
other's limit would agree, and the test about it would pass without being true.
"""

import os

from tests.kernels import use_own_folder

os.environ.setdefault("MPLBACKEND", "Agg")
use_own_folder()
