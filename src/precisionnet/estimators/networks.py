r"""The networks of an ensemble: made by their kind, or by a function of the user's, and solved where they are
linear (a kernel machine is solved in ``kernel_machine``).

A linear network has filters of degree 0, no activation and a linear readout: f(x) = w'x + b with a weight for every
node. Its best weights need no gradient steps: they are the ridge regression of the target, and of classes the penalised
logistic regression. One network is solved for every fold, on the rows outside it; its penalty is the one that loses
least on the rows of the other folds. One more is solved on all rows, which is cheap, with the penalty that loses least
on all folds: it predicts.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, lasso_path
from torch import nn

from precisionnet.errors import InputError
from precisionnet.estimators.rows import Scaler
from precisionnet.estimators.targets import NumberTarget, Target
from precisionnet.kinds import Kind
from precisionnet.nn import PrecisionNetwork
from precisionnet.nn.network import seeded
from precisionnet.nn.readout import KernelReadout
from precisionnet.parameters import Settings
from precisionnet.types import FloatArray, IndexArray

NetworkFactory = Callable[[int, int], nn.Module]
"""(n_nodes, n_outputs) -> a network called as ``network(x, shift)``, x of shape (batch, nodes, 1)."""

RIDGE_PENALTIES = np.logspace(-6.0, 2.0, 33)
"""Weights of w'w beside the mean squared error, columns and target in standard units."""
LOGISTIC_PENALTIES = np.logspace(0.0, -5.0, 6)
"""Weights of w'w / 2 beside the mean log loss; from strong to weak, each starts where the one before ended."""

LASSO_PENALTIES = np.logspace(0.0, -2.0, 41)
"""Shares of the smallest penalty that leaves no column."""
SPARSE_LOGISTIC_PENALTIES = np.logspace(-0.2, -1.6, 8)
MANY_COLUMNS, TINY = 1000, 1e-14
"""Columns from which on ridge regression goes by the rows' products, and what of these is rounding."""

Solution = tuple[FloatArray, FloatArray]
"""Coefficients, (n_outputs, n_columns), and constants, (n_outputs,)."""


def new_network(
    settings: Settings,
    n_nodes: int,
    n_outputs: int,
    kind: Kind,
    factory: NetworkFactory | None = None,
    seed: int = 0,
    n_anchors: int = 0,
) -> nn.Module:
    """Return an untrained network; its first weights depend on the seed alone. ``n_anchors`` is for a kernel's."""
    if kind.kernel:
        return kernel_network(n_nodes, n_outputs, n_anchors)
    if kind.linear:
        return linear_network(n_nodes, n_outputs)
    n_filters, order = settings.n_filters, settings.order
    if kind.deep and isinstance(n_filters, int) and isinstance(order, int):
        n_filters, order = [n_filters, max(n_filters // 2, 1)], [order, 1]
    with seeded(seed):
        if factory is None:
            return PrecisionNetwork(
                n_nodes,
                n_outputs=n_outputs,
                n_layers=settings.n_layers,
                n_filters=n_filters,
                order=order,
                readout=kind.readout,
                readout_width=settings.readout_width,
                activation=settings.activation,
                batch_norm=settings.batch_norm,
                link=kind.link and n_outputs == 1,
            )
        made = copy.deepcopy(factory(n_nodes, n_outputs))  # a factory may hand out the same module every time
        if not isinstance(made, nn.Module):
            raise InputError(f"network must return a torch.nn.Module, got {type(made).__name__}.")
        _refuse_other_outputs(made, n_nodes, n_outputs)
    return made


@torch.no_grad()
def _refuse_other_outputs(network: nn.Module, n_nodes: int, n_outputs: int) -> None:
    """Call a foreign network once: what has another shape would be spread over the rows without a word."""
    output = copy.deepcopy(network).float().eval()(torch.zeros(2, n_nodes, 1), torch.eye(n_nodes))
    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    if shape != (2, n_outputs):
        raise InputError(
            f"The network must map x of shape (batch, {n_nodes}, 1) and a matrix to (batch, {n_outputs}); of two rows "
            f"it made {shape} in place of (2, {n_outputs})."
        )


def linear_network(n_nodes: int, n_outputs: int) -> nn.Module:
    """Return a network that is linear in its input.

    Parameters
    ----------
    n_nodes : int
        Columns.
    n_outputs : int
        Outputs.

    Returns
    -------
    PrecisionNetwork
        Filters of degree 0, no activation, a linear readout.
    """
    return _without_filters(n_nodes, n_outputs, "mlp")


def kernel_network(n_nodes: int, n_outputs: int, n_anchors: int) -> nn.Module:
    """Return a network whose readout is a kernel machine, in double precision.

    Parameters
    ----------
    n_nodes : int
        Columns.
    n_outputs : int
        Outputs.
    n_anchors : int
        Rows that it keeps.

    Returns
    -------
    PrecisionNetwork
        Filters of degree 0 whose weight is 1, no activation, ``KernelReadout``.
    """
    network = _without_filters(
        n_nodes, n_outputs, lambda _, features, outputs: KernelReadout(n_nodes * features, n_anchors, outputs)
    ).double()
    for name, value in network.layers.named_parameters():
        nn.init.constant_(value, 1.0 if name.endswith("weight") else 0.0)
    return network.eval()


def _without_filters(
    n_nodes: int, n_outputs: int, readout: str | Callable[[int | None, int, int], nn.Module]
) -> PrecisionNetwork:
    return PrecisionNetwork(
        n_nodes,
        n_outputs=n_outputs,
        n_layers=1,
        n_filters=1,
        order=0,
        readout=readout,
        readout_width=0,
        activation=nn.Identity,
        batch_norm=False,
    )


def linear_solutions(
    x: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    folds: Sequence[IndexArray],
    target: Target,
    *,
    lasso: bool = False,
) -> list[Solution]:
    """Solve a linear network for every fold, and one for all rows.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_columns)
        Training rows as the networks see them.
    y : ndarray of shape (n_rows,)
        Their targets in the table's units, or classes' numbers.
    weight : ndarray of shape (n_rows,)
        How often each row counts.
    folds : sequence of ndarray
        Rows that each network leaves out.
    target : NumberTarget or ClassTarget
        What is predicted.
    lasso : bool, default=False
        Penalise the weights' sizes in place of their squares, so that most are zero.

    Returns
    -------
    list of tuple of ndarray
        Solutions for columns as they come in ``x``, that of all rows last; none where a class stands in one fold alone.
    """
    scaler = Scaler.fit(x, weight)
    standard, known = scaler.transform(x), target.tensor(y)
    counts = torch.from_numpy(weight)
    paths = []
    numbers = _lasso_path if lasso else _ridge_path
    classes = _sparse_logistic_path if lasso else _logistic_path
    for fold in (*folds, np.array([], dtype=np.intp)):
        rows = np.setdiff1d(np.arange(len(x)), fold)
        if isinstance(target, NumberTarget):
            paths.append(numbers(standard[rows], known.numpy()[rows], weight[rows]))
        elif len(np.unique(y[rows])) < target.n_outputs:
            return []
        else:
            paths.append(classes(standard[rows], y[rows], weight[rows]))
    losses = np.zeros((len(paths), len(paths[0])))  # the last one has left nothing out
    for place, fold in enumerate(folds):
        left = torch.from_numpy(fold)
        for i, (coefficients, constant) in enumerate(paths[place] if len(fold) else []):
            output = torch.from_numpy(standard[fold] @ coefficients.T + constant)
            losses[place, i] = float(target.task_loss(output, known[left], counts[left])) * float(weight[fold].sum())
    elsewhere = losses.sum(axis=0) - losses  # by the other folds: a fold's rows have no say in their own prediction
    best = np.where(elsewhere.any(axis=1), elsewhere.argmin(axis=1), losses.shape[1] // 2)
    chosen = [path[int(i)] for path, i in zip(paths, best, strict=True)]
    in_units = [(coefficients / scaler.scale, constant) for coefficients, constant in chosen]
    return [(coefficients, constant - coefficients @ scaler.mean) for coefficients, constant in in_units]


def solved_network(solution: Solution) -> nn.Module:
    """Return the linear network of a solution, in double precision, ready to predict."""
    coefficients, constant = solution
    network = linear_network(coefficients.shape[1], len(coefficients)).double().eval()
    state = {name: torch.zeros_like(value) for name, value in network.state_dict().items()}
    state["layers.0.filter.weight"] += 1.0
    state["readout.perceptron.0.weight"] = torch.from_numpy(coefficients)
    state["readout.perceptron.0.bias"] = torch.from_numpy(constant)
    network.load_state_dict(state)
    return network


def _ridge_path(x: FloatArray, y: FloatArray, weight: FloatArray) -> list[Solution]:
    """Ridge regression for every penalty, from one decomposition of the smaller of x'x and xx'."""
    share = weight / weight.sum()
    mean, middle = share @ x, float(share @ y)
    root = np.sqrt(share)
    scaled, wanted = root[:, None] * (x - mean), root * (y - middle)
    if max(len(x), MANY_COLUMNS) < x.shape[1]:  # the smaller product, and no decomposition of the long side
        values, u = np.linalg.eigh(scaled @ scaled.T)
        values = np.maximum(values, 0.0)
        singular = np.sqrt(np.maximum(values, TINY * values.max()))
        directions, along = (u.T @ scaled) / singular[:, None], singular * (u.T @ wanted)
    elif len(x) < x.shape[1]:
        u, singular, directions = np.linalg.svd(scaled, full_matrices=False)
        values, along = singular**2, singular * (u.T @ wanted)
    else:
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        values, directions, along = np.maximum(values, 0.0), vectors.T, vectors.T @ (scaled.T @ wanted)
    path = []
    for penalty in RIDGE_PENALTIES:
        coefficients = (along / (values + penalty)) @ directions
        path.append((coefficients[None], np.array([middle - coefficients @ mean])))
    return path


def _logistic_path(x: FloatArray, y: FloatArray, weight: FloatArray) -> list[Solution]:
    """Penalised logistic regression for every penalty; two classes have opposite logits."""
    model = LogisticRegression(max_iter=200, tol=1e-3, warm_start=True)
    path = []
    for penalty in LOGISTIC_PENALTIES:
        model.C = 1.0 / (penalty * float(weight.sum()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what is not found to the end has a higher loss
            model.fit(x, y, sample_weight=weight)
        coefficients, constant = np.array(model.coef_), np.array(model.intercept_)
        if len(coefficients) == 1:
            coefficients, constant = np.concatenate([-coefficients, coefficients]) / 2, np.repeat(constant, 2) / 2
            constant[0] *= -1
        path.append((coefficients, constant))
    return path


def _lasso_path(x: FloatArray, y: FloatArray, weight: FloatArray) -> list[Solution]:
    """Lasso for every penalty, from strong to weak."""
    share = weight / weight.sum()
    mean, middle = share @ x, float(share @ y)
    root = np.sqrt(share * len(x))
    scaled, wanted = np.asfortranarray(root[:, None] * (x - mean)), root * (y - middle)
    strongest = float(np.abs(scaled.T @ wanted).max()) / len(x)
    if strongest == 0.0:
        return [(np.zeros((1, x.shape[1])), np.array([middle]))] * len(LASSO_PENALTIES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is not found to the end has a higher loss
        _, found, _ = lasso_path(scaled, wanted, alphas=strongest * LASSO_PENALTIES, tol=1e-3, max_iter=2000)
    return [(one[None], np.array([middle - one @ mean])) for one in found.T]


def _sparse_logistic_path(x: FloatArray, y: FloatArray, weight: FloatArray) -> list[Solution]:
    """Logistic regression with an l1 penalty; of several classes one against the others."""
    labels = np.unique(y)
    sides = [labels[1]] if len(labels) == 2 else list(labels)
    paths = []
    for label in sides:
        positive = y == label
        share = weight / weight.sum()
        strongest = float(np.abs((share * (positive - share @ positive)) @ x).max()) * float(weight.sum())
        model = LogisticRegression(l1_ratio=1.0, solver="liblinear", tol=1e-3, max_iter=200, intercept_scaling=10.0)
        solutions = []
        for penalty in strongest * SPARSE_LOGISTIC_PENALTIES:
            model.C = 1.0 / max(penalty, np.finfo(float).tiny)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(x, positive, sample_weight=weight)
            solutions.append((model.coef_[0].copy(), float(model.intercept_[0])))
        paths.append(solutions)
    if len(sides) == 1:  # two classes have opposite logits
        return [(np.stack([-c, c]) / 2, np.array([-b, b]) / 2) for c, b in paths[0]]
    return [(np.stack([c for c, _ in each]), np.array([b for _, b in each])) for each in zip(*paths, strict=True)]
