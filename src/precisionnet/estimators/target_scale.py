"""Whether networks learn a target or its logarithm.

Ages, prices and durations often grow by factors: the logarithm is nearer to a sum of what the columns contribute, and
its errors are more alike. With the absolute error nothing is lost by it, as the median of a logarithm is the logarithm
of the median. A target above zero that is skewed to the right is tried both ways by linear networks, which takes
milliseconds; the rows that these left out decide. ``docs/decisions/0014-target-scale.md`` has the measurements.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from precisionnet.estimators.fitted import Fitted
from precisionnet.estimators.linear_members import linear_members
from precisionnet.estimators.preparation import TrainingData
from precisionnet.estimators.targets import NumberTarget, Target, learns_logarithm
from precisionnet.parameters import Settings
from precisionnet.types import FloatArray, IndexArray

SKEWED = 1.0
"""Skewness from which on the logarithm is tried."""
BETTER_BY = 0.05
"""Share of the error that it has to save: networks bend by themselves, and gain less by it than linear ones do."""


def learned_target(
    data: TrainingData, folds: Sequence[IndexArray], settings: Settings, resume: Fitted | None = None
) -> Target:
    """Return how the target is learned.

    Parameters
    ----------
    data : TrainingData
        What training sees of the table.
    folds : sequence of ndarray
        Training rows that the networks of each fold leave out.
    settings : Settings
        With ``target_scale="auto"`` and members of several kinds there is a choice.
    resume : Fitted, optional
        Model that training goes on from: its choice stays.

    Returns
    -------
    Target
        ``data.target``, or one that learns the logarithm.
    """
    target, rows = data.target, data.training
    if not isinstance(target, NumberTarget) or settings.target_scale != "auto" or settings.readout != "several":
        return target
    if resume is not None:
        return NumberTarget.of(rows.y, rows.weight, settings, logarithm=learns_logarithm(resume.target))
    known = rows.y if data.validation is None else np.concatenate([rows.y, data.validation.y])
    if not any(map(len, folds)) or known.min() <= 0.0 or _skewness(rows.y, rows.weight) < SKEWED:
        return target
    other = NumberTarget.of(rows.y, rows.weight, settings, logarithm=True)
    x = data.scaler.transform(rows.X)
    errors = [_linear_error(x, rows.y, rows.weight, folds, one) for one in (target, other)]
    return other if errors[1] < (1.0 - BETTER_BY) * errors[0] else target


def _skewness(y: FloatArray, weight: FloatArray) -> float:
    centred = y - np.average(y, weights=weight)
    spread = float(np.sqrt(np.average(centred**2, weights=weight)))
    return float(np.average((centred / spread) ** 3, weights=weight)) if spread > 0.0 else 0.0


def _linear_error(
    x: FloatArray, y: FloatArray, weight: FloatArray, folds: Sequence[IndexArray], target: NumberTarget
) -> float:
    """Return the mean absolute error, in the target's units, of linear networks on the rows that they left out."""
    networks = linear_members(x, y, weight, folds, target)
    no_matrix = torch.zeros((x.shape[1], x.shape[1]), dtype=torch.float64)
    predicted, left_out = np.empty(len(y)), np.concatenate(folds)
    with torch.no_grad(), np.errstate(over="ignore"):
        for network, fold in zip(networks, folds, strict=False):  # the last network has left nothing out
            predicted[fold] = target.meaning(network(torch.from_numpy(x[fold]).unsqueeze(-1), no_matrix).numpy())
    return float(np.average(np.abs(predicted - y)[left_out], weights=weight[left_out]))
