"""The loop: history, best state, early stopping, divergence; and a contract every method passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from precisionnet.errors import FitDivergedError
from precisionnet.joint import METHODS, Rows, Schedule, Stopping, predict, run
from precisionnet.linalg import count_zeros, extreme_eigenvalues
from tests.joint.conftest import make_problem, mean_squared_error

SCHEDULE = Schedule(task_steps=5, weight_steps=10)
COLUMNS = {
    "epoch", "objective", "task_term", "l2_term", "trace_term", "log_det_term", "l1_term", "coupling_term", "distance",
    "train_loss", "train_metric", "validation_loss", "validation_metric", "n_zeros", "eigenvalue_min", "eigenvalue_max",
}  # fmt: skip


def mae(output, y, weight):
    return float((output[:, 0] - y).abs().mean())


def halves(problem) -> tuple[Rows, Rows]:
    rows = problem.rows
    return Rows(rows.x[::2], rows.y[::2], rows.weight[::2]), Rows(rows.x[1::2], rows.y[1::2], rows.weight[1::2])


@pytest.mark.parametrize("method", list(METHODS))
def test_contract_of_every_method(method):
    problem = make_problem(n=6, rows=60, scale_shift=True)
    training, validation = halves(problem)
    problem = replace(problem, rows=training)
    result = run(problem, METHODS[method], SCHEDULE, Stopping(6, 6, False), mae, validation)
    theta = result.state.theta
    smallest, largest = extreme_eigenvalues(theta)
    assert np.array_equal(theta, theta.T)
    assert smallest > 0
    if method != "sample" and method != "vnn":
        assert largest <= problem.spectral_bound * (1 + 1e-9)
    assert torch.equal(result.state.theta_task, result.state.theta_task.T)
    assert len(result.history) == 6
    assert all(set(row) == COLUMNS for row in result.history)
    assert all(np.isfinite(list(row.values())).all() for row in result.history)
    assert result.history[-1]["train_loss"] < result.history[0]["train_loss"]
    kept = result.history[result.state.epoch - 1]
    assert kept["n_zeros"] == count_zeros(theta)
    assert kept["distance"] == pytest.approx(np.linalg.norm(theta - result.state.theta_task.numpy()))


def test_what_each_method_runs_on():
    problem = make_problem(n=6, rows=60)
    starts = {name: method.init(problem) for name, method in METHODS.items()}
    inverse = np.linalg.inv(problem.emp_cov)
    np.testing.assert_allclose(starts["sample"].theta_task.numpy(), inverse, atol=1e-8)
    np.testing.assert_array_equal(starts["vnn"].theta_task.numpy(), problem.emp_cov)
    np.testing.assert_array_equal(starts["joint"].theta, starts["glasso"].theta)
    moved = METHODS["joint"].update(starts["joint"], problem, SCHEDULE)
    assert not torch.equal(moved.theta_task, starts["joint"].theta_task)
    for name in ("glasso", "sample", "vnn"):
        after = METHODS[name].update(starts[name], problem, SCHEDULE)
        assert torch.equal(after.theta_task, starts[name].theta_task)


def test_naive_predicts_on_its_thresholded_matrix():
    problem = make_problem(n=6, rows=60)
    result = run(problem, METHODS["naive"], SCHEDULE, Stopping(3, 3, False), mae)
    np.testing.assert_array_equal(result.state.theta_task.numpy(), result.state.theta)


def test_the_kept_state_is_the_best_one_and_not_the_last():
    problem = make_problem(n=6, rows=40, seed=3, l2_penalty=0.0)
    training, validation = halves(problem)
    problem = replace(problem, rows=training)
    result = run(problem, METHODS["joint"], Schedule(learning_rate=0.05), Stopping(30, 30, False), mae, validation)
    losses = [row["validation_loss"] for row in result.history]
    assert result.state.epoch == int(np.argmin(losses)) + 1 < len(losses)
    output = predict(problem, result.state, validation.x, sparse=False)
    assert float(mean_squared_error(output, validation.y, validation.weight)) == pytest.approx(min(losses), abs=1e-12)


def test_early_stopping_waits_for_its_patience():
    problem = make_problem(n=6, rows=40, seed=3, l2_penalty=0.0)
    training, validation = halves(problem)
    result = run(
        replace(problem, rows=training), METHODS["joint"], Schedule(learning_rate=0.05), Stopping(100, 3, False), mae,
        validation,
    )  # fmt: skip
    assert len(result.history) == result.state.epoch + 3 < 100


def test_without_validation_rows_the_last_state_is_kept():
    problem = make_problem()
    result = run(problem, METHODS["joint"], SCHEDULE, Stopping(4, 1, False), mae)
    assert result.state.epoch == 4
    assert np.isnan(result.history[0]["validation_loss"])


def test_progress_sees_every_row():
    seen = []
    result = run(make_problem(), METHODS["glasso"], SCHEDULE, Stopping(3, 3, False), mae, on_epoch=seen.append)
    assert seen == result.history


def test_divergence_is_an_error_and_names_the_remedy():
    problem = make_problem(coupling=0.0)
    with pytest.raises(FitDivergedError, match=r"diverged in epoch \d+: .*no model was made.*lower learning_rate"):
        run(problem, METHODS["joint"], Schedule(learning_rate=1e300), Stopping(5, 5, False), mae)


def test_a_diverging_listing_points_to_the_exact_step():
    problem = make_problem(ridge=0.0, coupling=300.0)
    with pytest.raises(FitDivergedError, match='diverged .*step1="exact"'):
        run(problem, METHODS["joint"], replace(SCHEDULE, step1="paper"), Stopping(5, 5, False), mae)
