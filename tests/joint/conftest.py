"""A three-node problem small enough to follow by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from precisionnet.joint.algorithm1 import Algorithm1, JointState, Schedule, initial_state
from precisionnet.joint.problem import GraphTerms, JointProblem, TensorRows, start_of
from precisionnet.joint.trainer import Trainer
from precisionnet.nn import PrecisionNetwork
from precisionnet.precision import sample_covariance, spectral_bound


def mean_squared_error(output, y, weight):
    return (weight * (output[..., 0] - y).square()).sum(dim=-1) / weight.sum(dim=-1)


def mae(output, y, weight):
    return float((weight * (output[:, 0] - y).abs()).sum() / weight.sum())


def new_network(seed: int, n: int = 3, **shape: Any) -> PrecisionNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PrecisionNetwork(n, **{"n_filters": 2, "order": 2, "readout_width": 0} | shape).double()


def make_problem(n: int = 3, rows: int = 12, seed: int = 0, **changes: Any) -> JointProblem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, n)) @ (np.eye(n) + 0.4 * rng.normal(size=(n, n)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.tanh(X[:, 0]) - X[:, 1] + 0.1 * rng.normal(size=rows)
    emp_cov = sample_covariance(X)
    terms = {
        "l1_penalty": 0.15,
        "task_weight": 0.3,
        "coupling": 2.0,
        "ridge": 1e-3,
        "spectral_bound": spectral_bound(emp_cov),
    }
    graph = GraphTerms(emp_cov, **terms | {name: changes.pop(name) for name in terms if name in changes})
    problem = JointProblem(
        network=new_network(seed, n),
        rows=TensorRows(torch.from_numpy(X).unsqueeze(-1), torch.from_numpy(y), torch.ones(rows, dtype=torch.float64)),
        task_loss=mean_squared_error,
        metric=mae,
        graph=graph,
        l2_penalty=1e-3,
        scale_shift=False,
    )
    return replace(problem, **changes)


def start(problem: JointProblem, method: str = "joint") -> JointState:
    return initial_state(problem, start_of(method, problem.graph))


def trained_by_algorithm1(
    problem: JointProblem, method: str, schedule: Schedule, validation: TensorRows | None = None, callbacks=()
) -> Trainer:
    policy = Algorithm1(problem, method, schedule, start_of(method, problem.graph), validation)
    return to_the_end(Trainer(policy, callbacks))


def to_the_end(trainer: Trainer) -> Trainer:
    while not trainer.done:
        trainer.advance()
    return trainer


@pytest.fixture
def problem() -> JointProblem:
    return make_problem()


@pytest.fixture
def state(problem) -> JointState:
    return start(problem)
