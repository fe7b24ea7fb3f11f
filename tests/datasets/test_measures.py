"""Measures of regions together, and volumes below the cortex, when they are asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets import load_table
from precisionnet.datasets.neuro.regions import DESIKAN, parse_structure
from precisionnet.errors import InputError

PEOPLE = [f"sub-{i:02d}" for i in range(1, 7)]


def aparc(folder, side, measure):
    frame = pd.DataFrame(
        np.random.default_rng(len(measure)).uniform(1, 4, (6, 34)), columns=[f"{side}_{r}_{measure}" for r in DESIKAN]
    )
    frame.insert(0, f"{side}.aparc.{measure}", PEOPLE)
    frame.to_csv(folder / f"{side}.{measure}.tsv", sep="\t", index=False)
    return folder / f"{side}.{measure}.tsv"


def aseg(folder):
    names = [
        "Left-Hippocampus",
        "Right-Hippocampus",
        "Left-Thalamus-Proper",
        "Brain-Stem",
        "3rd-Ventricle",
        "CC_Anterior",
    ]
    frame = pd.DataFrame(np.random.default_rng(0).uniform(1e3, 4e3, (6, 6)), columns=names)
    frame["EstimatedTotalIntraCranialVol"] = 1.5e6
    frame.insert(0, "Measure:volume", PEOPLE)
    frame.to_csv(folder / "aseg.tsv", sep="\t", index=False)
    return folder / "aseg.tsv"


def people(folder):
    pd.DataFrame({"participant_id": PEOPLE, "age": range(20, 26)}).to_csv(folder / "p.tsv", sep="\t", index=False)
    return folder / "p.tsv"


def test_an_aseg_table_holds_features(tmp_path):
    data = load_table(aseg(tmp_path), people(tmp_path), target="age")
    assert set(data.X.columns) == {
        "lh_hippocampus", "rh_hippocampus", "lh_thalamus", "brain-stem", "3rd-ventricle", "cc-anterior",
    }  # fmt: skip
    assert data.measure == "volume"
    assert data.original_names["lh_thalamus"] == "Left-Thalamus-Proper"


def test_thickness_area_and_volume_together(tmp_path):
    files = [aparc(tmp_path, side, measure) for side in ("lh", "rh") for measure in ("thickness", "area", "volume")]
    with pytest.raises(InputError, match="differ in their measure .* measures="):
        load_table(*files, people(tmp_path), target="age")
    both = load_table(*files, aseg(tmp_path), people(tmp_path), target="age", measures=["thickness", "volume"])
    assert both.X.shape == (6, 68 + 68 + 6)
    assert {"lh_insula_thickness", "rh_insula_volume", "lh_hippocampus_volume"} <= set(both.X.columns)
    assert not any(name.endswith("_area") for name in both.X.columns)
    one = load_table(*files, people(tmp_path), target="age", measures=["area"])
    assert one.measure == "area"
    assert "lh_insula" in one.X.columns
    reduced = load_table(*files[:2], aseg(tmp_path), measures=["thickness", "volume"], regions="dkt62")
    assert reduced.X.shape[1] == 31 + 6


def test_columns_of_one_table(tmp_path):
    """ENIGMA's way: thickness, surface area and subcortical volumes side by side."""
    rng = np.random.default_rng(0)
    names = [f"L_{r}_{m}" for m in ("thickavg", "surfavg") for r in DESIKAN] + ["Lhippo", "Rthal", "LLatVent"]
    frame = pd.DataFrame(rng.uniform(1, 4, (6, len(names))), columns=names)
    frame.insert(0, "SubjID", PEOPLE)
    frame.to_csv(tmp_path / "e.csv", index=False)
    without = load_table(tmp_path / "e.csv")
    assert without.X.shape[1] == 68
    assert any("measures=['volume']" in note and "'Lhippo'" in note for note in without.notes)
    data = load_table(tmp_path / "e.csv", measures=["thickness", "volume"])
    assert data.X.shape[1] == 34 + 3
    assert "lh_lateral-ventricle_volume" in data.X.columns
    with pytest.raises(InputError, match="holds no meancurv"):
        load_table(tmp_path / "e.csv", measures=["meancurv"])


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Left-Hippocampus", "lh_hippocampus"), ("lh_hippocampus", "lh_hippocampus"), ("Right-Thalamus", "rh_thalamus"),
        ("Left-Accumbens-area", "lh_accumbens-area"), ("Brain-Stem", "brain-stem"), ("Rput", "rh_putamen"),
        ("lh_insula", None), ("Large", None), ("price", None), ("Rome", None), ("x" * 200, None),
    ],
)  # fmt: skip
def test_names_of_structures(name, known):
    assert parse_structure(name) == known
