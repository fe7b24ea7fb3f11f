"""What the paper says of its experiments, sentence by sentence, held against rows.

A claim is judged by a rule that is stated with it. Differences between methods count only where the 95 % interval of
the paired difference excludes zero; where it does not, the claim is left open (None), neither held nor refuted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict

from precisionnet.experiments.pairing import failed
from precisionnet.experiments.paper.cohort_claims import cohort_claims
from precisionnet.experiments.paper.judging import Judged
from precisionnet.experiments.paper.synthetic_claims import synthetic_claims
from precisionnet.experiments.paper.theorem_claims import theorem_claims
from precisionnet.experiments.runner.jobs import Row


class Claim(TypedDict):
    """A sentence of the paper and how it fared."""

    claim: str
    holds: bool | None
    """None: the rows cannot tell."""
    numbers: str
    rule: str


_JUDGES: dict[str, Callable[[Sequence[Row]], Iterable[Judged | None]]] = {
    "synthetic": synthetic_claims,
    "comparison": cohort_claims,
    "theorem": theorem_claims,
}


def claims(kind: str, rows: Sequence[Row]) -> list[Claim]:
    """Every claim that rows of this kind of page can decide about; a comparison is one of the paper's cohorts."""
    found = _JUDGES[kind]([row for row in rows if not failed(row)])
    return [
        Claim(claim=claim, holds=holds, numbers=numbers, rule=rule)
        for claim, holds, numbers, rule in (judged for judged in found if judged is not None)
    ]
