"""Networks of one shape as one program: their tensors stacked along a first axis."""

from __future__ import annotations

from collections.abc import Sequence

from torch.func import stack_module_state

from precisionnet.joint.problem import Tensors
from precisionnet.nn import PrecisionNetwork


def stack(networks: Sequence[PrecisionNetwork]) -> tuple[Tensors, Tensors]:
    """Weights and statistics of all members, each tensor (members, ...)."""
    weights, statistics = stack_module_state(list(networks))
    return {name: value.detach() for name, value in weights.items()}, statistics


def member(tensors: Tensors, index: int) -> Tensors:
    """One member's tensors, as views."""
    return {name: value[index] for name, value in tensors.items()}
