"""Tables as they come: text, yes and no, ordered words, dates and gaps become numbers, fitted on the training rows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from precisionnet.arguments import check_number
from precisionnet.errors import InputError, did_you_mean, shown, some
from precisionnet.preprocessing.checks import forget
from precisionnet.preprocessing.column_kinds import INDICATOR_SHARE, are_plain
from precisionnet.preprocessing.table_columns import EncodedColumn, fit_columns
from precisionnet.preprocessing.table_nodes import read_columns
from precisionnet.types import FloatArray


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table of numbers, text, booleans, ordered categories and dates into numbers, nothing missing.

    A number stays itself. Text and pandas categories have one column of 0 and 1 per level but the most frequent one;
    levels of fewer than 1 % of the rows are one level together. Yes and no become 1 and 0, ordered categories their
    places, dates years. The training rows' medians stand for what is missing, and a column says where if more than
    ``indicator_share`` of the training rows miss it. Levels that training never saw say nothing about a row: they
    have the training rows' mean, or count as rare. A text column that names its rows, or does not vary, has no column.

    ``PNNRegressor`` and ``PNNClassifier`` have such an encoder inside when ``fit`` is given a data frame with such
    columns; by itself it is for other models, as a step of a pipeline.

    Parameters
    ----------
    indicator_share : float, default=0.01
        Share of missing training rows above which a column says where a value is missing; 1 adds none.

    Attributes
    ----------
    columns_ : tuple of EncodedColumn
        How each column of the table becomes nodes.
    sources_ : ndarray of shape (n_nodes,)
        Of each node, the position of its column in the table.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the table's columns.
    n_features_in_ : int
        Their number.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dose": [1.0, None, 3.0, 4.0], "smoker": ["yes", "no", "no", "yes"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.transform(table)
       dose  dose=(missing)  smoker
    0   1.0             0.0     1.0
    1   3.0             1.0     0.0
    2   3.0             0.0     0.0
    3   4.0             0.0     1.0
    >>> encoder.sources_.tolist()
    [0, 0, 1]
    """

    columns_: tuple[EncodedColumn, ...]

    def __init__(self, indicator_share: float = INDICATOR_SHARE) -> None:
        self.indicator_share = indicator_share

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn levels, medians and kinds from training rows.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns)
            Training rows.
        y : None
            Not used.
        sample_weight : array-like of shape (n_rows,), optional
            How often each row counts; rows of weight 0 are not looked at.

        Returns
        -------
        TableEncoder
            This object, fitted.
        """
        forget(self)
        check_number("indicator_share", self.indicator_share, 0.0, 1.0, high_allowed=True)
        frame = _frame(X)
        weight = np.ones(len(frame)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        frame, weight = frame[weight > 0], weight[weight > 0]
        if not len(frame):
            raise InputError("Found array with 0 sample(s): an encoder needs training rows.")
        columns = fit_columns(frame, weight, self.indicator_share)
        if not any(column.node_names for column in columns):
            why = "; ".join(f"{shown(column.name)}: {column.reason}" for column in columns[:3])
            raise InputError(f"No column can be used ({why}): bring columns that vary.")
        return self._keep(columns)

    def _keep(self, columns: tuple[EncodedColumn, ...]) -> Self:
        self.columns_ = columns
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        self.n_features_in_ = len(columns)
        self.sources_ = np.repeat(np.arange(len(columns)), [len(column.node_names) for column in columns])
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Encode rows.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns)
            Rows with the columns of ``fit``; a data frame may have them in any order, and need not have those that
            were left out.

        Returns
        -------
        pandas.DataFrame of shape (n_rows, n_nodes)
            float64, under the index of ``X``.
        """
        frame = self._own_columns(X)
        nodes = np.empty((len(frame), len(self.sources_)))
        plain = set(frame.columns[are_plain(frame)])
        together = [
            place
            for place, column in enumerate(self.columns_)
            if column.kind == "number" and not column.indicator and column.name in plain
        ]
        if together:  # there may be thousands
            columns = [self.columns_[place] for place in together]
            numbers = frame[[column.name for column in columns]].to_numpy(dtype=np.float64)
            nodes[:, np.isin(self.sources_, together)] = np.where(
                np.isnan(numbers), [column.middle[0] for column in columns], numbers
            )
        for place in sorted({*self.sources_.tolist()} - {*together}):
            column = self.columns_[place]
            nodes[:, self.sources_ == place] = column.encode(frame[column.name])
        return pd.DataFrame(nodes, index=frame.index, columns=self.get_feature_names_out())

    def unseen_levels(self, X: Any) -> dict[str, list[str]]:
        """Name the levels that no training row had.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns)
            Rows.

        Returns
        -------
        dict
            From a column to its unseen levels; columns without any are not in it.
        """
        frame = self._own_columns(X)
        found = {column.name: column.unseen(frame[column.name]) for column in self.columns_ if column.node_names}
        return {name: levels for name, levels in found.items() if levels}

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Name the nodes.

        Parameters
        ----------
        input_features : None
            Not used: the names are those of ``fit``.

        Returns
        -------
        ndarray of shape (n_nodes,)
            The column's name, or ``column=level``.
        """
        check_is_fitted(self)
        taken: dict[str, None] = {}
        for column in self.columns_:
            for name in column.node_names:
                while name in taken:  # a column may be called like the level of another
                    name += "'"
                taken[name] = None
        return np.array(list(taken), dtype=object)

    def describe(self) -> list[str]:
        """Say in plain sentences what was encoded, which levels are rare, and what was left out.

        Returns
        -------
        list of str
            At most one sentence on each; none for a table of numbers without gaps.
        """
        check_is_fitted(self)
        said = []
        encoded = [_described(column) for column in self.columns_ if column.kind not in ("number", "left out")]
        gaps = [shown(column.name) for column in self.columns_ if column.indicator]
        if encoded:
            said.append(f"Encoded as numbers: {_listed(encoded, 6)}.")
        if gaps:
            one = len(gaps) == 1
            said.append(
                f"{_listed(gaps, 4)} {'has' if one else 'have'} gaps in more than {100 * self.indicator_share:g} % of "
                f"the rows: {'one more column says' if one else 'one more column for each says'} where."
            )
        rare = [
            f"{shown(column.name)} ({some(list(column.rare))})"
            for column in self.columns_
            if column.rare and column.levels
        ]
        if rare:
            said.append(f"Levels with few rows count as one: {_listed(rare, 3)}.")
        return [*said, self.left_out()] if self.left_out() else said

    def left_out(self, besides: Collection[str] = ()) -> str:
        """Say which columns have no node, and why.

        Parameters
        ----------
        besides : collection of str, default=()
            Columns of which something else is said.

        Returns
        -------
        str
            One sentence, empty where every column has one.
        """
        check_is_fitted(self)
        lost = [column for column in self.columns_ if column.kind == "left out" and column.name not in besides]
        out = [f"{shown(column.name)} ({column.reason})" for column in lost]
        return f"Left out: {_listed(out, 3)}." if out else ""

    def to_document(self) -> dict[str, Any]:
        """Return the fitted encoder in JSON's types.

        Returns
        -------
        dict
            What ``from_document`` reads.
        """
        check_is_fitted(self)
        return {"indicator_share": self.indicator_share, "columns": [column.to_document() for column in self.columns_]}

    @classmethod
    def from_document(cls, said: Any) -> TableEncoder:
        """Read a fitted encoder; whatever ``to_document`` cannot have written is a ValueError.

        Parameters
        ----------
        said : dict
            What ``to_document`` returned.

        Returns
        -------
        TableEncoder
            Fitted.
        """
        columns = read_columns(said)
        return cls(said["indicator_share"])._keep(columns)

    def _own_columns(self, X: Any) -> pd.DataFrame:
        check_is_fitted(self)
        frame = _frame(X, [str(name) for name in self.feature_names_in_])
        needed = [column.name for column in self.columns_ if column.node_names]
        missing = [name for name in needed if name not in frame.columns]
        if missing:
            raise InputError(
                f"X has no column {some(missing)}{did_you_mean(missing[0], frame.columns)}, which the table given to "
                "fit had: add it."
            )
        return frame

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def encoder_for(X: pd.DataFrame, missing: str, weight: FloatArray | None = None) -> TableEncoder:
    """Fit the encoder of a table that ``needs_encoder``.

    ``missing`` is the estimators' parameter: with "error" nothing may be missing, with "median" nothing says where.
    """
    if missing == "error":
        refuse_gaps(X)
    return TableEncoder(INDICATOR_SHARE if missing == "indicator" else 1.0).fit(X, sample_weight=weight)


def refuse_gaps(X: Any) -> None:
    """Refuse missing values, by column."""
    X = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    holes = [str(name) for name in X.columns[X.isna().any()]]
    if holes:
        raise InputError(
            f"Input X contains NaN in {int(X.isna().any(axis=1).sum())} of {len(X)} rows (column {some(holes)}): drop "
            "those rows or columns, impute them first, or fit with missing='indicator'."
        )


def _frame(X: Any, names: list[str] | None = None) -> pd.DataFrame:
    """A table as a data frame whose columns have text names."""
    if isinstance(X, pd.DataFrame):
        frame = X.set_axis([str(name) for name in X.columns], axis=1)
        twice = frame.columns[frame.columns.duplicated()].unique().tolist()
        if twice:
            raise InputError(f"Column {some(twice)} stands more than once in X: rename or drop one.")
        return frame
    values = np.asarray(X, dtype=object) if not isinstance(X, np.ndarray) else X
    if values.ndim != 2:
        raise InputError(f"Expected 2D array, got {values.ndim}D array instead: give one row per sample.")
    names = names or [f"x{i}" for i in range(values.shape[1])]
    if values.shape[1] != len(names):
        raise InputError(
            f"X has {values.shape[1]} features, but TableEncoder is expecting {len(names)} features as input."
        )
    return pd.DataFrame(values, columns=names).infer_objects()


def _described(column: EncodedColumn) -> str:
    what = {"boolean": "yes/no", "ordinal": "in order", "date": "date"}.get(column.kind)
    n_levels = len(column.levels) + 1 + len(column.rare)
    return f"{shown(column.name)} ({what or f'{n_levels} levels'})"


def _listed(parts: list[str], most: int) -> str:
    if len(parts) > most:
        return f"{', '.join(parts[:most])} and {len(parts) - most} more"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
