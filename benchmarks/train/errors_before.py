"""Errors of the defaults beside those of an earlier checkout, on ten splits of both cohorts.

    python -m benchmarks.train.errors_before --before PATH

``PATH`` is a checkout of an earlier commit. Both codes fit the same training rows (60 %) of the same splits with the
same seeds and predict the same test rows; nothing is chosen on them. Rows go to ``results/rebuild_errors.csv``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.train.before import ROOT, commit
from precisionnet.datasets import fetch_abide, fetch_ants_mindboggle
from precisionnet.evaluation.statistics import interval

OUT = ROOT / "results" / "rebuild_errors.csv"
COHORTS = {"abide": fetch_abide, "ants": fetch_ants_mindboggle}
CASES = {"defaults": {}, "two layers": {"n_layers": 2}, "sparse": {"predict_on": "sparse", "l1_scale": 9.0}}
SPLITS = 10

FIT = """
import json, sys, warnings
import numpy as np, pandas as pd
from precisionnet import PNNRegressor
warnings.simplefilter("ignore")
order = json.loads(sys.argv[1])
X, y = pd.read_parquet(order["rows"]), np.load(order["target"])
errors = []
for seed, (train, test) in enumerate(order["splits"]):
    model = PNNRegressor(**order["parameters"], random_state=seed).fit(X.iloc[train], y[train])
    errors.append(float(np.abs(model.predict(X.iloc[test]) - y[test]).mean()))
print(json.dumps(errors))
"""


def main() -> None:
    """Fit by both codes at the same time, a process each, and write one row per split."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, metavar="PATH", help="checkout of an earlier commit")
    parser.add_argument("--only", choices=list(CASES), action="append", help="one case; may be given again")
    arguments = parser.parse_args()
    rows = [pd.read_csv(OUT)] if OUT.exists() else []
    for case in arguments.only or CASES:
        for cohort, fetch in COHORTS.items():
            rows.append(errors(case, cohort, fetch(), arguments.before))
            print(case, cohort, verdict(rows[-1]), flush=True)
    pd.concat(rows).to_csv(OUT, index=False)


def errors(case: str, cohort: str, data, before: Path) -> pd.DataFrame:
    """Return the test error of every split by either code."""
    sides = [data.split_rows((0.6, 0.2, 0.2), seed, stratify="target") for seed in range(SPLITS)]
    with tempfile.TemporaryDirectory() as folder:
        rows, target = Path(folder) / "rows.parquet", Path(folder) / "target.npy"
        data.X.to_parquet(rows)
        np.save(target, data.y.to_numpy(np.float64))
        splits = [[train.tolist(), test.tolist()] for train, _, test in sides]
        order = {"rows": str(rows), "target": str(target), "splits": splits, "parameters": CASES[case]}
        running = [_start(checkout, order) for checkout in (before, ROOT)]
        said = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
    columns = {"case": case, "cohort": cohort, "split": range(SPLITS), "mae_before": said[0], "mae_now": said[1]}
    return pd.DataFrame(columns | {"before": commit(before), "now": commit(ROOT)})


def verdict(frame: pd.DataFrame) -> str:
    """Say the means and the paired difference with its 95 % interval, corrected for shared rows."""
    means = frame[["mae_before", "mae_now"]].mean()
    mean, low, high = interval((frame["mae_now"] - frame["mae_before"]).to_numpy(), test_to_train=1 / 3)
    return f"{means.iloc[0]:.3f} before, {means.iloc[1]:.3f} now, difference {mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def _start(checkout: Path, order: dict[str, object]) -> subprocess.Popen[str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")} | dict.fromkeys(names, "1")
    command = [sys.executable, "-c", FIT, json.dumps(order)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    main()
