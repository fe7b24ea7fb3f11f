r"""Problem (7) of the paper: the objective, its data and its weights.

    minimise over h, theta, theta_task
        task_weight * L_task(y, Phi(X, theta_task, h)) + l2_penalty * ||h||^2
        + (1 - task_weight) * [ tr(C theta) - log det(theta + ridge I) + l1_penalty * sum_{i != j} |theta_ij| ]
        + coupling / 2 * || theta - theta_task ||_F^2
    subject to  0 <= theta <= spectral_bound * I

This is the definition the code follows, also where the printed listing of Algorithm 1 drops a factor.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from precisionnet.linalg import hard_threshold_off_diagonal, soft_threshold_off_diagonal
from precisionnet.nn import scale_to_unit_norm
from precisionnet.parameters import FROM_GLASSO, Settings
from precisionnet.precision import (
    PrecisionResult,
    graphical_lasso,
    graphical_lasso_terms,
    sample_precision,
    spectral_bound,
)
from precisionnet.sparse_matrices import Matrix, is_sparse
from precisionnet.types import BoolArray, FloatArray, IndexArray, MethodName

TaskLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(network output, target, sample weight) -> weighted mean loss over the rows; of each member, where several come."""

Metric = Callable[[Tensor, Tensor, Tensor], float]
"""(network output, target, sample weight) -> the number a user reads, in the target's own units."""

PRECISION_TOL = 1e-10
"""Relative gap to which theta is solved: what the task moves in an epoch is small, and must not drown in its error."""

CACHED = 64
"""Solutions a cache remembers; more than a grid has penalties."""


@dataclass(frozen=True)
class TensorRows:
    """Samples as the network takes them.

    Parameters
    ----------
    x : Tensor of shape (n_samples, n_nodes, 1)
        Features.
    y : Tensor of shape (n_samples,) or (n_targets * n_samples,)
        Target, in standard units or as class index. Several targets of the same rows stand one after the other: row
        ``k * n_samples + i`` is row ``i`` with target ``k``.
    weight : Tensor of shape (n_samples,)
        How often each row counts.
    """

    x: Tensor
    y: Tensor
    weight: Tensor

    def __getitem__(self, index: Tensor) -> TensorRows:
        row = index if len(self.y) == len(self.x) else index % len(self.x)
        return TensorRows(self.x[row], self.y[index], self.weight[row])


class RowWindows(Protocol):
    """Rows of a table that does not fit into memory: each epoch has a window of them."""

    def of_epoch(self, epoch: int) -> tuple[TensorRows, IndexArray]:
        """Return the epoch's rows, and the fold of each."""
        ...


@dataclass(frozen=True)
class GraphTerms:
    """The part of the objective that needs no rows: covariance, penalties and bounds."""

    emp_cov: FloatArray
    l1_penalty: float
    task_weight: float
    coupling: float
    ridge: float
    spectral_bound: float
    usual_penalty: float = 0.0
    """sqrt(log N / T), the penalty at ``l1_scale=1``."""
    covariance_threshold: Literal["hard", "soft"] | None = None
    """How ``vnn`` makes its covariance sparse; the penalty is the threshold."""

    @classmethod
    def of(cls, settings: Settings, emp_cov: Matrix, n_rows: float) -> GraphTerms:
        """Return the terms of a covariance estimated from ``n_rows`` rows; the true one has infinitely many.

        Of a sparse support ``emp_cov`` has the variances alone: no covariance of all pairs is stored, and the bound is
        that of more columns than rows.
        """
        rate, bound = float(np.sqrt(np.log(emp_cov.shape[0]) / n_rows)), settings.spectral_bound
        stored = np.empty((0, 0)) if is_sparse(emp_cov) else emp_cov
        if bound is None and is_sparse(emp_cov):
            bound = spectral_bound(np.diag([0.0, 2.0 * float(emp_cov.diagonal().mean())]))
        return cls(
            emp_cov=stored,
            l1_penalty=settings.l1_scale * rate if settings.l1_penalty is None else settings.l1_penalty,
            task_weight=settings.task_weight,
            coupling=settings.coupling if settings.method == "joint" else 0.0,  # the others have one matrix
            ridge=settings.ridge,
            spectral_bound=spectral_bound(emp_cov) if bound is None else bound,
            usual_penalty=rate,
            covariance_threshold=settings.covariance_threshold,
        )

    def network_covariance(self) -> FloatArray:
        """Return the covariance that ``vnn`` runs on: the sample's, or a sparse one (Cavallo, Gao and Isufi 2024)."""
        if self.covariance_threshold is None:
            return self.emp_cov.copy()
        if self.covariance_threshold == "hard":
            return hard_threshold_off_diagonal(self.emp_cov, self.l1_penalty)
        return soft_threshold_off_diagonal(self.emp_cov, self.l1_penalty)

    def lightly_penalised(self, init: FloatArray) -> FloatArray:
        """Return the graphical lasso with the usual penalty, or with this problem's where that is smaller."""
        penalty = min(self.l1_penalty, self.usual_penalty)
        return graphical_lasso(
            self.emp_cov, penalty, spectral_bound=self.spectral_bound, ridge=self.ridge, init=init
        ).precision

    def solve(
        self,
        anchor: FloatArray | None = None,
        init: FloatArray | None = None,
        *,
        l1_penalty: float | None = None,
        known_zeros: BoolArray | None = None,
        tol: float = PRECISION_TOL,
    ) -> PrecisionResult:
        """Minimise problem (8) as written, Step 1: the graphical lasso, pulled towards ``anchor`` if there is one."""
        return graphical_lasso(
            self.emp_cov,
            self.l1_penalty if l1_penalty is None else l1_penalty,
            anchor=anchor,
            coupling=0.0 if anchor is None else self.coupling / (1.0 - self.task_weight),
            spectral_bound=self.spectral_bound,
            ridge=self.ridge,
            known_zeros=known_zeros,
            init=init,
            tol=tol,
        )


@dataclass(frozen=True)
class JointProblem:
    """The objective with its data and weights (see the head of this file)."""

    network: nn.Module
    rows: TensorRows
    task_loss: TaskLoss
    metric: Metric
    graph: GraphTerms
    l2_penalty: float
    scale_shift: bool
    windows: RowWindows | None = None
    """The rows that networks learn from, if these are not ``rows``, which are then a sample to judge them on."""

    def shift(self, matrix: Tensor) -> Tensor:
        """Return what the network runs on: ``matrix``, scaled, in the network's arithmetic and on its device."""
        scaled = scale_to_unit_norm(matrix) if self.scale_shift else matrix
        return scaled.to(dtype=self.rows.x.dtype, device=self.rows.x.device)

    def objective(
        self, theta: FloatArray, theta_task: FloatArray, l2_norm_squared: float, task_loss: float
    ) -> dict[str, float]:
        """Every term of the objective, weighted as it enters, and their sum."""
        graph, weight = self.graph, 1.0 - self.graph.task_weight
        lasso = graphical_lasso_terms(theta, graph.emp_cov, graph.l1_penalty, graph.ridge)
        distance = float(np.linalg.norm(theta - theta_task))
        terms = {
            "task_term": graph.task_weight * task_loss,
            "l2_term": self.l2_penalty * l2_norm_squared,
            "trace_term": weight * lasso.trace,
            "log_det_term": weight * lasso.neg_log_det,
            "l1_term": weight * lasso.l1,
            "coupling_term": 0.5 * graph.coupling * distance**2,
        }
        return {"objective": sum(terms.values()), **terms, "distance": distance}


@dataclass(frozen=True)
class Start:
    """Where a method begins: theta, the matrix the network runs on, and what the solver had to say."""

    theta: Matrix
    theta_task: Matrix
    note: str = ""

    @cached_property
    def norm(self) -> float:
        """Spectral norm of the matrix that the network runs on."""
        return float(np.linalg.norm(self.theta_task, 2))


class GlassoCache:
    """Graphical lassos that several fits start from, each solved once.

    A solution is known by covariance, penalty, ridge and bound, so it is the one that the fit itself would find.

    Examples
    --------
    >>> from precisionnet import PNNRegressor
    >>> from precisionnet.datasets import make_gaussian_regression
    >>> data, cache = make_gaussian_regression(60, 5, random_state=0), GlassoCache()
    >>> for readout in ("mean", "mlp"):  # the second run finds the solution of the first
    ...     model = PNNRegressor(readout=readout, max_epochs=1, random_state=0)
    ...     run = model.start_training(data.X, data.y, cache=cache)
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], PrecisionResult] = OrderedDict()

    def solve(self, graph: GraphTerms) -> PrecisionResult:
        """Return the graphical lasso of these terms, solved now or earlier.

        Parameters
        ----------
        graph : GraphTerms
            Covariance, penalties and bounds.

        Returns
        -------
        PrecisionResult
            The solution.
        """
        rows = hashlib.sha256(graph.emp_cov.tobytes()).digest()
        key = (rows, graph.l1_penalty, graph.ridge, graph.spectral_bound)
        if key not in self._known:
            self._known[key] = graph.solve()
            if len(self._known) > CACHED:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]


def start_of(method: MethodName, graph: GraphTerms, cache: GlassoCache | None = None) -> Start:
    """Return where a method begins.

    ``joint`` starts at the graphical lasso because that is the solution of its problem when the task has no say: Step 1
    stays there until Step 2 moves theta_task, so whatever changes was learned from the task.

    ==========  ==============================================
    method      theta and theta_task at the start
    ==========  ==============================================
    ``joint``   both the graphical lasso of the training rows
    ``naive``   the same
    ``glasso``  the same
    ``sample``  both the inverse of the sample covariance
    ``vnn``     theta as ``sample``; theta_task the covariance
    ==========  ==============================================

    With ``covariance_threshold`` the covariance of ``vnn`` is a sparse one.
    """
    if method in FROM_GLASSO:
        solved = graph.solve() if cache is None else cache.solve(graph)
        return Start(solved.precision, solved.precision.copy(), "" if solved.converged else solved.message)
    theta = sample_precision(graph.emp_cov)
    return Start(theta, theta.copy() if method == "sample" else graph.network_covariance())


def l2_norm_squared(tensors: list[Tensor]) -> float:
    """||h||^2 over these tensors."""
    return float(torch.stack([tensor.detach().square().sum() for tensor in tensors]).sum()) if tensors else 0.0
