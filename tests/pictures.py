"""Pictures take most of the time of a page: tests that look at words and numbers leave them blank."""

from __future__ import annotations

import pytest

from precisionnet import plots


@pytest.fixture
def with_pictures() -> None:
    """Ask for this fixture in a test that looks at pictures."""


@pytest.fixture(autouse=True)
def blank_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import this into a test module: figures are made, but not drawn."""
    if "with_pictures" not in request.fixturenames:
        monkeypatch.setattr(plots, "to_svg", lambda figure, name: f'<svg role="img"><title>{name}</title></svg>')
        monkeypatch.setattr(plots, "to_file", lambda figure, path, ending, name: path.write_text(name))
