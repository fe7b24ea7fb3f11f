"""The benchmark measures what it says: its gap is a bound, its problems are as promised, and every solver has a row."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.precision import hard
from benchmarks.precision.graphs import DEGREE, SMALLEST_EIGENVALUE, sample_correlation, sparse_precision
from benchmarks.precision.measure import Attempt, climb, prove, relative_gap, relative_gap_from_rows
from benchmarks.precision.problems import NO_MATRIX, Case, Problem, catalogue, from_rows, sparse_graph
from benchmarks.precision.rows import Row, merge, read
from benchmarks.precision.run import listed, measured
from benchmarks.precision.solvers import SOLVERS, Solver
from benchmarks.precision.worker import serve
from scipy import sparse

ROOT = Path(__file__).parents[1]


def loss(theta, emp_cov, l1):
    off_diagonal = theta - np.diag(np.diag(theta))
    return np.vdot(emp_cov, theta) - np.linalg.slogdet(theta)[1] + l1 * np.abs(off_diagonal).sum()


@pytest.mark.parametrize("c", [0.7, -0.4, 0.1])
def test_gap_bounds_the_true_gap_in_two_variables(c, rng):
    """W_12 is the soft-thresholded C_12: the optimum is known."""
    emp_cov, l1 = np.array([[1.0, c], [c, 2.0]]), 0.2
    w = np.sign(c) * max(abs(c) - l1, 0.0)
    best = np.linalg.inv(np.array([[1.0, w], [w, 2.0]]))
    assert relative_gap(best, emp_cov, l1) < 1e-14
    optimum = loss(best, emp_cov, l1)
    for size in (1e-4, 1e-2, 0.1):
        noise = size * rng.standard_normal((2, 2))
        theta = best + noise + noise.T
        proof = prove(theta, emp_cov, l1)
        assert proof.objective == pytest.approx(loss(theta, emp_cov, l1), abs=1e-12)
        assert proof.lower_bound <= optimum + 1e-12
        true = loss(theta, emp_cov, l1) - optimum
        for bound in (-np.inf, optimum):
            gap = relative_gap(theta, emp_cov, l1, lower_bound=bound)
            assert gap * max(2.0, abs(proof.objective)) >= true - 1e-12
        assert gap * max(2.0, abs(proof.objective)) == pytest.approx(true, abs=1e-12)


def test_gap_of_the_tied_problem_in_one_variable():
    """coupling x^2 + (c - coupling a) x - 1 = 0."""
    c, a, coupling = 2.0, 3.0, 5.0
    linear = c - coupling * a
    best = (-linear + np.sqrt(linear**2 + 4.0 * coupling)) / (2.0 * coupling)
    tie = {"coupling": coupling, "anchor": np.array([[a]])}
    assert relative_gap(np.array([[best]]), np.array([[c]]), 0.1, **tie) < 1e-14
    assert relative_gap(np.array([[1.1 * best]]), np.array([[c]]), 0.1, **tie) > 1e-4


def test_nothing_is_proved_for_what_is_not_a_precision():
    assert relative_gap(np.diag([1.0, -1.0]), np.eye(2), 0.1) == np.inf
    assert relative_gap(np.full((2, 2), np.nan), np.eye(2), 0.1) == np.inf


def test_sparse_graphs_have_their_degree_and_are_just_definite(rng):
    theta = sparse_precision(60, rng).toarray()
    assert np.array_equal(theta, theta.T)
    assert np.count_nonzero(theta) - 60 == DEGREE * 60
    assert np.linalg.eigvalsh(theta)[0] == pytest.approx(SMALLEST_EIGENVALUE, abs=1e-8)
    weights = np.abs(theta[np.triu_indices(60, 1)])
    assert weights[weights > 0].min() >= 0.2
    assert weights.max() <= 0.5


def test_correlations_are_those_of_the_graph(rng):
    theta = sparse_precision(12, rng)
    cov = np.linalg.inv(theta.toarray())
    truth = cov / np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    assert np.abs(sample_correlation(theta, 40_000, rng) - truth).max() < 0.03


def test_hard_families_are_as_promised():
    drawn = {name: draw(40, np.random.default_rng(40)) for name, draw in hard.FAMILIES.items()}
    for name, emp_cov in drawn.items():
        assert emp_cov.shape == (40, 40), name
        assert np.array_equal(emp_cov, emp_cov.T), name
        assert np.linalg.eigvalsh(emp_cov)[0] > -1e-9 * np.trace(emp_cov), name
    assert np.array_equal(drawn["duplicated"][:20], drawn["duplicated"][20:])
    assert np.linalg.matrix_rank(drawn["few_rows"]) < 10
    assert np.linalg.matrix_rank(drawn["rank_deficient"]) == 4
    units = np.sqrt(np.diag(drawn["unscaled"]))
    assert units.max() / units.min() == pytest.approx(10.0**hard.ORDERS)
    assert np.linalg.eigvalsh(drawn["factor1"])[-1] > 20.0


def test_problems_survive_the_file(tmp_path):
    problem = sparse_graph(20).bounded()
    problem.save(tmp_path / "problem.npz")
    back = Problem.load(tmp_path / "problem.npz")
    assert (back.name, back.coupling, back.anchor, back.asked) == (problem.name, 0.0, None, problem.asked)
    assert np.array_equal(back.emp_cov, problem.emp_cov)
    assert np.array_equal(back.lower_bounds, problem.lower_bounds)


@pytest.mark.parametrize(("needs", "first", "tried"), [(3, 0, [0, 1, 2, 3]), (3, 2, [2, 3]), (1, 3, [3, 2, 1, 0])])
def test_the_loosest_tolerance_that_passes_is_found(needs, first, tried):
    ladder = [1e-2, 1e-3, 1e-4, 1e-5]
    attempts = list(climb(lambda tol: Attempt(tol, 0.0, 0.0 if tol <= ladder[needs] else 1.0), ladder, first))
    assert [ladder.index(attempt.tol) for attempt in attempts] == tried
    assert max(attempt.tol for attempt in attempts if attempt.passed) == ladder[needs]


def test_a_row_measured_again_is_replaced(tmp_path):
    path = tmp_path / "rows.csv"
    merge(path, [Row("a", 10, "x", "certified", 1.0), Row("b", 10, "x", "skipped", note="why, and how")])
    merge(path, [Row("a", 10, "x", "failed", note="it raised")])
    assert [(row.problem, row.status, row.seconds, row.note) for row in read(path)] == [
        ("a", "failed", None, "it raised"),
        ("b", "skipped", None, "why, and how"),
    ]


def test_an_absent_peer_says_why():
    absent = Solver()
    absent.package = "no_such_package"
    assert "no_such_package is not installed" in absent.available()


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-3])
def test_the_gap_from_rows_is_the_dense_one_or_a_little_more(noise, rng):
    """Both are bounds of one distance; the one that holds no N x N matrix may be looser, not tighter than the truth."""
    problem = from_rows("blocks", 60)
    l1 = float(problem.l1_penalties[0])
    (theta,) = SOLVERS["precisionnet"].solve(problem, 1e-10)
    theta = theta.toarray()
    optimum = loss(theta, problem.emp_cov, l1)
    theta[theta != 0.0] += noise * rng.standard_normal(np.count_nonzero(theta))
    theta = 0.5 * (theta + theta.T)
    gap = relative_gap_from_rows(sparse.csr_array(theta), problem.rows, l1)
    true = loss(theta, problem.emp_cov, l1) - optimum
    assert true <= gap * max(60, abs(optimum)) * (1.0 + 1e-6) + 1e-12
    assert gap <= 3.0 * relative_gap(theta, problem.emp_cov, l1) + 1e-12
    assert noise or gap < 1e-9


def test_nothing_is_proved_from_rows_for_what_is_not_a_precision():
    rows = np.random.default_rng(0).standard_normal((30, 3))
    for wrong in (
        np.diag([1.0, -1.0, 1.0]),
        np.zeros((3, 3)),
        np.full((3, 3), np.nan),
        np.ones((3, 3)),
        9.0 * np.eye(3),
    ):
        assert relative_gap_from_rows(sparse.csr_array(wrong), rows, 0.1) == np.inf


def test_problems_without_room_for_a_covariance_are_solved_and_skipped_with_the_reason(tmp_path):
    """A slice of the run: the problem travels through its file, the solver climbs its ladder, the gap decides."""
    whole = from_rows("blocks", 60)
    Problem(whole.name, NO_MATRIX, whole.l1_penalties, rows=whole.rows).save(tmp_path / "problem.npz")
    problem = Problem.load(tmp_path / "problem.npz").bounded()
    assert (problem.n, problem.has_covariance, problem.asked) == (60, False, 1e-6)
    said = []
    serve(SOLVERS["precisionnet"], problem, 0, True, lambda event, **what: said.append((event, what)))
    assert [event for event, _ in said][:3] == ["began", "checking", "tried"]
    assert min(what["gap"] for event, what in said if event == "tried") <= 1e-6
    assert said[-1][0] == "done"
    assert said[-1][1]["inversion"] is None
    for name in list(SOLVERS)[1:]:
        assert "takes a covariance, which has no room at N = 60" in SOLVERS[name].unsuited(problem)


def test_the_catalogue_goes_from_50_to_100_000_variables_and_is_listed_with_every_solver():
    cases = list(catalogue(quick=False))
    assert len({(case.name, case.n) for case in cases}) == len(cases)
    assert min(case.n for case in cases) == 50
    assert max(case.n for case in cases) == 100_000
    lines = list(listed(False, ["from_rows", "sparse_rule"], 20_000))
    assert [line.split()[0] for line in lines[:3]] == ["sparse_rule", "from_rows_blocks", "from_rows_band"]
    (line, *_) = listed(False, ["from_rows_blocks"], 50_000, 15_000)
    assert line.split() == ["from_rows_blocks", "N", "=", "20,000"]
    assert "20,000" in lines[1]
    assert "100,000" not in "".join(lines)
    assert {line[:20].strip() for line in lines[-len(SOLVERS) :]} == set(SOLVERS)


def test_a_problem_and_a_solver_that_were_added_run(monkeypatch):
    """By name and by size, in this process: the worker is replaced, the rest is that of every run."""
    from benchmarks.precision import run
    from benchmarks.precision.supervise import Outcome

    class Added(Solver):
        name, package, ladder = "added", "numpy", (1.0, 2.0)

        def solve(self, problem, tol):
            w = np.sign(0.7) * max(0.7 - float(problem.l1_penalties[0]), 0.0)
            return [np.linalg.inv(np.array([[1.0, w * (tol > 1.0)], [w * (tol > 1.0), 1.0]]))]

    class Here:
        def __init__(self, name):
            self.reason, self.versions = None, {}
            self.solver = SOLVERS[name]

        def start(self):
            pass

        def stop(self):
            pass

        def solve(self, path, limit, *, first, yardstick):
            outcome = Outcome()

            def tell(event, **what):
                if event == "tried":
                    rung = what.pop("rung")
                    outcome.attempts.append(Attempt(**what))
                    outcome.rung = rung if outcome.attempts[-1].passed else outcome.rung

            serve(self.solver, Problem.load(path), first, yardstick, tell)
            return outcome

    case = Case("two", 2, lambda: Problem("two", np.array([[1.0, 0.7], [0.7, 1.0]]), np.array([0.2])))
    monkeypatch.setitem(SOLVERS, "added", Added())
    monkeypatch.setattr(run, "Worker", Here)
    monkeypatch.setattr(run, "catalogue", lambda quick: [case])
    monkeypatch.setattr("benchmarks.precision.measure.REPEAT_SECONDS", 0.0)
    (row,) = measured(False, ["two"], 10, 60.0, ["added"])
    assert (row.problem, row.solver, row.status) == ("two", "added", "certified")
    assert row.gap < 1e-12
    assert not list(measured(False, ["two"], 1, 60.0, ["added"]))


@pytest.mark.slow
def test_quick_run_certifies_ours_and_gives_every_peer_a_row(tmp_path):
    """R is taken off the path, so that one peer is absent wherever this runs."""
    environment = {**os.environ, "PATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.precision.run", "--quick", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = {row.key: row for row in read(tmp_path / "out" / "precision_bench.csv")}
    for case in catalogue(quick=True):
        for solver in SOLVERS:
            row = rows[case.name, case.n, solver]
            if row.status == "skipped":
                assert row.note, row
                assert solver != "precisionnet" or "PRECISIONNET_DATA" in row.note
            elif solver == "precisionnet":
                assert row.status == "certified", row
                assert row.gap <= 1e-6
                assert row.inversions > 0
    assert "Rscript" in rows["sparse_rule", 24, "R glasso"].note
    assert rows["sparse_rule", 24, "scikit-learn tuned"].status == "certified"
    assert {problem for problem, *_ in rows} >= {"first_call", "large_rule", "large_true"}
    assert "| asked | measured | met |" in (tmp_path / "out" / "precision_bench.md").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "precision_bench.svg").stat().st_size > 1000
