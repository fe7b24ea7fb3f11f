"""``precisionnet reproduce``: readings, all experiments at once, and the one page over them; tiny budgets."""

from __future__ import annotations

import json
import re

import pytest

from precisionnet.paper import config
from tests.cli.test_reproduce_cohort import CONFIG as ADNI
from tests.paper.test_build import adni_folder
from tests.test_report import Balanced

NETWORKS = """
[networks]
n_layers = [1]
n_filters = [2]
order = [1]
l1_scale = [1.0]
max_epochs = [1]
weight_steps = [2]
task_steps = [1]
"""

SYNTHETIC = f"""
name = "synthetic"
kind = "synthetic"
methods = ["joint", "glasso", "ridge"]
repeats = 2
[data]
n_features = 5
n_samples = 50
sparsity = [0.4, 0.6]
tuned_at = 0.4
{NETWORKS}
"""

THEOREM = """
name = "theorem"
kind = "theorem"
repeats = 2
[data]
n_samples = [50, 100]
n_features = [10, 20]
sparsity = [0.2]
distances = [0.3]
l1_scale = 3.0
base = {n_features = 10, n_samples = 100, sparsity = 0.2}
"""

CONVERGENCE = """
name = "convergence"
kind = "convergence"
repeats = 1
[data]
tables = ["smooth"]
n_epochs = 2
l1_scale = 1.0
"""

STABILITY = """
name = "stability"
kind = "stability"
methods = ["glasso", "vnn"]
repeats = 1
[data]
n_features = 6
sparsity = 0.4
n_fit = 60
n_samples = [50, 200, 800]
[tuning]
search = "none"
[networks]
recipe = ["paper"]
readout = ["mean"]
max_epochs = [1]
weight_steps = [3]
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The experiments that come with the package, as small as they can be, and tables as ADNI writes them."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "configs"
    folder.mkdir()
    texts = {"synthetic": SYNTHETIC, "adni": ADNI, "theorem": THEOREM}
    for name, text in (texts | {"convergence": CONVERGENCE, "stability": STABILITY}).items():
        (folder / f"{name}.toml").write_text(text)
    monkeypatch.setattr(config, "CONFIGS", folder)
    (tmp_path / "tables").mkdir()
    adni_folder(tmp_path / "tables", n=60)
    return tmp_path


def page_of(folder):
    page = (folder / "index.html").read_text()
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not [link for link in parser.outside if ":" in link]  # only pages below the folder
    assert len(parser.ids) == len(set(parser.ids))
    return re.sub(r"\s+", " ", page)


def test_all_of_it_on_one_page(precisionnet, small):
    done = precisionnet("reproduce", "all", "--data", "tables", "--jobs", 1, "--out", "out")
    assert done.code == 0, done.err
    folders = {str(path.parent.relative_to(small / "out")) for path in (small / "out").rglob("rows.jsonl")}
    assert folders == {
        "synthetic/paper", "synthetic/flattened", "adni/paper", "adni/flattened", "theorem", "convergence", "stability",
    }  # fmt: skip
    page = page_of(small / "out")
    for words in ("5.31 ± 0.18", "1225 ± 1126", "Below 1e-8, paper's reading", "l1 error of θ, flattened reading",
                  "MSE, paper's reading", "Figure 2, flattened reading", "not to be told here", "open",
                  "The paper’s bound beside a linear one", "Errata of the text and the proof"):  # fmt: skip
        assert words in page.replace("&#39;", "'"), words
    for link in re.findall(r'href="([^"#]+)"', page):
        assert (small / "out" / link).is_file()
    for name in ("theorem", "convergence", "stability"):
        assert f"{name}: " in " ".join(done.out.split())
        assert f'<section id="{name}">' in page
    assert "Claims of convergence and stability are not the paper’s" in page
    networks = json.loads((small / "out/adni/flattened/experiment.json").read_text())["config"]["networks"]
    assert networks["readout"] == ["mlp"]
    before = (small / "out" / "index.html").read_bytes()
    (small / "out" / "index.html").unlink()
    assert precisionnet("experiments", "page", "out").code == 0
    assert (small / "out" / "index.html").read_bytes() == before


def test_all_without_adnis_tables_says_why(precisionnet, small):
    done = precisionnet("reproduce", "all", "--reading", "paper", "--jobs", 1, "--out", "out")
    assert done.code == 0, done.err
    assert "adni is left out. ADNI is given to registered users only" in done.sentence
    assert not (small / "out" / "adni").exists()
    page = page_of(small / "out")
    assert "adni is not here. ADNI is given to registered users only: its two tables come from ida.loni.usc.edu" in page


@pytest.mark.slow
def test_one_reading_and_then_the_other_beside_it(precisionnet, small):
    done = precisionnet("reproduce", "synthetic", "--reading", "paper", "--jobs", 1, "--out", "out")
    assert done.code == 0, done.err
    assert not (small / "out" / "flattened").exists()
    first = (small / "out" / "paper" / "rows.jsonl").read_bytes()
    assert precisionnet("reproduce", "synthetic", "--jobs", 1, "--out", "out").code == 0
    assert (small / "out" / "paper" / "rows.jsonl").read_bytes() == first
    page = page_of(small / "out").replace("&#39;", "'")
    assert "MAE, paper's reading" in page
    assert "MAE, flattened reading" in page
    for reading, words in (("paper", "the mean node under a perceptron"), ("flattened", "weights for every node")):
        assert words in (small / "out" / reading / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("synthetic", "--reading", "flat"), "--reading must be paper, flattened or both, got 'flat'"),
        (("theorem", "--reading", "paper"), "theorem compares no networks, and has no readings"),
        (("theorem", "--data", "tables"), "theorem draws its rows, and --data is where tables are: leave it out"),
        (("alll",), "no experiment 'alll' (did you mean 'all'?): choose one of"),
        (("nothing",), "stability, all, or pass the path of a .toml file"),
        (("all", "--data", "nowhere"), "is not a folder"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(precisionnet, small, arguments, words):
    done = precisionnet("reproduce", *arguments, "--out", "out")
    assert done.code == 2
    assert words in done.sentence
    assert not (small / "out").exists()
