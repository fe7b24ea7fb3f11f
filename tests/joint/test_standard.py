"""The standard recipe's core: several networks as one program are the same networks one by one, and what they end with."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from precisionnet import PNNRegressor
from precisionnet.errors import FitDivergedError
from precisionnet.estimators.members import FEWEST_FOLDS, left_out_rows
from precisionnet.estimators.regressor import HUBER, LOSSES
from precisionnet.estimators.rows import canonical
from precisionnet.joint import METHODS, EnsembleTraining, Member, MixedTraining, Plan, Problem, Rows
from precisionnet.linalg import extreme_eigenvalues
from precisionnet.nn import PrecisionNetwork
from precisionnet.precision import graphical_lasso_terms
from tests.joint.conftest import make_problem, mean_squared_error

N_ROWS, N_MEMBERS = 48, 4
PLAN = Plan(learning_rate=0.02, batch_size=12, max_epochs=4, theta_every=2, input_noise=0.3)
NOTHING = np.array([], dtype=np.intp)


def mae(output, y, weight):
    return float((weight * (output[:, 0] - y).abs()).sum() / weight.sum())


def new_network(seed: int, n: int, dtype: torch.dtype) -> PrecisionNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PrecisionNetwork(n, n_filters=3, order=2, readout="mean", readout_width=4).to(dtype)


def ensemble_problem(n: int = 6, dtype: torch.dtype = torch.float64, rows: int = N_ROWS, **changes) -> Problem:
    problem = make_problem(n=n, rows=rows, scale_shift=True, **changes)
    x, y, weight = (t.to(dtype) for t in (problem.rows.x, problem.rows.y, problem.rows.weight))
    return replace(problem, rows=Rows(x, y, weight), network=new_network(0, n, dtype))


def members_of(problem: Problem, n_members: int = N_MEMBERS) -> list[Member]:
    """Each leaves out another fold, all of one size: a member alone then has as many batches as among others."""
    n, rows, dtype = len(problem.emp_cov), len(problem.rows.y), problem.rows.x.dtype
    folds = np.arange(rows) % n_members if n_members > 1 else np.ones(rows)
    return [
        Member(new_network(i, n, dtype), np.flatnonzero(folds != i), np.flatnonzero(folds == i), seed=100 + i)
        for i in range(n_members)
    ]


def trained(problem: Problem, method: str = "joint", plan: Plan = PLAN, members=None, validation=None):
    """Members of one shape, to the end."""
    training = MixedTraining(problem, method, [members or members_of(problem)], plan, mae, validation)
    while not training.done:
        training.advance()
    return training


def kept(training: MixedTraining):
    """The state of the epoch that is kept."""
    (state,) = training.result().states
    return state


def last_state(problem: Problem, method: str, members, plan: Plan = PLAN):
    """After the last epoch, whichever is best: without rows left out the last one is kept."""
    blind = [replace(one, left_out=NOTHING) for one in members]
    return kept(trained(problem, method, plan, blind))


@pytest.mark.parametrize("method", ["joint", "glasso", "naive"])
@pytest.mark.parametrize(("dtype", "rtol", "atol"), [(torch.float64, 1e-10, 1e-10), (torch.float32, 1e-4, 1e-4)])
def test_an_ensemble_is_its_members_run_alone(method, dtype, rtol, atol):
    problem = ensemble_problem(dtype=dtype)
    members = members_of(problem)
    together = last_state(problem, method, members)
    for i, one in enumerate(members):
        alone = last_state(problem, method, [one])
        np.testing.assert_allclose(together.theta_task[i], alone.theta_task[0], rtol=rtol, atol=atol)
        np.testing.assert_allclose(together.theta[i], alone.theta[0], rtol=rtol, atol=atol)
        for group in ("weights", "statistics"):
            for name, value in getattr(alone, group).items():
                torch.testing.assert_close(getattr(together, group)[name][i], value[0], rtol=rtol, atol=atol)


@pytest.mark.parametrize("method", ["joint", "naive"])
def test_members_of_two_shapes_are_trained_as_each_shape_alone(method):
    """And the precision is one for all of them."""
    problem = ensemble_problem()
    wide = [
        replace(m, network=PrecisionNetwork(6, n_filters=2, readout="mlp").double()) for m in members_of(problem, 2)
    ]
    shapes = [members_of(problem), wide]
    mixed = MixedTraining(problem, method, deepcopy(shapes), PLAN, mae)
    while not mixed.done:
        mixed.advance()
    result, alone = mixed.result(), [EnsembleTraining(problem, method, members, PLAN, mae) for members in shapes]
    for one in alone:  # up to the epoch that the mixed run kept, the same for both shapes
        while not one.history or one.state.epoch < result.states[0].epoch:
            one.advance()
    for ours, theirs in zip(result.states, alone, strict=True):
        np.testing.assert_array_equal(ours.theta_task, theirs.state.theta_task)
        assert ours.epoch == theirs.state.epoch
    matrices = [np.concatenate([getattr(one.state, name) for one in alone]) for name in ("theta", "theta_task")]
    np.testing.assert_array_equal(result.theta, alone[0].matrices.common(*matrices))
    held_out = [row["validation_loss"] for row in mixed.history]
    assert result.states[0].epoch == int(np.argmin(held_out)) + 1
    for one in alone:
        while not one.done:
            one.advance()
    losses = [[row["train_loss"] for row in one.history] for one in (*alone, mixed)]
    np.testing.assert_allclose(losses[2], np.average(losses[:2], axis=0, weights=[N_MEMBERS, 2]))


def test_members_differ_and_training_leaves_their_first_networks_alone():
    problem = ensemble_problem()
    members = members_of(problem)
    before = [{k: v.clone() for k, v in one.network.state_dict().items()} for one in members]
    state = kept(trained(problem, members=members))
    assert not np.allclose(state.theta_task[0], state.theta_task[1], atol=1e-4)
    for one, was in zip(members, before, strict=True):
        assert all(torch.equal(value, was[name]) for name, value in one.network.state_dict().items())


@pytest.mark.parametrize("method", list(METHODS))
def test_contract_of_every_method(method):
    problem = ensemble_problem(l1_penalty=0.25)
    training = trained(problem, method)
    result = training.result()
    state, whole = result.states[0], result.theta
    matrices = state.theta_task
    assert matrices.shape == state.theta.shape == (N_MEMBERS, 6, 6)
    np.testing.assert_array_equal(matrices, matrices.transpose(0, 2, 1))
    for theta in (*state.theta, whole):
        np.testing.assert_allclose(theta, theta.T, rtol=0, atol=1e-12)
        smallest, largest = extreme_eigenvalues(theta)
        assert smallest > 0
        if method not in ("sample", "vnn"):
            assert largest <= problem.spectral_bound * (1 + 1e-9)
    if method in ("joint", "glasso"):
        assert all(np.count_nonzero(theta == 0) > 0 for theta in (*state.theta, whole))
    assert [row["epoch"] for row in training.history] == [1, 2, 3, 4]
    assert all(np.isfinite(list(row.values())).all() for row in training.history)
    assert result.note == ""


def test_the_common_precision_solves_step_one_of_the_whole_ensemble():
    """No move lowers (1 - alpha) L_GL + gamma / 2 times the members' mean squared distance from their matrices."""
    problem = ensemble_problem(n=4, coupling=0.5)
    training = trained(problem)
    state, theta = kept(training), training.result().theta

    def objective(theta):
        gl = graphical_lasso_terms(theta, problem.emp_cov, problem.l1_penalty, problem.ridge).total
        distances = np.linalg.norm(theta - state.theta_task, axis=(1, 2)) ** 2
        return (1 - problem.task_weight) * gl + problem.coupling / 2 * distances.mean()

    # Optimality: the gradient of the smooth part is -lambda sign(theta_ij) on edges, within lambda on zeros, 0 on the
    # diagonal (no eigenvalue is at the bound here).
    weight = problem.coupling / (1 - problem.task_weight)
    assert extreme_eigenvalues(theta)[1] < 0.99 * problem.spectral_bound
    smooth = problem.emp_cov - np.linalg.inv(theta + problem.ridge * np.eye(4))
    smooth += weight * (theta - state.theta_task.mean(axis=0))
    penalty = problem.l1_penalty * (1 - np.eye(4))
    residual = np.where(theta != 0, smooth + penalty * np.sign(theta), np.maximum(np.abs(smooth) - penalty, 0.0))
    assert np.abs(residual).max() < 1e-4
    here, rng = objective(theta), np.random.default_rng(0)
    for size in (1e-3, 1e-2):
        for move in rng.normal(size=(100, 4, 4)):
            assert objective(theta + size * (move + move.T)) >= here - 1e-9


def test_a_huge_coupling_leaves_the_task_no_say():
    problem = ensemble_problem(coupling=1e6)
    state = kept(trained(problem))
    np.testing.assert_allclose(state.theta_task, state.theta, atol=1e-3)
    free = kept(trained(ensemble_problem(coupling=0.0)))
    assert np.abs(free.theta_task - free.theta).max() > 0.05


@pytest.mark.parametrize("method", ["glasso", "sample", "vnn"])
def test_a_fixed_matrix_never_moves(method):
    problem = ensemble_problem()
    start = METHODS[method].init(problem)
    training = trained(problem, method)
    state = kept(training)
    for theta, theta_task in zip(state.theta, state.theta_task, strict=True):
        np.testing.assert_array_equal(theta, start.theta)
        np.testing.assert_array_equal(theta_task, start.theta_task.numpy())
    np.testing.assert_array_equal(training.result().theta, start.theta)


def test_step_one_is_solved_every_few_epochs():
    def thetas(every):
        training = EnsembleTraining(problem, "joint", members_of(problem), replace(PLAN, theta_every=every), mae)
        return [(training.advance(), training.matrices.theta.copy())[1] for _ in range(4)]

    problem = ensemble_problem(coupling=0.5)
    first, second, third, fourth = thetas(2)
    assert np.array_equal(first, second)
    assert not np.array_equal(second, third)
    assert np.array_equal(third, fourth)
    assert np.array_equal(*thetas(10)[::3])


@pytest.mark.parametrize("held_out", ["left out", "validation"])
def test_the_kept_epoch_has_the_lowest_loss_on_held_out_rows(held_out):
    problem = ensemble_problem(seed=3, l2_penalty=0.0)
    other = ensemble_problem(seed=4).rows if held_out == "validation" else None
    plan = replace(PLAN, max_epochs=25, learning_rate=0.1, input_noise=0.0)
    training = trained(problem, plan=plan, validation=other)
    losses = [row["validation_loss"] for row in training.history]
    state = kept(training)
    assert state.epoch == int(np.argmin(losses)) + 1 < 25
    # The kept state is that epoch's, not an alias of the last one's: its loss can be computed again.
    members = members_of(problem)
    known = np.stack([m.left_out for m in members])
    x = other.x.expand(N_MEMBERS, *other.x.shape) if other else problem.rows.x[known]
    output = training._parts[0]._outputs(state, x)
    if other:
        again = mean_squared_error(output.mean(dim=0), other.y, other.weight)
    else:
        left_out = np.concatenate([m.left_out for m in members])
        again = mean_squared_error(output.flatten(0, 1), problem.rows.y[left_out], problem.rows.weight[left_out])
    assert float(again) == pytest.approx(min(losses), abs=1e-12)


def test_members_that_leave_nobody_out_have_no_say_in_the_epoch():
    """Of three people, the second half of eight members leaves nobody out."""
    problem = ensemble_problem()
    some = members_of(problem)
    none = [replace(one, left_out=NOTHING) for one in members_of(problem)]
    alone, mixed = (MixedTraining(problem, "joint", shapes, PLAN, mae) for shapes in ([some], [deepcopy(some), none]))
    for training in (alone, mixed):
        while not training.done:
            training.advance()
    for name in ("validation_loss", "validation_metric"):
        np.testing.assert_allclose([row[name] for row in mixed.history], [row[name] for row in alone.history])
    assert mixed.kept_row["epoch"] == alone.kept_row["epoch"] == mixed.kept[1].epoch


def test_without_held_out_rows_the_last_epoch_is_kept():
    problem = ensemble_problem()
    training = trained(problem, members=[replace(one, left_out=NOTHING) for one in members_of(problem)])
    assert kept(training).epoch == 4
    assert all(np.isnan(row["validation_loss"]) for row in training.history)


@pytest.mark.parametrize("method", ["joint", "naive", "glasso"])
def test_divergence_is_an_error_and_names_the_remedy(method):
    with pytest.raises(FitDivergedError, match=r"diverged in epoch \d+: .*no model was made.*lower learning_rate"):
        trained(ensemble_problem(coupling=0.0), method, replace(PLAN, learning_rate=1e300))


def test_the_learning_rate_falls_along_a_cosine():
    rates = [PLAN.rate(progress) for progress in (0.0, 0.5, 1.0)]
    assert rates == pytest.approx([0.02, 0.01, 0.0])


def table_of(groups=None, y=None, n: int = 100):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return canonical(X, np.zeros(n) if y is None else y, np.ones(n), groups)


@pytest.mark.parametrize("n_members", [1, 2, 8, 11])
def test_folds_are_disjoint_and_of_one_size(n_members):
    folds = left_out_rows(table_of(), n_members, None, np.random.RandomState(0))
    everything = np.concatenate(folds)
    assert len(folds) == n_members
    assert len(everything) == len(set(everything))
    assert {len(fold) for fold in folds} <= {100 // max(n_members, FEWEST_FOLDS) + extra for extra in (0, 1)}
    if n_members >= FEWEST_FOLDS:
        assert len(everything) == 100  # every row is new to somebody


def test_whole_groups_are_left_out():
    table = table_of(np.random.default_rng(1).integers(0, 20, 100))
    for fold in left_out_rows(table, 8, None, np.random.RandomState(0)):
        assert len(fold)
        assert not set(table.group[fold]) & set(np.delete(table.group, fold))


def test_classes_are_left_out_in_equal_shares():
    y = np.repeat([0.0, 1.0, 2.0], [64, 24, 16])
    table = table_of(y=y, n=104)
    for fold in left_out_rows(table, 8, table.y, np.random.RandomState(0)):
        np.testing.assert_array_equal(np.bincount(table.y[fold].astype(int)), [8, 3, 2])


def test_one_group_leaves_nothing_out():
    folds = left_out_rows(table_of(np.zeros(100, dtype=int)), 8, None, np.random.RandomState(0))
    assert [len(fold) for fold in folds] == [0] * 8


def test_losses_by_hand():
    error = torch.tensor([-2.0, -0.25, 0.0, 0.5, 1.0], dtype=torch.float64)
    assert LOSSES["absolute"](error).tolist() == [2.0, 0.25, 0.0, 0.5, 1.0]
    assert LOSSES["squared"](error).tolist() == [4.0, 0.0625, 0.0, 0.25, 1.0]
    assert HUBER == 0.5  # e^2 / 2 up to there, then (|e| - 1 / 4) / 2: one line on
    assert LOSSES["huber"](error).tolist() == [0.875, 0.03125, 0.0, 0.125, 0.375]


@pytest.mark.parametrize(("loss", "value"), [("absolute", 0.625), ("squared", 0.4375), ("huber", 0.1875)])
def test_the_loss_weighs_its_rows(loss, value):
    """Errors 1 and 1/2 with weights 1 and 3; a row without weight does not count."""
    output, y = torch.tensor([[1.0], [0.5], [9.0]]), torch.tensor([0.0, 0.0, 0.0])
    weight = torch.tensor([1.0, 3.0, 0.0])
    assert float(PNNRegressor(loss=loss)._task_loss(output, y, weight)) == pytest.approx(value)
