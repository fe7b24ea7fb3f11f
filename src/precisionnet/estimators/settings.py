"""The values a fit runs with: parameters as set, and the recipe's where nothing was set."""

from __future__ import annotations

from types import SimpleNamespace


class Settings(SimpleNamespace):
    """Every parameter of ``precisionnet.parameters`` by name; none is None that a recipe has a value for."""
