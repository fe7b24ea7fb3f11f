"""``gap_study``: gaps of everybody, differences between groups, how well the correction works, and what drives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from precisionnet.arguments import check_switch, masked_as_missing
from precisionnet.errors import InputError, shown
from precisionnet.evidence.permutations import check_counts
from precisionnet.gap.calibration import LEARNED, accuracy_of, age_correlations, calibration_table
from precisionnet.gap.checks import Given, checked_study
from precisionnet.gap.comparison import SURE, People, compared_gaps, compared_regions, pairs_of
from precisionnet.gap.correction import KINDS, NONE, CrossFitted, cross_fit
from precisionnet.gap.model import GapModel
from precisionnet.gap.outer_folds import contributions_with
from precisionnet.preprocessing import ComBat, CovariateRegression
from precisionnet.preprocessing.covariates import Coding, as_frame
from precisionnet.types import LEVEL, FloatArray, IndexArray


@dataclass(frozen=True)
class GapStudy:
    """What ``gap_study`` found.

    Parameters
    ----------
    gaps : DataFrame
        One row per row: ``fold``, ``learned_from``, ``true``, ``predicted``, ``gap`` and ``corrected_gap`` with their
        intervals, the ``subtractive_gap`` and the ``smooth_gap``; ``group`` and ``site`` where they are known.
    groups : DataFrame
        One row per pair of groups and correction: ``difference`` of group a minus group b with ``low`` and ``high``,
        ``effect_size``, ``p_value``; empty without groups.
    regions : DataFrame
        What each column adds to the corrected difference of each pair, in the target's units, with intervals, p and
        q; empty without groups, or where the regressor has no ``contributions``.
    calibration : DataFrame
        Over the rows learned from, by fifths of the target: mean gaps before and after correction, and the share of
        intervals that hold zero.
    correlations : DataFrame
        Correlation ``r`` of each kind of gap with the target and its interval, over the rows learned from and over
        the others.
    accuracy : dict
        ``mae``, ``r`` and ``r2`` of uncorrected out-of-fold predictions, and ``guess_mae`` of always guessing the
        median of the other folds.
    model : GapModel
        The fitted model.
    by : str
        Name of the labels, "" where they have none.
    adjusted_for : list of str
        What differences are adjusted for; the target first.
    notes : list of str
        What a reader should know.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, 200)
    >>> study = gap_study(age[:, None] + 20 * rng.standard_normal((200, 4)), age, regressor=Ridge())
    >>> study.correlations["kind"].tolist()
    ['none', 'scaled', 'subtractive', 'smooth']
    """

    gaps: pd.DataFrame
    groups: pd.DataFrame
    regions: pd.DataFrame
    calibration: pd.DataFrame
    correlations: pd.DataFrame
    accuracy: dict[str, float]
    model: GapModel
    by: str
    adjusted_for: list[str]
    notes: list[str]

    def correlation(self, kind: str = "scaled") -> float:
        """Return the correlation of a kind of gap with the target, over the rows learned from.

        Parameters
        ----------
        kind : {"none", "scaled", "subtractive", "smooth"}, default="scaled"
            Which gap.

        Returns
        -------
        float
            The correlation; each row was corrected without its fold.
        """
        table = self.correlations[self.correlations["rows"] == LEARNED]
        return float(table.set_index("kind")["r"][kind])

    def summary(self) -> str:
        """Say what was found, one line per pair of groups.

        Returns
        -------
        str
            The error and the slope, then each corrected difference with its interval and p-value.
        """
        lines = [
            f"Out of fold the predictions are off by {self.accuracy['mae']:.3g} on average (always guessing the "
            f"median: {self.accuracy['guess_mae']:.3g}); they rise by {self.model.slope_:.2f} a unit of the target."
        ]
        scaled = [row for row in self.groups.to_dict("records") if row["kind"] == "scaled"]
        return "\n".join([*lines, *(difference_sentence(row, self.by) for row in scaled)])


def group_name(label: Any, by: str) -> str:
    """Return what a group is called in a sentence: text as it is, a number with the name of its column."""
    return label if isinstance(label, str) else f"{by} {label}".strip()


def difference_sentence(row: dict[Any, Any], by: str) -> str:
    """Say one difference between two groups in a sentence."""
    found = "differ" if row["p_value"] <= SURE else "cannot be told apart"
    a, b = group_name(row["group_a"], by), group_name(row["group_b"], by)
    return (
        f"{a} and {b} {found}: corrected gap {row['difference']:+.2f} "
        f"[{row['low']:+.2f}, {row['high']:+.2f}], d = {row['effect_size']:+.2f}, p = {row['p_value']:.3g} "
        f"({row['n_a']} and {row['n_b']} people)."
    )


def gap_study(
    X: Any,
    y: Any,
    *,
    labels: Any = None,
    controls: Any = None,
    groups: Any = None,
    site: Any = None,
    inputs: Any = None,
    regress_out: Any = None,
    adjust_for: Any = None,
    combat: bool = False,
    regressor: Any = None,
    n_folds: int = 5,
    n_permutations: int = 1999,
    on_fit: Callable[[int, int], None] | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> GapStudy:
    """Predict everybody's age out of fold, take the age bias out, and compare groups.

    A covariate has one of three parts: ``inputs`` are further columns that the regressor sees, ``regress_out`` is taken
    out of the columns before (least squares on the training rows), and ``adjust_for`` leaves the predictions alone and
    is only taken into account where groups are compared. The target and the site always are.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Numbers; a data frame keeps its names. Missing values are filled with the training rows' medians.
    y : array-like of shape (n_rows,)
        Age, or another target.
    labels : array-like of shape (n_rows,), optional
        The groups to compare.
    controls : object, optional
        The group to learn from; None learns from everybody.
    groups : array-like of shape (n_rows,), optional
        Whose row it is; rows of one person are in one fold, and averaged before groups are compared.
    site : array-like of shape (n_rows,), optional
        Where it was measured; folds are alike in it, and differences are adjusted for it.
    inputs : DataFrame, optional
        Covariates as columns for the regressor; text becomes one column per level but the first.
    regress_out : DataFrame, optional
        Covariates to take out of the columns of X.
    adjust_for : DataFrame, optional
        Covariates of the comparison alone.
    combat : bool, default=False
        Harmonise the columns of X between sites with ``ComBat``, fitted on the training rows of each fold.
    regressor : estimator, default=None
        Any regressor; None is ``PNNRegressor``.
    n_folds : int, default=5
        Outer folds.
    n_permutations : int, default=1999
        Drawn tables for p-values.
    on_fit : callable, default=None
        Called with the number of fits done and of all.
    n_jobs : int, default=None
        Folds fitted side by side, as joblib counts them; a scheduler uses all of its workers.
    random_state : int, default=0
        Seed of folds, default regressor and permutations.

    Returns
    -------
    GapStudy
        Gaps, differences, calibration of the correction, and regions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> age, patient = rng.uniform(20, 80, 300), np.arange(300) % 3 == 0
    >>> X = (age + 5 * patient)[:, None] + 15 * rng.standard_normal((300, 6))  # patients' brains are five years ahead
    >>> dx = np.where(patient, "patient", "control")
    >>> study = gap_study(X, age, labels=dx, controls="control", regressor=Ridge(), n_permutations=199)
    >>> found = study.groups.set_index("kind").loc["scaled"]
    >>> bool(found["low"] < 5 < found["high"]), bool(found["p_value"] < 0.05)
    (True, True)
    """
    check_switch("combat", combat)
    check_counts(n_permutations, None)
    frame = _named(X)
    given = checked_study(
        y,
        len(frame),
        labels=labels,
        controls=controls,
        groups=groups,
        site=site,
        inputs=inputs,
        regress_out=regress_out,
        adjust_for=adjust_for,
        combat=combat,
    )
    age, learned, named_inputs = given.age, given.learned, given.covariates["inputs"]
    rows, prepared = _prepared(frame, given, combat=combat, regressor=regressor, seed=random_state)
    metadata = {"groups": given.groups, "site": given.site, "covariates": given.covariates["regress_out"]}
    model = GapModel(prepared, n_folds=n_folds, on_fit=on_fit, n_jobs=n_jobs, random_state=random_state)
    at, others = np.flatnonzero(learned), np.flatnonzero(~learned)
    model.fit(rows.iloc[at], age[at], **_taken(metadata, at)).set_params(on_fit=None)
    fold, prediction = np.empty(len(age), dtype=int), np.empty(len(age))
    fold[at], prediction[at] = model.fold_, model.oof_prediction_
    if len(others):
        theirs = _taken(metadata, others)
        fold[others] = model.deal(rows.iloc[others], theirs["groups"])
        prediction[others] = model.predict(rows.iloc[others], **theirs)
    kinds, notes = _corrections(prediction[at], age[at], fold[at], n_folds, _taken(metadata, at)["groups"])
    gaps = _gap_table(frame.index, kinds, prediction, fold, given)
    compared = regions = pd.DataFrame()
    if given.labels is not None:
        people, pairs = People(given), pairs_of(given.labels, controls)
        values = np.column_stack([one.gap(prediction, age, fold) for one in kinds.values()])
        errors = [model.slope_error_ / model.slope_ if kind in ("scaled", "smooth") else 0.0 for kind in kinds]
        rng = np.random.default_rng(random_state)
        compared = compared_gaps(people, pairs, values, list(kinds), errors, n_permutations, rng)
        parts = _parts(model, rows, metadata, fold, named_inputs)
        if parts is None:
            notes.append("This regressor cannot split its predictions into columns, so no regions are named.")
        else:
            scale = np.array([correction.slope for correction in model.corrections_])[fold]
            regions = compared_regions(people, pairs, parts.div(scale, axis=0), n_permutations, rng)
    if given.labels is not None and controls is None:
        notes.append(
            "Everybody was learned from, patients included: what they have in common is partly learned as normal, and "
            "differences are understated."
        )
    correlations = age_correlations(gaps, given.groups)
    apart = correlations[(correlations["rows"] != LEARNED) & (correlations["kind"] == "scaled")]
    for r, low, high in apart[["r", "low", "high"]].to_numpy():
        if low > 0.0 or high < 0.0:
            notes.append(
                f"Among those not learned from, the corrected gap still goes with {given.target} (r = {r:+.2f}, 95 % "
                f"interval {low:+.2f} to {high:+.2f}), as it does not among the others: either the groups differ more "
                f"at some values of {given.target}, or the correction, a line, does not fit where they lie; compare "
                "the smooth correction."
            )
    return GapStudy(
        gaps,
        compared,
        regions,
        calibration_table(gaps),
        correlations,
        accuracy_of(prediction[at], age[at], fold[at], n_folds),
        model,
        str(getattr(labels, "name", None) or ""),
        given.adjusted_for,
        notes,
    )


def _named(X: Any) -> pd.DataFrame:
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(masked_as_missing(X)))
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _taken(metadata: dict[str, Any], rows: IndexArray) -> dict[str, Any]:
    return {name: None if values is None else values.iloc[rows] for name, values in metadata.items()}


def _prepared(X: pd.DataFrame, given: Given, *, combat: bool, regressor: Any, seed: int) -> tuple[pd.DataFrame, Any]:
    """Return the rows with the inputs among their columns, and the regressor behind whatever prepares its columns."""
    if regressor is None:
        from precisionnet.estimators import PNNRegressor  # with torch, which other regressors do not need

        regressor = PNNRegressor(random_state=seed)
    inputs, features, added = given.covariates["inputs"], list(X.columns), list[str]()
    rows = X.reset_index(drop=True)
    if inputs is not None:
        checked = as_frame(inputs, len(X))
        coding = Coding.fit(checked)
        twice = [name for name in coding.columns if name in features]
        if twice:
            raise InputError(f"Column {shown(twice[0])} is among the columns of X already: name it as one of both.")
        added = coding.columns
        rows = rows.join(pd.DataFrame(coding.encode(checked), columns=added))
    steps: list[tuple[str, Any]] = [("combat", ComBat())] if combat else []
    steps += [] if given.covariates["regress_out"] is None else [("regress_out", CovariateRegression())]
    if rows.isna().to_numpy().any():
        steps.insert(0, ("median", SimpleImputer(strategy="median")))
    if not steps:
        return rows, regressor
    with config_context(enable_metadata_routing=True):
        last = clone(regressor)
        if has_fit_parameter(last, "groups"):
            last.set_fit_request(groups=True)
        parts = [("features", Pipeline(steps), features), *([("inputs", "passthrough", added)] if added else [])]
        columns = ColumnTransformer(parts, verbose_feature_names_out=False).set_output(transform="pandas")
        return rows, Pipeline([("columns", columns), ("regressor", last)])


def _corrections(
    prediction: FloatArray, age: FloatArray, fold: IndexArray, n_folds: int, people: Any
) -> tuple[dict[str, CrossFitted], list[str]]:
    """Return every kind of gap; the smooth one may be impossible where the scaled one is not."""
    kinds, notes = {}, list[str]()
    for kind in (NONE, *KINDS):
        try:
            kinds[kind] = cross_fit(kind, prediction, age, fold, n_folds, people)
        except InputError as error:
            if kind != "smooth":
                raise
            notes.append(f"The smooth gap is left empty, and the corrected gap is not affected. {error}")
    return kinds, notes


def _gap_table(
    index: pd.Index[Any],
    kinds: dict[str, CrossFitted],
    prediction: FloatArray,
    fold: IndexArray,
    given: Given,
) -> pd.DataFrame:
    age = given.age
    table: dict[str, Any] = {} if given.labels is None else {"group": given.labels.to_numpy()}
    table |= {} if given.site is None else {"site": given.site.to_numpy()}
    table |= {"fold": fold, "learned_from": given.learned, "true": age, "predicted": prediction}
    for kind, name in ((NONE, "gap"), ("scaled", "corrected_gap")):
        middle, reach = kinds[kind].gap(prediction, age, fold), kinds[kind].reach(LEVEL)[fold]
        table |= {name: middle, f"{name}_low": middle - reach, f"{name}_high": middle + reach}
    for kind in KINDS[1:]:
        table[f"{kind}_gap"] = kinds[kind].gap(prediction, age, fold) if kind in kinds else np.nan
    return pd.DataFrame(table, index=index)


def _parts(
    model: GapModel, rows: pd.DataFrame, metadata: dict[str, Any], fold: IndexArray, inputs: pd.DataFrame | None
) -> pd.DataFrame | None:
    """Return what each column adds to each row's prediction, by the regressor of the row's fold."""
    found = []
    for k, regressor in enumerate(model.regressors_):
        here = np.flatnonzero(fold == k)
        part = contributions_with(regressor, rows, here, metadata)
        if part is None:
            return None
        found.append(part.set_axis(here, axis=0))
    parts = pd.concat(found).sort_index()
    for name in [] if inputs is None else inputs.columns:  # the levels of a covariate are one column again
        levels = [column for column in parts if str(column).startswith(f"{name}=")]
        if levels:
            whole = parts[levels].sum(axis=1).rename(str(name))
            parts = pd.concat([parts.drop(columns=levels), whole], axis=1)
    return parts
