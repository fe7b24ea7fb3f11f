"""A config is checked before anything runs; a mistake is one sentence with the file's name."""

from __future__ import annotations

import json

import pytest

from precisionnet.errors import InputError
from precisionnet.evaluation.methods import PAPER_GRID, STANDARD_GRID, checked_networks
from precisionnet.evaluation.tuning import Tuning
from precisionnet.paper.config import CONFIGS, Config, builtin, load_config

SYNTHETIC = """
name = "small"
kind = "synthetic"
methods = ["joint", "ridge"]
repeats = 3

[tuning]
search = "optuna"
trials = 7

[networks]
order = [1, 2]
coupling = [10]

[data]
n_features = 10
n_samples = 100
sparsity = [0.2, 1]
tuned_at = 0.2

[expected]
full = "a minute"

[quick]
repeats = 1
tuning.trials = 2
networks.order = [1]
data.sparsity = [0.2]
"""

THEOREM = """
name = "theorem"
kind = "theorem"
[data]
n_samples = [100, 200]
n_features = [10, 20]
sparsity = [0.2]
distances = [0, 1]
base = {n_features = 10, n_samples = 100, sparsity = 0.2}
"""


@pytest.fixture
def written(tmp_path):
    def write(text: str):
        path = tmp_path / "my.toml"
        path.write_text(text)
        return path

    return write


def test_a_file_says_what_differs_from_the_defaults(written):
    config = load_config(written(SYNTHETIC))
    assert (config.name, config.kind, config.methods, config.repeats) == ("small", "synthetic", ("joint", "ridge"), 3)
    assert config.tuning == Tuning("optuna", 7, race=True)
    assert config.fractions == (0.6, 0.2, 0.2)
    assert config.networks == PAPER_GRID | {"order": [1, 2], "coupling": [10.0]}
    assert config.data["sparsity"] == [0.2, 1.0]
    assert (config.data["snr"], config.data["graph"], config.data["condition_number"]) == (10.0, "random", 10.0)
    assert config.expected == {"full": "a minute"}


def test_quick_overrides_key_by_key(written):
    full, quick = (load_config(written(SYNTHETIC), quick=quick) for quick in (False, True))
    assert (quick.repeats, quick.tuning) == (1, Tuning("optuna", 2))
    assert quick.networks == dict(full.networks) | {"order": [1]}
    assert quick.data == dict(full.data) | {"sparsity": [0.2]}
    assert quick.methods == full.methods


def test_theorem_needs_no_methods(written):
    config = load_config(written(THEOREM))
    assert config.methods == ()
    assert config.data["base"] == {"n_features": 10, "n_samples": 100, "sparsity": 0.2}
    assert config.data["coupling"] == 10.0


CONVERGENCE = """
name = "convergence"
kind = "convergence"
[data]
tables = ["smooth"]
n_epochs = 2
"""


@pytest.mark.parametrize("text", [THEOREM, CONVERGENCE])
@pytest.mark.parametrize(
    "line", ['methods = ["joint"]', "networks = {readout = ['mlp']}", "tuning = {search = 'none'}"]
)
def test_what_would_change_nothing_is_refused(written, text, line):
    name = line.split()[0]
    with pytest.raises(InputError, match=rf"{name} has no effect on an experiment of the kind (theorem|convergence)"):
        load_config(written(line + text))


def test_shares_of_rows_that_are_not_divided_are_refused(written):
    with pytest.raises(InputError, match="fractions has no effect on an experiment of the kind theorem"):
        load_config(written("fractions = [0.5, 0.25, 0.25]" + THEOREM))


def test_a_suggestion_is_made_once(written):
    with pytest.raises(InputError) as told:
        load_config(written(SYNTHETIC.replace("tuned_at = 0.2", 'tuned_at = 0.2\ngraph = "chian"')))
    assert str(told.value).count("did you mean") == 1


def test_what_is_hashed_is_json_and_does_not_depend_on_the_spelling(written):
    config = load_config(written(SYNTHETIC))
    hashed = config.hashed()
    assert json.loads(json.dumps(hashed)) == hashed
    assert "expected" not in hashed
    respelled = SYNTHETIC.replace("[10]", "[10.0]").replace("0.2, 1]", "0.2, 1.0]").replace("a minute", "an hour")
    respelled = respelled.replace('["joint", "ridge"]', '["ridge", "joint"]')
    assert json.dumps(load_config(written(respelled)).hashed()) == json.dumps(hashed)
    assert load_config(written(SYNTHETIC.replace("repeats = 3", "repeats = 4"))).hashed() != hashed


MISTAKES = {
    "unknown key": ('repeats = 3', 'repeat = 3', r"unknown key 'repeat' \(did you mean 'repeats'\?\)"),
    "unknown key of a table": ("trials = 7", "trails = 7", r"unknown key 'tuning.trails' \(did you mean 'trials'\?\)"),
    "unknown key of the data": ("n_samples", "n_sample", r"unknown key 'data.n_sample' \(did you mean 'n_samples'\?\)"),
    "unknown key of quick": ("[quick]", "[quick]\nrepeat = 2", r"unknown key 'quick.repeat' \(did you mean 'repeats'\?\)"),
    "unknown parameter": ("coupling", "couplin", r"unknown key 'networks.couplin' \(did you mean 'coupling'\?\)"),
    "unknown method": ('"joint"', '"jiont"', r"no method 'jiont' \(did you mean 'joint'\?\)"),
    "method for classes": ('"ridge"', '"svc"', r"svc is not for regression: take svr"),
    "no methods": ('methods = ["joint", "ridge"]', "", r"[Nn]o method is named"),
    "methods as text": ('["joint", "ridge"]', '"joint"', r"methods must be a list of names, got 'joint'"),
    "no name": ('name = "small"', "", r"'name' is missing"),
    "no kind": ('kind = "synthetic"', "", r"'kind' is missing"),
    "unknown kind": ('"synthetic"', '"synthetics"', r"kind must be one of .*did you mean 'synthetic'\?"),
    "repeats 0": ("repeats = 3", "repeats = 0", r"repeats must be a whole number, at least 1, got 0"),
    "repeats true": ("repeats = 3", "repeats = true", r"repeats must be a whole number"),
    "seed": ("repeats = 3", "seed = -1", r"seed must be a whole number, at least 0"),
    "large seed": ("repeats = 3", "seed = 4294967296", r"seed must be a number >= 0 and < "),
    "fractions": ("repeats = 3", "fractions = [0.6, 0.2]", r"fractions must be the shares of training, validation"),
    "fractions beyond 1": ("repeats = 3", "fractions = [0.6, 0.3, 0.2]", r"add up to 1"),
    "search": ('"optuna"', '"optun"', r"search must be one of .*did you mean 'optuna'"),
    "trials": ("trials = 7", "trials = 0", r"trials must be a whole number, at least 1"),
    "sparsity 0": ("[0.2, 1]", "[0.2, 0]", r"data.sparsity must be a number above 0 and at most 1, got 0"),
    "sparsity 1.5": ("[0.2, 1]", "[0.2, 1.5]", r"data.sparsity must be .* got 1.5"),
    "no sparsity": ("sparsity = [0.2, 1]", "", r"'data.sparsity' is missing"),
    "a lone sparsity": ("sparsity = [0.2, 1]", "sparsity = 0.2", r"data.sparsity must be a list"),
    "sparsity twice": ("[0.2, 1]", "[0.2, 0.2]", r"data.sparsity names a value twice"),
    "tuned elsewhere": ("tuned_at = 0.2", "tuned_at = 0.3", r"data.tuned_at is 0.3, which is not in data.sparsity"),
    "no samples": ("n_samples = 100", "n_samples = 0", r"data.n_samples must be a whole number at least 1"),
    "graph": ("n_samples = 100", 'n_samples = 100\ngraph = "chian"', r"data.graph must be one of .*did you mean 'chain'"),
    "value out of range": ("order = [1, 2]", "order = [0]", r"networks.order must be a whole number at least 1"),
    "a lone value": ("order = [1, 2]", "order = 1", r"networks.order must be a list of values"),
    "two recipes": ("order = [1, 2]", 'recipe = ["standard", "paper"]', r"networks.recipe names two recipes"),
    "nothing tuned": ('"optuna"', '"none"', r"networks.order has several values, and nothing is tuned"),
    "no value": ("order = [1, 2]", "order = []", r"networks.order must be a list of values"),
    "expected": ('full = "a minute"', "full = 3", r"expected.full must be text"),
    "not TOML": ("repeats = 3", "repeats = ", r"is not TOML: .*line 5"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(MISTAKES))
def test_mistakes_are_one_sentence(written, what):
    old, new, sentence = MISTAKES[what]
    assert old in SYNTHETIC
    path = written(SYNTHETIC.replace(old, new, 1))
    with pytest.raises(InputError, match=sentence) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"Config {str(path)!r}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "sentence"), [("base", "'data.base.n_features' is missing"), ("bases", "did you mean 'base'")]
)
def test_the_base_of_the_theorem(written, key, sentence):
    text = THEOREM.replace("base = {n_features = 10, ", f"{key} = {{")
    with pytest.raises(InputError, match=sentence):
        load_config(written(text))


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b'name = "\xfc"')
    for path, sentence in {
        tmp_path / "none.toml": "No such file",
        tmp_path: "Is a directory",
        tmp_path / "latin.toml": "not UTF-8",
        f"{tmp_path}/a\0b": "null byte",
    }.items():
        with pytest.raises(InputError, match=sentence):
            load_config(path)


def test_a_config_made_in_python_is_checked_as_well():
    with pytest.raises(InputError, match="at least 1"):
        Config("x", "cohort", ("joint",), repeats=0, data={"cohort": "abide"})
    with pytest.raises(
        InputError, match="data.cohort must be one of abide, ants, adni, got 'abdie' .did you mean 'abide'"
    ):
        Config("x", "cohort", ("joint",), data={"cohort": "abdie"})
    with pytest.raises(InputError, match=r"data must be a table, written below a line \[data\], got 3"):
        Config("x", "cohort", ("joint",), data=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="race must be True or False"):
        Tuning(race="yes")  # type: ignore[arg-type]


def test_a_grid_is_that_of_its_recipe():
    assert checked_networks({}) == PAPER_GRID
    assert checked_networks({}, "standard") == STANDARD_GRID
    assert checked_networks({"recipe": ["standard"]}) == STANDARD_GRID
    assert checked_networks({"recipe": ["paper"], "order": [1]}, "standard") == PAPER_GRID | {"order": [1]}
    assert checked_networks({"order": [1]}, "standard", tuned=False) == {"recipe": ["standard"], "order": [1]}


def test_what_comes_with_the_package():
    names = {path.stem for path in CONFIGS.glob("*.toml")}
    assert names == {"abide", "adni", "ants", "convergence", "stability", "synthetic", "theorem"}
    for name in names:
        full, quick = load_config(builtin(name)), load_config(builtin(name), quick=True)
        assert full.networks["recipe"] == quick.networks["recipe"] == ["paper"]
        assert full.name == quick.name
        assert full.hashed() != quick.hashed()
    with pytest.raises(InputError, match="no experiment 'abdie' .did you mean 'abide'"):
        builtin("abdie")
