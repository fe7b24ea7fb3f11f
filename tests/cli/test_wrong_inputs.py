"""Sixty wrong inputs: one answer each that names everything, exit code 2, nothing written, no traceback."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.wrong_inputs import WRONG, Wrong


def test_the_list_is_long_and_has_no_twins():
    assert len(WRONG) >= 60
    assert (
        len({wrong.what for wrong in WRONG})
        == len({(wrong.arguments, str(wrong.files)) for wrong in WRONG})
        == len(WRONG)
    )


@pytest.mark.parametrize("wrong", WRONG, ids=[wrong.what for wrong in WRONG])
def test_one_answer_names_everything(precisionnet, tmp_path, monkeypatch, wrong: Wrong):
    for name, content in wrong.files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    done = precisionnet(*shlex.split(wrong.arguments))
    assert done.code == 2, done.out
    assert "Traceback" not in done.err
    assert done.sentence.count("Error:") == 1
    assert re.search(".*".join(map(re.escape, wrong.words)), done.sentence), done.sentence
    assert {path.name for path in tmp_path.iterdir()} == set(wrong.files)
