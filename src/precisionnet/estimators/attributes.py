"""Attributes of a fitted estimator: parts of its one frozen ``Fitted``, and what is computed from new rows."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from precisionnet.estimators.checks import Rows, names_of, number_rows, refuse_bad_values
from precisionnet.estimators.columns import ColumnBlocks
from precisionnet.estimators.explanation import contributions
from precisionnet.estimators.fitted import Fitted
from precisionnet.estimators.interop import GraphInterop
from precisionnet.estimators.rows import fill
from precisionnet.estimators.targets import NumberTarget
from precisionnet.preprocessing.table_encoder import refuse_gaps
from precisionnet.sparse_matrices import Matrix
from precisionnet.types import FloatArray

ERRORS = {"oob_mae_": "mean absolute error", "oob_log_loss_": "log loss", "oob_accuracy_": "accuracy"}
"""Names of the errors on rows left out, for people."""


def of_fitted(path: str, doc: str) -> Any:
    """Return a property that shows part of the fitted model; before ``fit`` there is no such attribute."""
    part = attrgetter(path)

    def get(self: FittedAttributes) -> Any:
        return part(self.fitted)

    return property(get, doc=doc)


class FittedAttributes(GraphInterop):
    """Mixin of the estimators; ``_fitted`` is there after ``fit``."""

    _fitted: Fitted

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    @property
    def fitted(self) -> Fitted:
        """The fitted model, one frozen object; refused before ``fit``."""
        check_is_fitted(self)
        return self._fitted

    precision_ = of_fitted("precision", "Sparse precision theta of the standardised features; its zeros are exact.")
    task_precision_ = of_fitted(
        "task_precision",
        "Task-aware matrix that the networks run on: their mean. Its entries are not identified: matrix and filters "
        "trade against each other, and another seed gives others. See ``task_graph_``.",
    )
    task_graph_ = of_fitted(
        "task_graph",
        "What the prediction owes to two columns acting together, in the target's units: (n, n), symmetric, zero on "
        "the diagonal (see ``docs/evidence.md``).",
    )
    task_nodes_ = of_fitted(
        "task_nodes",
        "What the prediction owes to each column, in the target's units; correlated columns share what they carry.",
    )
    covariance_ = of_fitted("covariance", "Sample covariance of the standardised training rows.")
    history_ = of_fitted("history", "Data frame with one row per epoch: terms of the objective, losses, errors.")
    networks_ = of_fitted("networks", "The fitted networks, one per member.")
    kind_weights_ = of_fitted("kind_weights", "How much the networks of each kind count; the weights sum to one.")
    shifts_ = of_fitted("shifts", "The matrix each network runs on, scaled as it uses it.")
    l1_penalty_ = of_fitted("l1_penalty", "The l1 penalty that was used.")
    spectral_bound_ = of_fitted("spectral_bound", "The bound on the eigenvalues that was used.")
    n_rows_ = of_fitted("n_rows", "Rows given to fit: ``training`` and ``validation``.")
    best_epoch_ = of_fitted("best_epoch", "The epoch that was kept.")
    n_missing_ = of_fitted("n_missing", "Missing values per column in the rows given to fit.")
    medians_ = of_fitted("medians", "What takes the place of missing values; None where they are refused.")
    target_name_ = of_fitted("target_name", "Name of the target, where it had one.")
    oob_row_ids_ = of_fitted("out_of_fold.row_ids", "Index of the rows given to fit, for the out-of-bag predictions.")
    oob_folds_ = of_fitted("out_of_fold.fold", "The fold that left out each row given to fit; -1 where none did.")

    @property
    def n_iter_(self) -> int:
        """Epochs that were run."""
        return len(self.fitted.history)

    @property
    def n_features_in_(self) -> int:
        """Number of columns given to fit."""
        encoder = self.fitted.encoder
        return self.fitted.n_features if encoder is None else int(encoder.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns given to fit, where the table had any."""
        if self.fitted.encoder is not None:
            return self.fitted.encoder.feature_names_in_
        names = self.fitted.column_names
        if names is None:
            raise AttributeError("the table had no column names")
        return np.array(names, dtype=object)

    @property
    def encoder_(self) -> Any:
        """What makes nodes of columns of labels and gaps, a ``TableEncoder``; None where each column is a node."""
        return self.fitted.encoder

    @property
    def node_names_(self) -> Any:
        """Names of the nodes, in the order of every matrix: of columns, or ``column=level``."""
        return np.array(self._node_names(), dtype=object)

    def _node_names(self) -> list[str]:
        return names_of(self.fitted.column_names, self.fitted.n_features)

    def _blocks(self) -> ColumnBlocks:
        return self.fitted.blocks

    @property
    def network_(self) -> Any:
        """The fitted network; the first one of an ensemble."""
        return self.fitted.networks[0]

    @property
    def shift_(self) -> Matrix:
        """The matrix the fitted network runs on, scaled as it uses it; the first member's of an ensemble."""
        return self.fitted.shifts[0]

    @property
    def precision_in_units_(self) -> Matrix:
        """Sparse precision of the features in the table's units: theta_ij / (scale_i scale_j)."""
        scale = self.fitted.scaler.scale
        if self.fitted.on_support:
            inverse = sparse.diags_array(1.0 / scale)
            return sparse.csr_array(inverse @ self.fitted.precision @ inverse)
        return self.fitted.precision / np.outer(scale, scale)

    def _sentences(self) -> list[str]:
        """Say what was learned: the size of the graph, and the errors on rows that networks left out."""
        of = f" of {self.target_name_}" if self.target_name_ else ""
        errors = [(ERRORS[name], value) for name, value in self.fitted.out_of_fold.errors.items() if np.isfinite(value)]
        known = ", ".join(f"{name}{of} {value:.4g}" for name, value in errors)
        return [*super()._sentences(), f"Out of fold: {known}." if known else "No row was left out of the fit."]

    def node_rows(self, X: Any) -> pd.DataFrame:
        """Return rows as numbers, one column per node.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as for ``predict``.

        Returns
        -------
        pandas.DataFrame of shape (n_samples, n_nodes)
            In the table's units; NaN where a value is missing and no encoder fills it in.
        """
        if self.fitted.encoder is not None:
            return self.fitted.encoder.transform(X)
        index = X.index if isinstance(X, pd.DataFrame) else None
        rows = number_rows(self, X)
        return pd.DataFrame(rows[0 : len(rows)], index=index, columns=self._node_names())

    def standard_units(self, X: Any) -> FloatArray:
        """Return rows as the networks see them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the table's units.

        Returns
        -------
        ndarray of shape (n_samples, n_nodes)
            With ``standardize``, standard deviations from the training rows' mean. With ``missing="median"`` the
            training rows' medians stand in the gaps.
        """
        encoder = self.fitted.encoder
        rows = np.asarray(X if encoder is None else encoder.transform(X), dtype=np.float64)
        medians = self.fitted.medians
        return self.fitted.scaler.transform(rows if medians is None else fill(rows, medians))

    def contributions(self, X: Any) -> pd.DataFrame:
        """Split each prediction into one number per column.

        Integrated gradients from the training rows' mean to the row. What the networks only borrow from a correlated
        column counts for the column that they use (see ``docs/evidence.md``).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        pandas.DataFrame of shape (n_samples, n_features)
            One row per row of ``X``, one column per feature; a column of labels has the sum over its nodes.
            ``attrs["base"]`` is the prediction at the training rows' mean; with it, the numbers of a row add up to its
            prediction. Of a classifier the columns are pairs (class, feature) and the sums are logits, of two classes
            the log-odds of the second; ``attrs["base"]`` then has a number per class.
        """
        fitted = self.fitted
        rows = self._checked_rows(X)
        values = rows[0 : len(rows)]
        values = values if fitted.medians is None else fill(values, fitted.medians)
        parts, base = contributions(fitted, values)
        parts, names = fitted.blocks.summed(parts), fitted.blocks.names
        index = X.index if isinstance(X, pd.DataFrame) else None
        if isinstance(fitted.target, NumberTarget):
            frame = pd.DataFrame(parts[:, 0], index=index, columns=names)
            frame.attrs["base"] = float(base[0])
            return frame
        classes = fitted.target.classes[-len(base) :].tolist()
        columns = pd.MultiIndex.from_product([classes, names], names=["class", "node"])
        frame = pd.DataFrame(parts.reshape(len(parts), -1), index=index, columns=columns)
        frame.attrs["base"] = dict(zip(classes, map(float, base), strict=True))
        return frame

    def _checked_rows(self, X: Any) -> Rows:
        """Return new rows as numbers, one column per node, NaN only where the model knows what to put there."""
        fitted = self.fitted
        encoder = fitted.encoder
        if encoder is not None and fitted.settings.missing == "error":
            refuse_gaps(X)
        rows: Rows = number_rows(self, X) if encoder is None else encoder.transform(X).to_numpy()
        missing = "error" if fitted.medians is None else "median"
        refuse_bad_values(rows, names_of(fitted.column_names, fitted.n_features), missing)
        return rows
