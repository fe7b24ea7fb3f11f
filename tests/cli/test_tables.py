"""Tables of the field on the command line: what a model was fitted on is what it predicts on."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from precisionnet.datasets.neuro.regions import DESIKAN
from tests.datasets.test_loaders import adni

N = 40
QUICK = ("--max-epochs", 1, "--n-members", 2)


def tables(folder, measure="thickness", shift=0.0, scale=1.0, name="", extra=None):
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, N)
    paths = []
    for side in ("lh", "rh"):
        values = scale * (3 - 0.01 * age[:, None] + 0.2 * rng.normal(size=(N, 34)) + shift)
        frame = pd.DataFrame(values, columns=[f"{side}_{r}_{measure}" for r in DESIKAN])
        frame.insert(0, f"{side}.aparc.{measure}", [f"sub-{i:02d}" for i in range(N)])
        paths.append(folder / f"{side}{name}.{measure}.tsv")
        frame.to_csv(paths[-1], sep="\t", index=False)
    people = folder / "participants.tsv"
    ages = [*(f"{a:.1f}" for a in age[:-1]), "n/a" if extra == "gap" else "50"]
    pd.DataFrame({"participant_id": [f"sub-{i:02d}" for i in range(N)], "age": ages}).to_csv(
        people, sep="\t", index=False
    )
    return [*paths, people]


def test_hemispheres_and_participants_are_fitted_and_predicted(precisionnet, tmp_path):
    lh, rh, people = tables(tmp_path)
    done = precisionnet("fit", lh, rh, people, "--target", "age", "--out", tmp_path / "o", *QUICK)
    assert done.code == 0, done.err
    assert "68 columns" in done.out
    done = precisionnet("predict", tmp_path / "o", rh, lh, "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert len(pd.read_csv(tmp_path / "p.csv")) == N
    enigma = pd.concat([pd.read_csv(p, sep="\t", index_col=0) for p in (lh, rh)], axis=1)
    enigma.columns = [f"{c[0].upper()}_{c[3:].replace('thickness', 'thickavg')}" for c in enigma.columns]
    enigma.rename_axis("SubjID").to_csv(tmp_path / "enigma.csv")
    assert precisionnet("predict", tmp_path / "o", tmp_path / "enigma.csv", "-o", tmp_path / "q.csv").code == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "q.csv").iloc[:, 1], pd.read_csv(tmp_path / "p.csv").iloc[:, 1])


def test_columns_that_a_prediction_lacks_are_named_and_its_target_is_said_to_be_unused(precisionnet, tmp_path):
    lh, rh, people = tables(tmp_path)
    assert precisionnet("fit", lh, rh, people, "--target", "age", "--out", tmp_path / "o", *QUICK).code == 0
    done = precisionnet("predict", tmp_path / "o", lh, rh, people, "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert "Column 'age' is the model's target, and is not used" in done.sentence
    assert "covariates: 'age'" not in done.sentence
    frame = pd.read_csv(lh, sep="\t")
    frame.drop(columns=["lh_cuneus_thickness", "lh_insula_thickness"]).to_csv(lh, sep="\t", index=False)
    done = precisionnet("predict", tmp_path / "o", lh, rh)
    assert done.code == 2
    assert "2 of the model's 68 columns are not among them ('lh_cuneus', 'lh_insula')" in done.sentence


def test_a_region_that_nobody_has_is_filled_in_a_prediction(precisionnet, tmp_path):
    lh, rh, people = tables(tmp_path)
    assert precisionnet("fit", lh, rh, people, "--target", "age", "--out", tmp_path / "o", *QUICK).code == 0
    frame = pd.read_csv(lh, sep="\t")
    frame.assign(lh_cuneus_thickness=np.nan).to_csv(lh, sep="\t", index=False)
    done = precisionnet("predict", tmp_path / "o", lh, rh, "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert f"Values are missing in {N} of {N} rows: 'lh_cuneus' {N}." in done.sentence
    assert len(pd.read_csv(tmp_path / "p.csv")) == N


@pytest.mark.slow
def test_another_measure_unit_or_half_is_not_predicted_in_silence(precisionnet, tmp_path):
    lh, rh, people = tables(tmp_path)
    assert precisionnet("fit", lh, rh, people, "--target", "age", "--out", tmp_path / "o", *QUICK).code == 0
    area = tables(tmp_path, "area", scale=1000)
    done = precisionnet("predict", tmp_path / "o", *area[:2])
    assert done.code == 2
    assert re.search("holds area of cortical regions", done.sentence), done.sentence
    done = precisionnet("predict", tmp_path / "o", lh)
    assert done.code == 2
    broken = tmp_path / "broken.tsv"
    broken.write_text(re.sub(r"(sub-03\t)[^\t]*", r"\1oops", lh.read_text()))
    assert "'oops' in row 4" in precisionnet("predict", tmp_path / "o", broken, rh).sentence
    micrometres = tables(tmp_path, scale=1000, name="um")
    done = precisionnet("predict", tmp_path / "o", *micrometres[:2], "-o", tmp_path / "p.csv")
    assert re.search("Warning: 68 of 68 columns are about .* times larger", done.sentence), done.sentence
    done = precisionnet("fit", *area, "--target", "age", "--out", tmp_path / "a", *QUICK)
    assert done.code == 0
    assert precisionnet("predict", tmp_path / "a", *area[:2], "-o", tmp_path / "p.csv").code == 0
    assert precisionnet("predict", tmp_path / "a", lh, rh).code == 2


@pytest.mark.parametrize("options", [[], ["--complete-rows"]])
def test_check_says_what_fit_does_about_a_missing_age(precisionnet, tmp_path, options):
    """The row is left out; so is a row with a gap elsewhere where that is asked for."""
    files = tables(tmp_path, extra="gap")
    left = pd.read_csv(files[0], sep="\t")
    left.iloc[3, 2] = np.nan
    left.to_csv(files[0], sep="\t", index=False)
    checked = precisionnet("datasets", "check", *files, "--target", "age", *options)
    fitted = precisionnet("fit", *files, "--target", "age", "--out", tmp_path / "o", *QUICK, *options)
    assert checked.code == fitted.code == 0
    if options:
        assert "1 of 39 rows is not complete and left out" in fitted.sentence
    for said in (fitted.sentence, checked.flat):
        assert "1 of 40 rows has no value of target 'age' and is left out ('sub-39')" in said


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f,
        lambda f: f.assign(x1=f.x1.mask(f.index == 3)),
        lambda f: f.assign(age=f.age.mask(f.index == 3)),
        lambda f: f.assign(age=f.age.where(f.index != 3, np.inf)),
        lambda f: f.assign(flat=1),
        lambda f: f.assign(copy=f.x0),
        lambda f: f.assign(who="me"),
        lambda f: f[:8],
        lambda f: f.assign(age=1.5),
        lambda f: f.assign(x1=np.nan),
        lambda f: f.assign(x1=np.inf),
    ],
)
def test_check_passes_where_fit_starts(precisionnet, table, tmp_path, change):
    change(pd.read_csv(table)).to_csv(table, index=False)
    checked = precisionnet("datasets", "check", table, "--target", "age", "--id", "who", "--task", "regression")
    fitted = precisionnet(
        "fit", table, "--target", "age", "--id", "who", "--task", "regression", "--out", tmp_path / "o", *QUICK
    )
    assert (checked.code == 0) == (fitted.code == 0), (checked.out, fitted.err)


def test_gaps_are_filled_unless_told_otherwise(precisionnet, table, tmp_path):
    frame = pd.read_csv(table)
    frame.assign(x1=frame.x1.mask(frame.index % 9 == 3)).to_csv(table, index=False)
    fit = ("fit", table, "--target", "age", "--id", "who", "--out", tmp_path / "o", *QUICK)
    assert "--missing indicator" in precisionnet(*fit, "--missing", "error").sentence
    done = precisionnet(*fit, "--strict")
    assert done.code == 0, done.err
    assert "'x1' has gaps in more than 1 % of the rows" in done.sentence
    done = precisionnet(*fit, "--missing", "median", "--strict")
    assert done.code == 0, done.err
    assert "'x1' (13 rows)" in done.sentence
    assert precisionnet("predict", tmp_path / "o", table, "--id", "who", "-o", tmp_path / "p.csv").code == 0
    assert precisionnet("datasets", "check", table, "--target", "age", "--id", "who", "--missing", "median").code == 0


def test_people_named_by_a_column_that_nobody_mentioned(precisionnet, tmp_path):
    lh, rh, people = tables(tmp_path)
    sheet = pd.concat([pd.read_csv(p, sep="\t", index_col=0) for p in (lh, rh)], axis=1).reset_index(drop=True)
    sheet = pd.concat([sheet, sheet + 0.01], ignore_index=True).assign(
        Proband=[f"P{i}" for i in range(N)] * 2, age=np.tile(pd.read_csv(people, sep="\t").age, 2)
    )
    sheet.to_csv(tmp_path / "sheet.csv", index=False)
    done = precisionnet("datasets", "check", tmp_path / "sheet.csv", "--target", "age")
    assert "'Proband' looks as if it did" in " ".join(done.out.split())
    done = precisionnet("datasets", "check", tmp_path / "sheet.csv", "--target", "age", "--id", "Proband")
    assert "40 people" in " ".join(done.out.split())


def test_every_adni_scan_that_is_given_is_predicted(precisionnet, tmp_path):
    rows = [
        (i, visit, day, "Pass", "ADNI2")
        for i in range(30)
        for visit, day in (("bl", "2011-01-01"), ("m12", "2012-01-01"))
    ]
    scans = adni(tmp_path / "UCSFFSX51.csv", rows)
    people = pd.DataFrame({"RID": range(30), "VISCODE": "bl", "AGE": range(60, 90), "EXAMDATE": "2011-01-01"})
    people.to_csv(tmp_path / "ADNIMERGE.csv", index=False)
    done = precisionnet("fit", scans, tmp_path / "ADNIMERGE.csv", "--target", "age", "--out", tmp_path / "o", *QUICK)
    assert done.code == 0, done.err
    assert "30 of 60 scans are not the first of their person" in done.sentence
    assert precisionnet("predict", tmp_path / "o", scans, "-o", tmp_path / "p.csv").code == 0
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert len(predicted) == 60
    assert predicted.iloc[:2, 0].tolist() == ["0_bl", "0_m12"]
