"""Algorithm 1, followed by hand, and the properties its steps must keep."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from precisionnet.joint import METHODS, Schedule, joint_step, objective_terms, theta_step, theta_task_step, weights_step
from precisionnet.linalg import count_zeros, extreme_eigenvalues, psd_projection, soft_threshold_off_diagonal
from precisionnet.precision import graphical_lasso_terms, listing_passes
from tests.joint.conftest import make_problem

SCHEDULE = Schedule(learning_rate=0.01, theta_steps=20, task_steps=20, weight_steps=20)


def forward_by_hand(x, shift, w):
    """One layer of order 2 with batch normalisation, ReLU and a linear readout, written out without the package."""
    x = x[:, :, 0]
    taps = torch.stack([x, x @ shift.T, x @ shift.T @ shift.T], dim=-1)
    z = taps @ w["layers.0.filter.weight"][:, 0, :]
    z = (z - z.mean(dim=(0, 1))) / torch.sqrt(((z - z.mean(dim=(0, 1))) ** 2).mean(dim=(0, 1)) + 1e-5)
    z = torch.relu(z * w["layers.0.norm.weight"] + w["layers.0.norm.bias"])
    return z.transpose(1, 2).flatten(1) @ w["readout.perceptron.0.weight"].T[:, 0] + w["readout.perceptron.0.bias"]


def test_one_epoch_by_hand(problem, state):
    """Lines 3-14 of the listing with the paper's 20 + 20 + 20 steps, in plain NumPy and autograd."""
    rate, alpha, gamma = 0.01, problem.task_weight, problem.coupling
    x, y = problem.rows.x, problem.rows.y
    C, eye = problem.emp_cov, np.eye(3)

    theta = state.theta.copy()
    for _ in range(20):
        theta = theta - rate * (
            C - np.linalg.inv(theta + problem.ridge * eye) + gamma * (theta - state.theta_task.numpy())
        )
        off = np.sign(theta) * np.maximum(np.abs(theta) - rate * problem.l1_penalty, 0)
        theta = off * (1 - eye) + theta * eye
        values, vectors = np.linalg.eigh(theta)
        theta = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
        theta = problem.spectral_bound / max(problem.spectral_bound, np.linalg.norm(theta, 2)) * theta

    task = state.theta_task.clone()
    for _ in range(20):
        task = task.detach().requires_grad_()
        loss = alpha * ((forward_by_hand(x, task, state.weights) - y) ** 2).mean()
        loss = loss + gamma / 2 * ((torch.from_numpy(theta) - task) ** 2).sum()
        gradient = torch.autograd.grad(loss, task)[0]
        task = (task - rate * 0.5 * (gradient + gradient.T)).detach()

    weights = {k: v.clone() for k, v in state.weights.items()}
    first = {k: torch.zeros_like(v) for k, v in weights.items()}
    second = {k: torch.zeros_like(v) for k, v in weights.items()}
    for t in range(1, 21):
        leaves = {k: v.detach().requires_grad_() for k, v in weights.items()}
        loss = alpha * ((forward_by_hand(x, task, leaves) - y) ** 2).mean()
        loss = loss + problem.l2_penalty * sum((v**2).sum() for v in leaves.values() if v.ndim > 1)
        for (k, v), g in zip(leaves.items(), torch.autograd.grad(loss, list(leaves.values())), strict=True):
            first[k] = 0.9 * first[k] + 0.1 * g
            second[k] = 0.999 * second[k] + 0.001 * g**2
            m, s = first[k] / (1 - 0.9**t), second[k] / (1 - 0.999**t)
            weights[k] = (v - rate * m / (torch.sqrt(s) + 1e-8)).detach()

    after = joint_step(state, problem, replace(SCHEDULE, step1="paper"))
    np.testing.assert_allclose(after.theta, theta, atol=1e-10)
    np.testing.assert_allclose(after.theta_task.numpy(), task.numpy(), atol=1e-10)
    for name, value in weights.items():
        torch.testing.assert_close(after.weights[name], value, rtol=0, atol=1e-8)


def test_step_one_minimises_its_problem_as_written(problem, state):
    """No move in any direction lowers (1 - alpha) L_GL + gamma / 2 ||theta - theta_task||^2: the factor is there."""
    task = state.theta_task + 0.3 * torch.tensor([[0.0, 1, 0], [1, 0, -1], [0, -1, 0]], dtype=torch.float64)
    after = theta_step(replace(state, theta_task=task), problem, SCHEDULE)

    def objective(theta):
        gl = graphical_lasso_terms(theta, problem.emp_cov, problem.l1_penalty, problem.ridge).total
        return (1 - problem.task_weight) * gl + problem.coupling / 2 * np.linalg.norm(theta - task.numpy()) ** 2

    here, rng = objective(after.theta), np.random.default_rng(0)
    for _ in range(200):
        move = rng.normal(size=(3, 3))
        for size in (1e-3, 1e-2):
            assert objective(after.theta + size * (move + move.T)) >= here - 1e-9
    literal = theta_step(replace(state, theta_task=task), problem, replace(SCHEDULE, step1="paper", theta_steps=3000))
    assert objective(literal.theta) > here + 1e-4  # the listing solves another problem


@pytest.mark.parametrize("seed", range(5))
def test_default_step_one_is_definite_bounded_and_exactly_sparse_at_once(seed):
    problem = make_problem(n=8, rows=20, seed=seed, l1_penalty=0.3)
    state = METHODS["joint"].init(problem)
    noise = 0.05 * np.random.default_rng(seed).normal(size=(8, 8))
    after = theta_step(
        replace(state, theta_task=state.theta_task + torch.from_numpy(noise + noise.T)), problem, SCHEDULE
    )
    smallest, largest = extreme_eigenvalues(after.theta)
    assert np.array_equal(after.theta, after.theta.T)
    assert 0 < smallest <= largest <= problem.spectral_bound
    assert count_zeros(after.theta) > 0


def test_the_listings_projection_fills_the_zeros_in_again():
    matrix = np.array([[1.0, 0.9, 0.05], [0.9, 0.5, 0.6], [0.05, 0.6, 1.0]])
    thresholded = soft_threshold_off_diagonal(matrix, 0.1)
    assert count_zeros(thresholded) == 2
    assert extreme_eigenvalues(thresholded)[0] < 0
    assert count_zeros(psd_projection(thresholded)) == 0

    problem = make_problem(n=8, rows=20, l1_penalty=0.1)
    state = METHODS["joint"].init(problem)
    assert count_zeros(theta_step(state, problem, replace(SCHEDULE, step1="paper")).theta) == 0
    assert count_zeros(theta_step(state, problem, SCHEDULE).theta) > 0


def test_the_listings_fixed_step_explodes_near_a_zero_eigenvalue():
    """An eigenvalue of 1e-3 has a gradient of a thousand: a step of 0.01 throws it to the bound and back."""
    theta = np.diag([1e-3, 1.0, 1.0])
    arguments = {"l1_penalty": 0.0, "coupling": 0.0, "bound": 1e6, "ridge": 0.0, "step": 0.01}
    one = listing_passes(theta, np.eye(3), theta, **arguments, n_passes=1)
    assert one[0, 0] > 9.0  # the solution is 1
    steep = np.diag([1000.0, 1.0, 1.0])
    zero = listing_passes(np.diag([1e-2, 1.0, 1.0]), steep, theta, **arguments, n_passes=5)
    assert not np.isfinite(zero).all()  # thrown below zero, projected to it, and inverted there
    problem = make_problem(coupling=0.0, ridge=0.0)
    started = replace(METHODS["joint"].init(problem), theta=theta)
    exact = theta_step(started, problem, SCHEDULE)
    assert np.isfinite(exact.theta).all()
    assert extreme_eigenvalues(exact.theta)[0] > 0


def test_step_two_keeps_symmetry_and_the_running_statistics(problem, state):
    before = deepcopy(state.statistics)
    after = theta_task_step(state, problem, SCHEDULE)
    assert torch.equal(after.theta_task, after.theta_task.T)
    assert not torch.equal(after.theta_task, state.theta_task)
    for name, value in before.items():
        assert torch.equal(after.statistics[name], value)


@pytest.mark.parametrize("coupling", [0.0, 10.0, 1e6])
def test_step_two_is_stable_for_any_coupling(coupling):
    problem = make_problem(coupling=coupling)
    state = METHODS["joint"].init(problem)
    far = replace(state, theta_task=state.theta_task + torch.eye(3, dtype=torch.float64))
    after = theta_task_step(far, problem, SCHEDULE)
    assert torch.isfinite(after.theta_task).all()
    if coupling == 1e6:
        np.testing.assert_allclose(after.theta_task.numpy(), state.theta, atol=1e-4)


def test_step_two_and_three_lower_their_losses(problem, state):
    def loss(s):
        scratch = {k: v.clone() for k, v in s.statistics.items()}
        task = problem.task_weight * float(problem.training_loss(s.weights, scratch, problem.shift(s.theta_task)))
        return task + problem.coupling / 2 * float(((s.theta_task - torch.from_numpy(s.theta)) ** 2).sum())

    second = theta_task_step(state, problem, SCHEDULE)
    third = weights_step(second, problem, SCHEDULE)
    assert loss(third) < loss(second) < loss(state)


@pytest.mark.parametrize("step", [theta_step, theta_task_step, weights_step])
def test_steps_write_nothing_into_the_state(problem, state, step):
    moved = weights_step(state, problem, SCHEDULE)  # a state with Adam's moments in it
    frozen = deepcopy(moved)
    step(moved, problem, SCHEDULE)
    assert np.array_equal(moved.theta, frozen.theta)
    assert torch.equal(moved.theta_task, frozen.theta_task)
    for group in ("weights", "statistics"):
        for name, value in getattr(frozen, group).items():
            assert torch.equal(getattr(moved, group)[name], value)
    assert moved.adam.steps == frozen.adam.steps
    for moment in ("first", "second"):
        for value, kept in zip(getattr(moved.adam, moment), getattr(frozen.adam, moment), strict=True):
            assert torch.equal(value, kept)


def test_adam_goes_on_where_the_last_epoch_left_it(problem, state):
    twice = weights_step(weights_step(state, problem, SCHEDULE), problem, SCHEDULE)
    once = weights_step(state, problem, replace(SCHEDULE, weight_steps=40))
    for name, value in once.weights.items():
        torch.testing.assert_close(twice.weights[name], value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale_shift", [True, False])
def test_gradcheck_through_theta_task(scale_shift):
    problem = make_problem(scale_shift=scale_shift)
    state = METHODS["joint"].init(problem)
    statistics = {k: v.clone() for k, v in state.statistics.items()}

    def loss(theta_task):
        symmetric = 0.5 * (theta_task + theta_task.T)
        return problem.training_loss(state.weights, statistics, problem.shift(symmetric))

    assert torch.autograd.gradcheck(loss, (state.theta_task.clone().requires_grad_(),))


def test_objective_is_the_sum_of_its_terms(problem, state):
    terms = objective_terms(problem, state, task_loss=0.7)
    parts = [value for name, value in terms.items() if name.endswith("_term")]
    assert len(parts) == 6
    assert terms["objective"] == pytest.approx(sum(parts))
    assert terms["task_term"] == pytest.approx(problem.task_weight * 0.7)
    gl = graphical_lasso_terms(state.theta, problem.emp_cov, problem.l1_penalty, problem.ridge).total
    assert sum(terms[k] for k in ("trace_term", "log_det_term", "l1_term")) == pytest.approx(
        (1 - problem.task_weight) * gl
    )
