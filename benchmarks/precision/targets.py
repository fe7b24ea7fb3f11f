"""Targets of the solver, and whether the rows meet them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.precision.hard import FAMILIES
from benchmarks.precision.rows import Row

SPARSE = "sparse_rule", "sparse_true"
SCIKIT_LEARN = "scikit-learn", "scikit-learn tuned"
"""As a user would call it, and with the best settings found."""
SAID = {"sparse_rule": "sparse graphs", "abide_path_0.1": "ABIDE path", "regularised_warm": "regularised, warm"}


class Target(NamedTuple):
    """A sentence, what was measured (None: not in this file), and whether that is enough."""

    asked: str
    measured: str | None
    met: bool


def targets(rows: Sequence[Row]) -> list[Target]:
    """All of them."""
    sizes = (200, 40), (500, 50), (1000, 100), (2000, 150)
    found = [_ratio(rows, SPARSE, n, least, peer) for peer in SCIKIT_LEARN for n, least in sizes]
    found += [_inversions(rows, SPARSE, n, most) for n, most in ((1000, 2.0), (2000, 1.5))]
    found += [_ratio(rows, ("abide_path_0.1", "abide_path_0.01"), 68, 20, peer) for peer in SCIKIT_LEARN]
    large = ("large_rule", "large_true")
    found.append(_most(rows, large, 10_000, "N = 10,000: under 30 s", 30.0, lambda row: row.seconds, "s"))
    found.append(_most(rows, large, 10_000, "N = 10,000: under 4 GB", 4.0, lambda row: row.gigabytes, "GB"))
    hard = [row for row in _ours(rows) if row.problem.rpartition("_")[0] in FAMILIES]
    solved = [row for row in hard if row.status == "certified"]
    found.append(Target("hard families: every one certified", _share(solved, hard), bool(hard) and solved == hard))
    found.append(_inversions(rows, ("regularised_warm", "regularised_far"), 1000, 5.0))
    found.append(
        _most(rows, ("first_call",), 50, "first call in a process: under 0.5 s", 0.5, lambda r: r.seconds, "s")
    )
    return found


def _share(solved: Sequence[Row], hard: Sequence[Row]) -> str | None:
    return f"{len(solved)} of {len(hard)}" if hard else None


def _ours(rows: Sequence[Row], problems: Sequence[str] = (), n: int | None = None) -> list[Row]:
    return [
        row
        for row in rows
        if row.solver == "precisionnet" and (not problems or row.problem in problems) and n in (None, row.n)
    ]


def _ratio(rows: Sequence[Row], problems: Sequence[str], n: int, least: float, peer: str) -> Target:
    asked = f"{SAID[problems[0]]}, N = {n}: at least {least:g}x {peer}"
    ratios = [
        row.ratio_to_ours
        for row in rows
        if row.solver == peer and row.problem in problems and row.n == n and row.ratio_to_ours is not None
    ]
    measured = " and ".join(f"{ratio:.0f}x" for ratio in ratios)
    return Target(asked, measured or None, bool(ratios) and min(ratios) >= least)


def _inversions(rows: Sequence[Row], problems: Sequence[str], n: int, most: float) -> Target:
    asked = f"{SAID[problems[0]]}, N = {n}: at most {most:g} inversions"
    return _most(rows, problems, n, asked, most, lambda row: row.inversions, "")


def _most(
    rows: Sequence[Row],
    problems: Sequence[str],
    n: int,
    asked: str,
    most: float,
    value: Callable[[Row], float | None],
    unit: str,
) -> Target:
    ours = _ours(rows, problems, n)
    values = [found for row in ours if (found := value(row)) is not None and row.status == "certified"]
    measured = " and ".join(f"{found:.3g} {unit}".strip() for found in values)
    return Target(asked, measured or None, bool(values) and len(values) == len(ours) and max(values) <= most)
