"""The gap on real people: is the age bias gone, and do people with autism differ?

    python -m benchmarks.gap.cohorts plain      ridge and support vectors: under a minute
    python -m benchmarks.gap.cohorts networks   the default network on IXI + NKI + OASIS: about five minutes
    python -m benchmarks.gap.cohorts autism     ABIDE's people with autism against its controls: about five minutes

All need PRECISIONNET_DATA. The first two write results/gap/cohorts_*.csv: the correlation of the gap with age, before
and after correction. "Cross-fitted" are the rows of one GapModel, each corrected without its fold; "held out" are rows
that took no part at all, in five outer folds, each predicted and corrected by a GapModel of the others. The last one
writes results/gap/autism_*.csv and a page, results/gap/index.html.
"""

from __future__ import annotations

import datetime
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from precisionnet import PNNRegressor, __version__, load
from precisionnet.datasets import Dataset, fetch_abide, fetch_ants_mindboggle
from precisionnet.errors import InputError
from precisionnet.gap import GapModel, gap_study
from precisionnet.gap.correction import KINDS, cross_fit
from precisionnet.report.gap_page import GapPage, render_gap

OUT = Path(__file__).parents[2] / "results" / "gap"
PLAIN = {
    "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 11))),
    "svr": lambda: make_pipeline(StandardScaler(), SVR(C=10.0, gamma=0.003)),
}
ADJUST = ["sex"]
FITS = Path(tempfile.gettempdir()) / "precisionnet-gap-fits"


class KeptNetwork(PNNRegressor):
    """The default network; its fits are kept in a folder, so that a run that was interrupted goes on."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # type: ignore[override]
        """Fit, or read what an earlier run has fitted to the same rows."""
        place = FITS / joblib.hash((self.get_params(), np.asarray(X), np.asarray(y), __version__))
        if place.exists():
            return self.keep(load(place).fitted)
        fitted = PNNRegressor(**self.get_params()).fit(X, y, groups=groups)
        fitted.save(place)
        return self.keep(fitted.fitted)


def rows_of(cohort: str, data: Dataset, name: str, regressor: Any, *, held_out: bool) -> list[dict[str, Any]]:
    """Return one row per kind of correction and way of measuring."""
    assert data.y is not None
    age, groups = data.y.to_numpy(dtype=np.float64), None if data.groups is None else data.groups.to_numpy()
    model = GapModel(regressor, random_state=0).fit(data.X, age, groups, site=data.site)
    found = [
        (kind, "cross-fitted", *_gaps(model, kind, age, model.oof_prediction_, age, model.fold_)) for kind in KINDS
    ]
    if held_out:
        people = np.arange(len(age)) if groups is None else groups
        gaps = {kind: np.full((2, len(age)), np.nan) for kind in KINDS}
        for train, test in GroupKFold(5, shuffle=True, random_state=0).split(data.X, groups=people):
            inner = GapModel(regressor, random_state=0).fit(data.X.iloc[train], age[train], people[train])
            new = data.X.iloc[test]
            prediction, fold = inner.predict(new, people[test]), inner.deal(new, people[test])
            for kind in KINDS:
                gaps[kind][:, test] = _gaps(inner, kind, age[train], prediction, age[test], fold)
        found += [(kind, "held out", *gaps[kind]) for kind in KINDS]
    about = {"cohort": cohort, "regressor": name, "slope": round(model.slope_, 4)}
    return [about | {"correction": kind, "rows": rows} | _row(*both, age) for kind, rows, *both in found]


def _gaps(model: GapModel, kind: str, learned: Any, prediction: Any, age: Any, fold: Any) -> tuple[Any, Any]:
    """Return the plain and the corrected gap; NaN where the correction is refused."""
    try:
        fitted = cross_fit(kind, model.oof_prediction_, learned, model.fold_, model.n_folds)
    except InputError:
        return prediction - age, np.full(len(age), np.nan)
    return prediction - age, fitted.gap(prediction, age, fold)


def _row(plain: Any, corrected: Any, age: Any) -> dict[str, Any]:
    before, after = (float(np.corrcoef(gap, age)[0, 1]) for gap in (plain, corrected))
    reach = stats.norm.ppf(0.975) / np.sqrt(len(age) - 3)
    return {
        "n": len(age),
        "mae": round(float(np.abs(plain).mean()), 4),
        "r_before": round(before, 4),
        "r_after": round(after, 4),
        "low": round(float(np.tanh(np.arctanh(after) - reach)), 4),
        "high": round(float(np.tanh(np.arctanh(after) + reach)), 4),
    }


def autism() -> None:
    """Compare, write tables and the page."""
    data = fetch_abide()
    assert data.covariates is not None
    study = gap_study(
        data.X,
        data.y,
        labels=data.covariates["diagnosis"],
        controls="control",
        site=data.site,
        adjust_for=data.covariates[ADJUST],
        regressor=KeptNetwork(random_state=0),
        on_fit=lambda done, total: print(f"{done} of {total} fits", flush=True),
        random_state=0,
    )
    print(study.summary())
    OUT.mkdir(parents=True, exist_ok=True)
    for name in ("groups", "regions", "calibration", "correlations"):
        getattr(study, name).round(5).to_csv(OUT / f"autism_{name}.csv", index=False, lineterminator="\n")
    about = GapPage(
        study=study, target="age", by="diagnosis", controls="control", source="ABIDE I", covariates=ADJUST, seed=0
    )
    (OUT / "index.html").write_text(render_gap(about, datetime.date.today().isoformat()), encoding="utf-8")


def main(what: str) -> None:
    """Measure and write."""
    if what == "autism":
        return autism()
    regressors = (
        {name: make() for name, make in PLAIN.items()} if what == "plain" else {"network": KeptNetwork(random_state=0)}
    )
    cohorts = {"IXI + NKI + OASIS": fetch_ants_mindboggle()}
    cohorts |= {"ABIDE": fetch_abide()} if what == "plain" else {}  # with networks, autism has it
    rows = []
    for cohort, data in cohorts.items():
        for name, regressor in regressors.items():
            rows += rows_of(cohort, data, name, regressor, held_out=what == "plain")
    OUT.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows)
    table.to_csv(OUT / f"cohorts_{what}.csv", index=False, lineterminator="\n")
    print(table.to_string())


if __name__ == "__main__":
    main(sys.argv[1])
