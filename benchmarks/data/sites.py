"""What ComBat does on ABIDE: can the site still be told, and what does it cost the prediction of age?

    python -m benchmarks.data.sites         writes results/abide_sites.csv; needs PRECISIONNET_DATA, under a minute

Five splits of 60 / 40 by person, alike in site. ComBat is fitted on the training rows without covariates. Everything
is scored on the other rows: a linear classifier of the site, and ridge regression of age.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precisionnet.datasets import fetch_abide
from precisionnet.preprocessing import ComBat

OUT = Path(__file__).parents[2] / "results" / "abide_sites.csv"


def main() -> None:
    """Measure and write."""
    data = fetch_abide()
    versions = " ".join(f"{name}={version(name)}" for name in ("precisionnet", "scikit-learn", "numpy"))
    rows = []
    for split in range(5):
        train, _, test = data.split((0.6, 0.0, 0.4), split, stratify="site")
        combat = ComBat().fit(train.X, site=train.site)
        for name, (X, X_test) in {
            "raw": (train.X, test.X),
            "ComBat": (combat.transform(train.X, site=train.site), combat.transform(test.X, site=test.site)),
        }.items():
            site = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(X, train.site)
            ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 25))).fit(X, train.y)
            rows.append(
                {
                    "preparation": name,
                    "split": split,
                    "site_accuracy": round(float(np.mean(site.predict(X_test) == test.site)), 4),
                    "largest_site": round(float(test.site.value_counts(normalize=True).max()), 4),
                    "ridge_mae_years": round(float(np.abs(ridge.predict(X_test) - test.y).mean()), 4),
                    "versions": versions,
                }
            )
    frame = pd.DataFrame(rows)
    frame.to_csv(OUT, index=False)
    print(frame.groupby("preparation")[["site_accuracy", "largest_site", "ridge_mae_years"]].agg(["mean", "std"]))


if __name__ == "__main__":
    main()
