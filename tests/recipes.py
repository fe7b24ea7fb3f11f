"""Small fits of both recipes, for what is true of any fit."""

from __future__ import annotations

from typing import Any

import pytest

QUICK: dict[str, dict[str, Any]] = {
    "standard": {"recipe": "standard", "n_members": 2, "max_epochs": 3, "batch_size": 16, "random_state": 0},
    "paper": {"recipe": "paper", "max_epochs": 4, "weight_steps": 3, "task_steps": 3, "random_state": 0},
}


def of_method(method: str, quick: dict[str, Any]) -> dict[str, Any]:
    """The same for another method: only the joint one has steps of Step 2."""
    return {"method": method} | {
        name: value for name, value in quick.items() if method == "joint" or name != "task_steps"
    }


both_recipes = pytest.mark.parametrize("quick", QUICK.values(), ids=QUICK)
