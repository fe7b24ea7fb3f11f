"""Run the benchmark: every problem with every solver, rows written as they come, then the table and the plot.

python -m benchmarks.precision.run [--only NAME] [--solver NAME] [--smallest N] [--largest N] [--limit SECONDS]
                                   [--out FOLDER] [--list] [--quick]
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.precision import plot, table
from benchmarks.precision.first_call import SIZE, measure_first_call
from benchmarks.precision.large import NAMES, measure_large
from benchmarks.precision.large import QUICK_SIZE as LARGE_QUICK_SIZE
from benchmarks.precision.large import SIZE as LARGE_SIZE
from benchmarks.precision.measure import CERTIFIED
from benchmarks.precision.problems import Case, Missing, catalogue
from benchmarks.precision.rows import Row, made_with, merge
from benchmarks.precision.solvers import SOLVERS
from benchmarks.precision.supervise import ROOT, Outcome, Worker

OURS = next(iter(SOLVERS))
QUICK_PEERS = ("sparse_rule",)
"""With ``--quick`` peers run here only: most of them need their time limit on the hard families."""


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, under a minute")
    parser.add_argument("--list", action="store_true", help="say which problems and solvers there are, and stop")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="problems whose name contains NAME")
    parser.add_argument("--solver", action="append", default=[], choices=SOLVERS, metavar="NAME", help="this one alone")
    parser.add_argument("--smallest", type=int, default=0, metavar="N", help="leave smaller problems out")
    parser.add_argument("--largest", type=int, default=10**9, metavar="N", help="leave larger problems out")
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS", help="most time for a solver")
    parser.add_argument("--out", type=Path, default=ROOT / "results", metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(listed(arguments.quick, arguments.only, arguments.largest, arguments.smallest)))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that the workers are ended, too
    solvers = arguments.solver or list(SOLVERS)
    sizes = arguments.largest, arguments.limit, solvers, arguments.smallest
    for row in measured(arguments.quick, arguments.only, *sizes):
        merge(arguments.out / "precision_bench.csv", [row])
        print(progress(row), flush=True)
    print(table.write(arguments.out))
    plot.write(arguments.out)


def is_wanted(name: str, n: int, only: list[str], largest: int, smallest: int = 0) -> bool:
    """Whether a problem is among those that were asked for."""
    return smallest <= n <= largest and (not only or any(part in name for part in only))


def listed(quick: bool, only: list[str], largest: int, smallest: int = 0) -> Iterator[str]:
    """A line per problem and per solver, with the reason of one that cannot run here."""
    sizes: dict[str, list[str]] = {}
    for case in catalogue(quick):
        if is_wanted(case.name, case.n, only, largest, smallest):
            sizes.setdefault(case.name, []).append(f"{case.n:,}")
    yield from (f"{name:<20} N = {'; '.join(found)}" for name, found in sizes.items())
    yield from (f"{name:<20} {solver.available() or 'runs here'}" for name, solver in SOLVERS.items())


def measured(
    quick: bool, only: list[str], largest: int, limit: float, solvers: list[str], smallest: int = 0
) -> Iterator[Row]:
    """Row after row, problem by problem."""

    def wanted(name: str, n: int) -> bool:
        return is_wanted(name, n, only, largest, smallest)

    with ExitStack() as cleanup:
        workers = {name: Worker(name) for name in SOLVERS if name in solvers}
        for worker in workers.values():
            cleanup.callback(worker.stop)
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        rungs: dict[tuple[str, str], int] = {}
        for case in catalogue(quick):
            if wanted(case.name, case.n):
                peers = not quick or case.name in QUICK_PEERS
                yield from measure_case(case, workers, rungs, folder, limit, peers)
    if OURS not in solvers:
        return
    if wanted("first_call", SIZE):
        said = measure_first_call()
        note = f"import {said['import_seconds']:.2f} s"
        yield alone("first_call", SIZE, said["seconds"], said["gap"], note=note)
    n = LARGE_QUICK_SIZE if quick else LARGE_SIZE
    for name in (name for name in NAMES if wanted(name, n)):
        said = measure_large(n, name)
        note = f"l1={said['l1']:.4g}, {said['n_edges']} edges"
        inversions = said["seconds"] / said["inversion"]
        yield alone(name, n, said["seconds"], said["gap"], inversions, said["gigabytes"], note)


def alone(
    problem: str,
    n: int,
    seconds: float,
    gap: float,
    inversions: float | None = None,
    gigabytes: float | None = None,
    note: str = "",
) -> Row:
    """A row without peers."""
    status = "certified" if gap <= CERTIFIED else "failed"
    return Row(problem, n, OURS, status, seconds, gap, inversions, 1.0, gigabytes, note, made_with({}))


def measure_case(
    case: Case,
    workers: dict[str, Worker],
    rungs: dict[tuple[str, str], int],
    folder: Path,
    limit: float,
    peers: bool,
) -> Iterator[Row]:
    """Ours first, which also times the yardstick, then each peer; ``rungs`` remembers where a family passed."""
    try:
        problem = case.build().bounded()
    except Missing as missing:
        yield from (Row(case.name, case.n, name, "skipped", note=str(missing)) for name in workers)
        return
    path = folder / "problem.npz"
    problem.save(path)
    ours: float | None = None
    inversion: float | None = None
    for name, worker in workers.items():
        reason = SOLVERS[name].unsuited(problem)
        if reason is None and name != OURS and not peers:
            reason = "not run with --quick"
        if reason is None:
            worker.start()
            reason = worker.reason
        if reason is not None:
            yield Row(case.name, case.n, name, "skipped", note=reason)
            continue
        # The same family at a smaller size says where to start on the ladder.
        first = max(rungs.get((case.name, name), 0) - 1, 0)
        outcome = worker.solve(path, min(limit, case.limit), first=first, yardstick=name == OURS)
        if outcome.rung is not None:
            rungs[case.name, name] = outcome.rung
        if name == OURS and outcome.passed is not None:
            ours, inversion = outcome.seconds or outcome.passed.seconds, outcome.inversion
        yield to_row(case, name, outcome, ours, inversion, made_with(worker.versions))


def to_row(
    case: Case, solver: str, outcome: Outcome, ours: float | None, inversion: float | None, versions: str
) -> Row:
    """What a worker said, in one line."""
    gap = min((attempt.gap for attempt in outcome.attempts), default=None)
    passed = outcome.passed
    if passed is not None:
        status, seconds, gap = "certified", outcome.seconds or passed.seconds, passed.gap
        note = f"tol={passed.tol:.0e}, median of {max(outcome.repeats, 1)}"
    elif outcome.killed_after is not None:
        # Nothing it did so far was enough, so it needs longer than the longest single attempt.
        status, seconds = "timeout", max([outcome.killed_after, *(a.seconds for a in outcome.attempts)])
        note = last_word(outcome) or "stopped at the time limit"
    else:
        status, seconds, note = "failed", None, outcome.crashed or last_word(outcome)
    return Row(
        case.name,
        case.n,
        solver,
        status,
        seconds,
        gap,
        seconds / inversion if seconds and inversion else None,
        seconds / ours if seconds and ours else None,
        note=note,
        versions=versions,
    )


def last_word(outcome: Outcome) -> str:
    """The last exception, verbatim; without one, where the ladder ended."""
    errors = [attempt.error for attempt in outcome.attempts if attempt.error]
    if errors:
        return errors[-1]
    if not outcome.attempts:
        return ""
    last = outcome.attempts[-1]
    return f"returned, but its gap is {last.gap:.1e} at tol={last.tol:.0e}"


def progress(row: Row) -> str:
    """One line as it goes."""
    figures = f"{row.seconds:9.4f} s" if row.seconds is not None else " " * 11
    ratio = f"{row.ratio_to_ours:8.1f}x" if row.ratio_to_ours is not None else " " * 9
    return f"{row.problem:<20} N={row.n:<6} {row.solver:<18} {row.status:<10} {figures} {ratio}  {row.note}"


if __name__ == "__main__":
    main()
