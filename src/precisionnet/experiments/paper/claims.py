"""What the paper says of its experiments, sentence by sentence, held against rows.

A claim is judged by a rule that is stated with it. That one method predicts or estimates better than another counts
only where the 95 % interval of the paired difference excludes zero, and that it is as good only where the interval
stays within a margin; else the claim is left open (None), neither held nor refuted. That something is similar, close,
sparse or free of zeros is judged on means or counts alone, without allowance for chance. Slopes of the theorem are
left open where they miss their range by less than two standard errors.
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


def claims(kind: str, rows: Sequence[Row], cohort: str | None = None) -> list[Claim]:
    """Every claim that rows of this kind of page can decide about; a comparison is one of the paper's cohorts."""
    fine = [row for row in rows if not failed(row)]
    judges: dict[str, Callable[[], Iterable[Judged | None]]] = {
        "synthetic": lambda: synthetic_claims(fine),
        "comparison": lambda: cohort_claims(fine, cohort),
        "theorem": lambda: theorem_claims(fine),
    }
    found = judges[kind]()
    return [
        Claim(claim=claim, holds=holds, numbers=numbers, rule=rule)
        for claim, holds, numbers, rule in (judged for judged in found if judged is not None)
    ]
