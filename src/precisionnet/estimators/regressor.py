"""Predict a number."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from precisionnet.errors import InputError
from precisionnet.estimators.attributes import of_fitted
from precisionnet.estimators.base import BasePNN, documented
from precisionnet.estimators.fitted import PREDICTED_AT_ONCE
from precisionnet.estimators.intervals import NOTHING_TO_CALIBRATE_ON, Calibration
from precisionnet.estimators.table_fits import learns_later
from precisionnet.estimators.targets import learns_logarithm
from precisionnet.types import FloatArray, TaskName


@documented
class PNNRegressor(RegressorMixin, BasePNN):  # type: ignore[misc]
    """Predict a number with a Precision Neural Network.

    Learns a sparse precision matrix of the features together with graph-convolutional networks that run on it. The
    default, ``recipe="standard"``, trains networks of several kinds on the absolute error of the standardised target,
    and weighs them by the rows that they left out; ``recipe="paper"`` is Algorithm 1 of the paper, its
    Step 1 solved to the end, in the reading of ``docs/notation.md``, which has the paper's symbols, too.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    precision_ : ndarray of shape (n_features, n_features)
        Sparse precision theta of the standardised features; its zeros are exact. On a sparse ``support`` this and the
        other matrices are scipy.sparse arrays, and hold what is on the support alone.
    task_precision_ : ndarray of shape (n_features, n_features)
        Task-aware matrix that the networks run on: their mean. Its entries are not identified, and differ between
        seeds; ``task_graph_`` says what pairs of columns do for the prediction.
    task_graph_ : ndarray of shape (n_features, n_features)
        What the prediction owes to two columns acting together, in the target's units, signed.
    task_nodes_ : ndarray of shape (n_features,)
        What the prediction owes to each column; columns that go together share what they carry.
    covariance_ : ndarray of shape (n_features, n_features)
        Sample covariance of the standardised training rows.
    history_ : DataFrame
        One row per epoch: every term of the objective, losses and mean absolute errors.
    networks_ : tuple of torch.nn.Module
        The fitted networks; ``shifts_`` has the matrix each runs on.
    kind_weights_ : dict
        How much the networks of each kind count together.
    oob_prediction_ : ndarray of shape (n_samples,)
        Each row given to fit, predicted by the networks that left it out; NaN for rows that no network left out (with
        ``n_members`` below 4, with ``recipe="paper"``) or that have no weight. ``oob_row_ids_`` has the rows' index.
    target_scale_ : {"linear", "log"}
        Whether the networks learned the target or its logarithm.
    oob_mae_ : float
        Mean absolute error of these predictions, in the target's units; NaN where there are none.
    calibration_ : Calibration or None
        The errors that intervals are made of; None where no rows were kept from training.
    n_rows_ : dict
        Rows given to fit: ``training`` and ``validation``.

    Examples
    --------
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> data = make_gaussian_regression(n_samples=120, n_features=8, random_state=0)
    >>> model = PNNRegressor(n_members=2, max_epochs=20, random_state=0).fit(data.X, data.y)
    >>> model.predict(data.X).shape
    (120,)
    >>> bool(model.score(data.X, data.y) > 0.5)
    True
    """

    _task: ClassVar[TaskName] = "regression"

    oob_prediction_ = of_fitted(
        "out_of_fold.prediction", "Rows given to fit, predicted by networks that left them out."
    )
    calibration_ = of_fitted("calibration", "The errors that intervals are made of, or None.")

    @property
    def target_scale_(self) -> str:
        """Whether the networks learned the target (linear) or its logarithm (log)."""
        return "log" if learns_logarithm(self.fitted.target) else "linear"

    @property
    def oob_mae_(self) -> float:
        """Mean absolute error on the rows that networks left out; NaN where there are none."""
        return self.fitted.out_of_fold.errors["oob_mae_"]

    @available_if(learns_later)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Go on from the fitted model with rows that came later; the first call is a fit.

        Moments of all rows so far are merged, and the graph is that of all of them. The networks take steps on the new
        rows, the fewer and shorter the more rows there were before, in the units of the first call: its rows should be
        like the later ones, and as many as possible. Out-of-fold predictions and errors are then those of the new rows
        alone, each by networks that have not seen it; a row that is given twice would be known to them. Folds
        are dealt anew in every call, so that the same holds for further rows of a group: ``groups`` keeps rows of one
        call together, and all rows of a group belong into one call where errors are to be those of new groups. With
        fewer than 200 new rows the calibration of intervals, the distances of training rows and what the prediction
        rests on stay as they were. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, with the columns of the first call.
        y : array-like of shape (n_samples,)
            Their target.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.
        groups : array-like of shape (n_samples,), optional
            Whose row it is, one label per row.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from precisionnet import PNNRegressor
        >>> rng = np.random.default_rng(0)
        >>> model = PNNRegressor(n_members=2, max_epochs=5, random_state=0)
        >>> for _ in range(2):  # as the rows come
        ...     X = rng.normal(size=(100, 4))
        ...     model = model.partial_fit(X, X[:, 0] - 2 * X[:, 1])
        >>> model.n_rows_["training"]
        200
        """
        return self._go_on(X, y, sample_weight, groups)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...

    def predict(self, X: Any, return_std: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the target of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Return a standard deviation, too.

        Returns
        -------
        prediction : ndarray of shape (n_samples,)
            In the target's units.
        std : ndarray of shape (n_samples,)
            With ``return_std``: the square root of the variance of the networks' predictions, which grows where they
            disagree, plus the mean squared error on rows that they did not learn from (out-of-bag rows; validation rows
            of a single network).
        """
        fitted = self.fitted
        rows = self._checked_rows(X)
        if not return_std:
            return fitted.target.meaning(fitted.mean_output(rows))
        noise = self._calibrated().mean_squared_error

        used = np.flatnonzero(fitted.member_weights)
        weights = fitted.member_weights[used]

        def mean_and_variance(output: FloatArray) -> FloatArray:
            mean = fitted.target.meaning(np.tensordot(weights, output, axes=1))
            return np.column_stack([mean, weights @ (fitted.target.meaning(output) - mean) ** 2])

        prediction, variance = fitted.outputs(rows, mean_and_variance, used).T
        return prediction, np.sqrt(variance + noise)

    def predict_interval(self, X: Any, coverage: float = 0.95) -> FloatArray:
        """Predict an interval for each row that holds its target in ``coverage`` of cases.

        Calibrated on the rows that the networks left out (CV+), or on the validation rows of a single network (split
        conformal prediction). Where those rows show that errors differ in size with the prediction or a column,
        intervals are narrow and wide accordingly; otherwise all are about as wide. The share is one over all rows like
        those of the fit, as measured, not a promise for each kind of row. Where no target of the fit was negative, no
        end is; likewise for targets that were never positive, and for shares of 0 to 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.95
            Share of targets inside, from 0.5 to below 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        fitted = self.fitted
        rows, calibration = self._checked_rows(X), self._calibrated()
        predictions = fitted.outputs(rows, lambda output: fitted.target.meaning(fitted.fold_outputs(output)).T)
        ends, (_, step) = np.empty((len(rows), 2)), PREDICTED_AT_ONCE
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            ends[part] = calibration.interval(predictions[part].T, coverage, fitted.filled(rows[part]))
        return ends

    def _calibrated(self) -> Calibration:
        calibration = self.fitted.calibration
        if calibration is None:
            raise InputError(NOTHING_TO_CALIBRATE_ON)
        return calibration
