"""One self-contained HTML page about predictions: how the rows differ from those that the model learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.evaluation import Shift
from precisionnet.evaluation.metrics import significant
from precisionnet.evaluation.shift import EXTREME, FAR_PERCENT
from precisionnet.report.page import template
from precisionnet.versions import versions

COLUMNS_SHOWN = 20
WIDEST_BAR = 3.0
"""Standard deviations that fill a bar."""


def render_prediction(
    model: Any,
    shift: Shift,
    predictions: pd.DataFrame,
    source: str,
    created: str,
    correction: str | None = None,
    told: Sequence[str] = (),
) -> str:
    """Return one page about predictions of new rows.

    Parameters
    ----------
    model : PNNRegressor or PNNClassifier
        The model that predicted.
    shift : Shift
        How the rows differ from the training rows.
    predictions : DataFrame
        The predictions; the second column is what is predicted.
    source : str
        Name of the table, to show.
    created : str
        Date to show.
    correction : str, default=None
        What was done with labelled rows of the new place.
    told : sequence of str, default=()
        What else was said of the rows, such as levels that the model never saw.

    Returns
    -------
    str
        The page; it needs no network.

    Examples
    --------
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import compare_rows
    >>> from precisionnet.report.predict_page import render_prediction
    >>> data = make_gaussian_regression(n_samples=60, n_features=5, random_state=0)
    >>> model = PNNRegressor(n_members=1, max_epochs=2, random_state=0).fit(data.X, data.y)
    >>> said = data.X.assign(predicted=model.predict(data.X)).reset_index()[["index", "predicted"]]
    >>> render_prediction(model, compare_rows(model, data.X), said, "new.csv", "2026-01-01")[:15]
    '<!doctype html>'
    """
    predicted = predictions.iloc[:, 1]
    return template("prediction.html.j2").render(
        target=model.target_name_ or "the target",
        shift=shift,
        verdict=" ".join(filter(None, [shift.sentence(), shift.filled_sentence()]))
        or "The rows are like those that the model learned from, as far as means, units and distances tell.",
        correction=correction,
        told=[sentence.strip() for sentence in told if sentence.strip()],
        source=source,
        created=created,
        n_training=sum(model.n_rows_.values()),
        columns=shift.columns.head(COLUMNS_SHOWN).to_dict("records"),
        n_columns=len(shift.columns),
        labels=len(shift.columns) < len(model.fitted.blocks),
        widest=WIDEST_BAR,
        significant=significant,
        p_text=_p_text,
        far_percent=FAR_PERCENT,
        extreme=EXTREME,
        summary=[] if shift.other_unit.any() else _summary(predicted),
        versions=versions(),
    )


def _p_text(p: float) -> str:
    return "below 0.001" if p < 0.001 else f"{p:.3f}"


def _summary(predicted: pd.Series[Any]) -> list[tuple[str, str]]:
    """Quartiles of numbers, or the classes by how often they are predicted."""
    if pd.api.types.is_numeric_dtype(predicted.dtype):
        names = ("smallest", "a quarter is below", "median", "a quarter is above", "largest")
        values = np.quantile(predicted, [0.0, 0.25, 0.5, 0.75, 1.0])
        return [(name, significant(float(value))) for name, value in zip(names, values, strict=True)]
    return [(str(name), f"{count:,}") for name, count in predicted.value_counts().head(10).items()]
