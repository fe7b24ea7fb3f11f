"""The wheel, installed into an empty environment: everything is in it, and it works there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "precisionnet"
INTERPRETERS = ("3.11", "3.12", "3.13")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, without what this process adds to the path, and return what it prints."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built as a user builds it; the build backend is the installed one, so that nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"  # a build leaves files behind
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__", "*.nb[ci]", "*.egg-info"))
    run(sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-w", folder, cwd=tree)
    (built,) = folder.glob("*.whl")
    return built


def environment_with(wheel: Path, folder: Path, python: str) -> Path:
    """An empty environment with the wheel and nothing else; its Python."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    return inside


def interpreter(version: str) -> str | None:
    """A Python of this version that starts, on the path or among pyenv's."""
    others = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for python in [shutil.which(f"python{version}"), *map(str, others)]:
        if python and subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def test_the_wheel_holds_every_file_of_the_package(wheel):
    named = zipfile.ZipFile(wheel).namelist()
    ours = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours <= set(named)
    assert {"precisionnet/py.typed", "precisionnet/plots/desikan_outlines.json"} <= set(named)
    assert any(name.endswith("report.html.j2") for name in named)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license-files"]
    assert len(declared) >= 2  # ours, and those of what is vendored
    for path in declared:
        assert any(name.endswith(f".dist-info/licenses/{path}") for name in named), path


def test_nothing_but_the_package_is_installed(wheel):
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"precisionnet"}


def test_an_empty_environment_makes_a_report(wheel, tmp_path):
    """With the dependencies of this process, which are large, by a path file; precisionnet itself is the wheel's."""
    inside = environment_with(wheel, tmp_path / "empty", sys.executable)
    site = Path(run(inside, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    used = run(inside, "-c", "import precisionnet; print(precisionnet.__file__)", cwd=tmp_path).strip()
    assert Path(used).is_relative_to(tmp_path / "empty")

    table = (
        "from precisionnet.datasets import make_gaussian_regression as make\n"
        "from precisionnet.datasets.neuro.regions import DESIKAN\n"
        "drawn = make(60, 12, random_state=0)\n"
        "X = drawn.X.set_axis([f'lh_{name}' for name in DESIKAN[:12]], axis=1)\n"
        "X.assign(age=40 + drawn.y, subject=range(60)).to_csv('table.csv', index=False)\n"
    )
    run(inside, "-c", table, cwd=tmp_path)
    command = tmp_path / "empty" / "bin" / "precisionnet"
    quick = ["--n-members", "4", "--max-epochs", "3"]
    run(command, "fit", "table.csv", "--target", "age", "--id", "subject", "--out", "out", *quick, cwd=tmp_path)
    assert "<svg" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    run(command, "predict", "out", "table.csv", "--id", "subject", "-o", "predicted.csv", cwd=tmp_path)
    assert len((tmp_path / "predicted.csv").read_text(encoding="utf-8").splitlines()) == 61
    assert "synthetic" in run(command, "reproduce", "--help", cwd=tmp_path)


@pytest.mark.parametrize("version", [version for version in INTERPRETERS if version != HERE])
def test_other_interpreters_read_it(wheel, tmp_path, version):
    """Without the dependencies, which other interpreters do not have: it installs, imports and compiles as a whole."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    inside = environment_with(wheel, tmp_path / "empty", python)
    where = run(inside, "-c", "import precisionnet; print(precisionnet.__path__[0])", cwd=tmp_path).strip()
    run(inside, "-W", "error", "-m", "compileall", "-q", "-f", where, cwd=tmp_path)
