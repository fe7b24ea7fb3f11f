"""What a fit is worth, in sentences: how it was tested, how far it is off, and what follows."""

from __future__ import annotations

import numpy as np

from precisionnet.errors import shown
from precisionnet.evaluation import METRIC_LABELS, Measured
from precisionnet.evaluation.error_intervals import mean_interval
from precisionnet.evaluation.methods import GROUP_GUESS, LINEAR, TRIVIAL
from precisionnet.evaluation.metrics import PERCENT, decimals_of, score_text, significant

NAMES = {
    "ridge": "ridge regression",
    "logistic": "logistic regression",
    "median": "the median",
    "majority": "the majority",
    "group_median": "the median of the site",
    "group_majority": "the majority of the site",
}
"""Baselines in a sentence."""


def how_tested(result: Measured) -> str:
    """Say in one sentence which models predicted the tested rows.

    Parameters
    ----------
    result : Measured
        A fit, as ``precisionnet.evaluation.measure`` returns it.

    Returns
    -------
    str
        The sentence.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> from precisionnet.report import how_tested
    >>> data = make_gaussian_regression(n_samples=40, n_features=4, random_state=0)
    >>> how_tested(measure(data, "regression", {"max_epochs": 1, "n_members": 4}))[:36]
    'Each of 40 rows is predicted by the '
    """
    folds, n = result.folds, f"{len(result.folds.tested):,}"
    if folds.kind == "networks":
        return f"Each of {n} rows is predicted by the networks that did not learn from it, in {folds.n_folds} folds."
    if folds.kind == "people":
        return f"Each of {n} rows is predicted by one of {folds.n_folds} more fits, which did not learn from its fold."
    if folds.kind == "groups":
        n_groups = len(np.unique(folds.cluster))
        return (
            f"Each of {n} rows is predicted by one of {folds.n_folds} more fits, which did not learn from any row of "
            f"its {shown(folds.column)} ({n_groups} of them)."
        )
    return (
        f"{n} of {len(folds.fold):,} rows, in {folds.n_folds} blocks of {shown(folds.column)}, are predicted by fits "
        "on all rows before their block; the first block is only learned from."
    )


def other_error(result: Measured) -> str:
    """Say what the error on rows that networks left out is, where the model was tested in another way; else nothing."""
    if result.folds.kind == "networks":
        return ""
    if result.task == "regression":
        value, scale, what = result.model.oob_mae_, 1.0, "mean absolute error"
    else:
        value, scale, what = result.model.oob_accuracy_, 100.0, "accuracy"
    if np.isnan(value):
        return ""
    number = _amount(value, value) if scale == 1.0 else f"{scale * value:.1f} %"
    column = shown(result.folds.column)
    own = result.headline[result.method].value
    worse = own > value if result.task == "regression" else own < value
    costs = "the difference is what" if worse else "nothing shows of what"
    known = {
        "people": "It rests on one fold's networks for each row, in place of a whole model.",
        "groups": f"They had seen other rows of the same {column}: {costs} a new one costs.",
        "time": f"They had also seen rows that are later by {column}: {costs} the future costs.",
    }[result.folds.kind]
    return f"On rows that single networks of the saved model left out (out of bag), its {what} is {number}. {known}"


def verdict(result: Measured) -> str:
    """Say in two sentences how good a fit is, from the same numbers as the table.

    Parameters
    ----------
    result : Measured
        A fit, as ``precisionnet.evaluation.measure`` returns it.

    Returns
    -------
    str
        The error with its interval beside that of the linear model and of the best guess, and what follows from it.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> from precisionnet.report import verdict
    >>> data = make_gaussian_regression(n_samples=40, n_features=4, random_state=0)
    >>> verdict(measure(data, "regression", {"max_epochs": 1, "n_members": 4}))[:42]
    'On rows that it did not learn from, joint '
    """
    guess, plain = result.best_guess, LINEAR[result.task]
    word = "by" if result.task == "regression" else "in"
    said = [f"{_always(name)}{NAMES[name]} {word} {_score(result, name)}" for name in (plain, guess)]
    interval = "" if np.isnan(result.headline[result.method].low) else f" (95 % interval {_ends(result)})"
    is_right = f"is {'off' if result.task == 'regression' else 'right'} {word}"
    average = " on average" if result.task == "regression" else ""
    first = (
        f"{_where(result)}, {result.method} {is_right} {_score(result, result.method)}{average}"
        f"{interval}; {said[0]}, {said[1]}."
    )
    return f"{first} {_conclusion(result, guess, plain)}"


def score_lines(result: Measured) -> tuple[list[str], dict[str, list[str]]]:
    """Return the table of scores as text: its columns, and a line for each model.

    Parameters
    ----------
    result : Measured
        A fit, as ``precisionnet.evaluation.measure`` returns it.

    Returns
    -------
    columns : list of str
        The headline, its interval and the other scores.
    lines : dict of str to list of str
        By model: errors with three significant digits, shares of right rows in percent, as everywhere on a page.

    Examples
    --------
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> from precisionnet.evaluation import measure
    >>> from precisionnet.report import score_lines
    >>> data = make_gaussian_regression(n_samples=40, n_features=4, random_state=0)
    >>> score_lines(measure(data, "regression", {"max_epochs": 1, "n_members": 4}))[0]
    ['MAE', '95 % interval', 'RMSE', 'R²', 'r']
    """
    first, *others = [METRIC_LABELS[name] for name in result.scores.columns]
    lines = {}
    for name, row in result.scores.to_dict("index").items():
        texts = [_percent(v) if metric in PERCENT else score_text(str(metric), v) for metric, v in row.items()]
        value, low, high = result.headline[str(name)]
        decimals = decimals_of(value)
        interval = f"{low:,.{decimals}f} to {high:,.{decimals}f}"
        if result.task == "classification":
            interval = f"{100 * low:.1f} to {100 * high:.1f} %"
        lines[str(name)] = [texts[0], "–" if np.isnan(low) else interval, *texts[1:]]
    return [first, "95 % interval", *others], lines


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f} %"


def _conclusion(result: Measured, guess: str, plain: str) -> str:
    if result.gains[guess].value <= 0.0:
        return f"That is no better than guessing {NAMES[guess]}: do not use this model."
    if result.beats_guessing is False:
        return (
            f"That is no better than guessing {NAMES[guess]}, as far as these rows tell: the difference could be "
            "chance; bring more rows or other columns."
        )
    at_site = ""
    if guess == GROUP_GUESS[result.task] and _better_guess(result):
        at_site = " The site alone tells something of the target: test it on sites that it has not seen."
    _, low, high = result.gains[plain]
    by = _margin(result, plain)
    if np.isnan(low):
        return f"That is {by}; too few groups for an interval.{at_site}"
    if low <= 0.0 <= high:
        return f"That is as good as {NAMES[plain]}: {by}, a difference that could be chance.{at_site}"
    return f"That is {by}, more than chance explains.{at_site}"


def _better_guess(result: Measured) -> bool:
    """Whether the guess by site is better than that for all, more than chance explains."""
    names = (TRIVIAL[result.task], GROUP_GUESS[result.task])
    if result.task == "regression":
        all_rows, by_site = (np.abs(result.y - result.predictions[name].predicted) for name in names)
    else:
        all_rows, by_site = ((result.y != result.predictions[name].predicted).astype(float) for name in names)
    return bool(mean_interval(all_rows - by_site, result.folds.cluster[result.folds.tested]).low > 0.0)


def _where(result: Measured) -> str:
    column = shown(result.folds.column)
    where = {"groups": f"On rows of a {column} that it has not seen", "time": f"On rows that are later by {column}"}
    return where.get(result.folds.kind, "On rows that it did not learn from")


def _margin(result: Measured, plain: str) -> str:
    gain, value = result.gains[plain].value, result.headline[plain].value
    if result.task == "regression":
        return f"{significant(abs(100 * gain / value), 2)} % {'less' if gain > 0 else 'more'} error than {NAMES[plain]}"
    return f"{significant(abs(100 * gain), 2)} points {'above' if gain > 0 else 'below'} {NAMES[plain]}"


def _always(name: str) -> str:
    return "" if name in LINEAR.values() else "always guessing "


def _score(result: Measured, name: str) -> str:
    own, value = (result.headline[one].value for one in (result.method, name))
    return _percent(value) if result.task == "classification" else _amount(value, own)


def _ends(result: Measured) -> str:
    own, low, high = result.headline[result.method]
    if result.task == "classification":
        return f"{100 * low:.1f} to {100 * high:.1f} %"
    return f"{_amount(low, own)} to {_amount(high, own)}"


def _amount(value: float, size: float) -> str:
    """A number with the decimals that show three digits of ``size``."""
    return f"{value:,.{decimals_of(size)}f}"
