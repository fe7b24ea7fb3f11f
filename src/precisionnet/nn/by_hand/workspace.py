"""Memory that every step of a training writes into again.

A step's tensors are a megabyte each. Taken fresh, the operating system hands out their pages one by one, zeroed, which
takes longer than the arithmetic on them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Place = Callable[[str, tuple[int, ...], Tensor], Tensor]
"""(name, shape, tensor of that type) -> memory."""


class Workspace:
    """Tensors by name. Holds one pass at a time: forward and backward, before the next one begins."""

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}

    def room(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """The tensor of that name, with whatever was last written into it."""
        known = self._tensors.get(name)
        if known is None or known.shape != shape or known.dtype != like.dtype:
            known = self._tensors[name] = torch.empty(shape, dtype=like.dtype)
        return known

    def clear(self) -> None:
        """Give all of it back."""
        self._tensors.clear()

    def layer(self, number: int) -> Place:
        """``room`` for one layer's names."""
        return lambda name, shape, like: self.room(f"{number} {name}", shape, like)
