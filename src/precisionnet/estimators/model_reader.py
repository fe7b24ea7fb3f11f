"""A model from its JSON document and named tensors (``model_document``).

Nothing that comes back is trusted: every field has its type, its range and its place, every tensor its dtype and its
shape, matrices are finite and symmetric, and the finished model predicts finite numbers. Whatever is not so raises an
exception that says what it is; ``files`` makes one sentence of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from precisionnet.errors import shown
from precisionnet.estimators.base import BasePNN
from precisionnet.estimators.checked_tensors import ROUNDING, CheckedTensors, refuse_asymmetric
from precisionnet.estimators.classifier import PNNClassifier
from precisionnet.estimators.combination import SHARPEST
from precisionnet.estimators.document_fields import (
    classes_in,
    hash_text,
    ids_in,
    keys,
    number,
    require,
    text,
    truth,
    whole,
)
from precisionnet.estimators.fitted import ALL_ROWS, Fitted, OutOfFold
from precisionnet.estimators.intervals import Calibration
from precisionnet.estimators.model_document import NOT_SAVED, SETTINGS, SPARSE_MATRICES, Document
from precisionnet.estimators.networks import NetworkFactory, new_network
from precisionnet.estimators.reference import N_QUANTILES, Reference
from precisionnet.estimators.regressor import PNNRegressor
from precisionnet.estimators.spread import Spread
from precisionnet.estimators.targets import ClassTarget, NumberTarget, Target
from precisionnet.kinds import EVERY, FEW_ROWS, Kind
from precisionnet.linalg import LARGEST
from precisionnet.nn.network import Tensors
from precisionnet.parameters import DENSE_MOST, settings_of
from precisionnet.preprocessing import TableEncoder
from precisionnet.sparse_matrices import SparseStack, extreme_eigenvalues
from precisionnet.types import FloatArray, IndexArray

ESTIMATORS: dict[str, type[BasePNN]] = {"PNNRegressor": PNNRegressor, "PNNClassifier": PNNClassifier}
ERRORS = {"regression": {"oob_mae_"}, "classification": {"oob_log_loss_", "oob_accuracy_"}}
UNKNOWN_IN_HISTORY = {"validation_loss", "validation_metric"}
"""Columns that are NaN where no rows were held out."""
COUNTED_IN_HISTORY = ["epoch", "n_zeros"]
HISTORY = {*UNKNOWN_IN_HISTORY, *COUNTED_IN_HISTORY, "objective", "train_loss", "train_metric"}
"""Columns that every history has."""
LIMITS = {(-math.inf, math.inf), (0.0, math.inf), (-math.inf, 0.0), (0.0, 1.0)}
"""What a target can be at least and at most."""
WIDEST = 50.0
"""Largest logarithm of a spread, either way."""


def from_document(document: Document, tensors: Tensors, network: NetworkFactory | None) -> BasePNN:
    """Return the estimator, ready to predict."""
    kind = ESTIMATORS[text(document["estimator"], "estimator")]
    parameters, own_network = document["parameters"], truth(document["own_network"], "own_network")
    model = kind(**_parameters_in(kind, parameters, own_network), network=network)
    return model.keep(_Reader(document, tensors, kind, own_network).fitted(network))


class _Reader:
    """Takes one field after the other, and knows what is left over."""

    def __init__(self, document: Document, tensors: Tensors, kind: type[BasePNN], own_network: bool) -> None:
        self._document, self._tensors = document, CheckedTensors(tensors)
        self._task = kind._task
        settings = document["settings"]
        require(keys(settings) == set(SETTINGS), "the settings are not those of a model")
        self._settings = settings_of(settings, kind._task, own_network=own_network)
        _refuse_odd_device(self._settings.device)
        self._n = whole(document["n_features"], "n_features", 2, 10**6)
        self._n_folds = self._checked_folds()
        self._kinds = self._member_kinds()

    def fitted(self, factory: NetworkFactory | None) -> Fitted:
        document, settings, n = self._document, self._settings, self._n
        counts = document["n_rows"]
        require(keys(counts) == {"training", "validation"}, "n_rows has other names")
        n_rows = {name: whole(counts[name], name, 0) for name in ("training", "validation")}
        target = self._target()
        medians = self._tensors.floats("medians", (n,)) if settings.missing != "error" else None
        n_missing = self._tensors.integers("n_missing", (n,), 0, sum(n_rows.values()) + len(self._tensors["row_ids"]))
        require(medians is not None or not n_missing.any(), "values were missing in a model that refuses them")
        matrices = self._sparse_matrices() if "member_matrices.values" in self._tensors else self._dense_matrices()
        member_folds, member_weights, fold_weights = self._shares()
        history = self._history()
        fitted = Fitted(
            settings=settings,
            column_names=self._column_names(),
            target_name=None if document["target_name"] is None else text(document["target_name"], "target_name"),
            target=target,
            scaler=self._tensors.scaler("scaler", (n,)),
            medians=medians,
            n_missing=n_missing,
            n_rows=n_rows,
            weight=number(document["weight"], "weight", above=0.0),
            **matrices,
            scale=number(document["scale"], "scale", above=0.0),
            networks=self._networks(target.n_outputs, factory),
            member_kinds=tuple(kind.name for kind in self._kinds),
            member_folds=member_folds,
            member_weights=member_weights,
            fold_weights=fold_weights,
            l1_penalty=number(document["l1_penalty"], "l1_penalty", least=0.0),
            spectral_bound=number(document["spectral_bound"], "spectral_bound", above=0.0),
            history=history,
            best_epoch=whole(document["best_epoch"], "best_epoch", 1, len(history)),
            center=self._tensors.floats("center", (n,)),
            task_nodes=self._tensors.floats("task_nodes", (n,)),
            out_of_fold=self._out_of_fold(target),
            calibration=self._calibration(),
            reference=self._reference(),
            folds=self._folds(n_rows["training"]),
            rows_hash=hash_text(document["rows_hash"]),
            encoder=self._encoder(),
        )
        require(not self._tensors, f"there are tensors that no model has: {shown(next(iter(self._tensors), ''))}")
        _refuse_unlike_means(fitted)
        _refuse_wild_predictions(fitted)
        return fitted

    def _dense_matrices(self) -> dict[str, Any]:
        n = self._n
        member_matrices = self._tensors.floats("member_matrices", (len(self._kinds), n, n))
        for matrix in member_matrices:
            self._task_matrix(matrix, "a network's matrix")
        return {
            "covariance": self._tensors.semidefinite("covariance", n),
            "precision": self._tensors.semidefinite("precision", n),
            "task_precision": self._task_matrix(self._tensors.floats("task_precision", (n, n)), "task_precision"),
            "member_matrices": member_matrices,
            "task_graph": self._tensors.hollow("task_graph", n),
        }

    def _sparse_matrices(self) -> dict[str, Any]:
        """Read matrices on a sparse support, which are symmetric by the way they are stored."""
        require(self._settings.on_sparse_support(DENSE_MOST + 1), "the settings have no sparse support")
        support = self._tensors.support("member_matrices", self._n)
        values = self._tensors.floats("member_matrices.values", (len(self._kinds), support.n_slots))
        members = SparseStack(support, values)
        found: dict[str, Any] = {"member_matrices": members, "task_precision": members.mean(axis=0)}
        for name in SPARSE_MATRICES:
            support = self._tensors.support(name, self._n)
            found[name] = support.matrix(self._tensors.floats(f"{name}.values", (support.n_slots,)))
        smallest, largest = extreme_eigenvalues(found["precision"])
        fine = smallest >= -ROUNDING * largest and bool((found["precision"].diagonal() > 0).all())
        require(fine and largest > 0, "precision is not positive semidefinite")
        require(bool((found["covariance"].diagonal() >= 0).all()), "a variance is negative")
        require(not found["task_graph"].diagonal().any(), "task_graph has a diagonal")
        return found

    def _checked_folds(self) -> int:
        n_folds, settings = whole(self._document["n_folds"], "n_folds", 0), self._settings
        allowed = {0} if settings.recipe == "paper" else {settings.n_folds(0), settings.n_folds(FEW_ROWS)}
        require(n_folds in allowed, f"there are {n_folds} folds")
        return n_folds

    def _member_kinds(self) -> list[Kind]:
        """Return the networks' kinds: those of the settings, or some of several kinds."""
        names, settings = self._document["member_kinds"], self._settings
        require(isinstance(names, list), "member_kinds is no list")
        expected = [kind for kind, _ in settings.members(self._n_folds)]
        known = {kind.name: kind for kind in (*EVERY, *expected)}
        require(all(text(name, "a kind") in known for name in names), "there is a kind of network that no model has")
        if settings.readout == "several":
            fine = 1 <= len(names) <= len(EVERY) * (self._n_folds + 1)
        else:
            fine = names == [kind.name for kind in expected]
        require(fine, f"there are {len(names)} networks")
        return [known[name] for name in names]

    def _shares(self) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Return which fold each network left out, how much it counts, and how much beside those of its fold."""
        n = len(self._kinds)
        folds = self._tensors.integers("member_folds", (n,), ALL_ROWS, max(self._n_folds - 1, 0))
        weights, in_fold = self._tensors.floats("member_weights", (n,)), self._tensors.floats("fold_weights", (n,))
        sharpest = SHARPEST if self._task == "classification" else 1.0
        fine = (weights >= 0).all() and 1.0 - ROUNDING <= weights.sum() <= sharpest + ROUNDING
        require(bool(fine), "the networks' weights do not sum to what they may")
        used = folds[in_fold > 0]
        fine = (in_fold >= 0).all() and set(used.tolist()) == set(range(max(self._n_folds, 1)))
        require(bool(fine), "a fold has no network")
        return folds, weights, in_fold

    def _task_matrix(self, matrix: FloatArray, name: str) -> FloatArray:
        """Refuse a matrix that is not symmetric, unless plain gradients made it."""
        return matrix if self._settings.step2 == "plain" else refuse_asymmetric(matrix, name)

    def _target(self) -> Target:
        classes = self._document["classes"]
        require((classes is not None) == (self._task == "classification"), "classes and estimator do not agree")
        if classes is None:
            logarithm = truth(self._document["logarithm"], "logarithm")
            chosen = self._settings.target_scale
            require(chosen == "auto" or logarithm == (chosen == "log"), "logarithm and target_scale do not agree")
            return NumberTarget(self._tensors.scaler("target", ()), self._settings.loss, logarithm)
        return ClassTarget(classes_in(classes))

    def _column_names(self) -> tuple[str, ...] | None:
        names = self._document["column_names"]
        if names is None:
            return None
        require(isinstance(names, list) and len(names) == self._n, f"the names are not for {self._n} columns")
        require(len({text(name, "a column's name") for name in names}) == self._n, "a column's name stands twice")
        return tuple(names)

    def _encoder(self) -> TableEncoder | None:
        """Read what makes nodes of columns; None where the columns are the nodes."""
        said = self._document["encoder"]
        if said is None:
            return None
        encoder = TableEncoder.from_document(said)
        names = encoder.get_feature_names_out().tolist()
        require(names == self._document["column_names"], "the encoder makes other nodes than the model has")
        return encoder

    def _history(self) -> pd.DataFrame:
        names = self._document["history_columns"]
        require(isinstance(names, list) and len(set(names)) == len(names), "a column of the history stands twice")
        require({text(name, "a column of the history") for name in names} >= HISTORY, "the history lacks a column")
        table = pd.DataFrame(self._tensors.take("history", torch.float64, (None, len(names))), columns=names)
        require(1 <= len(table) <= self._settings.n_epochs, f"the history has {len(table)} epochs")
        known = table.drop(columns=list(UNKNOWN_IN_HISTORY)).to_numpy()
        require(bool(np.isfinite(known).all()) and not np.isinf(table.to_numpy()).any(), "the history is not finite")
        zeros = table["n_zeros"].to_numpy()
        counted = np.array_equal(table["epoch"], np.arange(1, len(table) + 1))
        counted = counted and bool(((zeros >= 0) & (zeros == np.floor(zeros))).all())
        require(counted, "the history is not counted by epochs")
        return table.astype(dict.fromkeys(COUNTED_IN_HISTORY, np.int64))

    def _out_of_fold(self, target: Target) -> OutOfFold:
        row_ids = ids_in(self._document["row_ids"], self._tensors.pop("row_ids").numpy())
        numeric = isinstance(target, NumberTarget)
        shape = (len(row_ids),) if numeric else (len(row_ids), target.n_outputs)
        prediction = self._tensors.take("out_of_fold", torch.float64, shape)
        require(not np.isinf(prediction).any(), "out_of_fold is not finite")
        likely = numeric or not ((prediction < 0) | (prediction > 1)).any()
        require(likely, "out_of_fold holds probabilities outside 0 to 1")
        fold = self._tensors.integers("out_of_fold.fold", (len(row_ids),), ALL_ROWS, max(self._n_folds - 1, ALL_ROWS))
        known = np.isfinite(prediction if numeric else prediction.sum(axis=1))
        require(np.array_equal(known, fold != ALL_ROWS), "out_of_fold has predictions without a fold")
        errors = self._document["errors"]
        require(keys(errors) == ERRORS[self._task], "the out-of-bag errors have other names")
        checked = {
            name: np.nan if value is None else number(value, name, least=0.0, most=1.0 if "accuracy" in name else None)
            for name, value in errors.items()
        }
        return OutOfFold(row_ids, prediction, fold, checked)

    def _calibration(self) -> Calibration | None:
        if self._task == "classification" or "calibration.fold" not in self._tensors:
            return None
        fold = self._tensors.integers("calibration.fold", (None,), 0, max(self._n_folds - 1, 0))
        residual = self._tensors.floats("calibration.residual", fold.shape)
        weight = self._tensors.floats("calibration.weight", fold.shape)
        fine = len(fold) > 0 and (residual >= 0).all() and (weight > 0).all()
        require(bool(fine), "the errors that intervals are made of are out of range")
        least, most = self._tensors.take("calibration.limits", torch.float64, (2,))
        require((least, most) in LIMITS, "the target's limits are none that a target has")
        model = self._spread()
        spread = np.ones(len(fold)) if model is None else self._tensors.floats("calibration.spread", fold.shape)
        require(bool((np.abs(np.log(np.maximum(spread, 1e-300))) <= WIDEST).all()), "the spread is out of range")
        return Calibration(fold, residual, weight, spread, model, (float(least), float(most)))

    def _reference(self) -> Reference | None:
        if "reference.distances" not in self._tensors:
            return None
        distances = self._tensors.floats("reference.distances", (N_QUANTILES,))
        fine = (distances >= 0).all() and (np.diff(distances) >= 0).all()
        require(bool(fine), "the distances of training rows are not in order")
        if self._task == "classification":
            return Reference(distances, None)
        least, most = map(float, self._tensors.floats("reference.target_range", (2,)))
        require(least <= most, "the range of the target is empty")
        return Reference(distances, (least, most))

    def _spread(self) -> Spread | None:
        if "spread.slopes" not in self._tensors:
            return None
        scaler = self._tensors.scaler("spread.scaler", (1 + self._n,))
        slopes = self._tensors.floats("spread.slopes", (max(self._n_folds, 1), 3 + 2 * self._n))
        bounds = self._tensors.floats("spread.bounds", (max(self._n_folds, 1), 2))
        fine = (np.abs(slopes) <= LARGEST).all() and (np.abs(bounds) <= WIDEST).all()
        require(bool(fine and (bounds[:, 0] <= bounds[:, 1]).all()), "the spread is out of range")
        return Spread(scaler, slopes, bounds)

    def _folds(self, n_training: int) -> tuple[IndexArray, ...]:
        folds = tuple(self._tensors.integers(f"folds.{i}", (None,), 0, n_training - 1) for i in range(self._n_folds))
        rows = np.concatenate([*folds, np.empty(0, dtype=np.int64)])
        rising = all((np.diff(fold) > 0).all() for fold in folds)
        require(rising and len(np.unique(rows)) == len(rows), "a row is left out twice")
        return folds

    def _networks(self, n_outputs: int, factory: NetworkFactory | None) -> tuple[nn.Module, ...]:
        networks = []
        for i, kind in enumerate(self._kinds):
            prefix = f"network.{i}."
            state = {
                name.removeprefix(prefix): self._tensors.pop(name)
                for name in [name for name in self._tensors if name.startswith(prefix)]
            }
            for name, value in state.items():
                fine = bool(torch.isfinite(value).all()) and not bool((value.abs() > LARGEST).any())
                require(fine, f"{prefix}{name} is not finite")
                moment = name.endswith(("running_var", "num_batches_tracked"))
                require(factory is not None or not moment or bool((value >= 0).all()), f"{prefix}{name} is negative")
            networks.append(self._network(kind, state, n_outputs, factory))
        return tuple(networks)

    def _network(self, kind: Kind, state: Tensors, n_outputs: int, factory: NetworkFactory | None) -> nn.Module:
        settings = self._settings
        if factory is not None:
            try:
                network = new_network(settings, self._n, n_outputs, kind, factory).double()
                network.load_state_dict(state)
            except Exception as error:
                detail = " ".join(str(error).split())[:200]
                raise OtherNetworkError(f"{type(error).__name__}: {detail}") from error
            return network.eval()
        listed = [len(value) for value in (settings.n_filters, settings.order) if isinstance(value, list)]
        n_layers = max(listed, default=settings.n_layers)
        require(n_layers <= len(state), f"there are {n_layers} layers and {len(state)} tensors")
        with torch.device("meta"):  # takes no memory, whatever the settings say: the tensors are those of the file
            anchors = state.get("readout.noise", torch.empty(0))
            network = new_network(settings, self._n, n_outputs, kind, n_anchors=anchors.numel()).double()
        for name, value in network.state_dict().items():
            fits = name in state and state[name].shape == value.shape and state[name].dtype == value.dtype
            require(fits, f"a network's {name} does not fit the settings")
        if kind.kernel:
            fine = bool((state["readout.noise"] > 0).all()) and bool(state["readout.factor"] > 0)
            require(fine, "a kernel machine's noise is not above zero")
            require(anchors.numel() > 0, "a kernel machine has no rows")
            require(float(state["readout.gaussian"]) in (0.0, 1.0), "a kernel machine's kernel is not known")
            require(bool((state["readout.scale"] >= 0).all()), "a column's weight in a distance is negative")
        knots = state.get("link.knots", torch.arange(2))
        require(bool((knots.diff() > 0).all()), "a network's link does not rise")
        network.load_state_dict(state, assign=True)
        return network.eval()


class OtherNetworkError(Exception):
    """The network that was given is not the one that the model was fitted with."""


def _parameters_in(kind: type[BasePNN], parameters: Any, own_network: bool) -> dict[str, Any]:
    expected = set(kind().get_params(deep=False)) - NOT_SAVED
    require(keys(parameters) == expected, "the parameters are not those of the estimator")
    settings_of(parameters, kind._task, own_network=own_network)
    _refuse_odd_device(parameters["device"])
    truth(parameters["warm_start"], "warm_start")
    for name, least, most in (("n_jobs", -(2**31), 2**31), ("random_state", 0, 2**32 - 1)):
        if parameters[name] is not None:
            whole(parameters[name], name, least, most)
    if not isinstance(parameters["verbose"], bool):
        whole(parameters["verbose"], "verbose", 0)
    return dict(parameters)


def _refuse_odd_device(name: str) -> None:
    require(torch.device("cpu" if name == "auto" else name).type != "meta", "the device holds no numbers")


def _refuse_unlike_means(fitted: Fitted) -> None:
    """Refuse networks that run on other matrices than those that the model shows."""
    on_theta = fitted.settings.sparse and fitted.settings.recipe == "paper"
    shown_matrix = fitted.precision if on_theta else fitted.task_precision
    if fitted.on_support:  # the mean is not stored
        return
    off = np.abs(fitted.member_matrices.mean(axis=0) - shown_matrix).max()
    require(off <= ROUNDING * np.abs(fitted.member_matrices).max(), "the networks run on other matrices")


def _refuse_wild_predictions(fitted: Fitted) -> None:
    """Refuse a model that has no finite prediction near the rows that it was fitted on."""
    mean, scale = fitted.scaler.mean, fitted.scaler.scale
    with np.errstate(all="ignore"):
        output = fitted.mean_output(np.stack([mean, mean + scale, mean - scale]))
        require(output.shape == (3, fitted.target.n_outputs), f"the networks' output has shape {output.shape}")
        require(bool(np.isfinite(fitted.target.meaning(output)).all()), "its predictions are not finite")
