"""What a result was made with."""

from __future__ import annotations

import platform
from importlib.metadata import version

from precisionnet._version import __version__

PACKAGES = ("numpy", "scipy", "numba", "torch", "scikit-learn", "pandas")


def versions() -> dict[str, str]:
    """By name, as installed; nothing is imported for it."""
    return {
        "precisionnet": __version__,
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }
