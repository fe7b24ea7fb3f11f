"""Tables that are read piece by piece on the command line: fit, predict, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNRegressor, inputs, load
from precisionnet.cli import fit as fit_command
from precisionnet.cli import fit_stream
from precisionnet.datasets.row_source import open_rows
from precisionnet.estimators import windows


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((500, 4)), columns=list("abcd"))
    return table.assign(y=table["a"] - table["b"] + 0.1 * rng.standard_normal(500), who=[f"p{i}" for i in range(500)])


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    place = tmp_path_factory.mktemp("large") / "rows"
    place.mkdir()
    rows[:200].to_parquet(place / "1.parquet")
    rows[200:].to_parquet(place / "2.parquet")
    return place


def test_a_folder_is_fitted_and_predicted_piece_by_piece(precisionnet, folder, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(windows, "WINDOW_ROWS", 100)
    out = tmp_path / "out"
    done = precisionnet(
        "fit", folder, "--target", "Y", "--person", "who", "--out", out, "--max-epochs", 2, "--n-members", 4
    )
    assert done.code == 0, done.err
    assert "Tested on 100 of 500 rows" in done.sentence
    assert "regression (guessed" in done.flat
    table = pd.read_csv(out / "predictions.csv")
    assert len(table) == 100
    np.testing.assert_allclose(table["true"], rows["y"].to_numpy()[table["row"] - 1])
    assert "<!doctype html>" in (out / "report.html").read_text(encoding="utf-8")
    assert "precisionnet explain" not in (out / "report.html").read_text(encoding="utf-8")  # which reads no folder
    model = load(out / "model")
    assert model.n_rows_["training"] == 500
    for ending in ("csv", "parquet"):
        file = tmp_path / f"said.{ending}"
        done = precisionnet("predict", out, folder, "--output", file, "--id", "who", "--interval", 0.8)
        assert done.code == 0, done.err
        said = pd.read_csv(file) if ending == "csv" else pd.read_parquet(file)
        assert said["who"].tolist() == rows["who"].tolist()
        np.testing.assert_allclose(said["predicted_y"], model.predict(rows[list("abcd")]), rtol=1e-9)
        assert (said["lower"] < said["upper"]).all()
    done = precisionnet("predict", out, folder)
    assert done.out.count("\n") == 501
    empty = tmp_path / "empty"
    empty.mkdir()
    rows[:0].to_parquet(empty / "1.parquet")
    for file in (tmp_path / "said.csv", tmp_path / "said.parquet"):
        before = file.read_bytes()
        done = precisionnet("predict", out, empty, "--output", file)
        assert done.code == 2
        assert "has no rows" in done.sentence
        assert file.read_bytes() == before


@pytest.fixture(scope="module")
def gaps_model(rows, tmp_path_factory):
    """A model that takes missing values."""
    place = tmp_path_factory.mktemp("gaps")
    X = rows[list("abcd")].mask(rows[list("abcd")] > 2.0)
    PNNRegressor(n_members=2, max_epochs=1, missing="median", random_state=0).fit(X, rows["y"]).save(place)
    return place


@pytest.mark.parametrize("kind", ["folder", "csv"])
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"b": np.nan}, "Values are missing in 2 of 500 rows: 'b' 2."),
        ({"b": np.inf}, "Column 'b' holds infinity in row 312: correct it"),
        ({"b": "high"}, "Column 'b' holds text, not numbers: 'high' in row 312; correct it"),
        ({"who": None}, "has no id in column 'who' in row 312: fill it in"),
    ],
)
def test_predictions_piece_by_piece_say_what_is_wrong_with_a_row(
    precisionnet, gaps_model, rows, tmp_path, monkeypatch, kind, cells, said
):
    """Text, infinity and empty ids by the row's number in the whole table, as a table in memory does."""
    ((name, cell),) = cells.items()
    table = rows.astype({name: object})
    table.loc[[311, 400], name] = cell
    if cell == "high":
        table[name] = table[name].where(table[name] == cell)
    if kind == "csv":
        source = tmp_path / "t.csv"
        table.to_csv(source, index=False)
        monkeypatch.setattr("precisionnet.cli.app.is_huge", lambda tables: True)
    else:
        source = tmp_path / "rows"
        source.mkdir()
        table = table.infer_objects()
        table[:200].to_parquet(source / "0.parquet")
        table[200:].to_parquet(source / "1.parquet")
    done = precisionnet("predict", gaps_model, source, "--id", "who", "-o", tmp_path / "said.csv")
    assert said in done.sentence
    assert done.code == (0 if cell is np.nan else 2)
    assert source.name in done.sentence or done.code == 0


def test_rows_of_which_little_is_known_are_named_piece_by_piece(precisionnet, gaps_model, rows, tmp_path):
    source = tmp_path / "rows"
    source.mkdir()
    table = rows.copy()
    table.loc[311, ["b", "c"]] = np.nan
    table.to_parquet(source / "0.parquet")
    done = precisionnet("predict", gaps_model, source, "--id", "who", "-o", tmp_path / "said.csv")
    assert done.code == 0
    assert "In 1 of 500 rows a third or more of 4 columns hold no value" in done.sentence


def test_what_was_fitted_piece_by_piece_is_explained_from_the_same_file(precisionnet, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("precisionnet.evidence.task.HALF_PAIRS", 1)
    source = tmp_path / "rows.parquet"
    rows.drop(columns="who").to_parquet(source)
    short = ("--n-members", 2, "--max-epochs", 1, "--target", "y")
    done = precisionnet("fit", source, "--stream", "--out", tmp_path / "out", *short)
    assert done.code == 0, done.err
    tested = pd.read_csv(tmp_path / "out" / "predictions.csv")
    np.testing.assert_allclose(tested["true"], rows["y"].to_numpy()[tested["row"] - 1])
    options = ("--out", tmp_path / "e", "--permutations", 19, "--jobs", 1)
    done = precisionnet("explain", tmp_path / "out", source, *options)
    assert done.code == 0, done.err
    done = precisionnet("fit", source, "--stream", "--out", tmp_path / "o", *short[2:], "--n-members", 1)
    assert done.code == 2
    assert "--n-members to 2 or more" in done.sentence


@pytest.mark.parametrize("window_rows", [100, 1000])
def test_time_and_memory_are_said_before_the_training(precisionnet, folder, tmp_path, monkeypatch, window_rows):
    """Of a table in windows, and of one that is fitted as a whole."""
    monkeypatch.setattr(windows, "WINDOW_ROWS", window_rows)
    monkeypatch.setattr(fit_command, "PATIENCE", 0.0)
    out = tmp_path / "out"
    options = ("--target", "y", "--person", "who", "--max-epochs", 1, "--n-members", 4, "--out", out)
    done = precisionnet("fit", folder, *options)
    assert done.code == 0, done.err
    assert done.sentence.count("The fit takes about") == 1
    assert "GB of memory" in done.sentence


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "y"], "--drop who"),
        (["--target", "z"], "'z' is no column"),
        (["--target", "y", "--folds", 3, "--site", "who"], "2 things stand in the way"),
        (["--target", "y", "--id", "who", "--format", "freesurfer"], "2 things stand in the way"),
        (["--target", "y", "--drop", "who", "--regions", "dkt62"], "--regions cannot be had"),
        (["--target", "y", "--drop", "who", "--duplicates", "first"], "--duplicates cannot be had"),
        (["--target", "y", "--drop", "who", "--recipe", "paper"], "--recipe standard"),
        (["--target", "y", "--drop", "who", "--task", "classification"], "decimals"),
    ],
)
def test_refusals_write_nothing(precisionnet, folder, tmp_path, options, said):
    done = precisionnet("fit", folder, *options, "--out", tmp_path / "out")
    assert done.code == 2
    assert said in done.sentence
    assert not (tmp_path / "out").exists()


def test_a_column_of_a_later_file_is_named(precisionnet, folder, tmp_path):
    last = sorted(folder.glob("*.parquet"))[-1]
    pd.read_parquet(last).assign(z=1.0).to_parquet(folder / "9.parquet")
    done = precisionnet("fit", folder, "--target", "y", "--drop", "who", "--out", tmp_path / "out")
    assert done.code == 2
    assert "a later file has column 'z'" in done.sentence
    assert "--drop z" in done.sentence
    done = precisionnet("fit", folder, "--target", "z", "--drop", "who", "--out", tmp_path / "out")
    assert "--target 'z' is no column" in done.sentence


def test_a_file_that_would_fill_the_memory_is_huge(folder, monkeypatch, precisionnet, tmp_path):
    file = str(folder / "2.parquet")
    assert not inputs.is_huge([file])
    monkeypatch.setattr("precisionnet.memory.SMALLEST_FILE", 0)
    monkeypatch.setattr(inputs, "free_memory", lambda: 300 * 6 * 8 / 0.05 - 1)
    assert inputs.is_huge([file])
    monkeypatch.setattr(inputs, "free_memory", lambda: 300 * 6 * 8 / 0.05 + 1)
    assert not inputs.is_huge([file])
    monkeypatch.setattr(inputs, "free_memory", lambda: 1.0)
    done = precisionnet("fit", file, file, "--target", "y", "--out", tmp_path / "out")
    assert done.code == 2
    assert "join the tables beforehand" in done.sentence


def test_a_feature_may_be_called_person(rows):
    named = rows.rename(columns={"a": "person"})
    source = open_rows([named], "y", "regression", columns=["person", "b"], groups="who")
    data = fit_stream._sampled_rows(source, SimpleNamespace(oob_row_ids_=np.array([3, 7]), medians_=None))
    assert data.X["person"].tolist() == rows["a"][[3, 7]].tolist()
    assert data.groups.tolist() == ["p3", "p7"]
