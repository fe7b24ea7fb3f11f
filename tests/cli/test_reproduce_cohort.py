"""``precisionnet reproduce`` on a cohort, from tables as ADNI writes them."""

from __future__ import annotations

import json

import pytest

from tests.paper.test_build import adni_folder

CONFIG = """
name = "adni"
kind = "cohort"
methods = ["joint", "glasso", "sample", "ridge", "median"]
repeats = 2
[data]
cohort = "adni"
[networks]
n_layers = [1]
n_filters = [2]
order = [1]
l1_scale = [1.0]
max_epochs = [1]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()
    adni_folder(tmp_path / "tables", n=60)
    (tmp_path / "tiny.toml").write_text(CONFIG)
    return tmp_path


def test_a_cohort_beside_the_papers_table(precisionnet, folder):
    done = precisionnet("reproduce", "tiny.toml", "--data", "tables", "--jobs", 1, "--out", "out")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (folder / "out" / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 10
    assert all(row["mae"] > 0 and row["data_hash"] and row["config_hash"] for row in rows)
    assert "5.31 ± 0.18" in done.out  # the paper's joint on ADNI
    assert "4546" in (folder / "out" / "index.html").read_text()
    assert "Joint predicts age best of the paper's methods" in done.out.replace("\n", " ").replace("  ", " ")
    header, first = (folder / "out" / "splits.csv").read_text().splitlines()[:2]
    assert header == "id,repeat_0,repeat_1"
    assert set(first.split(",")[1:]) <= {"train", "validation", "test"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"joint", ', '"jiont", ', "did you mean 'joint'"),
        ("repeats = 2", "repeats = 0", "repeats must be a whole number, at least 1"),
        ("repeats = 2", "repeat = 2", "did you mean 'repeats'"),
        ('cohort = "adni"', 'cohort = "adnii"', "did you mean 'adni'"),
        ("n_layers = [1]", "n_layers = [0]", "n_layers must be a whole number at least 1"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_with_its_name(precisionnet, folder, old, new, words):
    (folder / "wrong.toml").write_text(CONFIG.replace(old, new))
    done = precisionnet("reproduce", "wrong.toml", "--data", "tables", "--out", "out")
    assert done.code == 2
    assert "wrong.toml" in done.sentence
    assert words in done.sentence
    assert not (folder / "out").exists()


@pytest.mark.parametrize("sparsity", ["[0.0]", "[1.5]", "[-0.1, 0.2]"])
def test_a_sparsity_outside_its_range(precisionnet, folder, sparsity):
    text = CONFIG.replace('kind = "cohort"', 'kind = "synthetic"').replace(
        'cohort = "adni"', f"sparsity = {sparsity}\nn_features = 6\nn_samples = 50"
    )
    (folder / "wrong.toml").write_text(text)
    done = precisionnet("reproduce", "wrong.toml", "--out", "out")
    assert done.code == 2
    assert "sparsity" in done.sentence
    assert not (folder / "out").exists()


def test_what_cannot_be_drawn_is_refused_before_anything_is_made(precisionnet, folder):
    text = CONFIG.replace('kind = "cohort"', 'kind = "synthetic"').replace(
        'cohort = "adni"', 'sparsity = [0.2, 0.9]\ntuned_at = 0.2\nn_features = 6\nn_samples = 12\ngraph = "random"'
    )
    (folder / "wrong.toml").write_text(text)
    done = precisionnet("reproduce", "wrong.toml", "--out", "out")
    assert done.code == 2
    assert "rows are too few" in done.sentence
    assert not (folder / "out").exists()
