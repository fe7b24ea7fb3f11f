"""The loop: history, best state, early stopping, divergence; and a contract every method passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from precisionnet.errors import FitDivergedError
from precisionnet.joint.algorithm1 import UPDATES, Schedule
from precisionnet.joint.problem import GlassoCache, GraphTerms, JointProblem, TensorRows, start_of
from precisionnet.joint.trainer import Snapshot, Trainer
from precisionnet.linalg import count_zeros, extreme_eigenvalues
from precisionnet.parameters import settings_of
from tests.joint.conftest import make_problem, mean_squared_error, start, to_the_end, trained_by_algorithm1

SCHEDULE = Schedule(task_steps=5, weight_steps=10)
COLUMNS = {
    "epoch", "objective", "task_term", "l2_term", "trace_term", "log_det_term", "l1_term", "coupling_term", "distance",
    "train_loss", "train_metric", "validation_loss", "validation_metric", "n_zeros", "eigenvalue_min", "eigenvalue_max",
}  # fmt: skip


def halves(problem: JointProblem) -> tuple[JointProblem, TensorRows]:
    """Half of the rows to learn from, half to validate on."""
    even = torch.arange(0, len(problem.rows.y), 2)
    return replace(problem, rows=problem.rows[even]), problem.rows[even + 1]


def output_of(problem: JointProblem, kept: Snapshot, x: torch.Tensor) -> torch.Tensor:
    """What a user would compute from what is kept."""
    problem.network.load_state_dict(kept.networks[0])
    with torch.no_grad():
        return problem.network.eval()(x, problem.shift(torch.from_numpy(kept.theta_task[0])))


@pytest.mark.parametrize("method", list(UPDATES))
def test_contract_of_every_method(method):
    problem, validation = halves(make_problem(n=6, rows=60, scale_shift=True))
    trainer = trained_by_algorithm1(problem, method, replace(SCHEDULE, max_epochs=6, patience=6), validation)
    result, history = trainer.result(), trainer.history
    theta, theta_task = result.kept.theta[0], result.kept.theta_task[0]
    smallest, largest = extreme_eigenvalues(theta)
    np.testing.assert_array_equal(result.theta, theta)
    assert np.array_equal(theta, theta.T)
    assert smallest > 0
    if method != "sample" and method != "vnn":
        assert largest <= problem.graph.spectral_bound * (1 + 1e-9)
    assert np.array_equal(theta_task, theta_task.T)
    assert result.scale == pytest.approx(np.linalg.norm(theta_task, 2))
    assert [row["epoch"] for row in history] == [1, 2, 3, 4, 5, 6]
    assert all(set(row) == COLUMNS for row in history)
    assert all(np.isfinite(list(row.values())).all() for row in history)
    assert history[-1]["train_loss"] < history[0]["train_loss"]
    assert trainer.kept_row is history[result.kept.epoch - 1]
    assert trainer.kept_row["n_zeros"] == count_zeros(theta)
    assert trainer.kept_row["distance"] == pytest.approx(np.linalg.norm(theta - theta_task))


def test_what_each_method_runs_on():
    problem = make_problem(n=6, rows=60)
    starts = {method: start(problem, method) for method in UPDATES}
    inverse = np.linalg.inv(problem.graph.emp_cov)
    np.testing.assert_allclose(starts["sample"].theta_task.numpy(), inverse, atol=1e-8)
    np.testing.assert_array_equal(starts["vnn"].theta_task.numpy(), problem.graph.emp_cov)
    np.testing.assert_array_equal(starts["joint"].theta, starts["glasso"].theta)
    moved = UPDATES["joint"](starts["joint"], problem, SCHEDULE)
    assert not torch.equal(moved.theta_task, starts["joint"].theta_task)
    for name in ("glasso", "sample", "vnn"):
        after = UPDATES[name](starts[name], problem, SCHEDULE)
        assert torch.equal(after.theta_task, starts[name].theta_task)


def test_naive_predicts_on_its_thresholded_matrix():
    problem = make_problem(n=6, rows=60)
    kept = trained_by_algorithm1(problem, "naive", replace(SCHEDULE, max_epochs=3)).kept
    np.testing.assert_array_equal(kept.theta_task, kept.theta)


def test_the_kept_state_is_the_best_one_and_not_the_last():
    problem, validation = halves(make_problem(n=6, rows=40, seed=3, l2_penalty=0.0))
    schedule = Schedule(learning_rate=0.05, task_steps=4, max_epochs=20, patience=20)
    trainer = trained_by_algorithm1(problem, "joint", schedule, validation)
    losses = [row["validation_loss"] for row in trainer.history]
    assert trainer.kept.epoch == int(np.argmin(losses)) + 1 < len(losses)
    output = output_of(problem, trainer.kept, validation.x)
    assert float(mean_squared_error(output, validation.y, validation.weight)) == pytest.approx(min(losses), abs=1e-12)


def test_early_stopping_waits_for_its_patience():
    problem, validation = halves(make_problem(n=6, rows=40, seed=3, l2_penalty=0.0))
    schedule = Schedule(learning_rate=0.05, task_steps=4, max_epochs=100, patience=3)
    trainer = trained_by_algorithm1(problem, "joint", schedule, validation)
    assert len(trainer.history) == trainer.kept.epoch + 3 < 100


def test_without_validation_rows_the_last_state_is_kept():
    trainer = trained_by_algorithm1(make_problem(), "joint", replace(SCHEDULE, max_epochs=4, patience=1))
    assert trainer.kept.epoch == 4
    assert np.isnan(trainer.history[0]["validation_loss"])


def test_callbacks_see_a_copy_of_every_row():
    seen = []

    def spoil(row):
        seen.append(dict(row))
        row.clear()

    schedule = replace(SCHEDULE, max_epochs=3)
    trainer = trained_by_algorithm1(make_problem(), "glasso", schedule, callbacks=[spoil, spoil])
    assert all(set(row) == COLUMNS for row in trainer.history)
    assert [row["epoch"] for row in seen] == [1, 1, 2, 2, 3, 3]
    np.testing.assert_equal(seen[::2], trainer.history)


class Scripted:
    """A policy that says what it is told, to test the loop alone."""

    max_epochs, patience, remedy = 6, None, "do otherwise"

    def __init__(self, losses, allowed=None, spoiled=None):
        self.losses, self.allowed, self.spoiled = losses, allowed or [True] * 6, spoiled or {}

    def advance(self, epoch):
        row = dict.fromkeys(("train_loss", "train_metric", "objective", "validation_metric"), 0.0)
        loss = self.losses[epoch - 1]
        row |= {"epoch": epoch, "validation_loss": loss, "validated": not np.isnan(loss)}
        matrix = np.full((1, 2, 2), float(epoch))
        snapshot = Snapshot(epoch, matrix, matrix, [{"weight": torch.full((2,), float(epoch))}])
        if epoch == 2:
            row |= {name: value for name, value in self.spoiled.items() if name in row}
            snapshot = replace(snapshot, **{k: v for k, v in self.spoiled.items() if k not in row})
        return row, snapshot

    def may_keep(self, row):
        return self.allowed[row["epoch"] - 1]

    def conclude(self, kept):
        return kept.theta[0], 1.0, "said"


@pytest.mark.parametrize(
    ("losses", "allowed", "epoch"),
    [
        ([3, 2, 1, 2, 3, 4], None, 3),
        ([3, 1, 1, 1, 3, 4], None, 2),
        ([np.nan] * 6, None, 6),
        ([1, 2, 3, 9, 8, 9], [None, None, None, True, True, True], 5),
        ([1, 2, 3, 9, 8, 7], [None, None, None, True, False, False], 4),
        ([1, 2, 3, 9, 8, 7], [None] * 6, 6),
    ],
)
def test_which_epoch_is_kept(losses, allowed, epoch):
    trainer = to_the_end(Trainer(Scripted(losses, allowed)))
    assert trainer.kept.epoch == epoch
    assert trainer.result().theta[0, 0] == epoch
    assert trainer.result().note == "said"


BAD = {
    "the task loss": {"train_loss": np.inf},
    "the objective": {"objective": np.nan},
    "the training error": {"train_metric": np.nan},
    "the validation loss": {"validation_loss": np.nan},
    "theta": {"theta": np.full((1, 2, 2), np.nan)},
    "theta_task": {"theta_task": np.full((1, 2, 2), np.inf)},
    "the network's weights": {"networks": [{"weight": torch.tensor([1.0, np.nan]), "count": torch.tensor(1)}]},
}


@pytest.mark.parametrize("what", BAD)
def test_whatever_becomes_infinite_is_named(what):
    seen = []
    trainer = Trainer(Scripted([1.0] * 6, spoiled=BAD[what]), [seen.append])
    trainer.advance()
    with pytest.raises(FitDivergedError, match=f"diverged in epoch 2: {what} became .*To go on, do otherwise"):
        trainer.advance()
    assert len(seen) == len(trainer.history) == 1


def test_divergence_is_an_error_and_names_the_remedy():
    problem = make_problem(coupling=0.0)
    with pytest.raises(FitDivergedError, match=r"diverged in epoch \d+: .*no model was made.*lower learning_rate"):
        trained_by_algorithm1(problem, "joint", Schedule(learning_rate=1e300))


def test_a_diverging_listing_points_to_the_exact_step():
    problem = make_problem(ridge=0.0, coupling=300.0)
    with pytest.raises(FitDivergedError, match='diverged .*step1="exact"'):
        trained_by_algorithm1(problem, "joint", replace(SCHEDULE, step1="paper"))


def test_the_objective_is_that_of_theta_task_also_where_theta_predicts():
    """Lines of the history on theta: loss and validation; the objective stays problem (7)."""
    problem, validation = halves(make_problem(n=6, rows=60, coupling=0.1))
    schedule = replace(SCHEDULE, max_epochs=2, patience=9, sparse=True)
    trainer = trained_by_algorithm1(problem, "joint", schedule, validation)
    row, kept = trainer.kept_row, trainer.kept
    on_task = output_of(problem, kept, problem.rows.x)
    task_loss = float(mean_squared_error(on_task, problem.rows.y, problem.rows.weight))
    assert row["task_term"] == pytest.approx(problem.graph.task_weight * task_loss, abs=1e-12)
    on_theta = output_of(problem, replace(kept, theta_task=kept.theta), problem.rows.x)
    assert row["train_loss"] == pytest.approx(
        float(mean_squared_error(on_theta, problem.rows.y, problem.rows.weight)), abs=1e-12
    )
    assert row["train_loss"] != pytest.approx(task_loss, abs=1e-6)


def test_a_start_is_solved_once_for_all_who_share_it():
    problem = make_problem(n=6, rows=60)
    cache = GlassoCache()
    first, again = (start_of("joint", problem.graph, cache) for _ in range(2))
    other = start_of("joint", replace(problem.graph, l1_penalty=0.3), cache)
    alone = start_of("joint", problem.graph)
    assert first.theta is again.theta
    np.testing.assert_array_equal(first.theta, alone.theta)
    assert not np.array_equal(first.theta, other.theta)


def test_terms_of_variances_alone_are_those_of_a_covariance():
    """On a sparse support no covariance of all pairs is stored; the bound is that of more columns than rows."""
    emp_cov, settings = make_problem(n=6, rows=60).graph.emp_cov, settings_of({})
    variances = sparse.diags_array(np.diag(emp_cov), format="csr")
    whole, alone = (GraphTerms.of(settings, given, 60.0) for given in (emp_cov, variances))
    assert alone == replace(whole, emp_cov=alone.emp_cov, spectral_bound=alone.spectral_bound)
    assert alone.emp_cov.size == 0
    assert alone.spectral_bound == pytest.approx(2e3 / np.diag(emp_cov).mean())
