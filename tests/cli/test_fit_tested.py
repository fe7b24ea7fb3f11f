"""fit --folds, --hold-out, --time: who predicts which row, in the files and in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet.cli import fit as fit_command
from precisionnet.datasets import Dataset

TINY = ("--max-epochs", 1, "--n-members", 2)


@pytest.fixture
def sites(table):
    """The table with a site, a date and a year."""
    frame = pd.read_csv(table)
    days = pd.date_range("2020-01-01", periods=120).strftime("%Y-%m-%d")
    frame.assign(site=np.array(list("abcd"))[np.arange(120) % 4], day=np.roll(days, 40)).to_csv(table, index=False)
    return table


def test_whole_sites_are_held_out(precisionnet, sites, tmp_path):
    fit = ("fit", sites, "--target", "age", "--id", "who", "--drop", "day", "--out", tmp_path / "o", *TINY)
    done = precisionnet(*fit, "--hold-out", "site")
    assert done.code == 0, done.err
    assert "did not learn from any row of its 'site' (4 of them)" in done.flat
    assert "group median" not in done.out  # at a site that nobody has seen it is the median
    written = pd.read_csv(tmp_path / "o" / "predictions.csv")
    assert list(written) == ["who", "true", "predicted", "fold", "held_out"]
    assert written["held_out"].tolist() == pd.read_csv(sites)["site"].tolist()
    assert written.groupby("held_out")["fold"].agg(["min", "max"]).diff(axis=1)["max"].eq(0).all()
    assert written["predicted"].notna().all()


def test_subjects_are_held_out_by_their_id(precisionnet, table, tmp_path):
    pd.read_csv(table).assign(who=[f"p{i // 6}" for i in range(120)]).to_csv(table, index=False)
    fit = ("fit", table, "--target", "age", "--id", "who", "--hold-out", "who", "--out", tmp_path / "o", *TINY)
    done = precisionnet(*fit)
    assert done.code == 0, done.err
    assert "any row of its 'who' (20 of them)" in done.flat


def test_the_past_predicts_the_future(precisionnet, sites, tmp_path):
    fit = ("fit", sites, "--target", "age", "--id", "who", "--site", "site", "--out", tmp_path / "o", *TINY)
    done = precisionnet(*fit, "--time", "day")
    assert done.code == 0, done.err
    assert "96 of 120 rows, in 4 blocks of 'day'" in done.flat
    assert "group median" in done.out
    written = pd.read_csv(tmp_path / "o" / "predictions.csv", dtype={"fold": "Int64"}).assign(
        day=pd.read_csv(sites)["day"]
    )
    assert written["predicted"].isna().sum() == 24
    assert written.loc[written["predicted"].isna(), "day"].max() < written.loc[written["fold"] == 1, "day"].min()
    assert written.dropna().sort_values("day")["fold"].is_monotonic_increasing


def test_folds_are_as_many_as_asked_for_and_a_column_of_time_gives_a_hint(precisionnet, table, tmp_path):
    frame = pd.read_csv(table).assign(year=2000.0 + np.arange(120) // 10)
    frame.to_csv(table, index=False)
    done = precisionnet("fit", table, "--target", "age", "--id", "who", "--folds", 3, "--out", tmp_path / "o", *TINY)
    assert done.code == 0, done.err
    assert set(pd.read_csv(tmp_path / "o" / "predictions.csv")["fold"]) == {1, 2, 3}
    assert "Column 'year' looks like time" in done.sentence
    assert "--time year" in done.sentence


def test_a_hint_can_be_copied_into_a_shell():
    days = pd.date_range("2020-01-01", periods=12).strftime("%Y-%m-%d")
    hint = fit_command.time_hint(Dataset(pd.DataFrame({"x": np.arange(12.0), "scan date": days})))
    assert "--time 'scan date'" in hint


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--hold-out", "site"], "All rows have the same 'site'"),
        (["--time", "who"], "'s000', which is neither a number nor a date"),
        (["--time", "late"], "60 rows have no 'late'"),
        (["--hold-out", "sites"], "There is no column 'sites' (did you mean 'site'?)"),
    ],
)
def test_what_cannot_be_tested_so_is_refused_in_a_sentence(precisionnet, table, tmp_path, options, sentence):
    frame = pd.read_csv(table).assign(site="here", late=np.where(np.arange(120) % 2, 1.0, np.nan))
    if "late" not in options:
        frame = frame.drop(columns="late")
    frame.to_csv(table, index=False)
    drop = [] if "site" in options[1] else ["--drop", "site"]
    who = ["--id", "who"] if "who" not in options else []
    done = precisionnet("fit", table, "--target", "age", "--out", tmp_path / "o", *who, *drop, *options, *TINY)
    assert done.code == 2
    assert sentence in done.sentence
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "The fit takes about"), (("--folds", 3), "The 4 fits take about"), (("--hold-out", "site"), "The 5 fits")],
)
def test_an_estimate_is_of_all_fits(precisionnet, sites, tmp_path, monkeypatch, options, said):
    monkeypatch.setattr(fit_command, "WORTH_FORECASTING", 0)
    monkeypatch.setattr(fit_command, "PATIENCE", 0.0)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_command, "measure", stop)
    fit = ("fit", sites, "--target", "age", "--id", "who", "--drop", "day", "--out", tmp_path / "o", *options)
    done = precisionnet(*fit)
    assert done.sentence.count(said) == 1
    assert ("one after another" in done.sentence) == bool(options)
