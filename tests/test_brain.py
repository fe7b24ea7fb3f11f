"""Brain maps: every region has its place, the right way round, and says its name and value."""

from __future__ import annotations

import html
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from precisionnet import plots
from precisionnet.datasets.neuro.regions import DESIKAN, DESTRIEUX, DKT
from precisionnet.errors import InputError
from precisionnet.plots.brain import ACROSS, NO_VALUE, UNSURE, centres, outlines
from precisionnet.plots.style import DIVERGING, SEQUENTIAL, TIP
from precisionnet.report import explain_page, gap_page
from tests.pictures import MAKERS

ALL = [f"{side}_{region}" for side in ("lh", "rh") for region in DESIKAN]


def regions(figure) -> dict[str, list[PathPatch]]:
    found: dict[str, list[PathPatch]] = {}
    for one in figure.axes[0].patches:
        if str(one.get_gid() or "").startswith(TIP):
            found.setdefault(one.get_label().split(":")[0], []).append(one)
    return found


def colours(figure, region: str) -> set[str]:
    return {to_hex(one.get_facecolor()) for one in regions(figure)[region]}


def test_every_region_has_an_outline_within_its_view():
    assert set(centres()) == set(ALL)
    for view in outlines().values():
        width, height = view["size"]
        for polygons in view["regions"].values():
            for points in polygons:
                x, y = np.array(points).T
                assert len(points) >= 3
                assert 0 <= x.min() <= x.max() <= width + 1
                assert 0 <= y.min() <= y.max() <= height + 1


def test_hemispheres_and_views_are_the_right_way_round():
    views = outlines()
    for side in ("lh", "rh"):
        outside, midline = (views[f"{side}_{view}"]["regions"] for view in ("lateral", "medial"))
        assert "supramarginal" in outside.keys() - midline.keys()
        assert {"cuneus", "precuneus", "posteriorcingulate"} <= midline.keys() - outside.keys()
        for part in (outside, midline):
            front, back = ("frontalpole", "lateraloccipital")
            first, second = (np.mean(part[name][0], axis=0)[0] for name in (front, back))
            # The left brain's front is on the left from outside, and on the right from the midline.
            assert (first < second) == ((side == "lh") == (part is outside))
        above, below = (np.mean(outside[name][0], axis=0)[1] for name in ("superiorparietal", "inferiortemporal"))
        assert above > below
    assert all((centres()[name][0] < ACROSS) == name.startswith("lh_") for name in ALL)


@pytest.mark.parametrize("atlas", [DESIKAN, DKT], ids=["68", "62"])
def test_every_region_named_is_drawn_with_its_value(atlas):
    names = [f"{side}_{region}_thickness" for side in ("lh", "rh") for region in atlas]
    values = dict(zip(names, np.linspace(-1.0, 2.0, len(names)), strict=True))
    svg = plots.to_svg(plots.brain_map(values, label="effect, years"), "brain")
    said = dict(found.split(": ") for found in map(html.unescape, re.findall(r"<title>(.*?)</title>", svg)))
    assert set(said) == set(ALL)  # of DKT, those left out are there without a value
    for name, value in values.items():
        assert float(said[name.removesuffix("_thickness")]) == pytest.approx(value, abs=0.006)
    assert sum(text == "no value" for text in said.values()) == 68 - len(names)
    assert "effect, years" in svg
    assert f'id="{TIP}' not in svg
    for title in ("left, from outside (lateral)", "right, from the midline (medial)"):
        assert title in svg


def test_two_colours_around_zero_or_one_scale_from_zero():
    signed = plots.brain_map({"lh_insula": -2.0, "rh_insula": 2.0, "lh_cuneus": 1.0}, label="effect")
    ends = [to_hex(colormaps[DIVERGING](end)) for end in (0.0, 1.0)]
    assert [colours(signed, name) for name in ("lh_insula", "rh_insula")] == [{ends[0]}, {ends[1]}]
    unsigned = plots.brain_map({"lh_insula": 0.0, "rh_insula": 2.0}, label="importance")
    ends = [to_hex(colormaps[SEQUENTIAL](end)) for end in (0.0, 1.0)]
    assert [colours(unsigned, name) for name in ("lh_insula", "rh_insula")] == [{ends[0]}, {ends[1]}]
    assert signed.axes[1].get_xlim() == (-2.0, 2.0)
    assert unsigned.axes[1].get_xlim() == (0.0, 2.0)


def test_what_has_no_value_or_is_unsure_is_grey():
    values = {"lh_insula": 5.0, "rh_insula": 1.0, "lh_cuneus": np.nan, "sex": 3.0}
    figure = plots.brain_map(values, label="effect", sure={"rh_insula": True, "lh_cuneus": True})
    assert colours(figure, "lh_insula") == {UNSURE}
    assert colours(figure, "lh_cuneus") == colours(figure, "rh_cuneus") == {NO_VALUE}
    assert colours(figure, "rh_insula") == {to_hex(colormaps[SEQUENTIAL](1.0))}  # unsure ones do not stretch the scale
    assert "3 of 4 columns" in " ".join(text.get_text() for text in figure.axes[0].texts)
    nothing = plots.brain_map({"lh_insula": np.nan}, label="effect")
    assert len(nothing.axes) == 1  # no colour bar without a colour
    all_zero = plots.brain_map(dict.fromkeys(ALL, 0.0), label="effect", signed=True)
    all_zero.draw_without_rendering()


def test_edges_are_drawn_between_regions_alone():
    edges = [("lh_insula", "rh_insula", 0.5), ("lh_insula", "lh_cuneus", -0.2), ("lh_insula", "sex", 0.9)]
    figure = plots.brain_map({"lh_insula": 1.0}, label="effect", edges=edges)
    ends = np.asarray(figure.axes[0].collections[0].get_offsets())
    assert {tuple(end) for end in ends} == {tuple(centres()[name]) for name in ("lh_insula", "rh_insula", "lh_cuneus")}
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["no value", "edge, positive", "edge, negative"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["height", "weight"], "0 of 2 columns"),
        ([f"lh_{region}" for region in DESTRIEUX], "74 of 74 columns are regions of the Destrieux atlas"),
        (["lh_insula", "left insula"], "both 'lh_insula'"),
        (["lh_insula_area", "lh_insula_thickness"], "measure="),
    ],
)
def test_names_without_a_picture_get_a_sentence(names, said):
    with pytest.raises(InputError, match=said):
        plots.brain_map(dict.fromkeys(names, 1.0), label="effect")


def test_of_several_measures_one_is_drawn():
    values = {"lh_insula_area": 1.0, "lh_insula_thickness": 2.0, "age": 4.0}
    assert plots.brain_measures(values) == ["area", "thickness"]
    figure = plots.brain_map(values, label="effect", measure="thickness")
    assert {one.get_label() for one in regions(figure)["lh_insula"]} == {"lh_insula: 2"}
    with pytest.raises(InputError, match="'area', 'thickness'"):
        plots.brain_map(values, label="effect", measure="volume")


def test_tips_are_escaped():
    figure = plots.brain_map({"lh_insula": 1.0}, label="<img src=x onerror=alert(1)> a$b$c$\\frac{x")
    regions(figure)["lh_insula"][0].set_label("lh_insula</title><script>alert(1)</script>\x1b[31m")
    with plots.styled():
        svg = plots.to_svg(figure, "brain")
    assert "<script" not in svg
    assert "\x1b" not in svg


def test_the_pages_of_a_gap_and_of_evidence_have_brains(monkeypatch):
    """With what is not told from chance in grey."""
    for name in MAKERS[plots] - {"brain_map"}:
        monkeypatch.setattr(plots, name, lambda *_, **__: Figure((1, 1)))
    names = ["lh_insula_thickness", "rh_insula_thickness", "sex"]
    parts = pd.DataFrame({"column": names, "difference": [0.5, -0.3, 0.1], "low": -1.0, "high": 1.0})
    found = gap_page._regions(parts.assign(q_value=[0.01, 0.2, 0.3]), "<b>", "controls", 0)
    assert len(found["brains"]) == 1
    nodes = pd.DataFrame(
        {"node": names, "importance": [0.5, 0.3, 0.1], "direction": [1, -1, 1], "sure": [True, False, True]}
    )
    about = SimpleNamespace(classes=[], target="age", names=names)
    figures = explain_page._figures(about, nodes, pd.DataFrame({"sure": [False]}))
    for svg in (found["brains"][0].svg, figures["brain-0"].svg):
        assert "<title>lh_insula: +0.5</title>" in svg
        assert "<title>rh_insula: -0.3, not told from chance</title>" in svg
    assert gap_page._regions(parts.assign(column=["a", "b", "c"], q_value=0.2), "a", "b", 1)["brains"] == []


def test_a_brain_of_importances_says_that_they_carry_the_sign_of_their_direction():
    """Importance is never below 0, and the colour bar goes below."""
    nodes = pd.DataFrame({"node": ["lh_insula", "rh_insula"], "importance": [2.0, 1.0], "direction": [-1, 1]})
    nodes = nodes.assign(importance_low=0.5, importance_high=2.5, sure=True)
    about = SimpleNamespace(classes=[], names=nodes["node"].tolist())
    drawn = explain_page._figures(about, nodes, pd.DataFrame({"sure": np.zeros(0, dtype=bool)}))
    assert "importance, with the sign of its direction, in the target" in drawn["brain-0"].svg
