"""What the paper says of its synthetic experiment (Figure 2), held against rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from precisionnet.experiments.pairing import is_number, methods_of, paired
from precisionnet.experiments.paper.judging import Judged, best, mean, name, no_zeros, ordered, worse_than, zero_shares
from precisionnet.experiments.runner.jobs import Row

SIMILAR = 1.25
"""Two errors are similar if neither is larger than this times the other."""
CLOSE_DENSITY = 0.1
FEW_ZEROS = 0.1


def synthetic_claims(rows: Sequence[Row]) -> Iterable[Judged | None]:
    """Figure 2."""
    levels = sorted({row["sparsity"] for row in rows})
    by_level = {level: [row for row in rows if row["sparsity"] == level] for level in levels}
    yield _best_everywhere(rows, by_level)
    for ours in ("joint", "naive"):
        yield _never_worse(rows, by_level, ours)
    yield _similar_l1(by_level)
    for worse, better in (("naive", "joint"), ("sample", "naive")):
        yield ordered(
            f"{name(worse)} estimates the precision worse than {name(better)} (l1 error)",
            _over_levels(rows, "l1_error"), better, worse, "l1_error", resampled=False,
        )  # fmt: skip
    for method in ("glasso", "joint"):
        yield _density_close(by_level, method)
    yield no_zeros(rows)
    if zeros := zero_shares(rows, "naive"):
        yield (
            "Naive produces very few zeros",
            bool(np.mean(zeros) <= FEW_ZEROS),
            f"{np.mean(zeros):.0%} of the entries are zero",
            f"at most {FEW_ZEROS:.0%} of the entries are zero, on average",
        )


def _best_everywhere(rows: Sequence[Row], by_level: dict[float, list[Row]]) -> Judged | None:
    others = [method for method in ("naive", "glasso", "sample") if method in methods_of(rows)]
    overall = best("Joint predicts best at every sparsity level", _over_levels(rows, "mae"), others, resampled=False)
    if overall is None:
        return None
    claim, holds, numbers, _ = overall
    means = {level: {method: mean(here, method, "mae") for method in others} for level, here in by_level.items()}
    lowest = sum(mean(here, "joint", "mae") < min(means[level].values()) for level, here in by_level.items())
    beaten, _ = worse_than(by_level, "joint", others)
    numbers = f"lowest mean MAE at {lowest} of {len(by_level)} levels; averaged over levels, {numbers}"
    numbers += f"; better than Joint beyond chance: {', '.join(beaten)}" if beaten else ""
    rule = (
        "averaged over levels every difference to Joint is above zero with its 95 % interval, and at no level another "
        "method is better beyond chance"
    )
    return claim, False if beaten else holds, numbers, rule


def _never_worse(rows: Sequence[Row], by_level: dict[float, list[Row]], ours: str) -> Judged | None:
    others = [method for method in ("glasso", "sample") if method in methods_of(rows)]
    worse, compared = worse_than(by_level, ours, others)
    if not compared:
        return None
    overall = paired(
        [row for row in _over_levels(rows, "mae") if row["method"] in (ours, *others)], ours, "mae", resampled=False
    )
    behind = [f"{name(str(method))} averaged over levels" for method in overall.index[overall["high"] < 0]] + worse
    numbers = (
        f"worse beyond chance than {', '.join(behind)}"
        if behind
        else f"not worse beyond chance in {compared} comparisons"
    )
    rule = "neither averaged over levels nor at one of them the other method is better beyond chance"
    return f"{name(ours)} predicts as well as GL and Sample, or better, at every level", not behind, numbers, rule


def _similar_l1(by_level: dict[float, list[Row]]) -> Judged | None:
    ratios = [mean(here, "joint", "l1_error") / mean(here, "glasso", "l1_error") for here in by_level.values()]
    if not ratios or np.isnan(ratios).any():
        return None
    return (
        "GL and Joint estimate the precision about equally well (l1 error)",
        bool(max(ratios) <= SIMILAR and min(ratios) >= 1.0 / SIMILAR),
        f"Joint's error is {min(ratios):.2f} to {max(ratios):.2f} times GL's",
        f"at every level neither is more than {SIMILAR:g} times the other",
    )


def _density_close(by_level: dict[float, list[Row]], method: str) -> Judged | None:
    off = {
        level: mean(here, method, "density") - mean(here, method, "density_true") for level, here in by_level.items()
    }
    if not off or np.isnan(list(off.values())).any():
        return None
    worst = max(off, key=lambda level: abs(off[level]))
    inside = sum(abs(value) <= CLOSE_DENSITY for value in off.values())
    return (
        f"{name(method)}'s share of non-zero entries is close to the truth",
        inside == len(off),
        f"within {CLOSE_DENSITY:g} at {inside} of {len(off)} levels; farthest at {worst:g}, by {off[worst]:+.2f}",
        f"within {CLOSE_DENSITY:g} of the truth at every level",
    )


def _over_levels(rows: Sequence[Row], metric: str) -> list[Row]:
    """One row a method and repeat: the mean over levels, where none is missing."""
    levels = len({row["sparsity"] for row in rows})
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if is_number(row.get(metric)):
            found.setdefault((row["method"], row["repeat"]), []).append(row[metric])
    return [
        {"method": method, "repeat": repeat, metric: float(np.mean(values))}
        for (method, repeat), values in found.items()
        if len(values) == levels
    ]
