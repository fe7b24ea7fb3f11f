"""The library on the same task, from the same weights."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from benchmarks.train.reference import Network
from benchmarks.train.task import Part, Shape, Task
from precisionnet.joint.algorithm1 import Algorithm1, Schedule
from precisionnet.joint.problem import GraphTerms, JointProblem, Start, TensorRows
from precisionnet.joint.trainer import Trainer
from precisionnet.nn import PrecisionNetwork


def training(
    task: Task,
    shape: Shape,
    like: Network,
    method: Literal["joint", "glasso"] = "joint",
    step1: Literal["exact", "paper"] = "exact",
    max_epochs: int = 10**6,
) -> Trainer:
    """Return a run that starts where the reference ``like`` does."""
    recipe = task.recipe

    def mae(output: Tensor, y: Tensor, weight: Tensor) -> float:
        return float((weight * (output[:, 0] - y).abs()).sum() / weight.sum()) * task.unit

    problem = JointProblem(
        network=_network(task, shape, like),
        rows=_rows(task.train),
        task_loss=_squared_error,
        metric=mae,
        graph=GraphTerms(
            emp_cov=task.emp_cov,
            l1_penalty=recipe.l1_penalty,
            task_weight=recipe.task_weight,
            coupling=recipe.coupling if method == "joint" else 0.0,
            ridge=recipe.ridge,
            spectral_bound=recipe.spectral_bound,
        ),
        l2_penalty=recipe.l2_penalty,
        scale_shift=True,
    )
    # Early stopping would end the run between two timings.
    steps = recipe.steps
    schedule = Schedule(recipe.learning_rate, steps, steps, steps, step1, max_epochs=max_epochs, patience=max_epochs)
    precision = task.start.precision
    start = Start(precision, precision.copy())
    return Trainer(Algorithm1(problem, method, schedule, start, _rows(task.validation)))


def _network(task: Task, shape: Shape, like: Network) -> PrecisionNetwork:
    network = PrecisionNetwork(
        task.n_nodes,
        n_layers=shape.n_layers,
        n_filters=shape.n_filters,
        order=shape.order,
        readout_width=shape.readout_width,
    )
    hidden, last = like.readout[1], like.readout[3]
    theirs = [
        *(t for f, norm in zip(like.filters, like.norms, strict=True) for t in (f.weight, norm.weight, norm.bias)),
        features_first(hidden.weight, shape.n_filters),
        *(hidden.bias, last.weight, last.bias),
    ]
    with torch.no_grad():
        for ours, value in zip(network.parameters(), theirs, strict=True):
            assert ours.shape == value.shape
            ours.copy_(value)
    return network


def features_first(weight: Tensor, n_filters: int) -> Tensor:
    """A readout's weights for inputs feature by feature, as ours takes them, from those for inputs node by node."""
    return weight.reshape(len(weight), -1, n_filters).transpose(1, 2).reshape(weight.shape)


def _rows(part: Part) -> TensorRows:
    return TensorRows(part.x, part.y, torch.ones_like(part.y))


def _squared_error(output: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    return (weight * (output[:, 0] - y).square()).sum() / weight.sum()
