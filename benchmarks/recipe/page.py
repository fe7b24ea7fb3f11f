"""The study as a table: what each decision taken otherwise costs, paired by split, in per cent of the error.

python -m benchmarks.recipe.page     prints it from results/recipe_study.csv
"""

from __future__ import annotations

import pandas as pd

from benchmarks.recipe.run import OUT
from precisionnet.evaluation.statistics import interval

TEST_TO_TRAIN = 0.2 / 0.6
"""Splits share rows: the corrected resampled t-test, as in comparisons."""


def table(rows: pd.DataFrame) -> str:
    """A line a variant, a column a table: mean difference in per cent of the standard error, with its 95 % interval."""
    tables = list(dict.fromkeys(rows["table"]))
    lines = [f"| taken otherwise | {' | '.join(tables)} |", "|---|" + "---|" * len(tables)]
    for variant in [v for v in dict.fromkeys(rows["variant"]) if v != "standard"]:
        cells = [_cell(rows[rows["table"] == name], variant) for name in tables]
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(rows: pd.DataFrame, variant: str) -> str:
    errors = rows.pivot_table(index="split", columns="variant", values="error")
    if variant not in errors or errors[variant].isna().all():
        return "–"
    both = errors[["standard", variant]].dropna()
    change = 100 * (both[variant] - both["standard"]) / both["standard"].mean()
    mean, low, high = interval(change.to_numpy(), TEST_TO_TRAIN)
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


if __name__ == "__main__":
    print(table(pd.read_csv(OUT)))
