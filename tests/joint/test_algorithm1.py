"""Algorithm 1, followed by hand, and the properties its steps must keep."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from precisionnet.joint.algorithm1 import (
    Schedule,
    initial_state,
    joint_step,
    naive_step,
    network_state,
    theta_step,
    theta_task_step,
    training_loss,
    weights_step,
)
from precisionnet.joint.problem import start_of
from precisionnet.joint.trainer import Adam
from precisionnet.linalg import count_zeros, extreme_eigenvalues, psd_projection, soft_threshold_off_diagonal
from precisionnet.precision import graphical_lasso_terms
from precisionnet.precision.algorithm1_step1 import listing_passes
from tests.joint.conftest import make_problem, new_network, start

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
    graph = problem.graph
    rate, alpha, gamma = 0.01, graph.task_weight, graph.coupling
    x, y = problem.rows.x, problem.rows.y
    C, eye = problem.graph.emp_cov, np.eye(3)

    theta = state.theta.copy()
    for _ in range(20):
        theta = theta - rate * (
            C - np.linalg.inv(theta + problem.graph.ridge * eye) + gamma * (theta - state.theta_task.numpy())
        )
        off = np.sign(theta) * np.maximum(np.abs(theta) - rate * problem.graph.l1_penalty, 0)
        theta = off * (1 - eye) + theta * eye
        values, vectors = np.linalg.eigh(theta)
        theta = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
        theta = problem.graph.spectral_bound / max(problem.graph.spectral_bound, np.linalg.norm(theta, 2)) * theta

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
        gl = graphical_lasso_terms(theta, problem.graph.emp_cov, problem.graph.l1_penalty, problem.graph.ridge).total
        return (1 - problem.graph.task_weight) * gl + problem.graph.coupling / 2 * np.linalg.norm(
            theta - task.numpy()
        ) ** 2

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
    state = start(problem)
    noise = 0.05 * np.random.default_rng(seed).normal(size=(8, 8))
    after = theta_step(
        replace(state, theta_task=state.theta_task + torch.from_numpy(noise + noise.T)), problem, SCHEDULE
    )
    smallest, largest = extreme_eigenvalues(after.theta)
    assert np.array_equal(after.theta, after.theta.T)
    assert 0 < smallest <= largest <= problem.graph.spectral_bound
    assert count_zeros(after.theta) > 0


def test_the_listings_projection_fills_the_zeros_in_again():
    matrix = np.array([[1.0, 0.9, 0.05], [0.9, 0.5, 0.6], [0.05, 0.6, 1.0]])
    thresholded = soft_threshold_off_diagonal(matrix, 0.1)
    assert count_zeros(thresholded) == 2
    assert extreme_eigenvalues(thresholded)[0] < 0
    assert count_zeros(psd_projection(thresholded)) == 0

    problem = make_problem(n=8, rows=20, l1_penalty=0.1)
    state = start(problem)
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
    started = replace(start(problem), theta=theta)
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
    state = start(problem)
    far = replace(state, theta_task=state.theta_task + torch.eye(3, dtype=torch.float64))
    after = theta_task_step(far, problem, SCHEDULE)
    assert torch.isfinite(after.theta_task).all()
    if coupling == 1e6:
        np.testing.assert_allclose(after.theta_task.numpy(), state.theta, atol=1e-4)


def test_step_two_and_three_lower_their_losses(problem, state):
    def loss(s):
        scratch = {k: v.clone() for k, v in s.statistics.items()}
        task = problem.graph.task_weight * float(
            training_loss(problem, s.weights, scratch, problem.shift(s.theta_task))
        )
        return task + problem.graph.coupling / 2 * float(((s.theta_task - torch.from_numpy(s.theta)) ** 2).sum())

    second = theta_task_step(state, problem, SCHEDULE)
    third = weights_step(second, problem, SCHEDULE)
    assert loss(third) < loss(second) < loss(state)


@pytest.mark.parametrize("step", [theta_step, theta_task_step, weights_step, naive_step])
def test_steps_write_nothing_into_the_state(problem, state, step):
    moved = weights_step(state, problem, SCHEDULE)  # a state with Adam's moments in it
    frozen = deepcopy(moved)
    step(moved, problem, SCHEDULE)
    assert np.array_equal(moved.theta, frozen.theta)
    assert torch.equal(moved.theta_task, frozen.theta_task)
    for group in ("weights", "statistics"):
        for name, value in getattr(frozen, group).items():
            assert torch.equal(getattr(moved, group)[name], value)
    for moment in ("first", "second", "steps"):
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
    state = start(problem)
    statistics = {k: v.clone() for k, v in state.statistics.items()}

    def loss(theta_task):
        symmetric = 0.5 * (theta_task + theta_task.T)
        return training_loss(problem, state.weights, statistics, problem.shift(symmetric))

    assert torch.autograd.gradcheck(loss, (state.theta_task.clone().requires_grad_(),))


def test_objective_is_the_sum_of_its_terms(problem, state):
    terms = problem.objective(state.theta, state.theta_task.numpy(), l2_norm_squared=3.0, task_loss=0.7)
    parts = [value for name, value in terms.items() if name.endswith("_term")]
    assert len(parts) == 6
    assert terms["objective"] == pytest.approx(sum(parts))
    assert terms["task_term"] == pytest.approx(problem.graph.task_weight * 0.7)
    assert terms["l2_term"] == pytest.approx(3.0 * problem.l2_penalty)
    gl = graphical_lasso_terms(state.theta, problem.graph.emp_cov, problem.graph.l1_penalty, problem.graph.ridge).total
    assert sum(terms[k] for k in ("trace_term", "log_det_term", "l1_term")) == pytest.approx(
        (1 - problem.graph.task_weight) * gl
    )


def test_adam_is_that_of_torch_optim():
    generator = torch.Generator().manual_seed(0)
    first = [torch.randn(3, 4, generator=generator, dtype=torch.float64), torch.randn(5, generator=generator)]
    ours, theirs = ([value.clone().requires_grad_() for value in first] for _ in range(2))
    adam, witness = Adam.of(ours), torch.optim.Adam(theirs, lr=0.01)
    for step in range(10):
        for leaves in (ours, theirs):
            sum((leaf.sin() * leaf).sum() * (step + 1) for leaf in leaves).backward()
        adam.step(0.01)
        witness.step()
        witness.zero_grad()
        if step == 4:  # carried on in a copy
            adam = Adam.of(ours, adam)
    assert all(leaf.grad is None for leaf in ours)
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-5, atol=1e-6)


class Blind(torch.nn.Module):
    """Does not look at its matrix; one tensor is frozen, one has two names, one is not kept in files."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.second = self.first
        self.last = torch.nn.Linear(3, 1)
        self.last.bias.requires_grad_(False)
        self.register_buffer("ones", torch.ones(3), persistent=False)

    def forward(self, x, shift):
        return self.last(self.second(self.first(x[..., 0] * self.ones).tanh()))


@pytest.mark.parametrize("step", [joint_step, naive_step, weights_step])
def test_any_network_goes_through_the_steps(step):
    problem = make_problem(network=Blind().double())
    begun = start(problem)
    after = step(begun, problem, SCHEDULE)
    kept = network_state(problem, after)
    problem.network.load_state_dict(kept)
    assert torch.equal(kept["last.bias"], begun.statistics["last.bias"])
    assert torch.equal(kept["first.weight"], kept["second.weight"])
    assert not torch.equal(kept["first.weight"], begun.weights["first.weight"])
    if step is joint_step:  # nothing pulls theta_task away from theta
        np.testing.assert_allclose(after.theta_task, after.theta, atol=1e-6)


def test_training_leaves_the_network_it_was_given_alone(problem):
    network = new_network(0)
    begun = initial_state(problem, start_of("joint", problem.graph))
    weights_step(begun, problem, SCHEDULE)
    assert all(torch.equal(value, network.state_dict()[name]) for name, value in problem.network.state_dict().items())
