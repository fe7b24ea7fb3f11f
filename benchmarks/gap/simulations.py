"""Are planted shifts of patients' brains found, and how often is a shift found that is not there?

    python -m benchmarks.gap.simulations    writes results/gap/simulations.csv, about four minutes

200 draws for each shift and setting, with 200 controls and 80 patients who are three years older on average, 20 columns
that move with age, and ridge regression. A patient's columns are those of somebody ``shift`` years older. Settings: one
site; four sites that differ in age, in the share of patients and in what they do to the columns; two and a half times
the scatter in patients; a bias that is curved in age.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet.gap import gap_study

OUT = Path(__file__).parents[2] / "results" / "gap" / "simulations.csv"
SHIFTS, SETTINGS, DRAWS = (0.0, 1.0, 2.0), ("one site", "four sites", "scatter", "curved"), 200
N_CONTROLS, N_PATIENTS, N_COLUMNS, N_PERMUTATIONS = 200, 80, 20, 199


def draw(setting: str, shift: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return the arguments of ``gap_study`` for one drawn table."""
    n = N_CONTROLS + N_PATIENTS
    patient = np.arange(n) >= N_CONTROLS
    site = rng.choice(4, size=n, p=[0.4, 0.3, 0.2, 0.1]) if setting == "four sites" else np.zeros(n, dtype=int)
    if setting == "four sites":
        site = np.where(patient & (rng.random(n) < 0.3), 0, site)
    age = rng.uniform(20.0, 70.0, size=n) + 3.0 * patient + 4.0 * site
    brain = age + shift * patient
    moved = 12.0 * np.log(np.maximum(brain, 1.0)) if setting == "curved" else 0.3 * brain
    scatter = 6.0 * np.where(patient & (setting == "scatter"), 2.5, 1.0)
    X = moved[:, None] * rng.uniform(0.5, 1.5, size=N_COLUMNS) + scatter[:, None] * rng.standard_normal((n, N_COLUMNS))
    X += 2.0 * rng.standard_normal((4, N_COLUMNS))[site]
    return {
        "X": X,
        "y": age,
        "labels": np.where(patient, "patient", "control"),
        "controls": "control",
        "site": site.astype(str) if setting == "four sites" else None,
    }


def measure(setting: str, shift: float, number: int) -> dict[str, Any]:
    """Return one row: what was found beside what was planted."""
    seed = [number, SETTINGS.index(setting), round(10 * shift)]
    regressor = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 3, 9)))
    table = draw(setting, shift, np.random.default_rng(seed))
    study = gap_study(**table, regressor=regressor, n_permutations=N_PERMUTATIONS, random_state=number)
    found = study.groups.set_index("kind")
    row = found.loc["scaled"]
    return {
        "setting": setting,
        "shift": shift,
        "draw": number,
        "difference": round(float(row["difference"]), 4),
        "low": round(float(row["low"]), 4),
        "high": round(float(row["high"]), 4),
        "held": bool(row["low"] <= shift <= row["high"]),
        "p_value": round(float(row["p_value"]), 4),
        "subtractive": round(float(found.loc["subtractive", "difference"]), 4),
        "slope": round(study.model.slope_, 4),
    }


def main() -> None:
    """Measure and write."""
    rows = [measure(setting, shift, k) for setting in SETTINGS for shift in SHIFTS for k in range(DRAWS)]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows)
    table.to_csv(OUT, index=False, lineterminator="\n")
    print(summary(table).to_string())


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return per setting and shift: the share of intervals that hold it, of p up to 0.05, and mean differences."""
    found = table.assign(found=table["p_value"] <= 0.05).groupby(["setting", "shift"], sort=False)
    return found[["held", "found", "difference", "subtractive", "slope"]].mean().round(3)


if __name__ == "__main__":
    main()
