"""Predict a class."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import ClassifierMixin

from precisionnet.estimators.attributes import of_fitted
from precisionnet.estimators.base import BasePNN, documented
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
