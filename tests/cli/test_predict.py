"""predict on tables that are not like the training rows: warned with the size, put right by labelled rows."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNClassifier, PNNRegressor, load


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = 5.0 + 0.5 * rng.normal(size=(100, 6)) @ (np.eye(6) + 0.3)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(6)])
    return frame.assign(
        age=(40 + 10 * (frame.x0 - frame.x1) + rng.normal(size=100)).round(2), who=[f"s{i}" for i in range(100)]
    )


@pytest.fixture(scope="module")
def model(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    X = frame.filter(regex="^x")
    PNNRegressor(n_members=4, max_epochs=5, random_state=0).fit(X, frame["age"]).save(folder)
    return folder


@pytest.fixture
def fitted(precisionnet, model, tmp_path):
    """What predicts a table."""

    def predict(table: pd.DataFrame, *options: object):
        table.to_csv(tmp_path / "new.csv", index=False)
        return precisionnet("predict", model, tmp_path / "new.csv", "--id", "who", *options)

    return predict


def test_the_same_rows_are_predicted_without_a_word(fitted, frame, tmp_path):
    done = fitted(frame.drop(columns="age"), "-o", tmp_path / "p.csv")
    assert (done.code, done.err) == (0, "")


def test_nothing_is_written_over_a_table_that_is_read(fitted, precisionnet, model, frame, tmp_path):
    frame[:30].to_csv(tmp_path / "known.csv", index=False)
    for name in ("new.csv", "known.csv"):
        (tmp_path / f"link-{name}").symlink_to(tmp_path / name)
        for place in (tmp_path / name, tmp_path / f"link-{name}"):
            done = fitted(frame, "--recalibrate", tmp_path / "known.csv", "-o", place)
            assert done.code == 2
            assert re.search(r"Cannot write to .* is read; choose another place", done.sentence)
    assert list(pd.read_csv(tmp_path / "known.csv")) == list(frame)
    folder = tmp_path / "rows"
    folder.mkdir()
    frame.to_parquet(folder / "0.parquet")
    for place in (folder / "0.parquet", folder / "below" / "new.csv"):
        done = precisionnet("predict", model, folder, "-o", place)
        assert (done.code, [path.name for path in folder.iterdir()]) == (2, ["0.parquet"])
        assert "is read; choose another place" in done.sentence
    assert list(pd.read_parquet(folder)) == list(frame)


def test_another_unit_and_another_place_are_warned_of(fitted, frame, tmp_path):
    features = frame.drop(columns="age")
    centimetres = features.assign(**{name: features[name] / 10 for name in features if name != "who"})
    assert "about 10 times smaller" in fitted(centimetres, "-o", tmp_path / "p.csv").sentence
    place = features.assign(**{name: features[name] + 0.6 for name in features if name != "who"})
    done = fitted(place, "-o", tmp_path / "p.csv", "--page", tmp_path / "p.html")
    assert done.code == 0
    assert re.search(
        r"100 rows are not like .*columns lie \d\.\d+ standard deviations away .*--recalibrate TABLE", done.sentence
    )
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "not like those that the model learned from" in page
    assert page.count('class="bar"') == 6


def test_predictions_from_another_unit_are_not_presented(fitted, frame, tmp_path):
    metres = frame.drop(columns="age").assign(**{f"x{i}": frame[f"x{i}"] * 1000 for i in range(6)})
    done = fitted(metres, "-o", tmp_path / "p.csv", "--page", tmp_path / "p.html")
    assert "about 1,000 times larger" in done.sentence
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "predictions are not shown" in page
    assert "median" not in page


def test_a_row_of_which_little_was_measured_is_named(precisionnet, frame, tmp_path):
    X = frame.filter(regex="^x")
    PNNRegressor(n_members=2, max_epochs=3, random_state=0, missing="median").fit(X, frame["age"]).save(tmp_path / "m")
    new = frame.drop(columns="age")
    new.loc[3, "x0"], new.loc[7, ["x0", "x1", "x2", "x3"]] = np.nan, np.nan
    new.to_csv(tmp_path / "new.csv", index=False)
    output = ("-o", tmp_path / "p.csv", "--page", tmp_path / "p.html")
    done = precisionnet("predict", tmp_path / "m", tmp_path / "new.csv", "--id", "who", *output)
    assert done.code == 0
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    for part in ("1 of 100 rows a third or more of 6 columns", "stand in for what was not measured"):
        assert part in done.sentence
        assert page.count(part) == 1
    assert "'s7' (4)." in done.sentence
    assert "rows are like those" not in page


def test_labelled_rows_put_a_bias_right(fitted, model, frame, tmp_path):
    place = frame.assign(age=frame["age"] + 12.0, **{name: frame[name] + 0.6 for name in frame if name.startswith("x")})
    place[:30].to_csv(tmp_path / "known.csv", index=False)
    options = ("--recalibrate", tmp_path / "known.csv", "-o", tmp_path / "p.csv", "--interval", 0.9)
    done = fitted(place[30:].drop(columns="age"), *options)
    assert done.code == 0, done.err
    assert "On 30 labelled rows predictions are off by -" in done.sentence
    assert "--recalibrate TABLE" not in done.sentence
    said = pd.read_csv(tmp_path / "p.csv").set_index("who")
    true = place.set_index("who").loc[said.index, "age"]
    plain = load(model).predict(place[30:].filter(regex="^x"))
    assert abs((plain - true).mean()) > 8.0
    assert abs((said["predicted_age"] - true).mean()) < 3.0
    assert 0.75 < ((said["lower"] <= true) & (true <= said["upper"])).mean() <= 1.0


def test_what_cannot_be_recalibrated_is_refused(fitted, frame, precisionnet, tmp_path):
    frame[:3].to_csv(tmp_path / "three.csv", index=False)
    frame.drop(columns="age").to_csv(tmp_path / "without.csv", index=False)
    frame.assign(age="old").to_csv(tmp_path / "text.csv", index=False)
    features = frame.drop(columns="age")
    for table, sentence in (
        ("three.csv", "3 labelled rows cannot correct a model"),
        ("without.csv", "has no column 'age', the model's target"),
        ("text.csv", "'age' of .* holds text"),
        ("nowhere.csv", "does not exist"),
    ):
        done = fitted(features, "--recalibrate", tmp_path / table)
        assert done.code == 2
        assert re.search(sentence, done.sentence), done.sentence
    assert "its ending must be .html" in fitted(features, "--page", tmp_path / "p.txt").sentence
    classes = pd.Series(np.where(frame["age"] > 40, "old", "young"), name="age")
    PNNClassifier(n_members=2, max_epochs=1, random_state=0).fit(frame.filter(regex="^x"), classes).save(tmp_path / "c")
    done = precisionnet("predict", tmp_path / "c", tmp_path / "new.csv", "--recalibrate", tmp_path / "three.csv")
    assert "--recalibrate is for numbers" in done.sentence
