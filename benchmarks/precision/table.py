"""The rows as markdown: what was asked, every problem, and where peers did not get there.

python -m benchmarks.precision.table [FOLDER]        rebuilds it from the rows alone
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.precision.rows import Row, read
from benchmarks.precision.solvers import PEERS, SOLVERS
from benchmarks.precision.targets import targets

OURS = next(iter(SOLVERS))


def markdown(rows: Sequence[Row]) -> str:
    """The whole page."""
    return "\n".join(
        [*_head(rows), "", *_asked(rows), "", *_problems(rows), "", *_not_solved(rows), *_skipped(rows), ""]
    )


def _head(rows: Sequence[Row]) -> list[str]:
    made_with = sorted({row.versions for row in rows if row.solver == OURS})
    return [
        "# Graphical lasso: time to a proved relative gap of 1e-6",
        "",
        "One thread. `inversions` is our time over that of one potrf + potri at the same N in the same run. A peer's",
        "figure is its time over ours, `>=` where it was stopped at its limit. Peers get the loosest tolerance whose",
        "answer passes; only `scikit-learn` is asked for 1e-6 at once, as a user without a certificate has to:",
        "`scikit-learn tuned` is the comparison on equal terms. `regularised_warm` is solved to 1e-10, as the joint",
        "method asks. Made by `make bench-precision` with",
        *(f"`{line}`." for line in made_with),
    ]


def _asked(rows: Sequence[Row]) -> list[str]:
    lines = ["| asked | measured | met |", "|---|---|---|"]
    return lines + [
        f"| {t.asked} | {t.measured or 'not measured'} | {'yes' if t.met else 'no'} |" for t in targets(rows)
    ]


def _problems(rows: Sequence[Row]) -> list[str]:
    lines = [
        f"| problem | N | seconds | inversions | gap | {' | '.join(PEERS)} |",
        "|---|--:|--:|--:|--:|" + "--:|" * len(PEERS),
    ]
    table = {row.key: row for row in rows}
    for row in rows:
        if row.solver == OURS:
            peers = [_beside(table.get((row.problem, row.n, peer))) for peer in PEERS]
            ours = [row.problem, str(row.n), _number(row.seconds), _number(row.inversions), _number(row.gap)]
            if row.status != "certified":
                ours[2] = row.status
            lines.append(f"| {' | '.join(ours + peers)} |")
    return lines


def _beside(row: Row | None) -> str:
    if row is None or row.status == "skipped":
        return "–"
    if row.ratio_to_ours is None:
        return row.status
    return f"{'>= ' * (row.status == 'timeout')}{row.ratio_to_ours:.3g}x"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"


def _not_solved(rows: Sequence[Row]) -> list[str]:
    failed = [row for row in rows if row.status in ("failed", "timeout")]
    if not failed:
        return []
    lines = ["Not solved:", "", "| problem | N | solver | | smallest gap | what it said |", "|---|--:|---|---|--:|---|"]
    cells = ((r.problem, str(r.n), r.solver, r.status, _number(r.gap), r.note.replace("|", "\\|")) for r in failed)
    return [*lines, *(f"| {' | '.join(line)} |" for line in cells)]


def _skipped(rows: Sequence[Row]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.status == "skipped":
            reasons.setdefault(f"{row.solver} {row.note}", []).append(row.problem)
    return [f"Skipped: {reason} ({', '.join(dict.fromkeys(problems))})." for reason, problems in reasons.items()]


def write(folder: Path) -> str:
    """``precision_bench.md`` beside the rows; returns its text."""
    text = markdown(read(folder / "precision_bench.csv"))
    (folder / "precision_bench.md").write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    print(write(Path(sys.argv[1] if len(sys.argv) > 1 else "results")))
