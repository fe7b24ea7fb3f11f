"""What the paper says of its synthetic experiment (Figure 2), held against rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from precisionnet.experiments.methods.registry import label
from precisionnet.experiments.pairing import is_number, methods_of, paired
from precisionnet.experiments.paper.judging import Judged, best, mean, no_zeros, ordered, worse_than, zero_shares
from precisionnet.experiments.runner.jobs import Row

MARGIN = 0.05
"""As good as another method is what is not worse by this share of the other's mean MAE, chance allowed for."""
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
            f"{label(worse)} estimates the precision worse than {label(better)} (l1 error)",
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
    # np.min: a level that lacks a method has no lowest
    lowest = sum(mean(here, "joint", "mae") < np.min([*means[at].values()]) for at, here in by_level.items())
    beaten, _ = worse_than(by_level, "joint", others)
    numbers = f"lowest mean MAE at {lowest} of {len(by_level)} levels; averaged over levels, {numbers}"
    numbers += f"; better than Joint beyond chance: {', '.join(beaten)}" if beaten else ""
    rule = (
        "averaged over levels every difference to Joint is above zero with its 95 % interval, and Joint has the lowest "
        "mean at every level; does not hold if another method is better beyond chance, averaged or at one level"
    )
    if holds and lowest < len(by_level):
        holds = None
    return claim, False if beaten else holds, numbers, rule


def _never_worse(rows: Sequence[Row], by_level: dict[float, list[Row]], ours: str) -> Judged | None:
    """Not inferior by a margin: that no difference is found, as with few or noisy repeats, is no evidence."""
    others = [method for method in ("glasso", "sample") if method in methods_of(rows)]
    if ours not in methods_of(rows) or not others:
        return None
    averaged = _over_levels(rows, "mae")
    places = {"averaged over levels": averaged} | {f"at {level:g}": here for level, here in by_level.items()}
    worst = {
        f"{label(other)} {where}": _at_worst(here, ours, other) for where, here in places.items() for other in others
    }
    known = {where: share for where, share in worst.items() if not np.isnan(share)}
    behind = _better_averaged(averaged, ours, others) + worse_than(by_level, ours, others)[0]
    inside = sum(share < MARGIN for share in known.values())
    numbers = (
        f"not worse by {MARGIN:.0%} of the other's MAE, chance allowed for, in {inside} of {len(worst)} comparisons"
    )
    if known:
        most = max(known, key=known.__getitem__)
        numbers += f"; the upper end is highest against {most}, {known[most]:+.1%}"
    numbers += f"; worse beyond chance than {', '.join(behind)}" if behind else ""
    rule = (
        f"at every level and averaged over them the 95 % interval of {label(ours)}'s MAE less the other's ends below "
        f"{MARGIN:.0%} of the other's mean; does not hold if the other is better beyond chance, averaged or at one "
        "level"
    )
    holds = False if behind else True if inside == len(worst) else None
    return f"{label(ours)} predicts as well as GL and Sample, or better, at every level", holds, numbers, rule


def _at_worst(rows: Sequence[Row], ours: str, other: str) -> float:
    """Upper end of our MAE less the other's, as a share of the other's mean; NaN where there is no interval."""
    table = paired([row for row in rows if row["method"] in (ours, other)], ours, "mae", resampled=False)
    return -float(table["low"][other]) / mean(rows, other, "mae") if other in table.index else np.nan


def _better_averaged(averaged: Sequence[Row], ours: str, others: Sequence[str]) -> list[str]:
    """The methods whose MAE, averaged over levels, is lower than ours beyond chance."""
    table = paired([row for row in averaged if row["method"] in (ours, *others)], ours, "mae", resampled=False)
    return [f"{label(str(method))} averaged over levels" for method in table.index[table["high"] < 0]]


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
        f"{label(method)}'s share of non-zero entries is close to the truth",
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
