"""Every public name says what it takes, what it gives back and how it is used, and its examples run."""

from __future__ import annotations

import doctest
import importlib
import sys

import pytest

import precisionnet as top
from tests.cheap import cheap_baselines, short_training, two_folds
from tests.docstrings import complaints, public_names

__all__ = ["cheap_baselines", "short_training", "two_folds"]

PACKAGES = (
    "precisionnet.nn",
    "precisionnet.joint",
    "precisionnet.precision",
    "precisionnet.estimators",
    "precisionnet.datasets",
    "precisionnet.preprocessing",
    "precisionnet.evidence",
    "precisionnet.gap",
    "precisionnet.evaluation",
    "precisionnet.paper",
    "precisionnet.runner",
    "precisionnet.plots",
    "precisionnet.report",
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_top_package_repeats_names_of_the_others():
    """So it needs no look of its own."""
    others = [importlib.import_module(package) for package in PACKAGES]
    repeated = {
        name for module in others for name in module.__all__ if getattr(top, name, None) is getattr(module, name)
    }
    names = {dotted.split(".")[1] for dotted in public_names("precisionnet")}
    assert names
    assert names <= repeated


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.filterwarnings("ignore:Unknown section")
def test_every_public_name_is_documented(package):
    missing = [line for name in public_names(package) for line in complaints(name)]
    assert not missing, "\n".join(missing)


def examples(package: str) -> list[doctest.DocTest]:
    """Those of the package's public names and of their methods, with the names of the module they stand in."""
    module, found = importlib.import_module(package), {}
    for dotted in public_names(package):
        name = dotted.removeprefix(f"{package}.")
        if "." not in name:  # methods are found with their class
            thing = getattr(module, name)
            home = sys.modules[thing.__module__]
            found[name] = doctest.DocTestFinder(exclude_empty=True).find(thing, name, module=home)
    return [test for tests in found.values() for test in tests if test.examples]


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_run(package, tmp_path, monkeypatch):
    """In an empty folder, so that an example may write files."""
    monkeypatch.chdir(tmp_path)
    runner, said = doctest.DocTestRunner(optionflags=FLAGS), []
    for test in examples(package):
        runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
