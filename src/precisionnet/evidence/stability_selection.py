r"""How often a pair is among the strongest of half of the people: complementary-pairs stability selection.

The people are cut into two halves, B times; in each half of G / 2 people the graphical lasso of the correlations, with
the penalty sqrt(log N / (G / 2)), names its q = sqrt(p) largest partial correlations. (Large penalties would name the
largest *correlations* instead: they miss strong edges where all columns have a common cause.) With f_ij the share of
the 2 B halves that name a pair, the expected number of unlikely pairs (those that a half names with no more than the
average probability q / p, p the number of pairs) among the pairs with f_ij >= tau is at most

    C(tau, B) q^2 / p,   C = 1 / (2 (2 tau - 1 - 1 / (2 B)))             for tau up to 3/4
                         C = 4 (1 - tau + 1 / (2 B)) / (1 + 1 / B)        above

(Shah and Samworth 2013, with unimodal frequencies: their assumption is that the probability of being named by both
halves falls off from its mode). Regime: any number of rows and any distribution; too few rows for an interval. What it
is not: a p-value, or a statement about a partial correlation. Where every pair without an edge is named with the same
probability, unlikely pairs are the pairs without an edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from precisionnet.evidence.observations import Observations
from precisionnet.evidence.pairs import pairs_of
from precisionnet.precision import graphical_lasso
from precisionnet.types import FloatArray, IndexArray
from precisionnet.workers import in_workers

N_CUTS = 50
"""Times the people are cut into halves, as in the paper."""
SOLVER_TOLERANCE = 1e-3


@dataclass(frozen=True)
class StabilitySelection:
    """``frequency`` of each pair i < j over ``2 n_cuts`` halves that name ``n_named`` pairs each."""

    frequency: FloatArray
    n_named: int
    n_cuts: int

    def false_edges(self, threshold: float) -> float:
        """Return the bound on the expected number of unlikely pairs with a frequency of at least ``threshold``."""
        ratio = self.n_named**2 / len(self.frequency)
        spare = 1.0 / (2 * self.n_cuts)
        if threshold <= 0.5 + spare:
            return float(len(self.frequency))
        if threshold <= 0.75:
            return float(min(len(self.frequency), ratio / (2.0 * (2.0 * threshold - 1.0 - spare))))
        return float(ratio * 4.0 * (1.0 - threshold + spare) / (1.0 + 1.0 / self.n_cuts))

    def bounds(self) -> pd.DataFrame:
        """Return ``frequency``, ``n_edges`` with at least that frequency, and the bound ``false_edges``."""
        thresholds = np.round(np.arange(0.55, 1.001, 0.05), 2)
        return pd.DataFrame(
            {
                "frequency": thresholds,
                "n_edges": [int(np.sum(self.frequency >= tau - 1e-9)) for tau in thresholds],
                "false_edges": [self.false_edges(float(tau)) for tau in thresholds],
            }
        )

    def threshold_for(self, false_edges: float) -> float:
        """Return the smallest frequency whose bound is no more than that many false edges; above 1 where none is."""
        steps = np.arange(self.n_cuts + 1, 2 * self.n_cuts + 1) / (2.0 * self.n_cuts)
        within = [float(tau) for tau in steps if self.false_edges(float(tau)) <= false_edges]
        return within[0] if within else 1.0 + 1.0 / self.n_cuts


def stability_selection(
    data: Observations, rng: np.random.Generator, *, n_cuts: int = N_CUTS, n_jobs: int | None = None
) -> StabilitySelection:
    """Return how often each pair is named; all halves are drawn before any work is handed out."""
    n_nodes = data.X.shape[1]
    n_pairs = n_nodes * (n_nodes - 1) // 2
    n_named = max(1, round(np.sqrt(n_pairs)))
    halves = []
    for _ in range(n_cuts):
        order = rng.permutation(data.n_people)
        half = data.n_people // 2
        halves += [order[:half], order[half : 2 * half]]
    named = in_workers(_named, ((half, n_named) for half in halves), n_jobs, shared=(data,))
    counts = np.zeros(n_pairs)
    for pairs in named:
        counts[pairs] += 1.0
    return StabilitySelection(counts / len(halves), n_named, n_cuts)


def _named(data: Observations, people: IndexArray, n_named: int) -> IndexArray:
    """Return the positions of the strongest pairs of these people's graphical lasso."""
    rows = data.rows_of(people)
    centred = rows - rows.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    unit = centred / np.where(spread > 0.0, spread, 1.0)
    correlation = unit.T @ unit / len(unit)
    first, second = pairs_of(len(correlation))
    penalty = np.sqrt(np.log(len(correlation)) / len(people))
    precision = graphical_lasso(correlation, penalty, tol=SOLVER_TOLERANCE).precision
    scale = np.sqrt(np.diag(precision))
    strength = np.abs(precision / scale[:, None] / scale)[first, second]
    strongest = np.argsort(-strength, kind="stable")[:n_named]
    chosen: IndexArray = strongest[strength[strongest] > 0.0]
    return chosen
