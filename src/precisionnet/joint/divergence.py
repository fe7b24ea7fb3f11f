"""A fit that left the numbers behind says so, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from precisionnet.errors import FitDivergedError
from precisionnet.types import FloatArray


def refuse_divergence(
    theta: FloatArray,
    theta_task: Tensor,
    weights: Mapping[str, Tensor],
    row: Mapping[str, float],
    learning_rate: float,
    *,
    validated: bool,
    listing: bool = False,
) -> None:
    """Raise where a matrix, a weight or a number of the epoch's row is infinite or NaN."""
    broken = {
        "theta": np.isfinite(theta).all(),
        "theta_task": bool(torch.isfinite(theta_task).all()),
        "the task loss": np.isfinite(row["train_loss"]),
        "the objective": np.isfinite(row["objective"]),
        "the training error": np.isfinite(row["train_metric"]),
        "the validation loss": not validated or np.isfinite([row["validation_loss"], row["validation_metric"]]).all(),
        "the network's weights": all(bool(torch.isfinite(w).all()) for w in weights.values()),
    }
    names = [name for name, fine in broken.items() if not fine]
    if names:
        raise divergence(int(row["epoch"]), names, learning_rate, listing=listing)


def divergence(epoch: int, names: list[str], learning_rate: float, *, listing: bool = False) -> FitDivergedError:
    """The error; ``listing`` where Step 1 is the printed one, whose steps may diverge by themselves."""
    remedy = f"look for outliers in the table, or lower learning_rate (now {learning_rate:g})"
    if listing:
        remedy += ', raise ridge, or use step1="exact", whose steps cannot diverge'
    return FitDivergedError(
        f"The fit diverged in epoch {epoch}: {' and '.join(names)} became infinite or NaN; no model was made. "
        f"To go on, {remedy}."
    )
