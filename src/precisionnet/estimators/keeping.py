"""What a fit leaves on the model: matrices, networks, facts, and what is known of the error."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from precisionnet.errors import PrecisionNetWarning
from precisionnet.estimators.intervals import Unseen
from precisionnet.estimators.members import member_readouts
from precisionnet.joint import EnsembleResult, HistoryRow, Problem, Result, member
from precisionnet.nn import scale_to_unit_norm
from precisionnet.types import IndexArray

if TYPE_CHECKING:
    from precisionnet.estimators.base import BasePNN


def keep_one(model: BasePNN, problem: Problem, result: Result) -> None:
    """Of a run of Algorithm 1: one network."""
    state = result.state
    model.precision_ = state.theta
    model.task_precision_ = state.theta_task.numpy()
    shift = model.precision_ if model.settings.sparse else model.task_precision_
    scaled = scale_to_unit_norm(torch.from_numpy(shift)).numpy() if model.scale_shift else shift
    model.shifts_ = scaled[None].copy()
    _keep_networks(model, [{**state.weights, **state.statistics}])
    _keep_facts(model, problem, result.history, state.epoch, state.note)


def keep_members(model: BasePNN, problem: Problem, result: EnsembleResult) -> None:
    """Of the standard recipe: several networks, each on a matrix of its own, and one precision."""
    theta_task = np.concatenate([state.theta_task for state in result.states])
    model.precision_ = result.theta
    model.task_precision_ = theta_task.mean(axis=0)
    model.shifts_ = theta_task / result.scale
    tensors = [
        member({**state.weights, **state.statistics}, i) for state in result.states for i in range(len(state.theta))
    ]
    _keep_networks(model, tensors)
    _keep_facts(model, problem, result.history, result.states[0].epoch, result.note)


def keep_unseen(model: BasePNN, unseen: Unseen, places: IndexArray) -> None:
    """What is known of the error: the finished networks on rows that training kept from them."""
    output = np.empty((len(unseen.table), model._n_outputs))
    for index in np.unique(unseen.member):
        taken = unseen.member == index
        output[taken] = model._forward(int(index), unseen.table.X[taken]).numpy()
    model._keep_out_of_bag(output, unseen, places)


def _keep_networks(model: BasePNN, states: list[dict[str, Tensor]]) -> None:
    model.networks_ = [model._new_network(0, readout) for readout in member_readouts(model.settings)]
    for network, tensors in zip(model.networks_, states, strict=True):
        network.load_state_dict(tensors)
        # Predictions are float64: a row then gets the same number, to about 1e-15, whatever stands beside it.
        network.double().eval()


def _keep_facts(model: BasePNN, problem: Problem, history: list[HistoryRow], epoch: int, note: str) -> None:
    if note:
        warnings.warn(f"The precision solver {note}.", PrecisionNetWarning, stacklevel=6)
    model.covariance_ = problem.emp_cov
    model.l1_penalty_ = problem.l1_penalty
    model.spectral_bound_ = problem.spectral_bound
    model.history_ = pd.DataFrame(history).astype({"epoch": int, "n_zeros": int})
    model.n_iter_ = len(history)
    model.best_epoch_ = epoch
