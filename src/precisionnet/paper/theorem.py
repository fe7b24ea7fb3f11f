r"""Theorem 1, measured: how far the minimiser of Step 1 is from the true precision.

    || theta - theta_0 ||_F  <=  m_1 sqrt((N + S) log N / T)  +  m_2 || theta_0 - theta_task ||_*^(1/2)

with S non-zero off-diagonal entries of theta_0, l1_penalty = l1_scale sqrt(log N / T), ridge 0 and Gaussian rows; the
linear bounds of ``theorem_bounds`` stand beside it. One quantity is varied at a time, the others stay at ``base``:

- n_samples T, n_features N and sparsity S without coupling (the second term is then not there);
- n_samples once more with theta_task at the truth and at a distance from it;
- the nuclear distance of theta_task, as one direction (all of it in one eigenvalue) and as all directions at once.

The constants of the theorem depend on the eigenvalues of theta_0. So its condition number is the same everywhere, and
every feature has the same number of neighbours, S / N of them, in a random graph. With edges dealt at random the
largest number of neighbours would grow with N, and at one condition number the edges would fade: constants would drift.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy.linalg import cholesky, eigvalsh, solve_triangular

from precisionnet.datasets import make_sparse_precision
from precisionnet.errors import FitDivergedError, InputError
from precisionnet.evaluation.protocol import draw_hash, repeat_seed
from precisionnet.linalg import count_zeros
from precisionnet.paper.config import Config
from precisionnet.paper.theorem_bounds import BoundTerms, linear_bound, sharper_bound, tau
from precisionnet.parameters import BY_NAME
from precisionnet.precision import graphical_lasso, spectral_bound
from precisionnet.runner.jobs import Experiment, Finished, Job, Row
from precisionnet.types import FloatArray, IndexArray

CONDITION_NUMBER = 10.0
"""Condition number of every true precision."""
TASK_WEIGHT: float = BY_NAME["task_weight"].of("paper")
"""alpha of the paper: Step 1 weighs the graphical lasso by 1 - alpha."""
FAR = 1.0
"""Nuclear distance of theta_task in the sweep over T: not at the truth."""
DIRECTIONS = ("one", "all")
"""theta_task leaves the truth along one eigenvector, or with all eigenvalues at once."""
PLAIN, ANCHORED = "glasso", "anchored"
"""Step 1 without coupling, and with it."""


@dataclass(frozen=True)
class Theorem:
    """The work of one job: draw rows, solve Step 1, and measure how far off it is."""

    l1_scale: float
    coupling: float

    def __call__(self, job: Job, earlier: Row | None, scratch: Path | None) -> Finished:
        """Solve once."""
        started = time.perf_counter()
        n, size, edges = (int(job.setting[name]) for name in ("n_samples", "n_features", "n_edges"))
        # One truth for every T and every theta_task of a repeat, so that only what is varied changes.
        theta_true = draw_truth(size, edges, np.random.default_rng([job.seed, 0, size, edges]))
        emp_cov = draw_covariance(theta_true, n, np.random.default_rng([job.seed, 1, size, edges, n]))
        rate = float(np.sqrt(np.log(size) / n))
        coupled: dict[str, Any] = {}
        if job.method == ANCHORED:
            distance, direction = float(job.setting["nuclear_distance"]), str(job.setting["direction"])
            away = draw_direction(direction, size, np.random.default_rng([job.seed, 2, size]))
            coupled = {"anchor": theta_true + distance * away, "coupling": self.coupling / (1.0 - TASK_WEIGHT)}
        bound = spectral_bound(emp_cov)
        solved = graphical_lasso(emp_cov, self.l1_scale * rate, spectral_bound=bound, **coupled)
        if not solved.converged:
            raise FitDivergedError(f"Step 1 with N = {size} and T = {n} was not solved: {solved.message}.")
        values = eigvalsh(theta_true)
        row: Row = {
            "sparsity": (size + 2 * edges) / size**2,
            "frobenius_error": float(np.linalg.norm(solved.precision - theta_true)),
            "bound_term": float(np.sqrt(size + 2 * edges)) * rate,
            "l1_penalty": self.l1_scale * rate,
            "k_min": float(1.0 / values[-1]),
            "k_max": float(1.0 / values[0]),
            "spectral_bound": bound,
            "bound_active": solved.bound_active,
            "n_zeros": count_zeros(solved.precision),
            "density": 1.0 - count_zeros(solved.precision) / size**2,
            "gap": solved.gap,
            "fit_seconds": solved.seconds,
        }
        noise = emp_cov - np.linalg.inv(theta_true)
        row |= self._bounds(row, noise, rate, coupled["anchor"] - theta_true if coupled else None)
        return Finished(row | {"tune_seconds": time.perf_counter() - started})

    def _bounds(self, row: Row, noise: FloatArray, rate: float, away: FloatArray | None) -> Row:
        """Return the paper's bound and the linear ones, with the c_1 and c_2 that this noise of the covariance needs.

        The proofs ask for a penalty that covers the noise off the diagonal; where it does not, there is no bound. tau
        of the paper's constants contains the error that was measured.
        """
        k_min, diagonal = row["k_min"], np.diag(noise)
        c1 = float(np.abs(noise - np.diag(diagonal)).max()) / rate
        c2 = float(np.linalg.norm(diagonal)) / row["bound_term"]
        slope = c1 + self.l1_scale + c2
        coupling = 0.0 if away is None else self.coupling
        nuclear, frobenius = (0.0, 0.0) if away is None else (_nuclear(away), float(np.linalg.norm(away)))
        largest = max(4.0, tau(k_min, row["frobenius_error"]))
        m1 = 4.0 * largest * slope / k_min**2
        c3 = 1.0 / k_min + row["spectral_bound"]
        m2 = float(np.sqrt(4.0 * largest * c3 * coupling / (1.0 - TASK_WEIGHT))) / k_min
        terms = BoundTerms(k_min, slope * row["bound_term"], TASK_WEIGHT, coupling, frobenius)
        bounds = {
            "paper_bound": m1 * row["bound_term"] + m2 * float(np.sqrt(nuclear)),
            "linear_bound": linear_bound(terms),
            "sharper_bound": sharper_bound(terms),
        }
        covered = c1 <= self.l1_scale
        return {
            "penalty_covers_noise": covered,
            "frobenius_distance": frobenius,
            **({"proof_m1": m1 if covered else None} if away is None else {"proof_m2": m2}),
            **{name: value if covered and np.isfinite(value) else None for name, value in bounds.items()},
        }


def _nuclear(matrix: FloatArray) -> float:
    return float(np.abs(eigvalsh(matrix)).sum())


def theorem_experiment(config: Config) -> Experiment:
    """Build all sweeps of ``config.data``."""
    data = config.data
    return Experiment(
        name=config.name,
        config=config.hashed(),
        data_hash=draw_hash({"drawn": "theorem", "data": dict(data), "seed": config.seed}),
        jobs=tuple(_jobs(config)),
        work=Theorem(data["l1_scale"], data["coupling"]),
        metrics=("frobenius_error",),
        about={
            "kind": "theorem",
            "title": "Theorem 1: how far the estimate is from the true precision",
            "source": "drawn",
            "description": (
                f"Gaussian rows from a sparse precision with condition number {CONDITION_NUMBER:g} in which every "
                "feature has the same number of neighbours; Step 1 of the paper solved to its minimum, with an l1 "
                f"penalty of {data['l1_scale']:g} sqrt(log N / T)."
            ),
            "base": dict(data["base"]),
            "l1_scale": data["l1_scale"],
            "coupling": data["coupling"],
            "notes": [],
            "expected": dict(config.expected),
        },
    )


def _jobs(config: Config) -> Iterable[Job]:
    data, base = config.data, config.data["base"]
    size, n = base["n_features"], base["n_samples"]
    degree = neighbours(base["sparsity"], size)
    levels = {level: neighbours(level, size) for level in data["sparsity"]}
    if len(set(levels.values())) < len(levels):
        raise InputError(
            f"data.sparsity holds levels that are the same graph with {size} features: neighbours of a feature are "
            f"{', '.join(f'{count} at {level:g}' for level, count in levels.items())}; leave some out."
        )
    sweeps: list[tuple[str, dict[str, Any]]] = []
    for T in sorted(data["n_samples"]):
        here = _setting("n_samples", T, size, degree)
        sweeps.append((PLAIN, here))
        sweeps += [(ANCHORED, here | {"nuclear_distance": away, "direction": "one"}) for away in (0.0, FAR)]
    sweeps += [(PLAIN, _setting("n_features", n, N, degree)) for N in sorted(data["n_features"])]
    sweeps += [(PLAIN, _setting("sparsity", n, size, count)) for count in sorted(levels.values())]
    here = _setting("nuclear_distance", n, size, degree)
    sweeps.append((PLAIN, here))
    for direction in DIRECTIONS:
        distances = sorted({0.0, *data["distances"]})
        sweeps += [(ANCHORED, here | {"nuclear_distance": away, "direction": direction}) for away in distances]
    for repeat in range(config.repeats):
        for method, setting in sweeps:
            yield Job(method, repeat, repeat_seed(config.seed, repeat), setting)


def _setting(vary: str, n_samples: int, n_features: int, degree: int) -> dict[str, Any]:
    if degree >= n_features or n_features * degree % 2:
        raise InputError(
            f"There is no graph of {n_features} features with {degree} neighbours each: choose another number of "
            "features or another sparsity; the number of neighbours is sparsity times the base's n_features, less one."
        )
    return {"vary": vary, "n_samples": n_samples, "n_features": n_features, "n_edges": n_features * degree // 2}


def neighbours(sparsity: float, n_features: int) -> int:
    """Return the number of neighbours of each feature at this share of non-zero entries."""
    count = round(sparsity * n_features) - 1
    if count < 1:
        raise InputError(
            f"A sparsity of {sparsity:g} leaves {n_features} features without an edge: the smallest is "
            f"{2 / n_features:g}."
        )
    return count


def draw_truth(n_features: int, n_edges: int, rng: np.random.Generator) -> FloatArray:
    """Draw theta_0: every feature has 2 n_edges / n_features neighbours, the condition number is always the same."""
    edges = regular_graph(n_features, 2 * n_edges // n_features, rng)
    return make_sparse_precision(n_features, None, rng, CONDITION_NUMBER, edges)


def regular_graph(n_features: int, degree: int, rng: np.random.Generator) -> IndexArray:
    """Draw the edges of a random graph in which every feature has ``degree`` neighbours."""
    few = min(degree, n_features - 1 - degree)  # the complement of a dense one is sparse, and quick to draw
    graph = nx.random_regular_graph(few, n_features, seed=rng)
    graph = graph if few == degree else nx.complement(graph)
    edges = np.array(sorted(sorted(edge) for edge in graph.edges), dtype=np.intp)
    return edges.reshape(-1, 2)


def draw_covariance(theta_true: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """Draw rows with mean zero and return X'X / T, as the theorem has it."""
    factor = cholesky(theta_true, lower=True)
    X = solve_triangular(factor, rng.standard_normal((len(theta_true), n_samples)), lower=True, trans="T")
    return X @ X.T / n_samples


def draw_direction(direction: str, n_features: int, rng: np.random.Generator) -> FloatArray:
    """Draw a symmetric matrix of nuclear norm one."""
    if direction == "one":
        v = rng.standard_normal(n_features)
        return np.outer(v, v) / (v @ v)
    away = rng.standard_normal((n_features, n_features))
    away = away + away.T
    return away / np.abs(eigvalsh(away)).sum()
