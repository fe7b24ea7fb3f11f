"""Adam (Kingma and Ba, 2015), as in ``torch.optim``.

Written out because the first optimiser of ``torch.optim`` imports PyTorch's compiler, which takes longer than a fit of
a small table; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

BETAS = 0.9, 0.999
EPSILON = 1e-8


@dataclass
class Adam:
    """Moments of the gradients of ``leaves``, which a step moves in place."""

    leaves: list[Tensor]
    steps: int = 0
    first: list[Tensor] = field(default_factory=list)
    second: list[Tensor] = field(default_factory=list)

    @classmethod
    def of(cls, leaves: Iterable[Tensor], known: Adam | None = None) -> Adam:
        """For these leaves, with the moments of an earlier one."""
        leaves = list(leaves)
        if known is not None:
            return cls(leaves, known.steps, [m.clone() for m in known.first], [m.clone() for m in known.second])
        return cls(leaves, 0, [torch.zeros_like(x) for x in leaves], [torch.zeros_like(x) for x in leaves])

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """One step along the leaves' gradients, which are then forgotten."""
        self.steps += 1
        slow, slower = (1.0 - beta**self.steps for beta in BETAS)
        for leaf, first, second in zip(self.leaves, self.first, self.second, strict=True):
            if leaf.grad is None:
                continue
            first.lerp_(leaf.grad, 1.0 - BETAS[0])
            second.mul_(BETAS[1]).addcmul_(leaf.grad, leaf.grad, value=1.0 - BETAS[1])
            scale = second.sqrt().div_(slower**0.5).add_(EPSILON)
            leaf.addcdiv_(first, scale, value=-learning_rate / slow)
            leaf.grad = None
