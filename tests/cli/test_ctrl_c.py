"""Ctrl-C during a training: what was learned is kept; the second one, or one at another time, stops."""

from __future__ import annotations

import os
import signal

import pytest

from precisionnet import load
from precisionnet.cli import progress
from precisionnet.estimators import windows

QUICK = ("--target", "age", "--id", "who", "--n-members", "4", "--max-epochs", "9")


@pytest.fixture
def pressed(monkeypatch):
    """Press Ctrl-C so many times while each of these epochs' rows is shown."""
    times: dict[int, int] = {}
    advance = progress.EpochBar.advance

    def advance_and_press(self, row):
        ended = advance(self, row)
        for _ in range(times.get(int(row["epoch"]), 0)):
            os.kill(os.getpid(), signal.SIGINT)
        return ended

    monkeypatch.setattr(progress.EpochBar, "advance", advance_and_press)
    return times


def test_the_first_one_ends_the_training_and_what_was_learned_is_kept(precisionnet, table, tmp_path, pressed, capfd):
    pressed[3] = 1
    done = precisionnet("fit", table, *QUICK, "--out", tmp_path / "out")
    assert done.code == 0
    assert "The training ends soon, and what was learned is kept" in capfd.readouterr().err
    said = "Ctrl-C ended the training after epoch 4 of 9: a whole one may do better."
    assert said in done.sentence
    assert said in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert load(tmp_path / "out" / "model").n_iter_ == 4
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_of_a_table_in_pieces_what_was_learned_is_kept_too(
    precisionnet, gaussian, tmp_path, monkeypatch, pressed, capfd
):
    """A window in every epoch; those that were left over are no reason to lose the model."""
    monkeypatch.setattr(windows, "WINDOW_ROWS", 40)
    table = tmp_path / "rows.parquet"
    gaussian.X.assign(age=gaussian.y).to_parquet(table)
    quick = ("--target", "age", "--n-members", "4", "--max-epochs", "9", "--out", tmp_path / "out")
    pressed[2] = 1
    done = precisionnet("fit", table, "--stream", *quick)
    assert done.code == 0, done.err
    assert "The training ends soon, and what was learned is kept" in capfd.readouterr().err
    assert "Ctrl-C ended the training after epoch 3 of 9" in done.sentence
    assert load(tmp_path / "out" / "model").n_iter_ == 3
    pressed[2] = 2
    done = precisionnet("fit", table, "--stream", *quick[:-1], tmp_path / "none")
    assert done.code == 130
    assert "Stopped; nothing was written" in done.sentence
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("epoch", "times"), [(3, 2), (9, 1)])
def test_the_second_one_or_one_after_the_training_stops(precisionnet, table, tmp_path, pressed, epoch, times):
    pressed[epoch] = times
    done = precisionnet("fit", table, *QUICK, "--out", tmp_path / "out")
    assert done.code == 130
    assert "Stopped; nothing was written" in done.sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("more", [("--folds", "3"), ("--validation-fraction", "0.2")])
def test_several_fits_are_stopped(precisionnet, table, tmp_path, pressed, more):
    pressed[2] = 1
    done = precisionnet("fit", table, *QUICK, *more, "--out", tmp_path / "out")
    assert done.code == 130
    assert not (tmp_path / "out").exists()
