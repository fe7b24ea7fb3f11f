"""The standard recipe: members in stacks are the same members alone, and what they end with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from joblib import parallel_config

from precisionnet.errors import FitDivergedError
from precisionnet.estimators.rows import FEWEST_FOLDS, Scaler, canonical, left_out_rows
from precisionnet.estimators.targets import HUBER, LOSSES, NumberTarget
from precisionnet.joint import standard
from precisionnet.joint.matrices import MATRICES
from precisionnet.joint.member_stack import MemberStack
from precisionnet.joint.problem import TensorRows, start_of
from precisionnet.joint.pruning import Pruned
from precisionnet.joint.standard import STACKED, stacks_of
from precisionnet.joint.trainer import Trainer
from precisionnet.linalg import extreme_eigenvalues
from precisionnet.precision import graphical_lasso_terms
from precisionnet.threads import limited_threads
from tests.devices import META, OneDevice
from tests.joint.conftest import mean_squared_error, to_the_end
from tests.joint.members import (
    N_MEMBERS,
    NOTHING,
    PLAN,
    ensemble_problem,
    last_state,
    members_of,
    outputs_of,
    recipe,
    trained,
)


def assert_same_member(ours, i, theirs, j, **digits):
    """Bit by bit, unless ``digits`` are given."""
    tensors = zip(ours.networks[i].items(), theirs.networks[j].items(), strict=True)
    for (name, value), (other_name, other) in tensors:
        assert name == other_name
        torch.testing.assert_close(value, other, **digits or {"rtol": 0, "atol": 0})
    for matrix in ("theta", "theta_task"):
        mine, other = getattr(ours, matrix)[i], getattr(theirs, matrix)[j]
        np.testing.assert_allclose(mine, other, **digits or {"rtol": 0, "atol": 0})


@pytest.mark.parametrize("method", ["joint", "glasso", "naive"])
@pytest.mark.parametrize(("dtype", "digits"), [(torch.float64, 1e-9), (torch.float32, 2e-4)])
def test_an_ensemble_is_its_members_run_alone(method, dtype, digits):
    problem = ensemble_problem(dtype=dtype)
    members, plan = members_of(problem), replace(PLAN, max_epochs=3)
    together = last_state(problem, method, members, plan)
    for i, one in enumerate(members):
        assert_same_member(together, i, last_state(problem, method, [one], plan), 0, rtol=digits, atol=digits)


@pytest.mark.parametrize("method", ["joint", "naive"])
def test_a_member_does_not_depend_on_other_stacks(method):
    """Six members of one shape and two of another: three stacks, each as if alone, to the last bit."""
    problem = ensemble_problem()
    narrow, wide = members_of(problem, 6), members_of(problem, 2, readout="mlp")
    mixed = [*narrow[:3], wide[0], *narrow[3:], wide[1]]
    assert [list(stack) for stack in stacks_of(mixed)] == [[0, 1, 2, 4], [5, 6], [3, 7]]
    assert STACKED == 4
    with limited_threads(1):
        together = last_state(problem, method, mixed)
        alone = [last_state(problem, method, part) for part in (narrow[:4], narrow[4:], wide)]
    for place, (part, i) in zip(
        (0, 1, 2, 4, 5, 6, 3, 7), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 0), (2, 1)], strict=True
    ):
        assert_same_member(together, place, alone[part], i)


def test_stacks_have_one_epoch_and_one_precision_in_common():
    problem = ensemble_problem()
    shapes = [members_of(problem), members_of(problem, 2, readout="mlp")]
    plan = replace(PLAN, max_epochs=5, learning_rate=0.1)
    mixed = trained(problem, plan=plan, members=[*shapes[0], *shapes[1]])
    parts = [trained(problem, plan=plan, members=members) for members in shapes]
    for name in ("train_loss", "objective", "validation_loss"):
        known = np.average([[row[name] for row in part.history] for part in parts], axis=0, weights=[4, 2])
        np.testing.assert_allclose([row[name] for row in mixed.history], known)
    held_out = [row["validation_loss"] for row in mixed.history]
    assert mixed.kept.epoch == int(np.argmin(held_out)) + 1
    kind = MATRICES["joint"]
    common, note = kind.common(problem.graph, mixed.kept.theta, mixed.kept.theta_task)
    np.testing.assert_array_equal(mixed.result().theta, common)
    assert note == ""


@pytest.fixture(params=["threading", pytest.param("loky", marks=pytest.mark.slow)])
def backend(request):
    return request.param


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_workers_change_no_bit(backend, sparse, watched):
    """Loky starts processes, which takes seconds; threads go through the same code."""
    problem = ensemble_problem(l1_penalty=0.25)
    members, plan = members_of(problem, 6), replace(PLAN, sparse=sparse, max_epochs=6)
    seen = []
    with limited_threads(1):  # as every fit with this recipe does
        alone = trained(problem, plan=plan, members=members)
        with parallel_config(backend=backend):
            policy = recipe(problem, plan=plan, members=members, n_jobs=2, watched=watched)
            shared = to_the_end(Trainer(policy, [seen.append]))
    assert shared.history == seen == alone.history
    assert shared.kept.epoch == alone.kept.epoch
    np.testing.assert_array_equal(shared.result().theta, alone.result().theta)
    for i in range(6):
        assert_same_member(shared.kept, i, alone.kept, i)


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_workers_stop_where_one_process_does(monkeypatch, n_jobs, watched):
    """A fit that diverges, or that a callback ends, gives the same rows before, though workers run ahead."""
    problem, plan, seen = ensemble_problem(), replace(PLAN, max_epochs=9), []
    as_it_is = MemberStack.epoch

    def failing(self, problem, validation, plan, epoch):
        if self.n_members == 2 and epoch == 6:
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
        return as_it_is(self, problem, validation, plan, epoch)

    def give_up(row):
        seen.append(row["epoch"])
        if row["epoch"] == 7:
            raise TimeoutError("long enough")

    with limited_threads(1), parallel_config(backend="threading"):
        policy = recipe(problem, plan=plan, members=members_of(problem, 6), n_jobs=n_jobs, watched=watched)
        with pytest.raises(TimeoutError, match="long enough"):
            to_the_end(Trainer(policy, [give_up]))
        assert seen == [1, 2, 3, 4, 5, 6, 7]
        monkeypatch.setattr(MemberStack, "epoch", failing)
        policy = recipe(problem, plan=plan, members=members_of(problem, 6), n_jobs=n_jobs, watched=watched)
        with pytest.raises(FitDivergedError, match="in epoch 6: theta became"):
            to_the_end(Trainer(policy, [give_up]))
    assert seen[7:] == [1, 2, 3, 4, 5]


def test_a_worker_does_not_go_on_after_numbers_became_infinite(monkeypatch):
    """One stack's loss is NaN from its third epoch on: the fit says so of that epoch, as one process does."""
    problem, plan, run = ensemble_problem(), replace(PLAN, max_epochs=9), []
    as_it_is = MemberStack.epoch

    def diverging(self, problem, validation, plan, epoch):
        done = as_it_is(self, problem, validation, plan, epoch)
        if self.n_members == 2:
            run.append(epoch)
            done.row.update({"train_loss": np.nan, "objective": np.nan} if epoch >= 3 else {})
        return done

    monkeypatch.setattr(MemberStack, "epoch", diverging)
    with limited_threads(1), parallel_config(backend="threading"):
        for n_jobs in (None, 2):
            policy = recipe(problem, plan=plan, members=members_of(problem, 6), n_jobs=n_jobs, watched=False)
            with pytest.raises(FitDivergedError, match="in epoch 3: the task loss and the objective became"):
                to_the_end(Trainer(policy))
    assert run == [1, 2, 3, 1, 2, 3]


def test_large_states_come_back_a_few_epochs_at_a_time(monkeypatch):
    problem, plan, sent = ensemble_problem(), replace(PLAN, max_epochs=5), []
    members = members_of(problem, 6)
    in_worker = standard._epochs_in_worker

    def watching(problem, validation, plan, stack, epochs):
        sent.append((stack.n_members, list(epochs)))
        return in_worker(problem, validation, plan, stack, epochs)

    def states(watched):
        policy = recipe(problem, plan=plan, members=members, n_jobs=2, watched=watched)
        return to_the_end(Trainer(policy)).history

    with limited_threads(1), parallel_config(backend="threading"):
        known = trained(problem, plan=plan, members=members).history
        monkeypatch.setattr(standard, "_epochs_in_worker", watching)
        assert states(watched=False) == known
        assert sorted(sent) == [(2, [1, 2, 3, 4, 5]), (4, [1, 2, 3, 4, 5])]
        sent.clear()
        size = sum(stack.state_bytes for stack in recipe(problem, plan=plan, members=members)._stacks)
        monkeypatch.setattr(standard, "MOST_AHEAD", 2 * size)
        assert states(watched=False) == known
    assert sorted(sent) == [(n, part) for n in (2, 4) for part in ([1, 2], [3, 4], [5])]


def test_members_differ_and_training_leaves_their_first_networks_alone():
    problem = ensemble_problem()
    members = members_of(problem)
    before = [{k: v.clone() for k, v in one.network.state_dict().items()} for one in members]
    kept = trained(problem, members=members).kept
    assert not np.allclose(kept.theta_task[0], kept.theta_task[1], atol=1e-4)
    for one, was in zip(members, before, strict=True):
        assert all(torch.equal(value, was[name]) for name, value in one.network.state_dict().items())


@pytest.mark.parametrize("method", list(MATRICES))
def test_contract_of_every_method(method):
    problem = ensemble_problem(l1_penalty=0.25)
    trainer = trained(problem, method)
    result = trainer.result()
    matrices, thetas, whole = result.kept.theta_task, result.kept.theta, result.theta
    assert matrices.shape == thetas.shape == (N_MEMBERS, 6, 6)
    np.testing.assert_array_equal(matrices, matrices.transpose(0, 2, 1))
    for theta in (*thetas, whole):
        np.testing.assert_allclose(theta, theta.T, rtol=0, atol=1e-12)
        smallest, largest = extreme_eigenvalues(theta)
        assert smallest > 0
        if method not in ("sample", "vnn"):
            assert largest <= problem.graph.spectral_bound * (1 + 1e-9)
    if method in ("joint", "glasso"):
        assert all(np.count_nonzero(theta == 0) > 0 for theta in (*thetas, whole))
    assert [row["epoch"] for row in trainer.history] == [1, 2, 3, 4]
    assert all(np.isfinite(list(row.values())).all() for row in trainer.history)
    assert result.note == ""
    assert result.scale == pytest.approx(np.linalg.norm(start_of(method, problem.graph).theta_task, 2))


def test_the_common_precision_solves_step_one_of_the_whole_ensemble():
    """No move lowers (1 - alpha) L_GL + gamma / 2 times the members' mean squared distance from their matrices."""
    problem = ensemble_problem(n=4, coupling=0.5)
    graph, trainer = problem.graph, trained(problem)
    matrices, theta = trainer.kept.theta_task, trainer.result().theta

    def objective(theta):
        gl = graphical_lasso_terms(theta, graph.emp_cov, graph.l1_penalty, graph.ridge).total
        distances = np.linalg.norm(theta - matrices, axis=(1, 2)) ** 2
        return (1 - graph.task_weight) * gl + graph.coupling / 2 * distances.mean()

    # Optimality: the gradient of the smooth part is -lambda sign(theta_ij) on edges, within lambda on zeros, 0 on the
    # diagonal (no eigenvalue is at the bound here).
    assert extreme_eigenvalues(theta)[1] < 0.99 * graph.spectral_bound
    smooth = graph.emp_cov - np.linalg.inv(theta + graph.ridge * np.eye(4))
    smooth += graph.coupling / (1 - graph.task_weight) * (theta - matrices.mean(axis=0))
    penalty = graph.l1_penalty * (1 - np.eye(4))
    residual = np.where(theta != 0, smooth + penalty * np.sign(theta), np.maximum(np.abs(smooth) - penalty, 0.0))
    assert np.abs(residual).max() < 1e-4
    here, rng = objective(theta), np.random.default_rng(0)
    for size in (1e-3, 1e-2):
        for move in rng.normal(size=(50, 4, 4)):
            assert objective(theta + size * (move + move.T)) >= here - 1e-9


def test_a_huge_coupling_leaves_the_task_no_say():
    tied = trained(ensemble_problem(coupling=1e6)).kept
    np.testing.assert_allclose(tied.theta_task, tied.theta, atol=1e-3)
    free = trained(ensemble_problem(coupling=0.0)).kept
    assert np.abs(free.theta_task - free.theta).max() > 0.05


@pytest.mark.parametrize("method", ["glasso", "sample", "vnn"])
def test_a_fixed_matrix_never_moves(method):
    problem = ensemble_problem()
    start = start_of(method, problem.graph)
    trainer = trained(problem, method)
    for theta, theta_task in zip(trainer.kept.theta, trainer.kept.theta_task, strict=True):
        np.testing.assert_array_equal(theta, start.theta)
        np.testing.assert_array_equal(theta_task, start.theta_task)
    np.testing.assert_array_equal(trainer.result().theta, start.theta)


def test_step_one_is_solved_every_few_epochs():
    problem = ensemble_problem(coupling=0.5)

    def thetas(every):
        policy = recipe(problem, plan=replace(PLAN, theta_every=every))
        return [policy.advance(epoch)[1].theta for epoch in (1, 2, 3, 4)]

    first, second, third, fourth = thetas(2)
    assert np.array_equal(first, second)
    assert not np.array_equal(second, third)
    assert np.array_equal(third, fourth)
    assert np.array_equal(*thetas(10)[::3])


@pytest.mark.parametrize("held_out", ["left out", "validation"])
def test_the_kept_epoch_has_the_lowest_loss_on_held_out_rows(held_out):
    problem = ensemble_problem(seed=3, l2_penalty=0.0)
    other = ensemble_problem(seed=4).rows if held_out == "validation" else None
    plan = replace(PLAN, max_epochs=20, learning_rate=0.1, input_noise=0.0)
    trainer = trained(problem, plan=plan, validation=other)
    losses = [row["validation_loss"] for row in trainer.history]
    assert trainer.kept.epoch == int(np.argmin(losses)) + 1 < 20
    # The kept state is that epoch's, not an alias of the last one's: its loss can be computed again.
    members, rows = members_of(problem), problem.rows
    if other is not None:
        output = outputs_of(problem, members, trainer, [other.x] * N_MEMBERS)
        again = mean_squared_error(output.mean(dim=0), other.y, other.weight)
    else:
        output = outputs_of(problem, members, trainer, [rows.x[one.left_out] for one in members])
        left_out = np.concatenate([one.left_out for one in members])
        again = mean_squared_error(output.flatten(0, 1), rows.y[left_out], rows.weight[left_out])
    assert float(again) == pytest.approx(min(losses), abs=1e-12)


def test_a_state_once_handed_out_is_never_written_to():
    policy = recipe(ensemble_problem())
    _, first = policy.advance(1)
    frozen = [{name: t.clone() for name, t in state.items()} for state in first.networks]
    matrices = first.theta.copy(), first.theta_task.copy()
    for epoch in (2, 3, 4):
        policy.advance(epoch)
    for state, was in zip(first.networks, frozen, strict=True):
        assert all(torch.equal(value, was[name]) for name, value in state.items())
    np.testing.assert_array_equal((first.theta, first.theta_task), matrices)


def test_members_that_leave_nobody_out_have_no_say_in_the_epoch():
    """Of three people, the second half of eight members leaves nobody out."""
    problem = ensemble_problem()
    some = members_of(problem)
    none = [replace(one, left_out=NOTHING) for one in members_of(problem, readout="mlp")]
    alone, mixed = trained(problem, members=some), trained(problem, members=[*some, *none])
    for name in ("validation_loss", "validation_metric"):
        np.testing.assert_allclose([row[name] for row in mixed.history], [row[name] for row in alone.history])
    assert mixed.kept.epoch == alone.kept.epoch


def test_without_held_out_rows_the_last_epoch_is_kept():
    problem = ensemble_problem()
    trainer = trained(problem, members=[replace(one, left_out=NOTHING) for one in members_of(problem)])
    assert trainer.kept.epoch == 4
    assert all(np.isnan(row["validation_loss"]) for row in trainer.history)


@pytest.mark.parametrize("method", ["joint", "naive", "glasso"])
def test_divergence_is_an_error_and_names_the_remedy(method):
    with pytest.raises(FitDivergedError, match=r"diverged in epoch \d+: .*no model was made.*lower learning_rate"):
        trained(ensemble_problem(coupling=0.0), method, replace(PLAN, learning_rate=1e300))


@pytest.mark.parametrize("method", ["joint", "naive", "glasso"])
def test_training_goes_on_from_another_run(method):
    """Without a step, an epoch more leaves weights and matrices where the run before had them."""
    problem = ensemble_problem()
    before = trained(problem, method).kept
    still = replace(PLAN, learning_rate=0.0, max_epochs=1)
    after = trained(problem, method, still, resume=before).kept
    names = [name for name, _ in members_of(problem)[0].network.named_parameters()]
    for state, was in zip(after.networks, before.networks, strict=True):
        assert all(torch.equal(state[name], was[name]) for name in names)
    np.testing.assert_allclose(after.theta_task, before.theta_task, rtol=0, atol=1e-2 if method == "naive" else 1e-15)
    further = trained(problem, method, replace(PLAN, learning_rate=1e-3), resume=before)
    assert further.history[0]["train_loss"] < trained(problem, method).history[0]["train_loss"]


def test_the_learning_rate_falls_along_a_cosine():
    rates = [PLAN.rate(progress) for progress in (0.0, 0.5, 1.0)]
    assert rates == pytest.approx([0.02, 0.01, 0.0])


def table_of(groups=None, y=None, n: int = 100):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return canonical(X, np.zeros(n) if y is None else y, np.ones(n), groups)[0]


@pytest.mark.parametrize("n_members", [1, 2, 8, 11])
def test_folds_are_disjoint_and_of_one_size(n_members):
    folds = left_out_rows(table_of(), n_members, None, np.random.RandomState(0))
    everything = np.concatenate(folds)
    assert len(folds) == n_members
    assert len(everything) == len(set(everything))
    assert {len(fold) for fold in folds} <= {100 // max(n_members, FEWEST_FOLDS) + extra for extra in (0, 1)}
    if n_members >= FEWEST_FOLDS:
        assert len(everything) == 100  # every row is new to one of them


def test_whole_groups_are_left_out():
    table = table_of(np.random.default_rng(1).integers(0, 20, 100))
    for fold in left_out_rows(table, 8, None, np.random.RandomState(0)):
        assert len(fold)
        assert not set(table.group[fold]) & set(np.delete(table.group, fold))


def test_classes_are_left_out_in_equal_shares():
    table = table_of(y=np.repeat([0.0, 1.0, 2.0], [64, 24, 16]), n=104)
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
    """Errors 1 and 1/2 with weights 1 and 3; a row without weight does not count. Members keep to themselves."""
    output, y = torch.tensor([[1.0], [0.5], [9.0]]), torch.tensor([0.0, 0.0, 0.0])
    weight = torch.tensor([1.0, 3.0, 0.0])
    target = NumberTarget(Scaler(np.zeros(()), np.ones(())), loss)
    assert float(target.task_loss(output, y, weight)) == pytest.approx(value)
    several = target.task_loss(torch.stack([output, 0 * output]), y.expand(2, 3), weight.expand(2, 3))
    assert several.tolist() == pytest.approx([value, 0.0])


@pytest.mark.parametrize(("method", "sparse"), [("joint", False), ("joint", True), ("glasso", False), ("naive", False)])
def test_an_epoch_stays_on_its_device(method, sparse):
    """The meta device holds no numbers: what the epoch reads for its history is zero, and its scores mean nothing."""
    here = ensemble_problem()
    members, plan = members_of(here), replace(PLAN, sparse=sparse)
    there = replace(here, rows=TensorRows(*(part.to(META) for part in (here.rows.x, here.rows.y, here.rows.weight))))
    kind = Pruned if sparse else MATRICES[method]
    with OneDevice(zeros=True):
        stack = MemberStack(there, kind, members, plan, start_of(method, there.graph))
        for epoch in (1, 2):
            stack.epoch(there, None, plan, epoch)
        stack.epoch(there, there.rows, plan, 3)
    assert {tensor.device for tensor in (stack.matrices.matrix, *stack.network.state_dict().values())} == {META}
    moments = [moment for adam in (stack._adam, stack.matrices.adam) for moment in adam.first]
    assert {moment.device for moment in moments} == {META}
