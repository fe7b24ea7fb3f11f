"""Two readings of the paper: what they are, how an experiment is put into one, and how it is recognised."""

from __future__ import annotations

import pytest

from precisionnet.errors import InputError
from precisionnet.paper import build, builtin, load_config, reading_of, with_reading
from precisionnet.paper.readings import CONVENTIONS, READINGS
from precisionnet.parameters import settings_of
from tests.paper.test_build import synthetic


def test_the_recipe_is_the_papers_reading():
    settings = settings_of({"recipe": "paper"})
    assert {name: getattr(settings, name) for name in CONVENTIONS["paper"]} == CONVENTIONS["paper"]
    assert (settings.readout, settings.standardize_target, settings.scale_shift) == ("mean", False, False)
    assert (settings.step1, settings.step2, settings.keep_epoch) == ("exact", "symmetric", "best")


def test_the_standard_recipe_keeps_its_units():
    settings = settings_of({})
    assert (settings.readout, settings.standardize_target, settings.scale_shift) == ("several", True, True)


@pytest.mark.parametrize("name", ["abide", "ants", "adni", "synthetic"])
@pytest.mark.parametrize("reading", READINGS)
def test_configs_in_both_readings_differ_in_nothing_else(name, reading):
    config, plain = load_config(builtin(name), reading=reading), load_config(builtin(name))
    assert config.read_twice
    for parameter, value in CONVENTIONS[reading].items():
        assert config.networks[parameter] == [value]
    rest = {key: values for key, values in config.networks.items() if key not in CONVENTIONS[reading]}
    assert rest == plain.networks
    assert (config.name, config.methods, config.repeats) == (plain.name, plain.methods, plain.repeats)


def test_a_reading_is_recognised_in_what_was_stored():
    for reading in READINGS:
        networks = synthetic().networks
        config = build(synthetic(networks=with_reading(networks, reading))).config
        assert reading_of(config) == reading
    assert reading_of(build(synthetic()).config) == "paper"  # what the recipe has
    old = {"networks": {"order": [1]}, "fixed": {"readout": "mlp", "standardize_target": True, "scale_shift": True}}
    assert reading_of(old) == "flattened"  # rows from before readings had names
    mixed = synthetic(networks=dict(synthetic().networks) | {"readout": ["mlp"]})
    assert reading_of(build(mixed).config) is None
    assert reading_of({"networks": {"recipe": ["standard"]}}) is None


def test_an_unknown_reading_is_one_sentence():
    with pytest.raises(InputError, match="reading must be one of paper, flattened, got 'flatened'.*did you mean"):
        load_config(builtin("abide"), reading="flatened")
