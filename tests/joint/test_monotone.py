"""The monotone variant: no step raises objective (7), and where the theorem's conditions are met it ends where they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from precisionnet import PNNClassifier, PNNRegressor
from precisionnet.datasets import make_gaussian_regression
from precisionnet.errors import InputError
from precisionnet.joint import algorithm1
from precisionnet.joint.algorithm1 import Schedule, initial_state
from precisionnet.joint.monotone import STEPS, Monotone, gradient_steps, objective_of, stationarity
from precisionnet.joint.problem import start_of
from precisionnet.joint.trainer import Trainer
from precisionnet.paper.convergence import SMOOTH, SmoothNetwork
from tests.joint.conftest import make_problem, to_the_end

SCHEDULE = Schedule(task_steps=5, weight_steps=8, max_epochs=12)
READING = {"recipe": "paper", "readout": "mean", "standardize_target": False, "scale_shift": False}


def policy(problem, schedule=SCHEDULE):
    return Monotone(problem, schedule, start_of("joint", problem.graph), None)


def smooth_problem(**changes):
    torch.manual_seed(0)
    return make_problem(n=4, rows=30, network=SmoothNetwork(2, 2, 1).double(), l2_penalty=0.02, **changes)


def drawn(n_samples=60, n_features=6):
    data = make_gaussian_regression(n_samples, n_features, random_state=0)
    return data.X, data.y


@pytest.mark.parametrize("learning_rate", [0.01, 1.0])
def test_no_step_raises_the_objective(learning_rate):
    """Step by step, at a step length that suits Adam and at one at which Adam alone is thrown about."""
    problem, schedule = make_problem(n=4), replace(SCHEDULE, learning_rate=learning_rate)
    state = policy(problem, schedule).state
    adam = initial_state(problem, start_of("joint", problem.graph))
    raised = False
    for _ in range(6):
        for step in STEPS:
            before, state = state, step(state, problem, schedule)
            assert state.value <= before.value
            assert state.value == pytest.approx(objective_of(problem, state)["objective"], rel=1e-12)
        then = algorithm1.joint_step(adam, problem, schedule)
        raised |= objective_of(problem, then)["objective"] > objective_of(problem, adam)["objective"]
        adam = then
    assert raised == (learning_rate == 1.0)


@pytest.mark.parametrize(
    "changes", [{}, {"dtype": "float64"}, {"batch_norm": False}, {"scale_shift": True}, {"predict_on": "sparse"}]
)
def test_history_has_an_objective_that_never_rises_and_a_residual(changes):
    X, y = drawn()
    model = PNNRegressor(**READING | changes, monotone=True, max_epochs=4, patience=4, random_state=0).fit(X, y)
    history = model.history_
    assert list(history["epoch"]) == list(range(1, 5))
    assert (np.diff(history["objective"]) <= 0).all()
    assert history["objective"].iloc[-1] < history["objective"].iloc[0]
    assert np.isfinite(history["stationarity"]).all()
    assert (history["stationarity"] > 0).all()


def test_a_classifier_descends_as_well():
    X, y = drawn()
    model = PNNClassifier(recipe="paper", monotone=True, max_epochs=6, random_state=0).fit(X, y > y.median())
    assert (np.diff(model.history_["objective"]) <= 0).all()


def test_the_residual_goes_to_zero_where_the_conditions_of_the_theorem_are_met():
    """Full batches, tanh, no batch normalisation, all weights penalised, float64."""
    problem = smooth_problem(coupling=0.6)
    schedule = replace(SCHEDULE, max_epochs=60, task_steps=10, weight_steps=10)
    start = policy(problem, schedule).state
    rows = to_the_end(Trainer(policy(problem, schedule))).history
    residual = np.array([row["stationarity"] for row in rows])
    first = stationarity(problem, start)
    assert residual[-1] < 1e-3 * first
    assert (np.diff([row["objective"] for row in rows]) <= 0).all()


def test_the_residual_is_the_norm_of_the_gradient_found_numerically():
    """In weights and theta_task by differences; in theta zero exactly at the minimiser of Step 1."""
    problem = smooth_problem()
    state = policy(problem).state
    noise = torch.tensor(np.random.default_rng(0).normal(size=(4, 4)))
    state = replace(state, theta_task=state.theta_task + 0.05 * (noise + noise.T))
    state = algorithm1.theta_step(state, problem, SCHEDULE)
    value = lambda **changes: objective_of(problem, replace(state, **changes))["objective"]  # noqa: E731
    step, square = 1e-6, 0.0
    for name, weight in state.weights.items():
        for place in np.ndindex(*weight.shape):
            move = torch.zeros_like(weight)
            move[place] = step
            ends = [value(weights={**state.weights, name: weight + sign * move}) for sign in (1, -1)]
            square += ((ends[0] - ends[1]) / (2 * step)) ** 2
    for i, j in np.ndindex(4, 4):
        move = torch.zeros(4, 4, dtype=torch.float64)
        move[i, j] += step / 2
        move[j, i] += step / 2
        ends = [value(theta_task=state.theta_task + sign * move) for sign in (1, -1)]
        square += ((ends[0] - ends[1]) / (2 * step)) ** 2
    assert stationarity(problem, state) == pytest.approx(np.sqrt(square), rel=1e-4)
    moved = replace(state, theta=state.theta + 0.1 * np.eye(4))
    assert stationarity(problem, moved) > stationarity(problem, state) + 0.1
    assert np.isnan(stationarity(problem, replace(state, theta=np.full((4, 4), np.nan))))


def test_gradient_steps_stop_where_nothing_is_to_gain():
    def field(x):
        leaf = x.detach().requires_grad_()
        loss = 0.5 * (torch.tensor([1.0, 100.0], dtype=torch.float64) * leaf.square()).sum()
        return float(loss.detach()), loss, leaf

    x = torch.tensor([1.0, 1.0], dtype=torch.float64)
    end, value = gradient_steps(field, x, 50.5, 60, first=1.0)  # fifty times too long
    assert value == pytest.approx(0.0, abs=1e-9)
    assert float(end.abs().max()) < 1e-4
    same, value = gradient_steps(field, torch.zeros_like(x), 0.0, 5, first=1.0)
    assert value == 0.0
    assert torch.equal(same, torch.zeros_like(x))


def test_what_predicts_is_what_the_objective_speaks_of():
    """After an epoch the running moments of batch normalisation are those of the training rows."""
    X, y = drawn()
    model = PNNRegressor(**READING, monotone=True, max_epochs=3, random_state=0, dtype="float64").fit(X, y)
    last = model.history_.iloc[-1]
    assert last["task_term"] == pytest.approx(0.5 * last["train_loss"], rel=0.02)
    plain = PNNRegressor(**READING, max_epochs=3, random_state=0, dtype="float64").fit(X, y)
    assert "stationarity" not in plain.history_


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"monotone": True}, "monotone=True has no effect with recipe='standard'"),
        ({"monotone": True, "recipe": "paper", "method": "glasso"}, "monotone=True has no effect with method='glasso'"),
        (
            {"monotone": True, "recipe": "paper", "step1": "paper"},
            "cannot be had with step1='paper', the printed listing",
        ),
        ({"monotone": True, "recipe": "paper", "step2": "plain"}, "step2='plain' has no effect with monotone=True"),
        ({"monotone": 1, "recipe": "paper"}, "monotone must be true or false, got 1"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_sentence(parameters, sentence):
    X, y = drawn()
    with pytest.raises(InputError, match=sentence) as raised:
        PNNRegressor(**parameters).fit(X, y)
    assert str(raised.value).count(". ") == 0


class Dropping(SmoothNetwork):
    def forward(self, x, shift):
        return super().forward(nn.functional.dropout(x, 0.5, self.training), shift)


class MeanOfNeighbours(nn.Module):
    """A network that has nothing to train."""

    def forward(self, x, shift):
        return (x.squeeze(-1) @ shift).mean(dim=-1, keepdim=True)


def test_a_network_without_weights_has_its_matrices_trained():
    X, y = drawn()
    parts = {"network": lambda *_: MeanOfNeighbours(), "max_epochs": 3, "random_state": 0}
    model = PNNRegressor(recipe="paper", monotone=True, **parts)
    history = model.fit(X, y).history_
    assert (np.diff(history["objective"]) <= 0).all()
    assert np.isfinite(history["stationarity"]).all()


def test_a_network_with_random_layers_is_refused():
    X, y = drawn()
    with pytest.raises(InputError, match="needs a network whose loss follows from its weights"):
        PNNRegressor(recipe="paper", monotone=True, network=lambda nodes, outputs: Dropping(2, 2, outputs)).fit(X, y)
    PNNRegressor(**SMOOTH, monotone=True, max_epochs=2, random_state=0).fit(X, y)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("cohort", ["abide", "ants"])
def test_no_rise_on_the_cohorts(data_folder, cohort):
    from precisionnet.paper import load_cohort

    data = load_cohort(cohort, data_folder)
    model = PNNRegressor(**READING, monotone=True, max_epochs=20, patience=20, random_state=0).fit(data.X, data.y)
    assert (np.diff(model.history_["objective"]) <= 0).all()
