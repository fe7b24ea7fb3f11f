"""Figures: what they refuse, and that what is drawn is what was given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch

from precisionnet import plots
from precisionnet.errors import InputError
from precisionnet.plots.style import NEGATIVE, POSITIVE
from precisionnet.precision import partial_correlations

PRECISION = np.array([[2.0, -0.5, 0.0], [-0.5, 1.5, 0.4], [0.0, 0.4, 1.2]])
NAMES = ["a", "b", "c"]


def colours(figure) -> set[str]:
    return {to_hex(arc.get_edgecolor()) for arc in figure.axes[0].patches if isinstance(arc, PathPatch)}


@pytest.mark.parametrize("draw", [plots.edge_graph, plots.heat_map])
@pytest.mark.parametrize(
    "matrix",
    [
        PRECISION,
        PRECISION / 2.0,
        np.array([[1.0, 1.5, 0.0], [1.5, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        np.array([[1.0, 0.5, 0.0], [-0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        np.full((3, 3), np.nan),
    ],
    ids=["precision", "scaled precision", "beyond 1", "not symmetric", "not a number"],
)
def test_a_matrix_that_holds_no_partial_correlations_is_refused(draw, matrix):
    with pytest.raises(InputError, match="partial_correlations"):
        draw(matrix, NAMES)


def test_names_must_fit_the_matrix():
    with pytest.raises(InputError, match="2 names"):
        plots.edge_graph(np.eye(3), ["a", "b"])


@pytest.mark.parametrize("diagonal", [0.0, 1.0])
def test_signs_of_edges_are_those_of_the_partial_correlations(diagonal):
    partial = partial_correlations(PRECISION)
    np.fill_diagonal(partial, diagonal)
    assert partial[0, 1] > 0 > partial[1, 2]
    assert colours(plots.edge_graph(partial, NAMES)) == {POSITIVE, NEGATIVE}
    assert colours(plots.edge_graph(partial, NAMES, most=1)) == {NEGATIVE}
    assert colours(plots.edge_graph(np.diag([diagonal] * 3), NAMES)) == set()
