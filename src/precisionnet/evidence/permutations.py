"""Who is exchanged with whom: the relabellings that a permutation test of two groups may use.

Unpaired: every person belongs to one group. A relabelling permutes the people's labels and takes all rows of a person
along, so that rows that are alike because they are one person's are never told apart. Both groups keep their number of
people (of rows, too, where everybody has the same number).

Paired: every person has rows in both groups. A relabelling swaps the two labels within each person or leaves them, by
the toss of a coin; no row is ever compared as if it were another person's.

Valid where people (unpaired) or the two conditions of a person (paired) are exchangeable if the groups do not differ.
Not for rows in time without a person: give the person or the block, else neighbours in time count as independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from precisionnet.errors import InputError, shown
from precisionnet.types import BoolArray, FloatArray, IndexArray

FEWEST_PERMUTATIONS = 19
"""With fewer permutations no p-value can be as small as 0.05."""


@dataclass(frozen=True)
class Exchange:
    """The rows of two groups, and what may be exchanged between them."""

    in_b: BoolArray
    """Whether each row is of the second group."""
    person: IndexArray
    """The person of each row, 0 to n_people - 1."""
    paired: bool = False
    """Whether every person has rows in both groups."""

    @property
    def n_people(self) -> int:
        """How many people there are in both groups together; in a paired design each counts once."""
        return int(self.person.max()) + 1

    @property
    def single(self) -> bool:
        """Whether every row is another person's."""
        return self.n_people == len(self.person)

    def draws(self, n_permutations: int, rng: np.random.Generator) -> BoolArray:
        """Draw relabellings: ``in_b`` for each, (n_permutations, n_rows)."""
        if self.paired:
            swap = rng.random((n_permutations, self.n_people)) < 0.5
            return self.in_b ^ swap[:, self.person]
        of_person = np.zeros(self.n_people, dtype=bool)
        of_person[self.person] = self.in_b
        shuffled = rng.permuted(np.tile(of_person, (n_permutations, 1)), axis=1)
        return shuffled[:, self.person]


def permutation_p(observed: float, drawn: FloatArray) -> float:
    """Return (1 + b) / (1 + B), b of B drawn statistics being as large as the observed one."""
    return float((1 + np.count_nonzero(drawn >= _at_least(np.float64(observed)))) / (1 + len(drawn)))


def pooled_p(observed: FloatArray, drawn: FloatArray) -> FloatArray:
    """Compare every observed statistic with the drawn ones of all: (1 + b) / (1 + B n) over n tests.

    Valid where the statistics have the same distribution if nothing differs: studentised ones.
    """
    pool = np.sort(drawn, axis=None)
    n_larger = len(pool) - np.searchsorted(pool, _at_least(observed), side="left")
    return np.asarray((1.0 + n_larger) / (1.0 + len(pool)))


def _at_least(statistic: FloatArray | np.float64) -> FloatArray:
    """Lower a statistic by rounding, so that a relabelling that changes nothing counts as at least as large."""
    return np.asarray(statistic - 1e-6 * np.abs(statistic))


def check_counts(n_permutations: Any, n_jobs: Any) -> None:
    """Refuse numbers of permutations and workers that mean nothing."""
    whole = isinstance(n_permutations, Integral) and not isinstance(n_permutations, bool)
    if not whole or n_permutations < FEWEST_PERMUTATIONS:
        raise InputError(
            f"n_permutations must be a whole number of at least {FEWEST_PERMUTATIONS}, got {shown(n_permutations)}: "
            "with fewer no p-value can be 0.05."
        )
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise InputError(f"n_jobs must be a whole number other than 0, or None, got {shown(n_jobs)}.")
