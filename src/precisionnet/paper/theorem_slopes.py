"""Theorem 1 read off stored rows: slopes of the error on logarithmic axes, beside the theorem's.

The slope is fitted in every repeat by itself and averaged: its standard error is that of the mean over repeats. The
theorem speaks of N and T to infinity, so it is judged on the upper half of the levels; the slope over all of them
stands beside it. The nuclear distance is judged where theta_task is felt above the noise and M does not yet stop it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from precisionnet.paper.theorem import ANCHORED, FAR, PLAIN
from precisionnet.runner.jobs import Row
from precisionnet.types import BoolArray, FloatArray

ABOVE_NOISE = 2.0
"""Where theta_task is what is felt: its error is so many times that of theta_task at the truth."""


@dataclass(frozen=True)
class Slope:
    """Errors over one quantity, and the line through their logarithms.

    Parameters
    ----------
    vary : str
        The quantity that is varied.
    series : str
        glasso (no coupling), truth and far (theta_task there), one and all (the direction theta_task leaves in).
    title : str
        Title of the panel.
    axis : str
        Label of the axis.
    theory : float or None
        Exponent of the bound; None where it has none to compare with.
    x : array of shape (n_rows,)
        Value of the quantity.
    error : array of shape (n_rows,)
        Frobenius error.
    repeat : array of shape (n_rows,)
        Number of the repeat.
    judged : array of bool of shape (n_rows,)
        Rows of the levels that the theorem is judged on.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.paper import Slope
    >>> x = np.array([1.0, 10.0, 100.0])
    >>> slope = Slope("n_samples", "glasso", "Rows", "T", -0.5, x, x**-0.5, np.zeros(3), np.ones(3, bool))
    >>> round(slope.slope, 2)
    -0.5
    """

    vary: str
    series: str
    title: str
    axis: str
    theory: float | None
    x: FloatArray = field(repr=False)
    error: FloatArray = field(repr=False)
    repeat: FloatArray = field(repr=False)
    judged: BoolArray = field(repr=False)

    @property
    def slope(self) -> float:
        """The slope at the levels that are judged, mean over repeats."""
        return self._fit(self.judged)[0]

    @property
    def deviation(self) -> float:
        """Standard error of ``slope``; NaN with one repeat."""
        return self._fit(self.judged)[1]

    @property
    def overall(self) -> float:
        """The slope over all levels."""
        return self._fit(np.ones_like(self.judged))[0]

    @property
    def last(self) -> float:
        """The slope between the last two levels."""
        return self._fit(self.x >= np.unique(self.x)[-2:][0])[0]

    @property
    def levels(self) -> tuple[float, float]:
        """First and last level that is judged; NaN where none is."""
        x = self.x[self.judged]
        return (float(x.min()), float(x.max())) if len(x) else (np.nan, np.nan)

    @property
    def draws(self) -> int:
        """Number of repeats."""
        return len(np.unique(self.repeat))

    def mean(self, level: float) -> float:
        """Return the mean error at a level.

        Parameters
        ----------
        level : float
            A value of ``x``.

        Returns
        -------
        float
            The mean over repeats.
        """
        return float(self.error[self.x == level].mean())

    def _fit(self, rows: BoolArray) -> tuple[float, float]:
        found = []
        for repeat in np.unique(self.repeat):
            here = rows & (self.repeat == repeat) & (self.x > 0)
            if len(np.unique(self.x[here])) > 1:
                found.append(np.polyfit(np.log(self.x[here]), np.log(self.error[here]), 1)[0])
        if not found:
            return np.nan, np.nan
        deviation = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
        return float(np.mean(found)), float(deviation)


def slopes(rows: Sequence[Row]) -> list[Slope]:
    """Fit a slope to every sweep that is among the rows, in the theorem's order.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the theorem's experiment.

    Returns
    -------
    list of Slope
        One slope per sweep.

    Examples
    --------
    >>> from precisionnet.paper import slopes
    >>> slopes([])
    []
    """
    frame = theorem_frame(rows)
    found = []
    for vary, series, title, axis, theory, of, x in _SWEEPS:
        part = frame[(frame["vary"] == vary) & of(frame)]
        if len(part):
            values = x(part).to_numpy(dtype=float)
            judged = _above_noise(part) if vary == "nuclear_distance" else _upper_half(values)
            found.append(
                Slope(
                    vary,
                    series,
                    title,
                    axis,
                    theory,
                    values,
                    part["frobenius_error"].to_numpy(dtype=float),
                    part["repeat"].to_numpy(dtype=float),
                    judged,
                )
            )
    return found


def slopes_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the slopes as a table, one line per sweep."""
    names = ("vary", "series", "title", "axis", "theory", "slope", "deviation", "overall", "levels", "draws")
    return pd.DataFrame([{name: getattr(slope, name) for name in names} for slope in slopes(rows)], columns=names)


def constants(rows: Sequence[Row]) -> dict[str, float]:
    """Return the smallest m_1 and m_2 that cover the rows, the least that a row needs, and the proof's own."""
    frame = theorem_frame(rows)
    plain, anchored = frame[frame["method"] == PLAIN], frame[frame["method"] == ANCHORED]
    m1 = plain["frobenius_error"] / plain["bound_term"]
    away = anchored[anchored["nuclear_distance"] > 0]
    m2 = away["frobenius_error"] / np.sqrt(away["nuclear_distance"])
    return {
        "m1": float(m1.max()),
        "m1_least": float(m1.min()),
        "m1_proof": float(plain["proof_m1"].astype(float).min()),
        "error_range": float(plain["frobenius_error"].max() / plain["frobenius_error"].min()),
        "m2": float(m2.max()),
        "m2_proof": float(away["proof_m2"].min()),
        "penalty_covers_noise": float(plain["penalty_covers_noise"].astype(float).mean()),
    }


def bounds_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return error and bounds by nuclear distance of theta_task and by direction, means over repeats.

    Rows without bounds are left out: those in which the penalty does not cover the noise, and older ones.
    """
    frame = pd.DataFrame([row for row in rows if row.get("vary") == "nuclear_distance" and row.get("linear_bound")])
    if frame.empty:
        return frame
    frame = frame[frame["method"] == ANCHORED]
    by = ["direction", "nuclear_distance"]
    names = ["frobenius_distance", "frobenius_error", "sharper_bound", "linear_bound", "paper_bound"]
    kept = (frame["frobenius_error"] <= frame["sharper_bound"]).groupby([frame[name] for name in by]).mean()
    return frame.groupby(by)[names].mean().assign(kept=kept).reset_index()


def theorem_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the finished solves as a table."""
    columns = ["method", "repeat", "vary", "n_samples", "n_features", "n_edges", "nuclear_distance", "direction"]
    columns += ["frobenius_error", "bound_term", "bound_active", "proof_m1", "proof_m2", "penalty_covers_noise"]
    return pd.DataFrame([row for row in rows if "frobenius_error" in row], columns=columns)


def _upper_half(x: FloatArray) -> BoolArray:
    levels = np.unique(x)
    kept = max(3, len(levels) - len(levels) // 2)  # a line through fewer levels says little
    return x >= levels[-kept:][0]


def _above_noise(part: pd.DataFrame) -> BoolArray:
    """Mark distances at which theta_task is felt above the noise and no draw has come to the bound M."""
    by_level = part.groupby("nuclear_distance").agg(error=("frobenius_error", "mean"), stopped=("bound_active", "max"))
    noise = by_level["error"].iloc[0] if by_level.index[0] == 0 else 0.0
    fine = by_level.index[(by_level["error"] > ABOVE_NOISE * noise) & ~by_level["stopped"].astype(bool)]
    return (part["nuclear_distance"].isin(fine) & (part["nuclear_distance"] > 0)).to_numpy()


def _plain(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame["method"] == PLAIN


def _at(distance: float) -> Callable[[pd.DataFrame], pd.Series[bool]]:
    return lambda frame: (frame["method"] == ANCHORED) & (frame["nuclear_distance"] == distance)


def _towards(direction: str) -> Callable[[pd.DataFrame], pd.Series[bool]]:
    return lambda frame: (frame["method"] == ANCHORED) & (frame["direction"] == direction)


def _entries(frame: pd.DataFrame) -> pd.Series[float]:
    """Return N + S."""
    return frame["n_features"] + 2.0 * frame["n_edges"]


_DISTANCE = "nuclear distance of theta_task from the truth"
_SWEEPS = (
    ("n_samples", "glasso", "Number of rows T", "T", -0.5, _plain, lambda f: f["n_samples"]),
    ("n_samples", "truth", "T, theta_task at the truth", "T", -0.5, _at(0.0), lambda f: f["n_samples"]),
    ("n_samples", "far", f"T, theta_task {FAR:g} away", "T", None, _at(FAR), lambda f: f["n_samples"]),
    ("sparsity", "glasso", "Edges: S at one N", "N + S", 0.5, _plain, _entries),
    (
        "n_features",
        "glasso",
        "Features: N at one S / N",
        "(N + S) log N",
        0.5,
        _plain,
        lambda f: _entries(f) * np.log(f["n_features"]),
    ),
    (
        "nuclear_distance",
        "one",
        "theta_task, one direction",
        _DISTANCE,
        0.5,
        _towards("one"),
        lambda f: f["nuclear_distance"],
    ),
    (
        "nuclear_distance",
        "all",
        "theta_task, all directions",
        _DISTANCE,
        0.5,
        _towards("all"),
        lambda f: f["nuclear_distance"],
    ),
)
