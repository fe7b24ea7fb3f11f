"""What is each decision of the standard recipe worth?

    make study-recipe     goes on with results/recipe_study.csv; hours on one core, minutes for a missing variant

A row is a variant of the recipe (one decision taken otherwise) on one of ten splits of a table: the mean absolute
error, or the log loss of classes, on rows it has not seen. The rows that no split of the study judges on are not set
aside for good: other splits learn from them, so what was decided here is known to fit these tables.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from benchmarks.recipe.tables import CLASSES, TABLES, splits
from benchmarks.recipe.variants import FOR_NUMBERS, VARIANTS, fitted

OUT = Path(__file__).parents[2] / "results" / "recipe_study.csv"
COLUMNS = ["table", "variant", "split", "error", "seconds"]


def main(tables: list[str]) -> None:
    """Every variant on every table that is not in the file yet."""
    warnings.simplefilter("ignore")
    known = set()
    if OUT.exists():
        known = set(pd.read_csv(OUT)[COLUMNS[:3]].itertuples(index=False, name=None))
    else:
        OUT.write_text(",".join(COLUMNS) + "\n")
    for table in tables:
        for split, (X, y, X_new, y_new) in enumerate(splits(table)):
            for variant in VARIANTS:
                if (table, variant, split) in known or (table in CLASSES and variant in FOR_NUMBERS):
                    continue
                started = time.process_time()
                model = fitted(variant, table in CLASSES, X, y, split)
                seconds = time.process_time() - started
                if table in CLASSES:
                    error = log_loss(y_new, model.predict_proba(X_new), labels=model.classes_)
                else:
                    error = float(np.abs(model.predict(X_new) - y_new).mean())
                with OUT.open("a", newline="") as file:
                    csv.writer(file).writerow([table, variant, split, f"{error:.6g}", f"{seconds:.3g}"])
                print(table, split, variant, f"{error:.4g}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(TABLES))
