"""A three-node problem small enough to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from precisionnet.joint import METHODS, JointState, Problem, Rows
from precisionnet.nn import PrecisionNetwork
from precisionnet.precision import sample_covariance, spectral_bound


def mean_squared_error(output, y, weight):
    return (weight * (output[..., 0] - y).square()).sum(dim=-1) / weight.sum(dim=-1)


def make_problem(n: int = 3, rows: int = 12, seed: int = 0, **changes) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, n)) @ (np.eye(n) + 0.4 * rng.normal(size=(n, n)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.tanh(X[:, 0]) - X[:, 1] + 0.1 * rng.normal(size=rows)
    emp_cov = sample_covariance(X)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PrecisionNetwork(n, n_filters=2, order=2, readout="mlp", readout_width=0).double()
    defaults = {
        "network": network,
        "rows": Rows(torch.from_numpy(X).unsqueeze(-1), torch.from_numpy(y), torch.ones(rows, dtype=torch.float64)),
        "task_loss": mean_squared_error,
        "emp_cov": emp_cov,
        "l1_penalty": 0.15,
        "task_weight": 0.3,
        "coupling": 2.0,
        "ridge": 1e-3,
        "spectral_bound": spectral_bound(emp_cov),
        "l2_penalty": 1e-3,
        "scale_shift": False,
    }
    return Problem(**(defaults | changes))


@pytest.fixture
def problem() -> Problem:
    return make_problem()


@pytest.fixture
def state(problem) -> JointState:
    return METHODS["joint"].init(problem)
