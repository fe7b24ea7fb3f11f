"""One solver in a process of its own: reads a job a line, answers with a line an attempt, and can be killed.

python -m benchmarks.precision.worker SOLVER        (started by ``supervise.py``, one thread)
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.precision.measure import Attempt, climb, inversion_seconds, repeated
from benchmarks.precision.problems import Problem
from benchmarks.precision.solvers import SOLVERS, Solver


def main() -> None:
    """Serve until standard input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a solver prints must not get into the answers

    def tell(event: str, **what: Any) -> None:
        print(json.dumps({"event": event, **what}), file=channel, flush=True)

    solver = SOLVERS[sys.argv[1]]
    warnings.simplefilter("ignore")  # the gap decides, not the solver's own opinion
    reason = solver.available()
    if reason is None:
        try:
            solver.warm_up()
        except Exception as error:
            reason = f"does not run here: {first_line(error)}"
    tell("ready", reason=reason, versions={} if reason else solver.versions())
    if reason:
        return
    for line in sys.stdin:
        job = json.loads(line)
        serve(solver, Problem.load(Path(job["problem"])), job["first"], job["yardstick"], tell)


def serve(solver: Solver, problem: Problem, first: int, yardstick: bool, tell: Any) -> None:
    """Climb the ladder, then repeat the rung that counts; the yardstick runs between the repeats."""

    def attempt(tol: float) -> Attempt:
        tell("began", tol=tol, at=time.time())
        started = time.perf_counter()
        try:
            seconds, answers = solver.timed(problem, tol)
        except Exception as error:
            return Attempt(tol, time.perf_counter() - started, float("inf"), problem.asked, first_line(error))
        tell("checking")
        return Attempt(tol, seconds, problem.gap(answers), problem.asked)

    best = None
    for tried in climb(attempt, solver.ladder, first):
        tell("tried", **vars(tried), rung=solver.ladder.index(tried.tol))
        if tried.passed:
            best = tried
    if best is None:
        tell("done")
        return
    inversions: list[float] = []
    yardstick = yardstick and problem.has_covariance  # nothing is inverted where there is no room

    def again() -> float:
        if yardstick:
            inversions.append(inversion_seconds(problem.n))
        return solver.timed(problem, best.tol)[0]

    times = repeated(again, best.seconds)
    if yardstick and not inversions:
        inversions.append(inversion_seconds(problem.n))
    tell(
        "done",
        seconds=statistics.median(times),
        repeats=len(times),
        inversion=statistics.median(inversions) if inversions else None,
    )


def first_line(error: Exception) -> str:
    """What an exception says, or what it is."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


if __name__ == "__main__":
    main()
