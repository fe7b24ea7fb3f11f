"""Algorithm 1 as one would write it down from the paper, in plain PyTorch and nothing else.

Readable first: tensors are (batch, nodes, features), a filter is repeated ``torch.matmul(shift, x)``, gradients come
from autograd, Step 1 is the printed listing, everything is float32. There are no tricks in it, and nothing is done
twice on purpose; where the paper leaves something open it follows ``docs/notation.md``, as ours does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from benchmarks.train.task import Shape, Task


class GraphFilter(nn.Module):
    """sum_k shift^k x W_k, eq. (2)."""

    def __init__(self, in_features: int, out_features: int, order: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(order + 1, in_features, out_features))
        limit = (3.0 / ((order + 1) * in_features)) ** 0.5
        nn.init.uniform_(self.weight, -limit, limit)

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """(batch, nodes, in_features) -> (batch, nodes, out_features)."""
        output = x @ self.weight[0]
        for weight in self.weight[1:]:
            x = torch.matmul(shift, x)
            output = output + x @ weight
        return output


class Network(nn.Module):
    """Filters, batch norm and ReLU, then a perceptron over the flattened nodes."""

    def __init__(self, n_nodes: int, shape: Shape) -> None:
        super().__init__()
        widths = [1] + [shape.n_filters] * shape.n_layers
        self.filters = nn.ModuleList(GraphFilter(widths[i], widths[i + 1], shape.order) for i in range(shape.n_layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:])
        self.readout = nn.Sequential(
            nn.Flatten(),
            nn.Linear(n_nodes * widths[-1], shape.readout_width),
            nn.ReLU(),
            nn.Linear(shape.readout_width, 1),
        )

    def forward(self, x: Tensor, shift: Tensor) -> Tensor:
        """(batch, nodes, 1) -> (batch,)."""
        for graph_filter, norm in zip(self.filters, self.norms, strict=True):
            x = graph_filter(x, shift)
            x = norm(x.flatten(0, 1)).view_as(x).relu()
        return self.readout(x).squeeze(-1)


def unit_norm(matrix: Tensor) -> Tensor:
    """matrix / ||matrix||_2, for a symmetric one."""
    return matrix / torch.linalg.eigvalsh(matrix).abs().max()


class Algorithm1:
    """The alternation around any network that is called as ``network(x, shift)``."""

    def __init__(self, network: nn.Module, task: Task, start: Tensor) -> None:
        self.network, self.task, self.recipe = network, task, task.recipe
        self.cov = torch.from_numpy(task.emp_cov).float()
        self.theta = start.float().clone()
        self.theta_task = start.float().clone()
        self.adam = torch.optim.Adam(network.parameters(), lr=self.recipe.learning_rate)

    def theta_steps(self) -> None:
        """Lines 3-8: gradient, soft threshold off the diagonal, projection, norm clip."""
        recipe, theta = self.recipe, self.theta
        step, eye = recipe.learning_rate, torch.eye(len(theta))
        for _ in range(recipe.steps):
            inverse = torch.linalg.inv(theta + recipe.ridge * eye)
            theta = theta - step * (self.cov - inverse + recipe.coupling * (theta - self.theta_task))
            shrunk = theta.sign() * (theta.abs() - step * recipe.l1_penalty).clamp(min=0)
            theta = torch.where(eye.bool(), theta, shrunk)
            values, vectors = torch.linalg.eigh(theta)
            values = values.clamp(min=0)
            theta = (vectors * values) @ vectors.T
            theta = theta * (recipe.spectral_bound / max(recipe.spectral_bound, float(values[-1])))
        self.theta = theta

    def task_steps(self, steps: int) -> None:
        """Lines 9-11: gradient descent on theta_task, kept symmetric."""
        recipe, train = self.recipe, self.task.train
        self.network.train()
        theta_task = self.theta_task
        for _ in range(steps):
            theta_task = theta_task.detach().requires_grad_()
            task_loss = mse_loss(self.network(train.x, unit_norm(theta_task)), train.y)
            tie = 0.5 * recipe.coupling * (self.theta - theta_task).square().sum()
            (gradient,) = torch.autograd.grad(recipe.task_weight * task_loss + tie, theta_task)
            theta_task = theta_task - recipe.learning_rate * 0.5 * (gradient + gradient.T)
        self.theta_task = theta_task.detach()

    def weight_steps(self, steps: int) -> None:
        """Lines 12-14: Adam on the network."""
        recipe, train = self.recipe, self.task.train
        self.network.train()
        shift = unit_norm(self.theta_task)
        for _ in range(steps):
            self.adam.zero_grad()
            task_loss = mse_loss(self.network(train.x, shift), train.y)
            size = sum(weight.square().sum() for weight in self.network.parameters() if weight.ndim > 1)
            (recipe.task_weight * task_loss + recipe.l2_penalty * size).backward()
            self.adam.step()

    @torch.no_grad()
    def validation_mae(self) -> float:
        """In the target's own units."""
        self.network.eval()
        validation = self.task.validation
        output = self.network(validation.x, unit_norm(self.theta_task))
        return float((output - validation.y).abs().mean()) * self.task.unit
