"""What a public name owes its reader, by numpydoc's validator: every parameter, what comes back, an example.

    python -m tests.docstrings precisionnet.nn precisionnet.precision

lists what is missing in those packages. A public name is one in ``__all__`` of a package; of a class, its public
methods count as well.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator

from numpydoc.validate import validate

OWED = {
    "GL08": "no docstring",
    "PR01": "parameters not documented",
    "PR02": "unknown parameters",
    "PR03": "parameters in another order",
    "PR04": "parameter without a type",
    "PR07": "parameter without a description",
    "RT01": "no Returns section",
    "RT03": "return value without a description",
    "EX01": "no example",
}
ON_NAMES_ONLY = {"EX01"}
"""What a method does not owe: the class's example shows it."""


def public_names(package: str) -> Iterator[str]:
    """Dotted names of a package's public functions, classes, and their public methods."""
    module = importlib.import_module(package)
    for name in module.__all__:
        thing = getattr(module, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue  # a module, a constant, or the name of a type
        if not (thing.__module__ or "").startswith("precisionnet"):
            continue
        yield f"{package}.{name}"
        if inspect.isclass(thing):
            for method, value in vars(thing).items():
                plain = inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property)
                if plain and not method.startswith("_"):
                    yield f"{package}.{name}.{method}"


def complaints(name: str) -> list[str]:
    """What the docstring of a dotted name lacks, one line each."""
    is_method = name.split(".")[-2][:1].isupper()
    wanted = set(OWED) - (ON_NAMES_ONLY if is_method else set())
    return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in wanted]


if __name__ == "__main__":
    missing = [line for package in sys.argv[1:] for name in public_names(package) for line in complaints(name)]
    print("\n".join(missing))
    print(len(missing), "complaints")
