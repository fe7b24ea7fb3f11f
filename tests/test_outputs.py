"""Whole or not at all, and never at the cost of somebody else's files."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from precisionnet.errors import OutputError
from precisionnet.outputs import whole_file, whole_folder


def never(_):
    return False


def test_a_folder_appears_when_the_block_ends(tmp_path):
    with whole_folder(tmp_path / "a" / "b", never) as scratch:
        (scratch / "x").write_text("1")
        assert not (tmp_path / "a" / "b").exists()
    assert (tmp_path / "a" / "b" / "x").read_text() == "1"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b"]


def test_a_failure_takes_everything_with_it_even_the_parents(tmp_path):
    def fail(how):
        with how as scratch:
            (scratch / "x" if scratch.is_dir() else scratch).write_text("1")
            raise ZeroDivisionError

    for how in (whole_folder(tmp_path / "a" / "b", never), whole_file(tmp_path / "c" / "d.csv")):
        with pytest.raises(ZeroDivisionError):
            fail(how)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_not_lost(tmp_path):
    """Empty when the work began, somebody's when it ended."""
    place = tmp_path / "out"

    def work():
        with whole_folder(place, never) as scratch:
            (scratch / "x").write_text("ours")
            place.mkdir()
            (place / "thesis.tex").write_text("years of work")

    with pytest.raises(OutputError, match="not an earlier output"):
        work()
    assert (place / "thesis.tex").read_text() == "years of work"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_nul_in_a_name_is_a_sentence(tmp_path):
    with pytest.raises(OutputError, match="Cannot write"), whole_file(f"{tmp_path}/a\0b.csv"):
        pass


def test_places_without_permission_are_a_sentence(tmp_path):
    """As an ordinary user, also where the tests run as root: a folder that may not even be looked into."""
    private = tmp_path / "private"
    private.mkdir(mode=0o000)
    code = f"""
import os
from precisionnet import load
from precisionnet.cli.options import check_model
from precisionnet.errors import PrecisionNetError
from precisionnet.inputs import refuse_missing_table
from precisionnet.outputs import whole_file, whole_folder
if os.getuid() == 0:
    os.setuid(65534)
def enter(manager):
    with manager:
        raise SystemExit("entered")
place = {str(private / "x")!r}
for attempt in (
    lambda: enter(whole_folder(place, lambda _: False)), lambda: enter(whole_file(place)),
    lambda: refuse_missing_table(place), lambda: check_model(place), lambda: load(place),
):
    try:
        attempt()
    except PrecisionNetError as error:
        assert place in str(error), error
        print("refused")
"""
    for folder in [tmp_path, *tmp_path.parents]:  # the way there must be open to that user
        if folder.stat().st_uid == os.getuid() and folder.name.startswith("pytest"):
            folder.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    private.chmod(0o700)
    assert done.stdout.split() == ["refused"] * 5, done.stderr
