"""A fitted model: one frozen object that holds all of it.

Estimators expose it, files write and read it, predictions are made from it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from precisionnet.errors import InputError, printable, shortened
from precisionnet.estimators.checks import Rows, names_of
from precisionnet.estimators.columns import ColumnBlocks
from precisionnet.estimators.intervals import Calibration
from precisionnet.estimators.reference import Reference
from precisionnet.estimators.rows import Scaler, fill
from precisionnet.estimators.targets import Target
from precisionnet.nn.sparse_shift import shift_of
from precisionnet.parameters import Settings
from precisionnet.preprocessing.table_encoder import TableEncoder
from precisionnet.preprocessing.table_nodes import node_columns, signed_columns
from precisionnet.sparse_matrices import Matrix, MatrixStack, SparseStack, on_common_support
from precisionnet.threads import limited_threads
from precisionnet.types import FloatArray, IndexArray

ALL_ROWS = -1
"""In place of a fold, for a network that has left nothing out."""

PREDICTED_AT_ONCE = 2**19, 8192
"""Numbers in a layer's output, and rows, that a forward pass takes at most.

Memory does not grow with the table, and what a layer made is still in the cache when the next one takes it.
"""

SPARSE_AT_ONCE = 32
"""Rows that a forward pass on a sparse support takes at least: its products are quick from there on."""

SPARSE_FROM, SPARSE_MOST = 500, 0.05
"""Nodes from which on, and share of entries up to which, a matrix of all pairs predicts with sparse products."""


@dataclass(frozen=True)
class OutOfFold:
    """Predictions of the rows given to fit, each by the network that left it out.

    Parameters
    ----------
    row_ids : ndarray of shape (n_samples,)
        Index of the table given to fit.
    prediction : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Numbers, or probabilities; NaN for rows that no network left out.
    fold : ndarray of int of shape (n_samples,)
        The fold of the networks that left the row out; -1 where there is none.
    errors : dict
        Errors on these rows by the attribute that shows them; NaN where there are none.
    """

    row_ids: Any
    prediction: FloatArray
    fold: IndexArray
    errors: dict[str, float]


@dataclass(frozen=True)
class Fitted:
    """All that a fitted model is.

    On a sparse support ``covariance``, ``precision``, ``task_precision`` and ``task_graph`` are scipy.sparse arrays,
    the first and the last on the support alone, and ``member_matrices`` is a ``SparseStack``.

    Parameters
    ----------
    settings : Settings
        The values it was fitted with.
    column_names : tuple of str or None
        Names of the nodes: the table's own, where it had any and they are numbers.
    target_name : str or None
        Name of the target, where it had one.
    target : Target
        What is predicted, and what an output means.
    scaler : Scaler
        Of the features.
    medians : ndarray of shape (n_features,) or None
        What takes the place of a missing value.
    n_missing : ndarray of shape (n_features,)
        Missing values per column in the rows given to fit.
    n_rows : dict
        Rows given for ``training`` and ``validation``.
    weight : float
        Sum of the weights of all rows that it has learned from.
    covariance : ndarray of shape (n_features, n_features)
        Sample covariance of the scaled training rows.
    precision : ndarray of shape (n_features, n_features)
        Sparse precision theta.
    task_precision : ndarray of shape (n_features, n_features)
        Task-aware precision: the members' mean.
    member_matrices : ndarray of shape (n_members, n_features, n_features)
        What each network runs on, not scaled.
    scale : float
        What these are divided by.
    networks : tuple of nn.Module
        One network per member: float64, evaluation mode, on the CPU.
    member_kinds : tuple of str
        Kind of each network.
    member_folds : ndarray of shape (n_members,)
        Which fold each network left out; -1 for a linear or a kernel one that is solved on all rows.
    member_weights : ndarray of shape (n_members,)
        How much each network counts in the prediction; they sum to one, of classes to the sharpness.
    fold_weights : ndarray of shape (n_members,)
        How much each network counts beside the others that left out the same fold.
    l1_penalty : float
        The penalty that was used.
    spectral_bound : float
        The bound that was used.
    history : DataFrame
        One row per epoch.
    best_epoch : int
        The epoch that was kept.
    center : ndarray of shape (n_features,)
        Mean of the training rows in standard units: zero where columns are standardised.
    task_nodes : ndarray of shape (n_features,)
        What the prediction owes to each column (``explanation``).
    task_graph : ndarray of shape (n_features, n_features)
        What it owes to pairs of columns.
    out_of_fold : OutOfFold
        Predictions of rows by networks that left them out.
    calibration : Calibration or None
        Errors that intervals are made of; None where no rows were kept from training.
    reference : Reference or None
        What new rows are compared with; None until training is finished.
    folds : tuple of ndarray
        Training rows of each fold; the networks of a fold have left them out.
    rows_hash : str
        Hash of the training rows: folds are reused by a warm start on the same rows only.
    encoder : TableEncoder or None
        What makes nodes of the table's columns; None where each column is a node.
    """

    settings: Settings
    column_names: tuple[str, ...] | None
    target_name: str | None
    target: Target
    scaler: Scaler
    medians: FloatArray | None
    n_missing: IndexArray
    n_rows: dict[str, int]
    weight: float
    covariance: Matrix
    precision: Matrix
    task_precision: Matrix
    member_matrices: MatrixStack
    scale: float
    networks: tuple[nn.Module, ...]
    member_kinds: tuple[str, ...]
    member_folds: IndexArray
    member_weights: FloatArray
    fold_weights: FloatArray
    l1_penalty: float
    spectral_bound: float
    history: pd.DataFrame
    best_epoch: int
    center: FloatArray
    task_nodes: FloatArray
    task_graph: Matrix
    out_of_fold: OutOfFold
    calibration: Calibration | None
    reference: Reference | None
    folds: tuple[IndexArray, ...]
    rows_hash: str
    encoder: TableEncoder | None = None

    @property
    def n_features(self) -> int:
        """Number of nodes."""
        return int(self.precision.shape[0])

    @property
    def on_support(self) -> bool:
        """Whether the matrices live on a sparse support; they are scipy.sparse arrays then, and a ``SparseStack``."""
        return isinstance(self.member_matrices, SparseStack)

    @property
    def blocks(self) -> ColumnBlocks:
        """The nodes that belong to each column."""
        if self.encoder is None:
            return ColumnBlocks(tuple(names_of(self.column_names, self.n_features)), np.arange(self.n_features))
        names, of_node = node_columns(self.encoder.columns_)
        return ColumnBlocks(tuple(names), of_node, signed_columns(self.encoder.columns_))

    @property
    def rows_at_once(self) -> int:
        """How many rows a forward pass takes at most."""
        numbers, most = PREDICTED_AT_ONCE
        at_once = numbers // (self.n_features * self.settings.widest)
        return min(max(at_once, SPARSE_AT_ONCE if self.on_support else 1), most)

    @property
    def shifts(self) -> MatrixStack:
        """The matrix each network runs on, scaled as it uses it."""
        return self.member_matrices / self.scale

    def refuse_on_support(self, what: str) -> None:
        """Refuse what cannot be done with a model on a sparse support.

        Parameters
        ----------
        what : str
            What was asked for, the beginning of a sentence.
        """
        if self.on_support:
            raise InputError(
                f"{what} needs a matrix of all pairs, which a model on a sparse support has not: fit it with "
                "support='dense'."
            )

    @cached_property
    def _quickest_matrices(self) -> MatrixStack:
        """The matrix that each network runs on, stored on a support where most entries are zero."""
        if self.on_support or self.n_features < SPARSE_FROM:
            return self.member_matrices
        return on_common_support(self.member_matrices, SPARSE_MOST)

    def network_shifts(self, members: Iterable[int], device: torch.device | None = None) -> list[Any]:
        """Return what these networks run on, as they take it: with sparse products where they are quicker.

        Parameters
        ----------
        members : iterable of int
            Which networks.
        device : torch.device, optional
            Where they run; the CPU if not given.

        Returns
        -------
        list of Tensor or SparseShift
            One per network, float64, scaled.
        """
        like = torch.empty(0, dtype=torch.float64, device=device)
        matrices = self._quickest_matrices
        if isinstance(matrices, SparseStack):
            return [shift_of(matrices[np.array([i])], self.scale, like)[0] for i in members]
        return [torch.from_numpy(matrices[i] / self.scale).to(like.device) for i in members]

    def outputs(
        self, X: Rows, made: Callable[[FloatArray], FloatArray], members: IndexArray | None = None
    ) -> FloatArray:
        """Predict rows, some at a time.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), or NumberRows
            Checked rows in the table's units, NaN where a value is missing.
        made : callable
            What is kept of the networks' outputs on some rows, (n_members, n_rows, n_outputs): an array whose last or
            only axis of rows is the first one.
        members : ndarray of int, optional
            Which networks predict; all by default.

        Returns
        -------
        ndarray
            What ``made`` returned, for all rows.
        """
        on_cpu = self.settings.device == "cpu"
        device = torch.device("cpu") if on_cpu else prediction_device(self.settings.device)
        chosen = range(len(self.networks)) if members is None else members
        networks = [self.networks[i] for i in chosen]
        if not on_cpu:
            networks = [copy.deepcopy(network).to(device) for network in networks]
        shifts = self.network_shifts(chosen, device)
        step = self.rows_at_once
        result: FloatArray | None = None
        with limited_threads(1, wait=False), torch.no_grad():
            for begin in range(0, max(len(X), 1), step):
                part = X[begin : begin + step]
                x = torch.from_numpy(self.scaler.transform(self.filled(part))).unsqueeze(-1).to(device)
                pairs = zip(networks, shifts, strict=True)
                kept = made(torch.stack([network(x, shift) for network, shift in pairs]).cpu().numpy())
                if result is None:
                    result = np.empty((len(X), *kept.shape[1:]))
                if not np.isfinite(kept).all():
                    row = begin + int(np.argmin(np.isfinite(kept.reshape(len(kept), -1)).all(axis=1)))
                    raise InputError(
                        f"The prediction of row {row} is not finite: its values are too far from those that the model "
                        "was fitted on; correct or drop the row."
                    )
                result[begin : begin + len(part)] = kept
        assert result is not None
        return result

    def filled(self, X: FloatArray) -> FloatArray:
        """Return rows with the medians in place of missing values."""
        return X if self.medians is None else fill(X, self.medians)

    def mean_output(self, X: Rows) -> FloatArray:
        """Return the members' weighted mean output, (n_samples, n_outputs).

        Of classes that is the geometric mean of their probabilities, in which a member that is not sure has little say,
        to the power of the sharpness.
        """
        used = np.flatnonzero(self.member_weights)
        return self.outputs(X, lambda output: np.tensordot(self.member_weights[used], output, axes=1), used)

    def fold_outputs(self, output: FloatArray) -> FloatArray:
        """Combine the members of each fold: (n_members, ...) becomes (n_folds, ...)."""
        share = (np.arange(int(self.member_folds.max()) + 1)[:, None] == self.member_folds) * self.fold_weights
        return np.tensordot(share / share.sum(axis=1, keepdims=True), output, axes=1)

    @property
    def kind_totals(self) -> dict[str, float]:
        """The total weight of the networks of each kind; together one, or the sharpness of an ensemble for classes."""
        kinds = dict.fromkeys(self.member_kinds, 0.0)
        for kind, weight in zip(self.member_kinds, self.member_weights, strict=True):
            kinds[kind] += float(weight)
        return {kind: weight for kind, weight in kinds.items() if weight}

    @property
    def kind_weights(self) -> dict[str, float]:
        """The share of the networks of each kind in the prediction."""
        totals = self.kind_totals
        return {kind: weight / self.sharpness for kind, weight in totals.items()}

    @property
    def sharpness(self) -> float:
        """What the weighted mean of the members' logits is multiplied by; 1 of numbers."""
        return float(self.member_weights.sum())


def training_device(name: str) -> torch.device:
    """Return the device by name; ``auto`` is a GPU where there is one."""
    if name == "auto":
        has_mps = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()  # raises on a device that holds no numbers
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = shortened(printable(str(error).partition("\n")[0]), 120)
        raise InputError(
            f"device={name!r} cannot be used here ({reason}): set device='cpu', or 'auto' to take a GPU where there is "
            "one."
        ) from error
    return device


def prediction_device(name: str) -> torch.device:
    """Return the device that predicts: the one of training where it has float64 and is here, the CPU otherwise."""
    try:
        device = training_device(name)
        torch.zeros(1, device=device, dtype=torch.float64).cpu()
    except (InputError, RuntimeError, TypeError, NotImplementedError):
        return torch.device("cpu")
    return device
