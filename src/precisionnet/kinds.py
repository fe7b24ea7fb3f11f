"""The kinds of networks that an ensemble is made of.

Which kind is best depends on the table, and nothing tells beforehand: a second layer and little noise for a few columns
that act together, one layer and more noise for many correlated columns, a linear network for few rows. So an ensemble
has members of several kinds, and the rows that they left out decide how much each kind counts (``combination``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A shape of network, as far as it differs from what the settings say.

    Parameters
    ----------
    name : str
        What it is called.
    readout : str
        Name of the readout.
    deep : bool, default=False
        Has a second layer, whose filters are of degree 1.
    noise : float, default=1.0
        Share of the noise that the settings put on the features in training.
    linear : bool, default=False
        Filters of degree 0, no activation and a linear readout: solved, not trained.
    """

    name: str
    readout: str
    deep: bool = False
    noise: float = 1.0
    linear: bool = False


SEVERAL = (
    Kind("mean", "mean"),
    Kind("mlp", "mlp"),
    Kind("deep mean", "mean", deep=True, noise=1 / 3),
    Kind("deep mlp", "mlp", deep=True, noise=1 / 3),
    Kind("linear", "mlp", noise=0.0, linear=True),
)
"""Kinds of an ensemble with ``readout="several"``."""

FEWEST_MEMBERS = 4
"""An ensemble of several kinds has two networks of each at least, so that every row is left out by all kinds."""
