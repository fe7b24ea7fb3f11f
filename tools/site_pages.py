"""Write the pages of the site that follow from the code: one for each public name and package, one of commands.

    python tools/site_pages.py docs/api

``docs/conf.py`` calls this before every build. A public name is one in ``__all__`` of a package in PACKAGES; a name
that a package repeats from another one has one page, under the first package that lists it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pprint
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

PACKAGES = {
    "precisionnet": "The names most people need",
    "precisionnet.estimators": "Models, as scikit-learn estimators",
    "precisionnet.evidence": "What may be believed of a graph",
    "precisionnet.gap": "The brain-age gap",
    "precisionnet.evaluation": "Models measured on rows they have not seen",
    "precisionnet.plots": "Figures",
    "precisionnet.datasets": "Tables: loaded, fetched or drawn",
    "precisionnet.preprocessing": "Preparation of features",
    "precisionnet.precision": "Sparse precision matrices",
    "precisionnet.nn": "Networks on a symmetric matrix",
    "precisionnet.joint": "Training of graph and network together",
    "precisionnet.paper": "The experiments of the paper",
    "precisionnet.runner": "Many jobs, none lost",
    "precisionnet.report": "Pages about a fit",
    "precisionnet.errors": "What can go wrong",
}
ERRORS = "precisionnet.errors"
"""A module of exceptions without ``__all__``: every class in it is public."""
WIDE = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
"""The terminal that the help is printed for."""


@dataclass(frozen=True)
class PublicName:
    """A public name, the dotted name it is documented under and the page that does it."""

    package: str
    name: str
    documented_as: str
    page: str
    value: Any


def names_of(package: str) -> list[str]:
    """Public names of a package, sorted; the version is no page."""
    module = importlib.import_module(package)
    if package == ERRORS:
        return sorted(n for n, value in vars(module).items() if inspect.isclass(value) and value.__module__ == ERRORS)
    return sorted(name for name in module.__all__ if not name.startswith("__"))


def public_names() -> list[PublicName]:
    """Every public name of every package, in the order of PACKAGES."""
    found: list[PublicName] = []
    homes: dict[int, tuple[str, str]] = {}
    taken: set[str] = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in names_of(package):
            value = getattr(module, name)
            if id(value) not in homes:
                page = dotted = f"{package}.{name}"
                if page.lower() in taken:  # Status and status are one file on some systems
                    page += "-function" if inspect.isfunction(value) else "-class"
                taken.add(page.lower())
                homes[id(value)] = (dotted, page)
            found.append(PublicName(package, name, *homes[id(value)], value))
    return found


def own_members(thing: type) -> list[str]:
    """Public methods and properties of a class that this project wrote, inherited ones among them."""
    names = {}
    for base in reversed(thing.__mro__):
        if not base.__module__.startswith("precisionnet"):
            continue
        for name, value in vars(base).items():
            described = inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property)
            if described and not name.startswith("_") and (getattr(thing, name).__doc__ or "").strip():
                names[name] = None
    return sorted(names)


def heading(text: str, line: str = "=") -> list[str]:
    """A reStructuredText heading."""
    return [text, line * len(text), ""]


def name_page(public: PublicName) -> str:
    """The page of one name: its docstring, its members, and the gallery's examples that use it."""
    lines = heading(public.documented_as)
    if inspect.isclass(public.value):
        lines += [f".. autoclass:: {public.documented_as}", ""]
        members = [] if issubclass(public.value, BaseException) else own_members(public.value)
        for name in members:
            kind = "autoproperty" if isinstance(getattr(public.value, name), property) else "automethod"
            lines += [f"   .. {kind}:: {name}"]
    elif inspect.isfunction(public.value):
        lines += [f".. autofunction:: {public.documented_as}"]
    else:
        lines += constant_lines(public)
    lines += ["", f".. minigallery:: {public.documented_as}", "   :add-heading: In the gallery", ""]
    return "\n".join(lines)


def constant_lines(public: PublicName) -> list[str]:
    """A constant or the name of a type: what stands below its assignment, and its value."""
    lines = [f".. py:data:: {public.documented_as}", ""]
    lines += [f"   {line}" for line in said_of_constant(public).splitlines()]
    value = dict(public.value) if isinstance(public.value, Mapping) else public.value
    shown = pprint.pformat(value, width=90).splitlines()
    lines += ["", "   .. rubric:: Example", "", f"   >>> from {public.package} import {public.name}"]
    return [*lines, f"   >>> {public.name}", *(f"   {line}" for line in shown)]


def said_of_constant(public: PublicName) -> str:
    """The string below the assignment, in the module that makes it."""
    for module_name, module in sorted(sys.modules.items()):
        if module_name.startswith("precisionnet") and vars(module).get(public.name) is public.value:
            body = ast.parse(inspect.getsource(module)).body
            for first, second in pairwise(body):
                names = [getattr(t, "id", "") for t in getattr(first, "targets", [getattr(first, "target", None)])]
                if public.name in names and isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant):
                    return inspect.cleandoc(str(second.value.value))
    raise ValueError(f"{public.documented_as} has no string below its assignment that says what it is.")


def package_page(package: str, title: str, names: list[PublicName]) -> str:
    """The page of a package: what it is for, and a table of its names."""
    said = (importlib.import_module(package).__doc__ or "").strip().split("\n\n")[0]
    lines = [*heading(package), f"*{title}.*", "", said, "", ".. autosummary::", ""]
    described = [one for one in names if inspect.isclass(one.value) or inspect.isfunction(one.value)]
    lines += [f"   ~{one.documented_as}" for one in described]
    if rest := [f":obj:`~{one.documented_as}`" for one in names if one not in described]:
        lines += ["", "Constants and names of types: " + ", ".join(rest) + "."]
    own = [one.page for one in names if one.documented_as.rpartition(".")[0] == package]
    if own:
        lines += ["", ".. toctree::", "   :hidden:", "", *(f"   {page}" for page in own)]
    return "\n".join(lines) + "\n"


def index_page(names: list[PublicName]) -> str:
    """All packages, each with its names."""
    lines = [*heading("API reference"), "Every public name has a page with an example that runs.", ""]
    lines += ["The shell's commands are on :doc:`their own page <../commands>`.", ""]
    for package, title in PACKAGES.items():
        linked = [f":obj:`~{one.documented_as}`" for one in names if one.package == package]
        lines += [*heading(title, "-"), f":doc:`{package} <{package}>`", "", ", ".join(linked), ""]
    lines += [".. toctree::", "   :hidden:", "", *(f"   {package}" for package in PACKAGES)]
    return "\n".join(lines) + "\n"


def api_pages() -> dict[str, str]:
    """Every page of the reference by its name, without ending."""
    names = public_names()
    pages = {one.page: name_page(one) for one in reversed(names)}
    for one in names:
        if (also := f"{one.package}.{one.name}") != one.documented_as:  # links by the other name lead here, too
            pages[one.page] += f'\n.. raw:: html\n\n   <span id="{also}"></span>\n'
    for package, title in PACKAGES.items():
        pages[package] = package_page(package, title, [one for one in names if one.package == package])
    pages["index"] = index_page(names)
    return pages


def commands() -> list[list[str]]:
    """The words of every command, such as ``["datasets", "check"]``, in the order of ``--help``."""
    from precisionnet.cli.app import app

    def words(command: Any) -> str:
        return command.name or command.callback.__name__.replace("_", "-")

    found = [[words(command)] for command in app.registered_commands]
    for group in app.registered_groups:
        found += [[group.name, words(command)] for command in group.typer_instance.registered_commands]
    return found


def commands_page() -> str:
    """Every command and what its ``--help`` prints."""
    from typer.testing import CliRunner

    from precisionnet.cli.app import app

    lines = [*heading("Commands"), "What ``precisionnet COMMAND --help`` prints, on one page.", ""]
    for words in commands():
        printed = CliRunner().invoke(app, [*words, "--help"], prog_name="precisionnet", env=WIDE)
        lines += [*heading(f"precisionnet {' '.join(words)}", "-"), ".. code-block:: text", ""]
        lines += [f"   {line}".rstrip() for line in printed.output.strip().splitlines()] + [""]
    return "\n".join(lines)


def write_pages(folder: Path) -> None:
    """Write the reference into a folder and the commands beside it; a page that has not changed is left alone."""
    pages = {folder / f"{name}.rst": text for name, text in api_pages().items()}
    pages[folder.parent / "commands.rst"] = commands_page()
    folder.mkdir(parents=True, exist_ok=True)
    for old in set(folder.glob("*.rst")) - set(pages):
        old.unlink()
    for path, text in pages.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    write_pages(target)
