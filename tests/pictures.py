"""Pictures take most of the time of a page: tests that look at words and numbers leave them blank."""

from __future__ import annotations

import pytest

from precisionnet import plots
from precisionnet.report import synthetic, theorem

MAKERS = {
    plots: set(plots.__all__)
    - {"ModelPlots", "brain_measures", "clustered_order", "styled", "to_file", "to_files", "to_svg"},
    synthetic: {"sparsity_figure", "sparsity_panel"},
    theorem: {"rate_figure", "rate_panel"},
}


@pytest.fixture
def with_figures() -> None:
    """Ask for this fixture in a test that looks at figures before they are drawn."""


@pytest.fixture
def with_pictures() -> None:
    """Ask for this fixture in a test that looks at what is drawn."""


@pytest.fixture
def with_files() -> None:
    """Ask for this fixture beside ``with_pictures`` in a test that looks at figures in files."""


@pytest.fixture(autouse=True)
def blank_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import this into a test module: no figure is made or drawn unless the test asks for it."""
    if "with_files" not in request.fixturenames:
        monkeypatch.setattr(plots, "to_files", lambda figure, folder, name: (folder / f"{name}.svg").write_text(name))
    if "with_pictures" in request.fixturenames:
        return
    monkeypatch.setattr(plots, "to_svg", lambda figure, name: f'<svg role="img"><title>{name}</title></svg>')
    monkeypatch.setattr(plots, "to_file", lambda figure, path, ending, name: path.write_text(name))
    if "with_figures" not in request.fixturenames:
        for module, names in MAKERS.items():
            for name in names:
                monkeypatch.setattr(module, name, lambda *_, **__: object())
