"""Who solves: one class a solver, each in its own conventions, all brought to the objective of ``measure.py``.

``tol`` is the rung of the ladder; each class says what it means there. Where a solver has two tolerances they are
tightened together, in the proportion that was fastest for it over all the problems here. Limits of iterations are the
solver's own defaults: higher ones only made the two coordinate descents slower.

``SOLVERS``, at the end, is the one list, ours first. A further solver is a class with ``name``, ``package`` (what must
be importable) and ``solve``, and one more entry there; ``unsuited`` says which problems it cannot be given, and why.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.precision.measure import CERTIFIED, LADDER
from benchmarks.precision.problems import Answer, Problem
from benchmarks.scale.solver import PENALTY, draw

ADMM_ITERATIONS = 10_000
WITHOUT_ROOM = 6e6
"""Bytes in which 400 columns have no room for dense matrices, so that the kernels of sparse factors are compiled."""


class Solver:
    """What the others share: availability, the clock, and a small run that compiles whatever is compiled."""

    name = ""
    package = ""
    ladder = LADDER

    def available(self) -> str | None:
        """None, or why it cannot run here."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed: pip install -e '.[bench]'"
        return None

    def unsuited(self, problem: Problem) -> str | None:
        """None, or why it cannot solve this problem."""
        if not problem.has_covariance:
            return f"takes a covariance, which has no room at N = {problem.n:,}"
        return "has no quadratic term" if problem.coupling > 0 else None

    def versions(self) -> dict[str, str]:
        """Its own version."""
        return {self.package: version(self.package)}

    def solve(self, problem: Problem, tol: float) -> Sequence[Answer]:
        """One precision matrix a penalty, dense or of scipy.sparse."""
        raise NotImplementedError

    def timed(self, problem: Problem, tol: float) -> tuple[float, Sequence[Answer]]:
        """Seconds, and what ``solve`` returned."""
        started = time.perf_counter()
        answers = self.solve(problem, tol)
        return time.perf_counter() - started, answers

    def warm_up(self) -> None:
        """Compile and import."""
        emp_cov = 0.5 ** np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
        self.timed(Problem("warm-up", emp_cov, np.array([0.3, 0.2])), 1e-4)


class Ours(Solver):
    """``tol`` is the proved relative gap itself. From rows where a problem has them."""

    name = "precisionnet"
    package = "precisionnet"
    ladder = tuple(CERTIFIED * 10.0**-k for k in range(6))

    def unsuited(self, problem: Problem) -> None:
        """It solves all of them."""

    def warm_up(self) -> None:
        """Kernels for small, middling and large problems and for rows; they are kept on disk once compiled."""
        from precisionnet.precision import graphical_lasso_from_rows

        super().warm_up()
        for size in (500, 2000):
            emp_cov = 0.5 ** np.abs(np.subtract.outer(np.arange(float(size)), np.arange(float(size))))
            self.timed(Problem("warm-up", emp_cov, np.array([0.3])), 1e-4)
        for memory in (None, WITHOUT_ROOM):
            graphical_lasso_from_rows(draw("band", 400), PENALTY["band"], tol=1e-4, max_memory=memory)

    def solve(self, problem: Problem, tol: float) -> Sequence[Answer]:
        """One call, or one path."""
        from precisionnet.precision import graphical_lasso, graphical_lasso_from_rows, graphical_lasso_path

        if problem.rows is not None:
            return [graphical_lasso_from_rows(problem.rows, float(problem.l1_penalties[0]), tol=tol).precision]
        if len(problem.l1_penalties) > 1:
            return [r.precision for r in graphical_lasso_path(problem.emp_cov, problem.l1_penalties, tol=tol)]
        tie = {"coupling": problem.coupling, "anchor": problem.anchor, "init": problem.init}
        return [graphical_lasso(problem.emp_cov, float(problem.l1_penalties[0]), tol=tol, **tie).precision]


class ScikitLearn(Solver):
    """Coordinate descent; the diagonal is not penalised. Asked, as a user would, for what is wanted: a gap of 1e-6.

    ``tol`` bounds its own, absolute estimate of the gap, so it is N times the rung.
    """

    name = "scikit-learn"
    package = "sklearn"
    ladder = tuple(CERTIFIED * 10.0**-k for k in range(4))

    def versions(self) -> dict[str, str]:
        """Under its other name."""
        return {"scikit-learn": version("scikit-learn")}

    def solve(self, problem: Problem, tol: float) -> list[np.ndarray]:
        """Down the path each penalty starts at its neighbour's covariance, as GraphicalLassoCV does it."""
        from sklearn.covariance import graphical_lasso
        from sklearn.covariance._graph_lasso import _graphical_lasso

        options = self.options(problem.n, tol)
        if len(problem.l1_penalties) == 1:
            return [graphical_lasso(problem.emp_cov, float(problem.l1_penalties[0]), **options)[1]]
        covariance, answers = problem.emp_cov, []
        for l1 in problem.l1_penalties:
            covariance, theta, *_ = _graphical_lasso(problem.emp_cov, float(l1), cov_init=covariance, **options)
            answers.append(theta)
        return answers

    def options(self, n: int, tol: float) -> dict[str, float]:
        """What a user would set."""
        return {"tol": tol * n}


class ScikitLearnTuned(ScikitLearn):
    """The best settings there are for it, found by trying: the loosest whose answer turns out to be good enough.

    Its own gap has a sign and hovers around ``tol`` for up to a hundred sweeps; asked for less, it stops tens of times
    sooner with much the same answer, but only somebody who can measure the answer knows.
    """

    name = "scikit-learn tuned"
    ladder = Solver.ladder

    def options(self, n: int, tol: float) -> dict[str, float]:
        """Two tolerances that fit each other."""
        return {"tol": tol * n, "enet_tol": tol}


class Skglm(Solver):
    """Dual coordinate descent; the diagonal is not penalised. ``inner_tol`` is the rung, ``tol`` N times that."""

    name = "skglm"
    package = "skglm"

    def available(self) -> str | None:
        """Before 0.5 it had no graphical lasso."""
        reason = super().available()
        if reason is None and importlib.util.find_spec("skglm.covariance") is None:
            reason = f"skglm {version('skglm')} has no graphical lasso"
        return reason

    def solve(self, problem: Problem, tol: float) -> list[np.ndarray]:
        """Each penalty from scratch: the dual algorithm has no warm start, and the primal one is slower."""
        from skglm.covariance import GraphicalLasso

        answers = []
        for l1 in problem.l1_penalties:
            model = GraphicalLasso(alpha=float(l1), algo="dual", tol=tol * problem.n, inner_tol=tol)
            answers.append(model.fit(problem.emp_cov, mode="precomputed").precision_)
        return answers


class Gglasso(Solver):
    """ADMM; by default the diagonal is not penalised. ``tol`` and ``rtol`` are the rung; Theta is the sparse half."""

    name = "gglasso"
    package = "gglasso"

    def solve(self, problem: Problem, tol: float) -> list[np.ndarray]:
        """From the identity, then from the neighbour's Omega, as its own grid search does it."""
        from gglasso.solver.single_admm_solver import ADMM_SGL

        omega, answers = np.eye(problem.n), []
        for l1 in problem.l1_penalties:
            with contextlib.redirect_stdout(io.StringIO()):
                solution, _ = ADMM_SGL(problem.emp_cov, float(l1), omega, tol=tol, rtol=tol, max_iter=ADMM_ITERATIONS)
            omega = solution["Omega"]
            answers.append(solution["Theta"])
        return answers


class RGlasso(Solver):
    """Friedman, Hastie and Tibshirani's own, ``penalize.diagonal = FALSE``; ``thr`` is the rung. Timed inside R."""

    name = "R glasso"
    script = Path(__file__).with_name("glasso.R")

    def available(self) -> str | None:
        """R, and the package."""
        if shutil.which("Rscript") is None:
            return "R is not installed (no Rscript on the path)"
        if not _r('cat(requireNamespace("glasso", quietly = TRUE))').endswith("TRUE"):
            return "R has no package glasso: install.packages('glasso')"
        return None

    def versions(self) -> dict[str, str]:
        """R's and the package's."""
        found = _r('cat(as.character(getRversion()), as.character(packageVersion("glasso")))')
        return dict(zip(("R", "glasso"), found.split(), strict=True))

    def timed(self, problem: Problem, tol: float) -> tuple[float, list[np.ndarray]]:
        """Files there and back; the seconds are R's own, around ``glasso()`` only."""
        with tempfile.TemporaryDirectory() as folder:
            problem.emp_cov.tofile(Path(folder) / "emp_cov.bin")
            problem.l1_penalties.tofile(Path(folder) / "penalties.bin")
            command = ["Rscript", "--vanilla", str(self.script), folder, str(problem.n), repr(tol)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip().splitlines()[0] if done.stderr.strip() else "R gave up")
            answers = np.fromfile(Path(folder) / "precisions.bin").reshape(-1, problem.n, problem.n)
        return float(done.stdout.split()[-1]), list(answers)


def _r(expression: str) -> str:
    done = subprocess.run(["Rscript", "--vanilla", "-e", expression], capture_output=True, text=True, check=False)
    return done.stdout.strip()


_ALL = Ours(), ScikitLearn(), ScikitLearnTuned(), Skglm(), Gglasso(), RGlasso()
SOLVERS: dict[str, Solver] = {solver.name: solver for solver in _ALL}
PEERS = tuple(SOLVERS)[1:]
