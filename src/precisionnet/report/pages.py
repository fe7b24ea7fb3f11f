"""What every page shares: templates with names from strangers' files made safe, and pictures with a caption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, Template, select_autoescape
from markupsafe import Markup

from precisionnet.errors import printable


@dataclass(frozen=True)
class Picture:
    """Inline SVG and what a screen reader, or a reader in a hurry, gets instead."""

    svg: Markup
    caption: str


def template(name: str) -> Template:
    """A template of this package, with everything escaped that is not ours."""
    environment = Environment(
        loader=PackageLoader("precisionnet.report"),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        finalize=_without_control_characters,
    )
    return environment.get_template(name)


def _without_control_characters(value: Any) -> Any:
    """A name from a file may hold escape sequences or switch the writing direction; markup is ours."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
