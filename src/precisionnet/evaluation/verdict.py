"""Should I use this here? The answer in two sentences: what was found, and what to do.

Methods are judged by their headline (mean absolute error, or accuracy) on the repeats they share, and a difference
counts if the interval of the corrected resampled t-test does not contain 0. If there is no interval (one repeat, or
repeats that all differ by the same amount), the verdict does not speak of chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from precisionnet.evaluation.methods import METHODS, TRIVIAL
from precisionnet.evaluation.metrics import HIGHER_IS_BETTER, headline
from precisionnet.evaluation.statistics import apart, failed, is_number, methods_of, paired, score_table, shift_costs
from precisionnet.runner.jobs import Row
from precisionnet.types import TaskName

NO_INTERVAL = "repeats that all differ by the same amount give no interval to tell it from chance"
EMPTY = "a graph without a single edge"


def verdict(rows: Sequence[Row], task: TaskName, target: str, unit: str = "") -> str:
    """Say in two sentences how ``joint`` and the best other method compare, and what to use.

    Parameters
    ----------
    rows : sequence of dict
        Rows of a comparison.
    task : {"regression", "classification"}
        What the target is.
    target : str
        Name of the target.
    unit : str, default=""
        Unit of the target, such as "years".

    Returns
    -------
    str
        The two sentences.

    Examples
    --------
    >>> from precisionnet.evaluation.verdict import verdict
    >>> rows = [{"method": "joint", "repeat": 0, "mae": 3.0, "n_train": 60, "n_test": 20}]
    >>> verdict(rows, "regression", "age", "years").split(",")[0]
    'joint predicts age with MAE 3.00 years in one repeat'
    """
    rows, _ = apart(rows)
    table = score_table(rows, headline(task))
    losses = -table if headline(task) in HIGHER_IS_BETTER else table
    failures = _failures(rows)
    if losses.empty:
        return f"Nothing can be said about {target}: no fit has come to a result{failures}. Look at the reasons first."
    words, guess = Words(task, target, unit), TRIVIAL[task]
    real = [str(name) for name in losses if name != guess]
    if guess in losses and real and all(_difference(losses, name, guess) <= 0.0 for name in real):
        best = _best(losses[real])
        return (
            f"Do not use any of these methods to predict {target}: none does better than always guessing the {guess} "
            f"({words.score(losses[guess])}; the best of them, {best}, {words.score(losses[best])}). "
            f"Look for outliers and codes of missing values, or bring more rows or other columns{failures}."
        )
    first = "joint" if "joint" in losses else _best(losses[real]) if real else guess
    second = _rival(losses, first, real) or _rival(losses, first, [guess])
    if second is None:
        return (
            f"{words.finds(first, losses[first])}, and there is no other method to compare it with. "
            f"Compare it with others before you use it{failures}."
        )
    duel = _duel(rows, losses, first, second, headline(task))
    floor = _duel(rows, losses, duel.better, guess, headline(task)) if guess in losses and guess != second else None
    if second == guess and not duel.certain:
        advice = f"Do not rely on {first} yet: what it has over always guessing the {guess} could be chance"
    elif floor is not None and len(floor.repeats) > 1 and not floor.certain:
        advice = _doubt(floor)
    elif first != "joint":
        advice = f"Use {first}" if duel.certain else f"Use {first} or {second}"
        advice += "" if "joint" in methods_of(rows) else "; joint was not among the methods"
    elif guess in losses and _difference(losses, "joint", guess) <= 0.0:
        advice = f"Use {second}: joint does no better than always guessing the {guess}"
    else:
        advice = _advice(duel, _graph(rows), words.amount(abs(duel.difference), float(losses[first].mean())))
    return f"{words.finding(duel, losses)} {advice}{failures}."


def shift_verdict(rows: Sequence[Row], task: TaskName, target: str, group: str, unit: str = "") -> str:
    """Say in one sentence how much worse a method predicts groups it has not seen; empty if none were left out.

    The sentence is about ``joint`` if it took part, else about the best method, and names the best other method on the
    groups left out.
    """
    costs = shift_costs(rows, headline(task)).dropna()
    if costs.empty:
        return ""
    sign = -1.0 if headline(task) in HIGHER_IS_BETTER else 1.0
    order = (sign * costs["left_out"]).sort_values(kind="stable").index
    first = "joint" if "joint" in costs.index else str(order[0])
    words = Words(task, target, unit)
    cost = float(costs["cost"][first])
    change = words.amount(abs(cost), float(costs["ordinary"][first]))
    change = f"{change} {'worse' if cost > 0 else 'better'} than on ordinary splits"
    said = words.score(pd.Series([sign * costs["left_out"][first]]))
    sentence = f"Where whole groups ({group}) are left out, {first} has {said}, {change}"
    others = [str(name) for name in order if name != first]
    if not others:
        return f"{sentence}."
    best = words.score(pd.Series([sign * costs["left_out"][others[0]]]))
    return f"{sentence}; the best other method there, {others[0]}, has {best}."


@dataclass(frozen=True)
class Duel:
    """Two methods compared on the repeats they share; a positive difference means that the first is better."""

    first: str
    second: str
    difference: float
    low: float
    high: float
    repeats: list[int]

    @property
    def bounded(self) -> bool:
        """Whether there is an interval, without which nothing can be said about chance."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    @property
    def certain(self) -> bool:
        """Whether the difference is more than chance explains."""
        return self.low > 0.0 or self.high < 0.0

    @property
    def better(self) -> str:
        """The method that did better, even if only by chance."""
        return self.first if self.difference >= 0.0 else self.second


@dataclass(frozen=True)
class Words:
    """Writes scores as text: errors in the target's units, accuracies in percent."""

    task: TaskName
    target: str
    unit: str = ""

    def score(self, losses: pd.Series[float]) -> str:
        """Write a mean score, such as 'MAE 3.02 years' or 'accuracy 83.1 %'."""
        mean = float(losses.mean())
        return f"MAE {self.amount(mean, mean)}" if self.task == "regression" else f"accuracy {-100 * mean:.1f} %"

    def finds(self, method: str, losses: pd.Series[float]) -> str:
        """Write the beginning of a sentence about one method: what it predicts, its score and the repeats."""
        repeats = "in one repeat" if losses.count() == 1 else f"over {losses.count()} repeats"
        return f"{method} predicts {self.target} with {self.score(losses)} {repeats}"

    def finding(self, duel: Duel, losses: pd.DataFrame) -> str:
        """Write the verdict's first sentence: both scores, their difference, and whether it could be chance."""
        first, second = (losses.loc[duel.repeats, name] for name in (duel.first, duel.second))
        scores = f"{self.finds(duel.first, first)}; the best other method, {duel.second}, has {self.score(second)}"
        if len(duel.repeats) == 1:
            return f"{scores}, and one repeat cannot tell whether that difference is chance."
        size = float(first.mean())
        if not duel.bounded:
            by = self.amount(abs(duel.difference), size)
            return f"{scores}: {duel.better} is better by {by} in every repeat, and {NO_INTERVAL}."
        if not duel.certain:
            sign = 1.0 if self.task == "regression" else -1.0  # the other method less the first, as in the tables
            ends = sorted(sign * bound for bound in (duel.low, duel.high))
            bounds = "95 % interval " + " to ".join(self.signed(end, size) for end in ends)
            by = self.signed(sign * duel.difference, size)
            return f"{scores}, a difference of {by} ({bounds}) that could be chance."
        low, high = (self.number(abs(bound), size) for bound in (duel.low, duel.high))
        by = self.amount(abs(duel.difference), size)
        bounds = f"{low} to {high}" if duel.low > 0.0 else f"{high} to {low}"
        return f"{scores}: {duel.better} is better by {by} (95 % interval: {bounds}), more than chance explains."

    def amount(self, value: float, size: float) -> str:
        """Write an error with its unit, or a difference of accuracies in percentage points."""
        if self.task == "classification":
            return f"{self.number(value, size)} points"
        return f"{self.number(value, size)} {self.unit}".rstrip()

    def signed(self, value: float, size: float) -> str:
        """Write a number with its sign, '+' included."""
        return f"{'-' if value < 0 else '+'}{self.number(abs(value), size)}"

    def number(self, value: float, size: float) -> str:
        """Write a number with as many decimals as show three digits of ``size``; an accuracy in percent."""
        if self.task == "classification":
            return f"{100 * value:.1f}"
        decimals = 2 - int(np.floor(np.log10(abs(size)))) if size else 2
        return f"{value:.{min(max(decimals, 0), 12)}f}"


def _advice(duel: Duel, graph: str, by: str) -> str:
    """Say what to use if ``joint``, the first method, predicts better than guessing.

    A graph without an edge is no reason to use ``joint``.
    """
    if graph == EMPTY and not (duel.certain and duel.better == "joint"):
        alike = "predicts as well" if not duel.certain else "predicts better"
        return f"Use {duel.second}, which {alike}: at the parameters chosen here joint has {graph}"
    if not duel.bounded:
        return f"Run more repeats before you decide; what joint has over {duel.second} is {graph}"
    if _same_graph(duel.second) and not (duel.certain and duel.better == "joint"):
        if not duel.certain:
            return f"Use either: they differ in the readout of their networks, and joint has {graph}"
        return f"Use {duel.second}: it is joint with another readout, better by {by}"
    if not duel.certain:
        return f"Use joint if you want {graph}; for predictions alone {duel.second} is as good a choice"
    if duel.better == "joint":
        return f"Use joint: it predicts best here, and you have {graph}"
    return f"Use {duel.second} for predictions; take joint only if {graph} is worth {by} to you"


def _same_graph(method: str) -> bool:
    """Whether a method is ``joint`` with another readout, which has the same kind of graph."""
    return method in METHODS and METHODS[method].runs == "joint"


def _doubt(floor: Duel) -> str:
    """Say what to do if it is not certain that the better method, the first, beats guessing, the second."""
    if floor.bounded:
        return f"Rely on neither yet: even what {floor.first} has over guessing the {floor.second} could be chance"
    return (
        f"Run more repeats before you rely on either: {floor.first} differs from guessing the {floor.second} by the "
        "same amount in every repeat, which gives no interval"
    )


def _graph(rows: Sequence[Row]) -> str:
    edges = [int(row["edges"]) for row in rows if row["method"] == "joint" and is_number(row.get("edges"))]
    if not edges:
        return "its graph"
    fewest, most = min(edges), max(edges)
    if most == 0:
        return EMPTY
    return f"its graph ({most:,} edges)" if fewest == most else f"its graph ({fewest:,} to {most:,} edges)"


def _failures(rows: Sequence[Row]) -> str:
    """List the methods with failed repeats, such as '; gp failed in 2 of 5 repeats'; empty if none failed."""
    told = []
    for method in methods_of(rows):
        broken = [failed(row) for row in rows if row["method"] == method]
        if any(broken):
            told.append(f"{method} failed in {sum(broken)} of {len(broken)} repeats")
    return "".join(f"; {one}" for one in told)


def _difference(losses: pd.DataFrame, first: str, second: str) -> float:
    """Return the second method's mean loss less the first's, on the repeats both have; NaN if they share none."""
    return float((losses[second] - losses[first]).mean())


def _best(losses: pd.DataFrame) -> str:
    """Return the method with the smallest mean loss, among those with the most repeats.

    A method that failed on the hard repeats would look better than it is, so it does not count here.
    """
    full = losses.loc[:, losses.count() == losses.count().max()]
    return str(full.mean().idxmin())


def _rival(losses: pd.DataFrame, reference: str, names: Sequence[str]) -> str | None:
    """Return the best of ``names`` on the repeats of the reference; None if no method shares a repeat with it."""
    own = losses.loc[losses[reference].notna(), [name for name in names if name in losses and name != reference]]
    return _best(own) if own.notna().any(axis=None) else None


def _duel(rows: Sequence[Row], losses: pd.DataFrame, first: str, second: str, metric: str) -> Duel:
    found = paired(rows, first, metric)
    difference, low, high = (float(found[name].loc[second]) for name in ("difference", "low", "high"))
    if metric in HIGHER_IS_BETTER:
        difference, low, high = -difference, -high, -low
    both = losses[[first, second]].dropna().index
    return Duel(first, second, difference, low, high, list(both))
