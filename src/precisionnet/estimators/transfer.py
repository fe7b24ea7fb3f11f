"""Carry a fitted model to a table of other columns: the same weights on a matrix that is estimated anew.

A network whose readout averages over the nodes has no weight that belongs to a column, so it runs on a matrix of any
size: 68 regions or 62, or the finer parcellation of another cohort. Filters, readout and the moments of batch
normalisation are carried; columns are standardised by the new rows, and the target keeps its units. What the matrix
needs depends on the method:

- ``glasso``, ``sample`` and ``vnn``: rows. The matrix follows from their covariance.
- ``joint`` and ``naive``: labels as well, to learn what the task wants of the matrix. The recipe's own steps on the
  matrices are taken, with weights that stay as they are.

An ensemble of several kinds (``readout="several"``, the default) has flattened members, whose weights belong to
columns; it is refused, because what is left of it without them is another model than the one that was judged.
"""

from __future__ import annotations

import copy
import hashlib
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone

from precisionnet.errors import InputError, PrecisionNetWarning, some
from precisionnet.estimators.explanation import AROUND, task_effects
from precisionnet.estimators.fitted import ALL_ROWS, Fitted, OutOfFold
from precisionnet.estimators.preparation import TrainingData, prepare
from precisionnet.estimators.reference import reference_of
from precisionnet.estimators.targets import ClassTarget, class_numbers
from precisionnet.estimators.training import TrainingRun
from precisionnet.joint.problem import GraphTerms, start_of
from precisionnet.parameters import LEARNED
from precisionnet.threads import limited_threads

if TYPE_CHECKING:
    from precisionnet.estimators.base import BasePNN

Model = TypeVar("Model", bound="BasePNN")

ANY_NODES = ("mean", "average")
"""Readouts without a weight that belongs to a column."""


def transfer(model: Model, X: Any, y: Any = None) -> Model:
    """Return a new fitted model for the columns of ``X``; see ``PNNRegressor.transfer``."""
    fitted = model.fitted
    _refuse_columns_of_their_own(model)
    fitted.refuse_on_support("A transfer to other columns")
    method = fitted.settings.method
    if method in LEARNED and y is None:
        raise InputError(
            f"The matrix of method={method!r} has a part that the task decides: pass y_new, the target of some rows, "
            "or transfer a model with method='glasso', 'sample' or 'vnn', which needs none."
        )
    if method not in LEARNED and y is not None:
        raise InputError(f"y_new has no effect with method={method!r}, whose matrix needs rows alone: leave it out.")
    if y is None:
        return clone(model).keep(_on_estimated_matrix(fitted, prepared_rows(model, X)))
    return clone(model).keep(_on_learned_matrix(model, X, y))


def prepared_rows(model: BasePNN, X: Any) -> TrainingData:
    """Check and scale rows without a target as ``fit`` does; what stands for the target means nothing."""
    settings = replace(model.fitted.settings, validation_fraction=0.0)
    no_target = np.ones(len(X) if hasattr(X, "__len__") else 0)  # a number that has a logarithm
    with limited_threads(1):
        return prepare(model, "regression", settings, X, no_target)


def _refuse_columns_of_their_own(model: BasePNN) -> None:
    if model.network is not None:
        raise InputError(
            "A network of your own is not transferred, because its weights may belong to columns: leave network out."
        )
    readout = model.fitted.settings.readout
    if readout not in ANY_NODES:
        raise InputError(
            f"A model with readout={readout!r} has weights that belong to its columns, which another table has not: "
            "fit it with readout='mean' or 'average' to transfer it."
        )


def _on_estimated_matrix(fitted: Fitted, data: TrainingData) -> Fitted:
    """Return the model on the matrix that its method makes of the rows' covariance."""
    settings, rows = fitted.settings, data.training
    graph = GraphTerms.of(settings, data.emp_cov, float(rows.weight.sum()))
    with limited_threads(1):
        start = start_of(settings.method, graph)
    if start.note:
        warnings.warn(f"The precision solver {start.note}.", PrecisionNetWarning, stacklevel=4)
    unknown = np.full((len(data.row_ids), *fitted.out_of_fold.prediction.shape[1:]), np.nan)
    no_fold, known = np.full(len(data.row_ids), ALL_ROWS, dtype=np.intp), fitted.reference
    moved = replace(
        fitted,
        encoder=data.encoder,
        column_names=data.column_names,
        scaler=data.scaler,
        medians=data.medians,
        n_missing=data.n_missing,
        n_rows=data.n_rows,
        covariance=data.emp_cov,
        precision=start.theta,
        task_precision=start.theta_task,
        member_matrices=np.repeat(start.theta_task[None], len(fitted.networks), axis=0),
        scale=float(np.linalg.norm(start.theta_task, 2)) if settings.scale_shift else 1.0,
        networks=tuple(map(copy.deepcopy, fitted.networks)),
        l1_penalty=graph.l1_penalty,
        spectral_bound=graph.spectral_bound,
        center=data.scaler.transform(np.average(rows.X, axis=0, weights=rows.weight)),
        out_of_fold=OutOfFold(data.row_ids, unknown, no_fold, dict.fromkeys(fitted.out_of_fold.errors, np.nan)),
        calibration=None,
        reference=replace(reference_of(data), target_range=None if known is None else known.target_range),
        folds=tuple(np.array([], dtype=np.intp) for _ in fitted.folds),
        rows_hash=hashlib.sha256(b"transferred").hexdigest(),  # no fit has dealt these rows into folds
    )
    effects = task_effects(moved, rows.X, rows.weight, around=AROUND)
    return replace(moved, task_nodes=effects.nodes, task_graph=effects.edges)


def _on_learned_matrix(model: BasePNN, X: Any, y: Any) -> Fitted:
    """Learn what the task wants of the matrix, with the networks' weights as they are."""
    fitted = model.fitted
    settings, target = fitted.settings, fitted.target
    labels = y
    if isinstance(target, ClassTarget):
        unknown = sorted(set(np.asarray(y)[~np.isin(y, target.classes)].ravel().tolist()), key=str)
        if unknown:
            raise InputError(f"y_new holds classes that the model has not: {some(unknown)}; leave those rows out.")
        labels = class_numbers(np.asarray(y), target.classes)
    with limited_threads(1):
        data = prepare(model, "regression", settings, X, labels, random_state=model.random_state)
    data = replace(data, target=target, target_name=fitted.target_name)
    states = [dict(network.state_dict()) for network in fitted.networks]
    run = TrainingRun(
        data, settings, callbacks=list(model.callbacks or ()), n_jobs=model.n_jobs, carried=states, paused=False
    )
    with run.threads():
        while not run.done:
            run.advance()
        return run.finish()
