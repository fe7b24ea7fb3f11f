"""The rows as markdown.

python -m benchmarks.train.page [FOLDER]        rebuilds it from the rows alone
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.train.rows import OURS, Row, read

ASKED = {"reference": 3.0, "TAGConv, signals on one graph": 5.0, "TAGConv, batch of graphs": 5.0}
"""How many times faster than these an epoch of ours should be, one thread."""
MOST_MEMBERS, MOST_SECONDS = 3.0, 30.0
"""What eight members may take: times one member, and seconds."""


def markdown(rows: Sequence[Row]) -> str:
    """The whole page."""
    lines = [*_head(rows), "", *_asked(rows), ""]
    for what in dict.fromkeys(row.what for row in rows):
        lines += [*_table([row for row in rows if row.what == what], what), ""]
    return "\n".join(lines)


def _head(rows: Sequence[Row]) -> list[str]:
    return [
        "# Training: time of an epoch, of a fit, and to an error",
        "",
        f"{' and '.join(dict.fromkeys(row.table for row in rows))}, 60 % of the rows to train on, 20 % to validate.",
        "Medians of interleaved repeats; `x` is the time over ours with as many threads, `>=` where it was stopped at",
        "its limit. A joint epoch is Step 1, 20 steps of theta_task, 20 of Adam; a weights epoch the 20 of Adam on a",
        "sparse graph that is kept; a default fit is `PNNRegressor().fit` of the training rows. `reference` is",
        "Algorithm 1 in plain PyTorch. Made by `make bench-train` with",
        *(f"`{line}`." for line in dict.fromkeys(row.made_with for row in rows)),
    ]


def _asked(rows: Sequence[Row]) -> list[str]:
    lines = ["| asked, one thread | measured | met |", "|---|---|---|"]
    for row in rows:
        if row.what == "joint epoch" and row.threads == 1 and row.contestant in ASKED and row.times_ours:
            least = ASKED[row.contestant]
            met = "yes" if row.times_ours >= least else "no"
            lines.append(
                f"| {row.shape}: at least {least:g}x faster than {row.contestant} | {row.times_ours:.3g}x | {met} |"
            )
    return [
        *lines,
        *_asked_of_fits({row.contestant: row for row in rows if row.what == "default fit" and row.threads == 1}),
    ]


def _asked_of_fits(rows: Mapping[str, Row]) -> list[str]:
    """Eight members against one, and against the clock."""
    if OURS not in rows:
        return []
    ours = rows[OURS].seconds or math.nan
    one = fmean(row.seconds or math.nan for name, row in rows.items() if name != OURS)
    members = f"eight members: at most {MOST_MEMBERS:g}x one member's time, the mean of both readouts"
    fit = f"`PNNRegressor()` fits in under {MOST_SECONDS:g} s"
    return [
        f"| {members} | {ours / one:.3g}x | {'yes' if ours / one <= MOST_MEMBERS else 'no'} |",
        f"| {fit} | {ours:.3g} s | {'yes' if ours < MOST_SECONDS else 'no'} |",
    ]


def _table(rows: Sequence[Row], what: str) -> list[str]:
    threads = sorted({row.threads for row in rows})
    to_target = what == "to the target"
    heads = [
        "shape",
        what,
        *(f"seconds, {n} thread{'s' * (n > 1)} | x" for n in threads),
        *(["MAE"] * to_target),
        "note",
    ]
    width = 2 + 2 * len(threads) + to_target
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "--:|" * (width - 2) + "---|"]
    cases = {(row.shape, row.contestant, row.threads): row for row in rows}
    for shape, contestant in dict.fromkeys((row.shape, row.contestant) for row in rows):
        found = [cases[shape, contestant, n] for n in threads]
        cells = [shape, contestant, *(cell for row in found for cell in _time(row))]
        mae = found[0].mae
        cells += ["–" if mae is None else f"{mae:.2f}"] * to_target
        missed = "did not get there in every run; " * (found[0].status == "missed")
        lines.append(f"| {' | '.join([*cells, missed + found[0].note])} |")
    return lines


def _time(row: Row) -> list[str]:
    least = ">= " * (row.status == "timeout")
    ratio = "–" if row.times_ours is None or row.contestant == OURS else f"{least}{row.times_ours:.3g}x"
    return ["–" if row.seconds is None else f"{least}{row.seconds:.3g}", ratio]


def write(folder: Path) -> None:
    """``train_bench.md`` beside the rows."""
    (folder / "train_bench.md").write_text(markdown(read(folder / "train_bench.csv")), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
