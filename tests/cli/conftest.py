"""The command line, run as a person would: with arguments, reading what it prints."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

import pytest

from precisionnet.cli import app as cli_app
from precisionnet.cli import console


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """Standard error on one line: the terminal breaks lines, a reader does not mind."""
        return re.sub(r"\s+", " ", self.err)


@pytest.fixture
def precisionnet(monkeypatch, capsys):
    """Run ``precisionnet ARGS`` in this process, through its real entry point."""

    def run(*arguments: object) -> Run:
        monkeypatch.setattr(sys, "argv", ["precisionnet", *map(str, arguments)])
        monkeypatch.setattr(console.out, "_width", 80)
        monkeypatch.setattr(console.err, "_width", 80)
        try:
            cli_app.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run


@pytest.fixture
def table(gaussian, tmp_path):
    """The Gaussian table with an id and a class, as csv."""
    frame = gaussian.X.assign(age=gaussian.y.round(3), who=[f"s{i:03d}" for i in range(len(gaussian.X))])
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path
