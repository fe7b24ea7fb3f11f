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
    batch : int, default=1
        Rows of a gradient step, as a multiple of what the settings say.
    twin : str, optional
        Kind that differs in its noise alone; a short trial decides which of the two is trained.
    link : bool, default=False
        Of a number: end in a fixed map from a standard normal scale to the target's.
    linear : bool, default=False
        Filters of degree 0, no activation and a linear readout: solved, not trained.
    kernel : bool, default=False
        Filters of degree 0 and a readout with endlessly many hidden units: solved as a sum of kernels around the
        training rows, in a distance in which columns count as much as they do in the other kinds.
    """

    name: str
    readout: str
    deep: bool = False
    noise: float = 1.0
    batch: int = 1
    twin: str | None = None
    link: bool = False
    linear: bool = False
    kernel: bool = False

    @property
    def solved(self) -> bool:
        """Whether its networks are solved once the others are trained."""
        return self.linear or self.kernel


SEVERAL = (
    Kind("mean", "mean", link=True),
    Kind("mlp", "mlp", link=True),
    Kind("deep", "mlp", deep=True, batch=2, link=True),
    Kind("deep, little noise", "mlp", deep=True, batch=2, noise=1 / 3, twin="deep", link=True),
    Kind("linear", "mlp", noise=0.0, linear=True),
)
"""Kinds of an ensemble with ``readout="several"``."""

TRIAL, TRIAL_FOLDS, BETTER_BY = 0.2, 2, 0.03
"""Share of the epochs after which the worse of two twins is given up, members of each in that trial, and the share of
the loss by which the one with less noise has to be better: with few epochs noise looks worse than it is."""

FEW_ROWS = 500
"""Training rows below which there are twice as many folds, and members of each kind: there is time."""

TRIED_FROM = 40_000
"""Numbers in the training rows from which on twins are tried; of a smaller table both are trained to the end."""

FEWEST_MEMBERS = 4
"""An ensemble of several kinds has two networks of each at least, so that every row is left out by all kinds."""

LASSO = Kind("lasso", "mlp", noise=0.0, linear=True)
"""A linear network with an l1 penalty, for a few columns that matter among many."""

KERNEL = Kind("kernel", "kernel", noise=0.0, kernel=True)
"""A kernel machine, for smooth functions of a few columns and for few rows. It keeps the training rows."""

EVERY = (*SEVERAL, LASSO, KERNEL)
"""All kinds that a model may have."""

LASSO_ROWS = 4
"""Rows per column below which a lasso is tried: with more, a ridge does what it could."""

FLATTENED_MOST = 4_000
"""Node features, columns times filters, that a flattened perceptron reads at most on a sparse support. Above, it has
thousands of weights for each row, most of a fit's cost is theirs, and linear networks do what it could."""


def kinds_for(n_rows: int, n_columns: int, n_filters: int, *, sparse: bool, kernel_rows: int = 0) -> tuple[Kind, ...]:
    """Return the kinds of an ensemble with ``readout="several"``.

    Parameters
    ----------
    n_rows : int
        Training rows.
    n_columns : int
        Nodes.
    n_filters : int
        Features of a node after the first layer.
    sparse : bool
        Whether the matrix lives on a sparse support.
    kernel_rows : int, default=0
        Most training rows that a kernel machine may keep; 0 where there is none.

    Returns
    -------
    tuple of Kind
        A lasso more where there are few rows for the columns, or a sparse support; on that without flattened
        perceptrons where they have too many inputs. A kernel machine more where there are not too many rows.

    Examples
    --------
    >>> [kind.name for kind in kinds_for(500, 20_000, 8, sparse=True)]
    ['mean', 'linear', 'lasso']
    """
    kept: tuple[Kind, ...] = SEVERAL
    if sparse and n_columns * n_filters > FLATTENED_MOST:
        kept = tuple(kind for kind in SEVERAL if kind.readout == "mean" or kind.linear)
    if sparse or n_rows < LASSO_ROWS * n_columns:
        kept = (*kept, LASSO)
    return (*kept, KERNEL) if n_rows <= kernel_rows and not sparse else kept
