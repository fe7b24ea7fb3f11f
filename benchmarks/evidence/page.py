"""Make results/evidence/summary.md from the rows beside it.

python -m benchmarks.evidence.page
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parents[2] / "results" / "evidence"


def table(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Return a table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wide(name: str) -> pd.DataFrame:
    """Return rows that were written one quantity a line, one column per quantity."""
    path = FOLDER / name
    if not path.exists():
        return pd.DataFrame()
    lines = pd.read_csv(path, dtype=str)
    frame = lines.set_index(["name", "quantity"])["value"].unstack()  # noqa: PD010 (nothing to aggregate)
    return frame.apply(lambda column: pd.to_numeric(column, errors="coerce").where(lambda x: x.notna(), column))


def coverage() -> str:
    """Intervals of partial correlations."""
    rows = pd.read_csv(FOLDER / "coverage.csv")
    claimed = rows[rows["claims_coverage"] & (rows["n_draws"] > 20)]
    said = []
    for name, cells in claimed.groupby("distribution"):
        for what in ("edges", "zeros"):
            share = cells[f"coverage_{what}"].dropna()
            inside = share.between(0.93, 0.97).sum()
            said.append((str(name), what, f"{share.mean():.1%}", f"{share.min():.1%}", f"{inside} of {len(share)}"))
    fdr = ", ".join(f"{name} {cells['fdr'].mean():.3f}" for name, cells in claimed.groupby("distribution"))
    head = ("distribution", "of", "mean coverage", "lowest cell", "cells within 93 to 97 %")
    return f"{table(said, head)}\n\nRealised false discovery rate at q <= 0.1, mean over cells: {fdr}."


def groups() -> str:
    """False alarms of the comparison of groups."""
    rows = pd.read_csv(FOLDER / "groups.csv")
    null = rows[rows["kind"] == "same"]
    tests = ["structure", "global_strength", "edges", "nodes"]
    said = []
    for design, blocks in null.groupby("design", sort=False):
        rates = [(blocks[test] * blocks["draws"]).sum() / blocks["draws"].sum() for test in tests]
        said.append((str(design), str(int(blocks["draws"].sum())), *(f"{rate:.1%}" for rate in rates)))
    return table(said, ("design", "draws", *(test.replace("_", " ") for test in tests)))


def synthetic() -> str:
    """Edges of known tasks."""
    rows = wide("task_synthetic.csv")
    said = []
    for (kind, n, t), cells in rows.groupby(["kind", "n_columns", "n_rows"]):
        found, products, false = (int(cells[name].sum()) for name in ("found", "products", "false"))
        alarms = f"{int(cells['null_runs_that_report'].sum())} of {int(cells['n_permutations'].sum())}"
        auroc = " / ".join(
            f"{cells[f'auroc_{name}'].astype(float).mean():.3f}" for name in ("p", "effect", "task_graph")
        )
        auroc = auroc if products else "–"
        alone = "–"
        if "found_by_networks" in cells and cells["found_by_networks"].notna().all():
            alone = " / ".join(str(int(cells[f"{what}_by_networks"].sum())) for what in ("found", "false"))
        shape = (str(kind), f"{n} x {t}", str(len(cells)), auroc)
        said.append((*shape, f"{found} of {products}", str(false), alone, alarms))
    head = ("target", "columns x rows", "tables", "AUROC by p / effect / `task_graph_`", "found at q <= 0.1", "false")
    return table(said, (*head, "found / false by networks alone", "null runs that report an edge"))


def cohorts() -> str:
    """What repeats on real tables."""
    rows = wide("task_cohorts.csv")
    if rows.empty:
        return "Not measured yet."
    said = []
    for cohort in ("abide", "ants"):
        mine = rows[rows.index.str.startswith(f"{cohort} ")]
        for what in ("seeds", "halves", "sparse", "found again"):
            cells = mine[mine.index.str.startswith(f"{cohort} {what}")].dropna(axis=1, how="all")
            for quantity in cells.columns:
                values = cells[quantity].astype(float)
                spread = f" ({values.min():.3f} to {values.max():.3f})" if len(values) > 1 else ""
                said.append((cohort, what, str(quantity).replace("_", " "), f"{values.mean():.3f}{spread}"))
    return table(said, ("cohort", "between", "quantity", "mean (range)"))


def main() -> None:
    """Write the page."""
    parts = [
        "# What the evidence claims, measured",
        "Made from the rows in this folder by `python -m benchmarks.evidence.page`; `make evidence` makes the rows.",
        "## Intervals of partial correlations (`edge_inference`)",
        coverage(),
        "## False alarms of `compare_graphs` at 0.05",
        groups(),
        "## Tasks on a known graph (`task_evidence`)",
        synthetic(),
        "## Cohorts",
        cohorts(),
    ]
    timing = wide("task_time.csv")
    if not timing.empty:
        one = timing.iloc[0].astype(float)
        parts += [
            "## Time",
            f"`task_evidence` with 100 permutations at ABIDE's size, two cores: {one['seconds']:.0f} s, "
            f"{one['ratio']:.2f} times 101 default fits on two cores.",
        ]
    (FOLDER / "summary.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
