"""Predict a class."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from precisionnet.errors import InputError, some
from precisionnet.estimators.attributes import of_fitted
from precisionnet.estimators.base import BasePNN, documented
from precisionnet.estimators.table_fits import learns_later
from precisionnet.types import FloatArray, TaskName


@documented
class PNNClassifier(ClassifierMixin, BasePNN):  # type: ignore[misc]
    """Predict one of two or more classes with a Precision Neural Network, trained on cross-entropy.

    Learns a sparse precision matrix of the features together with graph-convolutional networks that run on it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    precision_ : ndarray of shape (n_features, n_features)
        Sparse precision theta of the standardised features; its zeros are exact. On a sparse ``support`` this and the
        other matrices are scipy.sparse arrays, and hold what is on the support alone.
    task_precision_ : ndarray of shape (n_features, n_features)
        Task-aware matrix that the networks run on: their mean. Its entries are not identified, and differ between
        seeds; ``task_graph_`` says what pairs of columns do for the prediction.
    task_graph_ : ndarray of shape (n_features, n_features)
        What the prediction owes to two columns acting together, in log-odds; its size alone of more than two
        classes.
    task_nodes_ : ndarray of shape (n_features,)
        What the prediction owes to each column; columns that go together share what they carry.
    history_ : DataFrame
        One row per epoch: every term of the objective, losses and accuracies.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Probabilities of each row given to fit, by the network that left it out; NaN for rows that all networks saw or
        that have no weight. ``oob_row_ids_`` has the rows' index.
    oob_log_loss_ : float
        Mean negative log-probability of the true class on these rows; NaN where there are none.
    oob_accuracy_ : float
        Share of these rows whose most probable class is the true one; NaN where there are none.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from precisionnet import PNNClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PNNClassifier(n_members=2, max_epochs=20, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (178, 3)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _task: ClassVar[TaskName] = "classification"

    classes_ = of_fitted("target.classes", "The labels, sorted.")
    oob_decision_function_ = of_fitted(
        "out_of_fold.prediction", "Probabilities of each row given to fit, by networks that left it out."
    )

    @property
    def oob_log_loss_(self) -> float:
        """Mean negative log-probability of the true class on rows that networks left out."""
        return self.fitted.out_of_fold.errors["oob_log_loss_"]

    @property
    def oob_accuracy_(self) -> float:
        """Accuracy on rows that networks left out."""
        return self.fitted.out_of_fold.errors["oob_accuracy_"]

    @available_if(learns_later)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
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
        classes : array-like of shape (n_classes,), optional
            All labels that there are, for the first call; those of its rows if not given.
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
        >>> from precisionnet import PNNClassifier
        >>> rng = np.random.default_rng(0)
        >>> model = PNNClassifier(n_members=2, max_epochs=5, random_state=0)
        >>> for _ in range(2):  # as the rows come
        ...     X = rng.normal(size=(100, 4))
        ...     model = model.partial_fit(X, X[:, 0] > X[:, 1], classes=[False, True])
        >>> model.n_rows_["training"]
        200
        """
        if classes is not None and hasattr(self, "_fitted") and not np.array_equal(np.unique(classes), self.classes_):
            raise InputError(
                f"classes must be those of the first call ({some(self.classes_.tolist())}): leave it out, or fit again."
            )
        return self._go_on(X, y, sample_weight, groups, classes)

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        fitted = self.fitted
        return fitted.target.meaning(fitted.mean_output(self._checked_rows(X)))

    def predict(self, X: Any) -> Any:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        fitted = self.fitted
        return self.classes_[fitted.mean_output(self._checked_rows(X)).argmax(axis=1)]
