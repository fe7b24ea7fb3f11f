"""The study as a table: what each decision taken otherwise costs, paired by split, in per cent of the error.

python -m benchmarks.recipe.page     prints it from results/recipe_study.csv
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t

from benchmarks.recipe.run import OUT


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
    half = t.ppf(0.975, len(change) - 1) * change.std(ddof=1) / np.sqrt(len(change))
    return f"{change.mean():+.1f} [{change.mean() - half:+.1f}, {change.mean() + half:+.1f}]"


if __name__ == "__main__":
    print(table(pd.read_csv(OUT)))
