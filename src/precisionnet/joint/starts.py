"""Graphical lassos that several runs start from, each solved once."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from precisionnet.joint.methods import solve_start
from precisionnet.joint.problem import Problem
from precisionnet.precision import PrecisionResult

KEPT = 64
"""Solutions remembered; more than a grid has penalties."""


class Starts:
    """Remembers by covariance, penalty, ridge and bound: the start is the one that the run itself would solve."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], PrecisionResult] = OrderedDict()

    def of(self, problem: Problem) -> PrecisionResult:
        """The start of this problem, solved now or earlier."""
        rows = hashlib.sha256(problem.emp_cov.tobytes()).digest()
        key = (rows, problem.l1_penalty, problem.ridge, problem.spectral_bound)
        if key not in self._known:
            self._known[key] = solve_start(problem)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]
