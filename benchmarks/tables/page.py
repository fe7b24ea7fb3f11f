"""What the rows say: results/tables/summary.md, and the numbers that decide.

    python -m benchmarks.tables.page     from results/tables/rows.csv

A method's figure on a table is the mean of its losses over the splits, divided by the mean loss of the constant: 1 is
no better than a constant. ``best`` is the best of the plain models (linear, support vectors, Gaussian process,
boosting) by the same test rows that judge it, which favours it. ``behind`` is joint's loss over that of the best,
minus one. The interval is of joint minus best in units of the constant's loss, paired by split and corrected for splits
that share rows; where its lower end is at most 0, the best is not shown to be better.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.tables.run import MOST_ROWS, OUT, PLAIN, SPLITS
from benchmarks.tables.tables import ENTRIES, Part, names
from precisionnet.evaluation.methods import METHODS, RIVALS
from precisionnet.evaluation.statistics import interval
from precisionnet.types import TaskName
from precisionnet.versions import RECIPE_VERSION, older_recipe

HALVES: tuple[Part, ...] = ("development", "set-aside")
NEAR = 0.02
"""How far joint may be behind the best plain model to count as level."""
COLUMNS = {
    "joint": ("joint",),
    "linear": ("ridge", "logistic"),
    "SVM": ("svr", "svc"),
    "GP": ("gp",),
    "boosting": ("hist_gb",),
    **{METHODS[name].label: (name,) for name in RIVALS},
}
"""Columns of the page: what is the same idea for numbers and for classes stands in one."""


@dataclass(frozen=True)
class Line:
    """One table of the suite."""

    table: str
    task: TaskName
    splits: int
    losses: dict[str, float]
    """By method, relative to the constant's."""
    best: str
    behind: float
    interval: tuple[float, float, float]

    @property
    def near(self) -> bool:
        """Whether joint is within 2 % of the best plain model, or ahead."""
        return self.behind <= NEAR

    @property
    def level(self) -> bool:
        """Whether the paired interval contains 0, or joint is ahead."""
        mean, low, _ = self.interval
        return bool(low <= 0.0 if np.isfinite(low) else mean <= 0.0)


def read_rows(folder: Path = OUT) -> pd.DataFrame:
    """Read the rows that count: without failures, of joint those of the newest recipe, each fit once."""
    rows = pd.read_csv(folder / "rows.csv")
    rows = rows[rows["error"].isna()]
    ours = rows["method"] == "joint"
    rows = rows[~ours | (rows["recipe_version"] == rows.loc[ours, "recipe_version"].max())]
    return rows.drop_duplicates(["table", "split", "method"], keep="last")


def line_of(rows: pd.DataFrame, table: str) -> Line | None:
    """Compare joint with the best plain model on the splits that all of them have; None where there are none."""
    task = ENTRIES[table].task
    here = rows[rows["table"] == table]
    losses = here.pivot_table(index="split", columns="method", values="loss")
    plain = [name for name in PLAIN[task] if name in losses]
    if "joint" not in losses or not plain:
        return None
    losses = losses.dropna(subset=["joint", *plain])
    if losses.empty:
        return None
    constant = here.groupby("split")["constant_loss"].first().reindex(losses.index)
    means = losses.mean() / constant.mean()
    best = str(means[plain].idxmin())
    differences = ((losses["joint"] - losses[best]) / constant.mean()).to_numpy()
    shares = float((here["n_test"] / here["n_train"]).mean())
    whole = means[losses.notna().all()]
    return Line(
        table,
        task,
        len(losses),
        {str(name): float(value) for name, value in whole.items()},
        best,
        float(means["joint"] / means[best] - 1.0),
        interval(differences, shares),
    )


def summary(lines: list[Line]) -> dict[str, Any]:
    """The numbers that decide, over the tables given."""
    worst = max(lines, key=lambda line: line.behind)
    return {
        "tables": len(lines),
        "near": float(np.mean([line.near for line in lines])),
        "near_of_constant": float(np.mean([line.interval[0] <= NEAR for line in lines])),
        "level": float(np.mean([line.level for line in lines])),
        "worst": worst.table,
        "worst_behind": worst.behind,
        "ranks": mean_ranks(lines),
    }


def mean_ranks(lines: list[Line]) -> dict[str, float]:
    """Mean rank of every column among the columns that have a figure on every table; 1 is the lowest loss."""
    frame = pd.DataFrame([{name: _figure(line, methods) for name, methods in COLUMNS.items()} for line in lines])
    ranks = frame.dropna(axis=1).rank(axis=1).mean().sort_values()
    return {str(name): float(value) for name, value in ranks.items()}


def _figure(line: Line, methods: tuple[str, ...]) -> float:
    return next((line.losses[name] for name in methods if name in line.losses), np.nan)


def beside_rivals(rows: pd.DataFrame, part: Part) -> str:
    """Rank all methods, rivals too, on the splits that all of them have; empty where there is none."""
    here = rows[rows["table"].isin(names(part))]
    rivals = [name for name in RIVALS if name in set(here["method"])]
    figures, splits, near = [], [], 0
    for table in sorted(set(here["table"])) if rivals else []:
        methods = ["joint", *PLAIN[ENTRIES[table].task], *rivals]
        losses = here[here["table"] == table].pivot_table(index="split", columns="method", values="loss")
        losses = losses.reindex(columns=methods).dropna()
        if len(losses):
            means = losses.mean()
            figures.append({name: means[[m for m in found if m in means]].sum() for name, found in COLUMNS.items()})
            splits.append(len(losses))
            near += bool(means["joint"] <= (1.0 + NEAR) * means.drop("joint").min())
    if not figures:
        return ""
    frame = pd.DataFrame(figures)
    ranks = frame.loc[:, (frame != 0.0).all()].rank(axis=1).mean().sort_values()
    listed = ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    each = f"{splits[0]}" if min(splits) == max(splits) else f"{min(splits)} to {max(splits)}"
    return (
        f"Rivals included, on {len(splits)} table{'s' * (len(splits) > 1)} with {each} splits that all methods have: "
        f"mean ranks {listed}. joint is within 2 % of the best of all, or ahead, on {near}."
    )


def lines_of(rows: pd.DataFrame, part: Part) -> list[Line]:
    """Every table of a half that can be compared."""
    return [line for name in names(part) if (line := line_of(rows, name)) is not None]


def decisive(rows: pd.DataFrame) -> str:
    """What decides, the two halves side by side; the README quotes it."""
    halves = {part: summary(lines) for part in HALVES if (lines := lines_of(rows, part))}
    if not halves:
        return "No rows yet."
    found = list(halves.values())
    ours = [f"{half['ranks'].get('joint', np.nan):.2f} ({_place(half['ranks'])})" for half in found]
    cells = {
        "tables": [""] + [str(half["tables"]) for half in found],
        "joint within 2 % of the best plain model": [">= 90 %"] + [f"{100 * half['near']:.0f} %" for half in found],
        "the same, 2 % of the constant's loss": [""] + [f"{100 * half['near_of_constant']:.0f} %" for half in found],
        "paired interval contains or beats 0": [">= 95 %"] + [f"{100 * half['level']:.0f} %" for half in found],
        "worst table": ["<= +5 %"] + [f"{100 * half['worst_behind']:+.1f} % ({half['worst']})" for half in found],
        "mean rank of joint among all methods": ["first"] + ours,
    }
    text = [f"| | target | {' | '.join(halves)} |", "|---|---|" + "---|" * len(halves)]
    return "\n".join([*text, *(f"| {name} | {' | '.join(row)} |" for name, row in cells.items())])


def _place(ranks: dict[str, float]) -> str:
    """Which place joint has, and who is first where it is not."""
    place = list(ranks).index("joint") + 1 if "joint" in ranks else 0
    return f"first of {len(ranks)}" if place == 1 else f"{place} of {len(ranks)}; {next(iter(ranks))} is first"


def markdown(rows: pd.DataFrame, part: Part) -> str:
    """One half of the suite, a row per table."""
    lines = lines_of(rows, part)
    title = f"## {part.capitalize()}"
    if not lines:
        return f"{title}\n\nNo rows yet.\n"
    found = summary(lines)
    columns = [name for name, methods in COLUMNS.items() if any(np.isfinite(_figure(line, methods)) for line in lines)]
    splits = sorted(line.splits for line in lines)
    ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in found["ranks"].items())
    text = [
        title,
        "",
        f"{found['tables']} tables, {splits[0]} to {splits[-1]} splits. Mean ranks: {ranks}.",
        "",
        *([beside, ""] if (beside := beside_rivals(rows, part)) else []),
        f"| table | learns from | {' | '.join(columns)} | best plain | behind | joint - best, 95 % |",
        "|---|---|" + "---|" * (len(columns) + 3),
    ]
    text += [_row(line, columns, rows) for line in lines]
    return "\n".join(text) + "\n"


def _row(line: Line, columns: list[str], rows: pd.DataFrame) -> str:
    figures = {name: _figure(line, COLUMNS[name]) for name in columns}
    lowest = np.nanmin(list(figures.values()))
    cells = []
    for value in figures.values():
        text = f"{value:.3f}" if np.isfinite(value) else "–"
        cells.append(f"**{text}**" if value == lowest else text)
    mean, low, high = line.interval
    margin = f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]" if np.isfinite(low) else f"{mean:+.3f}"
    size = rows[rows["table"] == line.table].iloc[0]
    shape = f"{size['n_train']} x {size['n_columns']}"
    behind = f"{100 * line.behind:+.1f} %"
    label = METHODS[line.best].label
    return f"| {line.table} | {shape} | {' | '.join(cells)} | {label} | {behind} | {margin} |"


def _unfinished(rows: pd.DataFrame) -> list[str]:
    """Say how many splits there are, where they are fewer than were asked for."""
    found = [line.splits for part in HALVES for line in lines_of(rows, part)]
    if not found or (len(found) == len(ENTRIES) and min(found) >= SPLITS):
        return []
    splits = f"{min(found)}" if min(found) == max(found) else f"{min(found)} to {max(found)}"
    return [
        f"Not finished: {len(found)} of {len(ENTRIES)} tables, with {splits} of {SPLITS} splits. A split judges on 12",
        "to 1,300 rows: single tables move by tens of per cent from one split to the next.",
        "",
    ]


def page(folder: Path = OUT) -> str:
    """The whole page."""
    rows = read_rows(folder)
    ours = rows.loc[rows["method"] == "joint", "recipe_version"]
    caps = ", ".join(f"{METHODS[method].label} ({task}) {rows:,}" for (method, task), rows in MOST_ROWS.items())
    made_with = [json.loads(line) for line in (folder / "made_with.jsonl").read_text().splitlines()]
    used = [made for made in made_with if made["made_with"] in set(rows["made_with"])]
    packages = sorted({f"{name} {number}" for made in used for name, number in made["versions"].items()})
    text = [
        "# The suite of tables",
        "",
        "Losses (MAE, log loss of classes) relative to a constant's, lower is better; ten splits, 60 % of the rows to",
        "learn from, 20 % to choose parameters by, 20 % to be judged on. joint has its defaults and is tuned nowhere;",
        "every other method chose from its grid. Categories are one-hot for all.",
        "",
        f"Rows to learn from at most, drawn at random where there are more: {caps}.",
        "",
        f"joint: recipe {int(ours.max()) if len(ours) else RECIPE_VERSION}. {', '.join(packages)}.",
        "",
    ]
    text += [decisive(rows), "", *_unfinished(rows)]
    older = older_recipe({int(found) for found in ours})
    text += [older, ""] if older else []
    return "\n".join(text) + "\n" + "\n".join(markdown(rows, part) for part in HALVES)


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    written = page(place)
    (place / "summary.md").write_text(written)
    print(written)
