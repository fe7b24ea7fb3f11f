"""What the paper says of Theorem 1, held against the measured errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from precisionnet.experiments.paper.judging import Judged
from precisionnet.experiments.paper.slopes import Slope, constants, slopes
from precisionnet.experiments.paper.theorem import FAR
from precisionnet.experiments.runner.jobs import Row

NEAR_RATE = 0.05
"""How far a slope may be from the theorem's; at finite T the penalty still bites."""
NO_FASTER = 0.05
"""By how much growth may exceed the bound's."""


def theorem_claims(rows: Sequence[Row]) -> Iterable[Judged | None]:
    """The rate in T, the growth with S and N, and the term of theta_task."""
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
        yield _distance(slope, found.get(("nuclear_distance", "all")), fixed)
    near, far = found.get(("n_samples", "truth")), found.get(("n_samples", "far"))
    if near and far:
        yield _convergence(near, far)


def _rate(slope: Slope) -> Judged:
    low, high = slope.levels
    return (
        "The error falls with the number of rows as T^(-1/2)",
        _within(slope, -0.5 - NEAR_RATE, -0.5 + NEAR_RATE),
        f"slope {_plus_minus(slope)} for T from {low:,.0f} to {high:,.0f}, {slope.last:+.2f} between the last two "
        f"levels; {slope.overall:+.2f} over all T, as at small T the penalty removes true edges and the error "
        "saturates",
        f"slope within {NEAR_RATE:g} of -1/2 over the upper half of the levels",
    )


def _growth(slope: Slope, grows: str, axis: str) -> Judged:
    return (
        f"The error grows with the number of {grows}, no faster than the square root of {axis}",
        _within(slope, 0.0, 0.5 + NO_FASTER),
        f"slope {_plus_minus(slope)} over the upper half of the levels, {slope.overall:+.2f} over all",
        f"slope above 0 and at most {0.5 + NO_FASTER:g} over the upper half of the levels",
    )


def _first_term(fixed: dict[str, float]) -> Judged:
    return (
        "m1 sqrt((N + S) log N / T) bounds the error where theta_task has no say",
        bool(fixed["m1"] <= fixed["m1_proof"]),
        f"m1 = {fixed['m1']:.1f} covers every solve where the proof has {fixed['m1_proof']:.0f}; each needs "
        f"{fixed['m1_least']:.1f} at least, while the errors differ {fixed['error_range']:.0f}-fold; the penalty "
        f"covers the noise, as the proof asks, in {fixed['penalty_covers_noise']:.0%} of them",
        "no error needs a larger m1 than the proof's own",
    )


def _distance(one: Slope, spread: Slope | None, fixed: dict[str, float]) -> Judged:
    low, high = one.levels
    same = "" if spread is None else _same_distance(one, spread)
    return (
        "m2 times the square root of theta_task's nuclear distance from the truth bounds what theta_task adds",
        None if np.isnan(fixed["m2"]) else bool(fixed["m2"] <= fixed["m2_proof"]),
        f"the bound is kept but far from tight: the error grows with power {_plus_minus(one)} for distances from "
        f"{low:g} to {high:g}, not 1/2, until the spectral bound M stops it; m2 = {fixed['m2']:.1f} covers every "
        f"solve where the proof has {fixed['m2_proof']:.0f}{same}",
        "no error needs a larger m2 than the proof's own",
    )


def _same_distance(one: Slope, spread: Slope) -> str:
    """At one nuclear distance the error depends on how the distance is spread."""
    shared = sorted(set(one.x[one.judged]) & set(spread.x[spread.judged]))
    if not shared:
        return ""
    at = shared[-1]
    return f"; at distance {at:g} the error is {one.mean(at):.2g} in one direction and {spread.mean(at):.2g} in all"


def _convergence(near: Slope, far: Slope) -> Judged:
    first, last = far.x.min(), far.x.max()
    return (
        "At each iteration the estimate converges to the true precision at the rate T^(-1/2)",
        _within(far, -np.inf, -NEAR_RATE),
        f"only where theta_task is at the truth, with slope {_plus_minus(near)}; as the bound's second term allows, "
        f"with theta_task {FAR:g} away the error goes from {far.mean(first):.2f} at T = {first:,.0f} to "
        f"{far.mean(last):.2f} at T = {last:,.0f}, since no number of rows weakens the tie",
        "the error falls with T also where theta_task stays away from the truth",
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
    return f"{slope.slope:+.2f}" + ("" if np.isnan(slope.deviation) else f" ± {slope.deviation:.3f}")
