"""How long the first call takes in a new process, with the kernels already on disk.

python -m benchmarks.precision.first_call        (started by ``run.py``, twice; the second counts)
"""

from __future__ import annotations

import json
import time
from typing import Any

SIZE = 50


def main() -> None:
    """Import, then time the first call on a chain of ``SIZE`` variables."""
    started = time.perf_counter()
    import numpy as np

    from precisionnet.precision import graphical_lasso

    imported = time.perf_counter() - started
    emp_cov = 0.7 ** np.abs(np.subtract.outer(np.arange(float(SIZE)), np.arange(float(SIZE))))
    started = time.perf_counter()
    theta = graphical_lasso(emp_cov, 0.1).precision
    seconds = time.perf_counter() - started

    from benchmarks.precision.measure import relative_gap

    print(json.dumps({"seconds": seconds, "import_seconds": imported, "gap": relative_gap(theta, emp_cov, 0.1)}))


def measure_first_call() -> dict[str, Any]:
    """Two fresh processes; the first may still compile."""
    from benchmarks.precision.supervise import run_module

    run_module("first_call")
    return run_module("first_call")


if __name__ == "__main__":
    main()
