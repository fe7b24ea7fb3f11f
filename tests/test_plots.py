"""Figures: what they refuse, and that what is drawn is what was given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch

from precisionnet import GraphicalLasso, plots
from precisionnet.errors import InputError
from precisionnet.plots.graph import ModelGraph, draw_edges, draw_matrix
from precisionnet.plots.style import NEGATIVE, PALE, POSITIVE, UNSIGNED, new_figure
from precisionnet.precision import partial_correlations

PRECISION = np.array([[2.0, -0.5, 0.0], [-0.5, 1.5, 0.4], [0.0, 0.4, 1.2]])
NAMES = ["a", "b", "c"]


def colours(figure) -> set[str]:
    return {to_hex(arc.get_edgecolor()) for arc in figure.axes[0].patches if isinstance(arc, PathPatch)}


def fitted(precision: np.ndarray) -> GraphicalLasso:
    """A graph with this precision; without a penalty it is the covariance's inverse."""
    covariance = pd.DataFrame(np.linalg.inv(precision), columns=NAMES)
    known = precision == 0
    return GraphicalLasso(l1_penalty=1e-6, covariance="precomputed", known_zeros=known).fit(covariance)


@pytest.mark.parametrize("draw", [plots.edge_graph, plots.heat_map])
@pytest.mark.parametrize(
    "matrix",
    [PRECISION, PRECISION / 2.0, pd.DataFrame(PRECISION), partial_correlations(PRECISION), np.eye(3).tolist()],
    ids=["precision", "scaled precision", "data frame", "partial correlations", "list"],
)
def test_a_matrix_is_refused_as_it_does_not_say_what_it_is(draw, matrix):
    with pytest.raises(InputError, match="Pass the fitted model itself"):
        draw(matrix)


@pytest.mark.filterwarnings("ignore:The graph is full")
def test_signs_of_edges_are_those_of_the_partial_correlations():
    partial = partial_correlations(PRECISION)
    assert partial[0, 1] > 0 > partial[1, 2]
    assert abs(partial[0, 1]) < abs(partial[1, 2])
    model = fitted(PRECISION)
    assert colours(plots.edge_graph(model)) == {POSITIVE, NEGATIVE}
    assert colours(plots.edge_graph(model, most=1)) == {NEGATIVE}
    axes = plots.heat_map(model).axes[0]
    shown, labels = np.asarray(axes.images[1].get_array()), [text.get_text() for text in axes.get_xticklabels()]
    at = [labels.index(name) for name in NAMES]
    assert shown[at[0], at[1]] == pytest.approx(partial[0, 1], abs=1e-4)
    assert shown[at[1], at[2]] == pytest.approx(partial[1, 2], abs=1e-4)


EDGES = pd.DataFrame(
    {"source": ["a", "a", "b"], "target": ["b", "c", "c"], "effect": [2.0, -7.0, 9.0], "sure": [True, True, False]}
)


def widths(figure) -> dict[str, float]:
    arcs = [arc for arc in figure.axes[0].patches if isinstance(arc, PathPatch)]
    return {to_hex(arc.get_edgecolor()): arc.get_linewidth() for arc in arcs}


def test_unsure_edges_are_pale_and_thin_however_strong_they_are():
    found = widths(plots.evidence_graph(EDGES, NAMES, value="effect"))
    assert found.keys() == {POSITIVE, NEGATIVE, PALE}
    assert found[PALE] < found[POSITIVE] < found[NEGATIVE]
    assert widths(plots.evidence_graph(EDGES, NAMES, value="effect", most_unsure=0)).keys() == {POSITIVE, NEGATIVE}
    assert widths(plots.evidence_graph(EDGES, NAMES, value="effect", most=1)).keys() == {NEGATIVE, PALE}
    none = plots.evidence_graph(EDGES.assign(sure=False), NAMES, value="effect")
    assert widths(none).keys() == {PALE}
    assert [text.get_text() for text in none.legends[0].get_texts()] == ["not told from chance"]
    empty = plots.evidence_graph(EDGES[:0], NAMES, value="effect")
    assert "no edge" in empty.axes[0].texts[0].get_text()


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def graph_of_three(unsigned=()) -> ModelGraph:
    partial = np.abs(partial_correlations(PRECISION))
    first, second = np.nonzero(np.triu(partial, 1))
    order = np.argsort(-partial[first, second])
    first, second = first[order], second[order]
    plain = np.array([NAMES[i] in unsigned or NAMES[j] in unsigned for i, j in zip(first, second, strict=True)])
    return ModelGraph(NAMES, first, second, partial[first, second], "size", "A graph", ("more", "less"), plain)


def drawn(draw, *given):
    figure, (axes,) = new_figure(6.0, 6.0)
    draw(axes, *given)
    return figure


def test_edges_without_a_direction_have_a_colour_and_a_legend_of_their_own():
    plain = graph_of_three(unsigned=["c"])
    for figure in (
        drawn(draw_edges, plain, 80),
        plots.evidence_graph(EDGES, NAMES, value="effect", unsigned=["c"]),
    ):
        assert colours(figure) - {PALE} == {POSITIVE, UNSIGNED}
        assert any("no direction" in text for text in legend(figure))
    signed = drawn(draw_edges, graph_of_three(), 80)
    for figure in (signed, plots.evidence_graph(EDGES, NAMES, value="effect")):
        assert UNSIGNED not in colours(figure)
        assert not any("no direction" in text for text in legend(figure))
    map_of_all = drawn(draw_matrix, graph_of_three(unsigned=NAMES))
    assert np.isnan(np.ma.filled(map_of_all.axes[0].images[-1].get_array(), np.nan)).all()
    assert "no direction" in legend(map_of_all)[0]
    assert not drawn(draw_matrix, graph_of_three()).legends


def test_an_edge_needs_both_its_ends():
    with pytest.raises(InputError, match="not among the names"):
        plots.evidence_graph(EDGES, ["a", "b"], value="effect")


def test_bars_of_columns_that_are_not_told_from_chance_are_pale():
    nodes = pd.DataFrame({"node": NAMES, "size": [1.0, 3.0, 2.0], "low": [0.5, 1.0, 0.0], "high": [1.5, 5.0, 4.0]})
    nodes = nodes.assign(sure=[True, True, False], direction=[1, -1, 1])
    axes = plots.node_bars(nodes, value="size", low="low", high="high").axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["c", "a", "b"]  # from below
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [PALE, POSITIVE, NEGATIVE]
    assert [bar.get_width() for bar in axes.patches] == [2.0, 1.0, 3.0]


def test_bars_of_columns_without_a_direction():
    nodes = pd.DataFrame({"node": NAMES, "size": [1.0, 2.0, 3.0], "low": 0.5, "high": 4.0, "direction": [1, -1, 0]})
    figure = plots.node_bars(nodes.assign(sure=True), value="size", low="low", high="high")
    assert {to_hex(bar.get_facecolor()) for bar in figure.axes[0].patches} == {POSITIVE, NEGATIVE, UNSIGNED}
    assert "beyond chance, no direction" in legend(figure)
