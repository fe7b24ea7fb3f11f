"""What a result was made with: versions of packages, and the version of the training recipe."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from precisionnet._version import __version__

PACKAGES = ("numpy", "scipy", "numba", "torch", "scikit-learn", "pandas")

RECIPE_VERSION = 8
"""Version of the standard recipe: raise it by one whenever a default or the training changes the numbers of a fit.

New rows carry it. Rows that were made with an earlier one stay as they are; their page says that they are older.
"""

PAPER_VERSION = 4
"""Version of ``recipe="paper"``, which the paper's experiments run; it is raised in the same way."""


def recipe_version(networks: Mapping[str, Any] | None) -> int:
    """Return the version of the recipe that an experiment's networks were trained by; the paper's if none is named."""
    recipes = list((networks or {}).get("recipe", ["paper"]))
    return PAPER_VERSION if recipes == ["paper"] else RECIPE_VERSION


def versions() -> dict[str, str]:
    """Return the versions of Python and the packages that decide about numbers; nothing is imported for it."""
    return {
        "precisionnet": __version__,
        "python": platform.python_version(),
        **_installed(),
    }


@cache
def _installed() -> dict[str, str]:
    """Versions of the packages; each is looked for in the whole of ``sys.path``, so once a process."""
    return {package: version(package) for package in PACKAGES}


def older_recipe(made_with: Iterable[Any], present: int = RECIPE_VERSION) -> str | None:
    """Say that rows were made with an earlier recipe; None where all are of the present one.

    ``made_with`` holds the ``recipe_version`` of every row, None where a row has none; ``present`` is the recipe's.
    """
    older = {found for found in made_with if found != present}
    if not older:
        return None
    numbers = sorted(found for found in older if isinstance(found, int))
    told = [f"version {number}" for number in numbers]
    told += ["a version from before versions were kept"] if len(numbers) < len(older) else []
    return (
        f"These rows were made with an earlier recipe ({' and '.join(told)}; the present one is version "
        f"{present}): a new run may give other numbers."
    )
