"""What the paper says of Theorem 1, judged by the measured errors.

What is told beside a claim follows from the rows: every clause is a number, or chosen by what was judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from precisionnet.paper.theorem import FAR
from precisionnet.paper.theorem_slopes import Slope, constants, slopes
from precisionnet.runner.jobs import Row

Unsettled = Literal["level", "undecidable"]
"""A difference shown to be small, and one that no number of repeats on the cohort can tell."""
Judged = tuple[str, bool | Unsettled | None, str, str]
"""The claim, whether it holds (None: open), the numbers, and the rule."""
NEAR_RATE = 0.05
"""How far a slope may be from the theorem's; at finite T the penalty still bites."""
NO_FASTER = 0.05
"""By how much growth may exceed the bound's."""


def theorem_claims(rows: Sequence[Row]) -> Iterable[Judged | None]:
    """Judge the rate in T, the growth with S and N, and the term of theta_task."""
    found = {(slope.vary, slope.series): slope for slope in slopes(rows)}
    fixed = constants(rows)
    if slope := found.get(("n_samples", "glasso")):
        yield _rate(slope)
    for key, grows, axis in (
        (("sparsity", "glasso"), "edges S", "N + S"),
        (("n_features", "glasso"), "features N", "(N + S) log N"),
    ):
        if slope := found.get(key):
            yield _growth(slope, grows, axis)
    if not np.isnan(fixed["m1_proof"]):
        yield _first_term(fixed)
    if slope := found.get(("nuclear_distance", "one")):
        yield _distance(slope, found.get(("nuclear_distance", "all")), fixed, _stopped(rows))
    near, far = found.get(("n_samples", "truth")), found.get(("n_samples", "far"))
    if near and far:
        yield _convergence(near, far)


def _rate(slope: Slope) -> Judged:
    low, high = slope.levels
    return (
        f"The error falls with the number of rows as T to a power within {NEAR_RATE:g} of -1/2",
        _within(slope, -0.5 - NEAR_RATE, -0.5 + NEAR_RATE),
        f"slope {_plus_minus(slope)} for T from {low:,.0f} to {high:,.0f}, {_number(slope.last)} between the last two "
        f"levels, {_number(slope.overall)} over all T",
        f"slope within {NEAR_RATE:g} of -1/2 over the upper half of the levels",
    )


def _growth(slope: Slope, grows: str, axis: str) -> Judged:
    return (
        f"The error grows with the number of {grows}, no faster than {axis} to a power of 1/2 or within {NO_FASTER:g} "
        "of it",
        _within(slope, 0.0, 0.5 + NO_FASTER),
        f"slope {_plus_minus(slope)} over the upper half of the levels, {_number(slope.overall)} over all",
        f"slope above 0 and at most {0.5 + NO_FASTER:g} over the upper half of the levels",
    )


def _first_term(fixed: dict[str, float]) -> Judged:
    return (
        "m1 sqrt((N + S) log N / T) bounds the error where theta_task has no say",
        bool(fixed["m1"] <= fixed["m1_proof"]),
        f"the solves need an m1 of {fixed['m1_least']:.1f} to {fixed['m1']:.1f}, the smallest of the proof's is "
        f"{fixed['m1_proof']:.0f}; the largest error is {fixed['error_range']:.0f} times the smallest; the penalty "
        f"covers the noise, as the proof asks, in {fixed['penalty_covers_noise']:.0%} of the solves",
        "no error needs a larger m1 than the proof's own",
    )


def _distance(one: Slope, spread: Slope | None, fixed: dict[str, float], stopped: float | None) -> Judged:
    """``stopped`` is the smallest distance at which the spectral bound M is reached in some draw, if it is."""
    holds = None if np.isnan(fixed["m2"]) else bool(fixed["m2"] <= fixed["m2_proof"])
    clauses = [_kept(holds, fixed["m2"], fixed["m2_proof"]), _power(one)]
    if stopped is not None:
        clauses.append(f"the spectral bound M is first reached at distance {stopped:g}")
    if spread is not None:
        clauses.append(_same_distance(one, spread))
    return (
        "m2 times the square root of theta_task's nuclear distance from the truth bounds what theta_task adds",
        holds,
        "; ".join(clause for clause in clauses if clause),
        "no error needs a larger m2 than the proof's own",
    )


def _kept(holds: bool | None, needed: float, proof: float) -> str:
    """Name the constant of the second term beside the proof's."""
    if holds is None:
        return "no solve has theta_task away from the truth"
    told = f"the solves need an m2 of {needed:.1f}, the proof has {proof:.1f}, {proof / needed:.1f} times that"
    return f"the bound is {'kept' if holds else 'broken'}: {told}"


def _power(one: Slope) -> str:
    """Say how the error grows with the distance, beside the bound's square root."""
    if np.isnan(one.slope):
        return "too few distances are felt above the noise for a slope"
    low, high = one.levels
    near = {True: f", within {NEAR_RATE:g} of 1/2", False: ", not 1/2", None: ""}
    beside = near[_within(one, 0.5 - NEAR_RATE, 0.5 + NEAR_RATE)]
    return f"the error grows with power {_plus_minus(one)} for distances from {low:g} to {high:g}{beside}"


def _same_distance(one: Slope, spread: Slope) -> str:
    """Say how the error at one nuclear distance depends on how the distance is spread."""
    shared = sorted(set(one.x[one.judged]) & set(spread.x[spread.judged]))
    if not shared:
        return ""
    at = shared[-1]
    return f"at distance {at:g} the error is {one.mean(at):.2g} in one direction and {spread.mean(at):.2g} in all"


def _stopped(rows: Sequence[Row]) -> float | None:
    """Return the smallest distance, in one direction, at which a draw comes to the spectral bound M."""
    swept = [row for row in rows if row.get("vary") == "nuclear_distance" and row.get("direction") == "one"]
    return min((float(row["nuclear_distance"]) for row in swept if row.get("bound_active")), default=None)


def _convergence(near: Slope, far: Slope) -> Judged:
    first, last = far.x.min(), far.x.max()
    at_truth, away = (_within(slope, -np.inf, -0.5 + NEAR_RATE) for slope in (near, far))
    only = "only where theta_task is at the truth: " if at_truth and away is False else ""
    allowed = ", which the bound's second term allows" if away is False else ""
    return (
        "At each iteration the estimate converges to the true precision at the rate T^(-1/2), or a power within "
        f"{NEAR_RATE:g} of -1/2",
        away,
        f"{only}slope {_plus_minus(near)} with theta_task at the truth, {_plus_minus(far)} with it {FAR:g} away: there "
        f"the error goes from {far.mean(first):.2g} at T = {first:,.0f} to {far.mean(last):.2g} at T = {last:,.0f}"
        f"{allowed}",
        f"slope at most {NEAR_RATE - 0.5:g} over the upper half of the levels also where theta_task stays away from "
        "the truth",
    )


def _within(slope: Slope, low: float, high: float) -> bool | None:
    """Whether a slope lies in a range; open where it is outside by less than two standard errors."""
    if np.isnan(slope.slope):
        return None
    if low <= slope.slope <= high:
        return True
    outside = max(low - slope.slope, slope.slope - high)
    return None if outside < 2.0 * np.nan_to_num(slope.deviation, nan=np.inf) else False


def _plus_minus(slope: Slope) -> str:
    """Write the slope and its standard error."""
    return _number(slope.slope) + ("" if np.isnan(slope.deviation) else f" ± {slope.deviation:.3f}")


def _number(slope: float) -> str:
    return "unknown (one level)" if np.isnan(slope) else f"{slope:+.2f}"
