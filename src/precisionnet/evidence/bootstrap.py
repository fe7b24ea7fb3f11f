r"""What other people would have given: draws of a graph's weights, and how much of the people it can do without.

Draws are of the multiplier bootstrap: with psi_g the influence of person g on a statistic (rows of one person together,
corrected for leverage as in ``partial_correlation.py``),

    z* = z + sum_g xi_g psi_g,    xi ~ N(0, 1), one for each person and all statistics

so that all edges move together as they would over new people, and each edge's draws have the variance of its interval.
Regime: a graph whose edges are given; which pairs are edges at all is told by p-values and selection frequencies. How
this differs from the textbook's resampling of rows with replacement: that leaves 63 % of the rows, and the inverse of
their covariance is far noisier than that of T rows unless T is many times N (El Karoui and Purdom 2018).

The stability coefficient (Epskamp, Borsboom and Fried 2018) is the largest share of people that can be dropped such
that the node strengths of those who stay correlate at least 0.7 with those of all, in at least 95 % of the draws.
The graph of those who stay is inferred anew, its edges chosen anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from precisionnet.evidence.observations import Observations
from precisionnet.threads import limited_threads
from precisionnet.types import BoolArray, FloatArray, IndexArray

DROPPED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75)
"""Shares of people that are dropped."""
CORRELATION, SHARE_OF_DRAWS = 0.7, 0.95


@dataclass(frozen=True)
class CaseDropping:
    """``coefficient``, and the ``curve`` behind it: a row per share of people dropped."""

    coefficient: float
    curve: pd.DataFrame


def multiplier_draws(
    values: FloatArray, influence: FloatArray, variance: FloatArray, multipliers: FloatArray
) -> FloatArray:
    """Return draws (n_draws, n_statistics) around ``values`` whose variances are ``variance``."""
    spread = np.sum(influence**2, axis=0)
    scale = np.sqrt(variance / np.where(spread > 0.0, spread, 1.0))
    return values + multipliers @ (influence * scale)


def case_dropping(
    data: Observations,
    strength: FloatArray,
    strength_of: Callable[[Observations], FloatArray | None],
    fewest_people: int,
    n_draws: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> CaseDropping:
    """Return the stability coefficient of ``strength``; ``strength_of`` infers a part of the people's graph.

    Where fewer than ``fewest_people`` would stay, the share dropped counts as too many.
    """
    each = max(1, n_draws // len(DROPPED))
    kept = {share: data.n_people - round(share * data.n_people) for share in DROPPED}
    possible = [share for share in DROPPED if kept[share] >= fewest_people]
    draws = [rng.permutation(data.n_people)[: kept[share]] for share in possible for _ in range(each)]
    with limited_threads(1):
        drawn = Parallel(n_jobs=n_jobs)(delayed(_correlation)(data, people, strength, strength_of) for people in draws)
    values = np.array(drawn, dtype=np.float64).reshape(len(possible), each)
    share_above = np.mean(values >= CORRELATION, axis=1)
    stable: BoolArray = np.cumprod(share_above >= SHARE_OF_DRAWS).astype(bool)
    curve = pd.DataFrame(
        {
            "dropped": possible,
            "n_people": [kept[share] for share in possible],
            "correlation": values.mean(axis=1) if len(values) else [],
            "share_above": share_above,
        }
    )
    return CaseDropping(float(np.array(possible)[stable].max()) if stable.any() else 0.0, curve)


def _correlation(
    data: Observations,
    people: IndexArray,
    strength: FloatArray,
    strength_of: Callable[[Observations], FloatArray | None],
) -> float:
    """Correlation of both strengths over nodes; 0 where one of them does not vary or there is no graph."""
    part = strength_of(data.restricted_to(people))
    if part is None or np.ptp(part) == 0.0 or np.ptp(strength) == 0.0:
        return 0.0
    return float(np.corrcoef(strength, part)[0, 1])
