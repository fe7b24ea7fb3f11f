"""Adam by ``torch.optim.adam.adam``, the function: making a ``torch.optim.Adam`` imports PyTorch's compiler first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adam import adam

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass
class Adam:
    """Tensors and the moments of their gradients; a step moves the tensors in place."""

    leaves: list[Tensor]
    first: list[Tensor]
    second: list[Tensor]
    steps: list[Tensor]

    @classmethod
    def of(cls, leaves: Iterable[Tensor], known: Adam | None = None) -> Adam:
        """Adam for these tensors, with a copy of the moments of an earlier one where it is given."""
        leaves = list(leaves)
        if known is not None:
            first, second, steps = ([t.clone() for t in part] for part in (known.first, known.second, known.steps))
            return cls(leaves, first, second, steps)
        zeros = [torch.zeros_like(leaf, requires_grad=False) for leaf in leaves]
        # The fused kernel counts steps in single precision, on the tensors' device.
        counts = [torch.zeros((), dtype=torch.float32, device=leaf.device) for leaf in leaves]
        return cls(leaves, zeros, [zero.clone() for zero in zeros], counts)

    @property
    def moved(self) -> bool:
        """Whether a step was taken."""
        return any(float(count) for count in self.steps)

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the tensors along their gradients, and drop these."""
        having = [i for i, leaf in enumerate(self.leaves) if leaf.grad is not None]
        if not having:
            return
        leaves = [self.leaves[i] for i in having]
        adam(
            leaves,
            [leaf.grad for leaf in leaves if leaf.grad is not None],
            [self.first[i] for i in having],
            [self.second[i] for i in having],
            [],
            [self.steps[i] for i in having],
            fused=True,
            amsgrad=False,
            beta1=BETA1,
            beta2=BETA2,
            lr=learning_rate,
            weight_decay=0.0,
            eps=EPSILON,
            maximize=False,
        )
        for leaf in leaves:
            leaf.grad = None


@torch.no_grad()
def add_l2_gradient(tensors: Iterable[Tensor], l2_penalty: float) -> None:
    """Add the gradient of ``l2_penalty * ||tensor||^2`` to the gradients that the tensors have."""
    for tensor in tensors:
        if tensor.grad is not None:
            tensor.grad.add_(tensor.detach(), alpha=2.0 * l2_penalty)
