"""Eigenvalues of the matrices, and what the network's filters answer to each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from precisionnet.plots.style import INK, MAIN, MUTED, SECOND, new_figure
from precisionnet.types import FloatArray


def spectrum(theta: FloatArray, theta_task: FloatArray, vnn: bool = False) -> Figure:
    """Draw the eigenvalues of the two matrices, smallest first.

    Parameters
    ----------
    theta : array of shape (n_columns, n_columns)
        The sparse precision.
    theta_task : array of shape (n_columns, n_columns)
        The matrix that the network runs on.
    vnn : bool, default=False
        Whether that matrix is a covariance, for the legend.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.plots import spectrum
    >>> spectrum(np.eye(3), 2.0 * np.eye(3)).axes[0].get_yscale()
    'log'
    """
    figure, (axes,) = new_figure(5.2, 3.8)
    index = np.arange(1, len(theta) + 1)
    label = "covariance" if vnn else "θ_task (task-aware)"
    axes.plot(
        index, np.linalg.eigvalsh(theta), color=MAIN, linewidth=2.2, label="θ (sparse)" if not vnn else "θ (inverse)"
    )
    axes.plot(index, np.linalg.eigvalsh(theta_task), color=SECOND, linewidth=1.4, linestyle="--", label=label)
    axes.set(xlabel="index", ylabel="eigenvalue µ", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend()
    return figure


def frequency_responses(mu: FloatArray, responses: Sequence[FloatArray]) -> Figure:
    """Draw h(µ) of every filter, one panel per layer; ticks at the bottom mark the eigenvalues.

    Parameters
    ----------
    mu : array of shape (n_columns,)
        Eigenvalues of the scaled matrix that the network runs on.
    responses : sequence of arrays of shape (n_points, n_filters)
        Of each layer, the responses of its filters on an even grid over the range of ``mu``.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from precisionnet.plots import frequency_responses
    >>> layers = [np.ones((50, 4)), np.zeros((50, 2))]
    >>> len(frequency_responses(np.array([0.1, 0.5, 1.0]), layers).axes)
    2
    """
    figure, panels = new_figure(min(5.2 * len(responses), 13.0), 3.8, len(responses))
    grid = np.linspace(float(mu.min()), float(mu.max()), len(responses[0]))
    for layer, (axes, response) in enumerate(zip(panels, responses, strict=True), start=1):
        many = response.shape[1] > 16
        axes.plot(grid, response, color=MAIN, linewidth=0.8 if many else 1.4, alpha=0.35 if many else 0.75)
        axes.axhline(0.0, color=MUTED, linewidth=0.8)
        axes.plot(
            mu, np.full_like(mu, 0.02), "|", color=INK, markersize=7, alpha=0.6, transform=axes.get_xaxis_transform()
        )
        axes.set(xlabel="eigenvalue µ of the scaled matrix", ylabel="response h(µ)", title=f"Layer {layer}")
    return figure
