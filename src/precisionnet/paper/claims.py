"""What the paper says of its experiments, sentence by sentence, held against rows.

A claim is judged by a rule that is stated with it. That one method predicts or estimates better than another counts
only where the 95 % interval of the paired difference excludes zero. Where it does not, and the interval stays within
2 % of the error, the two are level: the difference is shown to be small. That a method is as good as another counts
only where the interval stays within a margin. All else is left open, neither held nor refuted; what one cohort cannot
tell with any number of repeats, because they share its rows, is undecidable there. That something is similar, close,
sparse or free of zeros is judged on means or counts alone, without allowance for chance. Slopes of the theorem are left
open where they miss their range by less than two standard errors.

A claim about several methods holds only if each comparison does, which needs no correction. That some comparison
refutes it does: all that are averaged, and all at single levels, keep to 5 % together (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypedDict, get_args

import numpy as np
import pandas as pd
from scipy import stats

from precisionnet.evaluation.methods import label
from precisionnet.evaluation.statistics import endless_repeats, failed, is_number, methods_of, paired
from precisionnet.paper.convergence_rows import convergence_claims
from precisionnet.paper.stability_slopes import stability_claims
from precisionnet.paper.theorem_claims import Judged, Unsettled, theorem_claims
from precisionnet.runner.jobs import Row
from precisionnet.types import LEVEL

TABLE_METHODS = ("pca_mlp", "vnn", "sample", "glasso")
SPARSE = 0.25
"""Share of zeros; the paper's own smallest, on ADNI, is 0.26."""
CLOSE_SCORE = 0.05
MARGIN = 0.05
"""As good as another method is what is not worse by this share of the other's mean MAE, chance allowed for."""
SIMILAR = 1.25
"""Two errors are similar if neither is larger than this times the other."""
CLOSE_DENSITY = 0.1
FEW_ZEROS = 0.1
NARROW = 0.02
"""Two methods are level where the interval of their difference stays within this share of the error."""

Verdict = Literal["holds", "does not hold", "level", "undecidable", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Claim(TypedDict):
    """A sentence of the paper and how it fared; ``holds`` is None where methods are level or rows cannot tell."""

    claim: str
    verdict: Verdict
    holds: bool | None
    numbers: str
    rule: str


def judge_claims(kind: str, rows: Sequence[Row], cohort: str | None = None) -> list[Claim]:
    """Judge every claim of the paper that these rows can decide about.

    Parameters
    ----------
    kind : {"synthetic", "comparison", "theorem", "convergence", "stability"}
        Kind of the page; a comparison is one of the paper's cohorts.
    rows : sequence of dict
        Rows of the experiment.
    cohort : str, default=None
        Name of the cohort; by default the name of the experiment.

    Returns
    -------
    list of dict
        ``claim``, ``verdict`` ("holds", "does not hold", "level", "undecidable" on this cohort, or "open"), ``holds``
        (None but for the first two), ``numbers`` and ``rule`` of each.

    Examples
    --------
    >>> from precisionnet.paper import judge_claims
    >>> judge_claims("theorem", [])
    []
    """
    fine = [row for row in rows if not failed(row)]
    judges: dict[str, Callable[[], Iterable[Judged | None]]] = {
        "synthetic": lambda: synthetic_claims(fine),
        "comparison": lambda: cohort_claims(fine, cohort),
        "theorem": lambda: theorem_claims(fine),
        "convergence": lambda: convergence_claims(fine),
        "stability": lambda: stability_claims(fine),
    }
    found = judges[kind]()
    return [
        Claim(
            claim=claim,
            verdict=_verdict(holds),
            holds=holds if isinstance(holds, bool) else None,
            numbers=numbers,
            rule=rule,
        )
        for claim, holds, numbers, rule in (judged for judged in found if judged is not None)
    ]


def _verdict(holds: bool | Unsettled | None) -> Verdict:
    if isinstance(holds, bool):
        return "holds" if holds else "does not hold"
    return holds or "open"


def synthetic_claims(rows: Sequence[Row]) -> Iterable[Judged | None]:
    """Judge Figure 2."""
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
        "mean at every level; does not hold if another method is better beyond chance, averaged or at one level, "
        "allowing for the number of comparisons"
    )
    if holds is True and lowest < len(by_level):
        holds = None
    return claim, False if beaten else holds, numbers, rule


def _never_worse(rows: Sequence[Row], by_level: dict[float, list[Row]], ours: str) -> Judged | None:
    """Judge non-inferiority by a margin: that no difference is found, as with few or noisy repeats, is no evidence."""
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
        "level, allowing for the number of comparisons"
    )
    holds = False if behind else True if inside == len(worst) else None
    return f"{label(ours)} predicts as well as GL and Sample, or better, at every level", holds, numbers, rule


def _at_worst(rows: Sequence[Row], ours: str, other: str) -> float:
    """Return the upper end of our MAE less the other's, as a share of its mean; NaN where there is no interval."""
    table = paired([row for row in rows if row["method"] in (ours, other)], ours, "mae", resampled=False)
    return -float(table["low"][other]) / mean(rows, other, "mae") if other in table.index else np.nan


def _better_averaged(averaged: Sequence[Row], ours: str, others: Sequence[str]) -> list[str]:
    """List the methods whose MAE, averaged over levels, is lower than ours beyond chance."""
    table = paired([row for row in averaged if row["method"] in (ours, *others)], ours, "mae", resampled=False)
    return [f"{label(method)} averaged over levels" for method in _lower(table)]


def _lower(table: pd.DataFrame) -> list[str]:
    """List the methods of a table of ``paired`` that are lower than its reference; all together keep to 5 %."""
    known = table[table["low"].notna()]
    chances = {str(method): _chance_of_lower(line.difference, line.high, line.n) for method, line in known.iterrows()}
    return [method for method, chance in chances.items() if chance * len(chances) < 1.0 - LEVEL]


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
    """Average over levels, where none is missing: one row per method and repeat."""
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


def cohort_claims(rows: Sequence[Row], cohort: str | None = None) -> Iterable[Judged | None]:
    """Judge Table 1; where the cohort is not given, the experiment's name is taken for it."""
    present = methods_of(rows)
    others = [method for method in TABLE_METHODS if method in present]
    if "joint" in present and others:
        yield best("Joint predicts age best of the paper's methods", rows, others, resampled=True)
        if zeros := zero_shares(rows, "joint"):
            yield (
                "Joint's precision is sparse",
                bool(np.mean(zeros) >= SPARSE),
                f"{np.mean(zeros):.0%} of the entries are zero, {min(zeros):.0%} at least",
                f"at least {SPARSE:.0%} of the entries are zero, on average",
            )
    for method in ("joint", "glasso"):
        yield ordered(f"{label(method)} predicts better than Sample", rows, method, "sample", "mae", resampled=True)
    yield no_zeros(rows)
    cohorts = {cohort or str(row.get("experiment")) for row in rows}
    if cohorts == {"abide"}:
        yield _close(rows, "vnn", "glasso")
        yield ordered("PCA + MLP predicts better than GL", rows, "pca_mlp", "glasso", "mae", resampled=True)
    if cohorts == {"adni"}:
        yield ordered("VNN predicts worse than GL", rows, "glasso", "vnn", "mae", resampled=True)
        yield ordered("PCA + MLP predicts worse than VNN", rows, "vnn", "pca_mlp", "mae", resampled=True)


def _close(rows: Sequence[Row], one: str, other: str) -> Judged | None:
    a, b = mean(rows, one, "mae"), mean(rows, other, "mae")
    if np.isnan(a) or np.isnan(b):
        return None
    rule = f"mean errors differ by at most {CLOSE_SCORE:.0%}"
    return f"{label(one)} is close to {label(other)}", abs(a / b - 1.0) <= CLOSE_SCORE, f"MAE {a:.2f} and {b:.2f}", rule


def best(claim: str, rows: Sequence[Row], others: Sequence[str], *, resampled: bool) -> Judged | None:
    """Judge whether Joint's MAE is lower than that of all others."""
    table = paired(rows, "joint", "mae", resampled=resampled)
    table = table.loc[[method for method in others if method in table.index]]
    if table.empty:
        return None
    margin = NARROW * mean(rows, "joint", "mae")
    fine = table["low"] > 0
    near = fine | ((table["low"] > -margin) & (table["high"] < margin))
    differences = [
        f"{label(str(method))} {interval_text(line.difference, line.low, line.high)}"
        for method, line in table.iterrows()
    ]
    numbers = f"MAE less Joint's: {', '.join(differences)}"
    holds: bool | Unsettled | None = True if fine.all() else "level" if near.all() else None
    if _lower(table):
        holds = False
    if holds is None and resampled:
        endless = endless_repeats(rows, "joint", "mae", margin).loc[table.index]
        never = endless["undecidable"].astype(bool)
        holds = "undecidable" if (near | never).all() else None
        unsure = table.index[never & ~near] if holds else table.index[~near]
        halves = {label(str(method)): float(endless["half"][method]) for method in unsure}
        numbers += endless_text(halves, settled=holds is not None)
    rule = (
        "every paired difference to Joint is above zero with its 95 % interval; level if each interval is so or stays "
        f"within {NARROW:.0%}; does not hold if another is below zero beyond chance, all comparisons together"
    )
    return claim, holds, numbers, rule


def endless_text(halves: Mapping[str, float], *, settled: bool) -> str:
    """Say how wide intervals stay with endless repeats on one cohort; ``settled`` if they never tell the difference."""
    known = [f"±{half:.2g}" + (f" ({of})" if of else "") for of, half in halves.items() if not np.isnan(half)]
    if not known:
        return ""
    if settled:
        return f"; even endless repeats on this cohort leave an interval wider than the difference: {', '.join(known)}"
    return f"; endless repeats on this cohort would leave an interval of {', '.join(known)}, if the spread stays"


def worse_than(rows_by_level: Mapping[float, Sequence[Row]], ours: str, others: Sequence[str]) -> tuple[list[str], int]:
    """Find where another method's MAE is lower than ours beyond chance, and how many comparisons there were.

    All comparisons together keep to 5 % (Bonferroni): of a dozen by themselves, one in four tables would show some.
    """
    found = []
    for level, here in rows_by_level.items():
        table = paired([row for row in here if row["method"] in (ours, *others)], ours, "mae", resampled=False)
        for method, line in table[table["low"].notna()].iterrows():
            found.append((f"{label(str(method))} at {level:g}", _chance_of_lower(line.difference, line.high, line.n)))
    return [where for where, p in found if p * len(found) < 1.0 - LEVEL], len(found)


def _chance_of_lower(difference: float, high: float, n: float) -> float:
    """Return how likely a difference as far below zero would be by chance (two-sided); 1 where it is not below."""
    if difference >= 0.0:
        return 1.0
    error = (high - difference) / stats.t.ppf(0.5 + LEVEL / 2.0, n - 1)
    return float(2.0 * stats.t.cdf(difference / error, n - 1))


def ordered(claim: str, rows: Sequence[Row], better: str, worse: str, metric: str, *, resampled: bool) -> Judged | None:
    """Judge whether the error of ``better`` is the lower one."""
    table = paired([row for row in rows if row["method"] in (better, worse)], better, metric, resampled=resampled)
    if worse not in table.index:
        return None
    difference, low, high = (float(table[column][worse]) for column in ("difference", "low", "high"))
    numbers = f"{label(worse)} less {label(better)}: {interval_text(difference, low, high)}"
    rule = f"the paired difference is above zero with its 95 % interval; level if that stays within {NARROW:.0%}"
    margin = NARROW * mean(rows, better, metric)
    if low > 0 or high < 0:
        return claim, low > 0, numbers, rule
    holds: Unsettled | None = "level" if -margin < low and high < margin else None
    if holds is None and resampled:
        endless = endless_repeats(rows, better, metric, margin)
        holds = "undecidable" if endless["undecidable"][worse] else None
        numbers += endless_text({"": float(endless["half"][worse])}, settled=holds is not None)
    return claim, holds, numbers, rule


def no_zeros(rows: Sequence[Row]) -> Judged | None:
    """Judge whether the sample precision has no zeros."""
    zeros = [row["n_zeros"] for row in rows if row["method"] == "sample" and is_number(row.get("n_zeros"))]
    if not zeros:
        return None
    return "Sample's precision has no zeros", max(zeros) == 0, f"at most {max(zeros)} zeros", "no entry is exactly zero"


def zero_shares(rows: Sequence[Row], method: str) -> list[float]:
    """Return the share of zeros of theta, fit by fit."""
    return [1.0 - row["density"] for row in rows if row["method"] == method and is_number(row.get("density"))]


def mean(rows: Sequence[Row], method: str, metric: str) -> float:
    """Average over the rows of a method that have the metric; NaN where none has."""
    values = [row[metric] for row in rows if row["method"] == method and is_number(row.get(metric))]
    return float(np.mean(values)) if values else np.nan


def interval_text(difference: float, low: float, high: float) -> str:
    """Write +1.2 [+0.8, +1.6]; one repeat, or repeats that all differ by the same amount, give no interval."""
    return f"{difference:+.3g}" + (" (no interval)" if np.isnan(low) else f" [{low:+.3g}, {high:+.3g}]")
