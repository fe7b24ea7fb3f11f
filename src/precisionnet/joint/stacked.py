"""Networks of one shape as one program: their tensors stacked along a first axis."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state

from precisionnet.joint.problem import Tensors
from precisionnet.nn import PrecisionNetwork


def stack(networks: Sequence[PrecisionNetwork]) -> tuple[Tensors, Tensors]:
    """Weights and statistics of all members, each tensor (members, ...)."""
    weights, statistics = stack_module_state(list(networks))
    return {name: value.detach() for name, value in weights.items()}, statistics


def member(tensors: Tensors, index: int) -> Tensors:
    """One member's tensors, as views."""
    return {name: value[index] for name, value in tensors.items()}


def forward_one(network: PrecisionNetwork, weights: Tensors, statistics: Tensors, x: Tensor, shift: Tensor) -> Tensor:
    """One member's output in evaluation mode, without a gradient."""
    network.train(False)
    with torch.no_grad():
        output: Tensor = functional_call(network, {**weights, **statistics}, (x, shift), tie_weights=False)
    return output
