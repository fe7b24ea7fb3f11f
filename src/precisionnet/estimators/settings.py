"""The values a fit runs with: parameters as set, and the recipe's where nothing was set."""

from __future__ import annotations

from types import SimpleNamespace

from precisionnet.errors import InputError
from precisionnet.joint import POLISH


class Settings(SimpleNamespace):
    """Every parameter of ``precisionnet.parameters`` by name; none is None that a recipe has a value for."""

    def refuse_contradictions(self) -> None:
        """Values that are right one by one and cannot be had together."""
        if self.recipe == "paper" and self.n_members > 1:
            raise InputError("Algorithm 1 as printed trains one network: leave n_members at 1, or recipe at standard.")

    @property
    def sparse(self) -> bool:
        """Whether the sparse matrix predicts; a VNN has none, its shift is the covariance."""
        return bool(self.predict_on == "sparse" and self.method != "vnn")

    @property
    def n_epochs(self) -> int:
        """How many a fit takes at most: what polishes a sparse graph comes on top."""
        polish = POLISH if self.sparse and self.method == "joint" and self.recipe == "standard" else 0.0
        return round((1.0 + polish) * self.max_epochs)
