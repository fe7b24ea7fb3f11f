"""Permutation tests of one pair of groups, whatever is compared: differences of a labelling against drawn labellings.

What is compared comes in as a function from a labelling to :class:`Differences`; nothing here knows what a graph is.
``groups.py`` says what the tests mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from precisionnet.evidence.differences import Contrast, Differences
from precisionnet.evidence.permutations import permutation_p, pooled_p
from precisionnet.types import LEVEL, BoolArray, FloatArray
from precisionnet.workers import count_for, in_workers


@dataclass(frozen=True)
class PairResult:
    """Everything about one pair of groups."""

    structure: float
    """The larger of two standard scores."""
    structure_p: float
    rms: float
    """Root mean square difference of edges beyond that of drawn labellings."""
    total: Effect
    total_statistic: float
    """Size of the summed strength's difference in standard errors."""
    edges: Effect
    nodes: Effect

    @classmethod
    def of(
        cls, contrast: Contrast, in_b: BoolArray, draws: BoolArray, n_jobs: int | None, *, intervals: bool
    ) -> PairResult:
        """Compare the labels' differences with those of the drawn labellings; intervals where they mean something."""
        observed, drawn = contrast(in_b), _in_workers(contrast, draws, n_jobs)
        edge_t, edge_error, edge_null = _studentised(observed, drawn, "edges", "edge_errors")
        _, node_error, node_null = _studentised(observed, drawn, "nodes", "node_errors")
        total_t, total_error, total_null = _studentised(observed, drawn, "total", "total_error")
        score, null_scores = _structure(edge_t, edge_null)
        excess = np.mean(observed.edges**2) - np.mean([np.mean(draw.edges**2) for draw in drawn])
        return cls(
            structure=score,
            structure_p=permutation_p(score, null_scores),
            rms=float(np.sqrt(max(excess, 0.0))),
            total=Effect.of(np.array([observed.total]), total_error, total_null, intervals),
            total_statistic=float(total_t[0]),
            edges=Effect.of(observed.edges, edge_error, edge_null, intervals),
            nodes=Effect.of(observed.nodes, node_error, node_null, intervals),
        )


@dataclass(frozen=True)
class Effect:
    """A difference for each edge or node, its interval and its p-value."""

    difference: FloatArray
    half_width: FloatArray
    p_value: FloatArray

    @classmethod
    def of(cls, difference: FloatArray, error: FloatArray, drawn: FloatArray, intervals: bool) -> Effect:
        """Judge differences by the drawn |t| of all of them."""
        reach = np.quantile(drawn, LEVEL) if intervals else np.nan
        return cls(difference, reach * error, pooled_p(np.abs(difference) / error, drawn))

    def columns(self) -> dict[str, FloatArray]:
        """Return what a table lists."""
        low, high = self.difference - self.half_width, self.difference + self.half_width
        return {"difference": self.difference, "ci_low": low, "ci_high": high, "p_value": self.p_value}


def _studentised(
    observed: Differences, drawn: Sequence[Differences], what: str, error: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """|t| of the labels, their errors, and |t| of the drawn labellings, one row each.

    Differences without errors of their own get their standard deviation over all labellings.
    """
    values = np.array([np.atleast_1d(getattr(one, what)) for one in (observed, *drawn)])
    if getattr(observed, error) is None:
        errors = np.tile(np.maximum(values.std(axis=0), np.finfo(float).tiny), (len(values), 1))
    else:
        errors = np.array([np.atleast_1d(getattr(one, error)) for one in (observed, *drawn)])
    t = np.abs(values) / errors
    return t[0], errors[0], t[1:]


def _structure(t: FloatArray, null: FloatArray) -> tuple[float, FloatArray]:
    """Return the larger of the standard scores of max |t| and of sum t^2, for the labels and each drawn labelling."""
    every = np.vstack([t, null])
    both = np.array([every.max(axis=1), np.sum(every**2, axis=1)])
    spread = np.maximum(both.std(axis=1, keepdims=True), np.finfo(float).tiny)
    scores = ((both - both.mean(axis=1, keepdims=True)) / spread).max(axis=0)
    return float(scores[0]), scores[1:]


def _in_workers(contrast: Contrast, draws: BoolArray, n_jobs: int | None) -> list[Differences]:
    """Compare groups under every labelling."""
    n_workers = count_for(n_jobs)
    parts = np.array_split(draws, min(len(draws), 4 * n_workers if n_workers > 1 else 1))
    found = in_workers(_differences, ((part,) for part in parts), n_jobs, shared=(contrast,))
    return [one for part in found for one in part]


def _differences(contrast: Contrast, draws: BoolArray) -> list[Differences]:
    return [contrast(in_b) for in_b in draws]
