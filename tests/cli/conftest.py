"""The command line, run as a person would: with arguments, reading what it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pytest
import typer.testing
from typer.testing import CliRunner

from precisionnet.cli import console
from precisionnet.cli.app import app
from tests.cheap import cheap_baselines, two_folds
from tests.pictures import blank_pictures, with_files, with_pictures

__all__ = ["blank_pictures", "cheap_baselines", "two_folds", "with_files", "with_pictures"]


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """Standard error on one line: the terminal breaks lines, a reader does not mind."""
        return re.sub(r"\s+", " ", self.err)

    @property
    def flat(self) -> str:
        """Standard output on one line."""
        return re.sub(r"\s+", " ", self.out)


@pytest.fixture(scope="session", autouse=True)
def _read_once():
    """Read the options of all commands from their functions once, not at every call: it takes longer than a refusal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command), raising=False)
        yield


@pytest.fixture
def precisionnet(monkeypatch):
    """Run ``precisionnet ARGS`` in this process, 80 columns wide."""
    monkeypatch.setattr(console.out, "_width", 80)
    monkeypatch.setattr(console.err, "_width", 80)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> Run:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Run(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def table(gaussian, tmp_path):
    """The Gaussian table with an id, as csv."""
    frame = gaussian.X.assign(age=gaussian.y.round(3), who=[f"s{i:03d}" for i in range(len(gaussian.X))])
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path
