"""Large tables: the csv reader beside pandas, batches into ``partial_fit``, and the memory of both."""

from __future__ import annotations

import csv
import io
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.data.memory import PARQUET_CASES, measure, write_csv, write_parquet
from hypothesis import example, given, settings
from hypothesis import strategies as st

from precisionnet.datasets import csv_files
from precisionnet.datasets.batches import iter_batches
from precisionnet.datasets.csv_files import read_numeric_csv
from precisionnet.errors import InputError
from precisionnet.estimators import GraphicalLasso


@pytest.fixture
def table(tmp_path):
    """Write bytes or text to a file and name it."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that a small table has many."""
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 64)


def same_as_pandas(frame, text, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # round_trip is the default of pandas to come
        expected = pd.read_csv(io.StringIO(text), float_precision="round_trip", low_memory=False, **options)
    expected = expected.astype(dict.fromkeys(expected.select_dtypes("integer").columns, float))
    pd.testing.assert_frame_equal(frame, expected, check_exact=True)


number = st.one_of(st.floats(), st.floats(-1e6, 1e6), st.integers(1 - 2**53, 2**53 - 1)).map(repr)
missing = st.sampled_from(["", "NA", "nan", "NULL", "n/a"])
word = st.text(st.sampled_from("ab ,;\"'\n\té0"), min_size=1, max_size=6).filter(
    lambda text: (
        "\n" not in text or set(text) & set("abé")
    )  # to pandas "1" and a line break in quotes is 1, here it is text
)
column = st.one_of(
    *(st.lists(cell, min_size=8, max_size=8) for cell in (number, number | missing, word, word | number))
)


@settings(max_examples=40, deadline=None)
@given(columns=st.lists(column, min_size=2, max_size=6), end=st.sampled_from(["\n", "\r\n"]), blank=st.integers(0, 3))
@example(columns=[["1"] * 7 + ["late"], ["True", "false"] * 4], end="\n", blank=0)
def test_the_values_are_those_of_pandas(tmp_path_factory, columns, end, blank):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end)
    writer.writerow([f"c{k}" for k in range(len(columns))])
    writer.writerows(zip(*columns, strict=True))
    text.write(end * blank)
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(text.getvalue().encode())
    same_as_pandas(read_numeric_csv(path), text.getvalue())


def test_numbers_are_rounded_correctly(table, rng):
    values = np.concatenate([rng.standard_normal(500), rng.uniform(-1, 1, 500) * 10.0 ** rng.integers(-300, 300, 500)])
    path = table("a,b\n" + "".join(f"{value!r},{value:.25e}\n" for value in values.tolist()))
    frame = read_numeric_csv(path)
    assert np.array_equal(frame["a"], values)
    assert np.array_equal(frame["b"], values)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("row", [0, 3, 150, 299])
def test_text_anywhere_makes_a_column_text_from_its_first_row(table, row):
    """The first block says nothing about the last."""
    cells = [["007", f"{k}.50", "1e3"] for k in range(300)]
    cells[row][1] = "about 5"
    text = "id,x,z\n" + "".join(",".join(line) + "\n" for line in cells)
    frame = read_numeric_csv(table(text), text_columns=["id"])
    assert frame["x"].tolist() == [line[1] for line in cells]
    assert frame["id"].tolist() == ["007"] * 300
    assert frame["z"].dtype == np.float64
    same_as_pandas(frame, text, dtype={"id": str})


@pytest.mark.usefixtures("small_blocks")
def test_text_in_many_columns_at_many_depths(table):
    cells = [[str(k * c) for c in range(30)] for k in range(60)]
    for c in range(0, 30, 2):
        cells[4 * (c // 2)][c] = "x"
    text = ",".join(f"c{c}" for c in range(30)) + "\n" + "".join(",".join(line) + "\n" for line in cells)
    same_as_pandas(read_numeric_csv(table(text)), text)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbfa,b\n1,2\n", {"a": [1.0], "b": [2.0]}),
        ("a,b\r\n1,2\r\n\r\n\r\n", {"a": [1.0], "b": [2.0]}),
        ("a,b\r1,2\r3,4\r", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
        ("\n\na,b\n1,2\n \n3,4", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
        ('"a\nb",c\n1,"x\ny"\n2,z\n', {"a\nb": [1.0, 2.0], "c": ["x\ny", "z"]}),
        ('a,b\n" 1.5",+2\n', {"a": [1.5], "b": [2.0]}),
        (" a ,b\n1,\n", {" a ": [1.0], "b": [np.nan]}),
        ("a,b\nTRUE,\nFalse,true\n", {"a": [True, False], "b": [np.nan, True]}),
        ("a,b\n123456789012345678,1\n-5,2\n", {"a": [123456789012345678, -5], "b": [1.0, 2.0]}),
        ("a,b\n12345678901234567890,1\n", {"a": ["12345678901234567890"], "b": [1.0]}),
        ("a,b\n1e20,inf\n10,-Infinity\n", {"a": [1e20, 10.0], "b": [np.inf, -np.inf]}),
        ("a,b\n", {"a": [], "b": []}),
        ("a,b", {"a": [], "b": []}),
    ],
)
def test_files_as_people_save_them(table, content, expected):
    frame = read_numeric_csv(table(content))
    assert list(frame.columns) == list(expected)
    for name, values in expected.items():
        assert [type(v) for v in frame[name].tolist()] == [type(v) for v in values]
        pd.testing.assert_series_equal(frame[name], pd.Series(values, name=name, dtype=frame[name].dtype))


def test_names_may_be_empty_or_stand_twice(table):
    frame = read_numeric_csv(table("a,,a,\nx,1,2,y\n"))
    assert list(frame.columns) == ["a", "", "a", ""]
    assert frame.iloc[0].tolist() == ["x", 1.0, 2.0, "y"]


def test_decimal_commas(table):
    frame = read_numeric_csv(table("a;b;c\n0,5;1;1.5\n-1,25;2;2,5\n"), delimiter=";", decimal=",")
    assert frame["a"].tolist() == [0.5, -1.25]
    assert frame["c"].tolist() == ["1.5", "2,5"]


def test_other_words_for_missing(table):
    frame = read_numeric_csv(table("a,b\n-999,1\n2,NA\n"), null_values=["-999"])
    np.testing.assert_array_equal(frame["a"], [np.nan, 2.0])
    assert frame["b"].tolist() == ["1", "NA"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty: it has no header"),
        ("a,b\n1,2\n\n3\n", "Row 2 of table '.*table.csv' has 1 cells, but the header has 2"),
        ("a,b\n1,2\n3,4,5\n", "Row 2 of table '.*table.csv' has 3 cells, but the header has 2"),
        ('a,b\n1,"2\n3,4\n', "has a quote that is never closed, before '2"),
        ("a,b\n1,é\n".encode("latin-1"), "is not UTF-8 text"),
        ("é,b\n1,2\n".encode("latin-1"), "is not UTF-8 text"),
        ("a,b\n1,2\n".encode("utf-16"), "is not UTF-8 text"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(table, content, sentence):
    with pytest.raises(InputError, match=sentence):
        read_numeric_csv(table(content))


def test_more_sentences(table, tmp_path):
    with pytest.raises(InputError, match="has no column 'idd' .did you mean 'id'"):
        read_numeric_csv(table("id,b\n1,2\n"), text_columns=["idd"])
    with pytest.raises(InputError, match="does not exist"):
        read_numeric_csv(tmp_path / "none.csv")
    with pytest.raises(InputError, match="a row of more than 2 MB: look for a quote"):
        read_numeric_csv(table('a,b\n1,"' + "2,3\n" * 2**20))


# Batches


@pytest.fixture
def rows(rng):
    return pd.DataFrame(rng.standard_normal((250, 5)), columns=list("abcde"))


@pytest.fixture(params=["parquet", "csv", "tsv"])
def stored(request, rows, tmp_path):
    path = tmp_path / f"rows.{request.param}"
    if request.param == "parquet":
        rows.to_parquet(path, row_group_size=70)
    else:
        rows.to_csv(path, index=False, sep="," if request.param == "csv" else "\t")
    return path


@pytest.mark.parametrize("batch_rows", [1, 7, 100, 250, 10_000])
def test_batches_are_the_table(stored, rows, batch_rows):
    batches = list(iter_batches(stored, batch_rows=batch_rows))
    assert [len(batch) for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    assert (pd.concat(batches).dtypes == np.float64).all()
    pd.testing.assert_frame_equal(pd.concat(batches), rows, check_index_type=False, check_exact=True)


def test_columns_come_in_the_order_asked_for(stored, rows):
    (batch,) = iter_batches(stored, columns=["d", "a", "b"], drop=["a"])
    assert batch.equals(rows[["d", "b"]])


def test_partial_fit_of_batches_is_the_fit_of_all(stored, rows):
    streamed = GraphicalLasso(l1_penalty=0.02)
    for batch in iter_batches(stored, batch_rows=60):
        streamed.partial_fit(batch)
    whole = GraphicalLasso(l1_penalty=0.02).fit(rows)
    assert list(streamed.feature_names_in_) == list("abcde")
    np.testing.assert_allclose(streamed.emp_cov_, whole.emp_cov_, atol=1e-12)
    np.testing.assert_allclose(streamed.precision_, whole.precision_, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": ["a", "bb"]}, "rows.* has no column 'bb' .did you mean 'b'.*: columns must name"),
        ({"drop": ["f"]}, "rows.* has no column 'f'.*: drop must name columns of the table"),
        ({"drop": list("abcde")}, "No column of table .* is left"),
        ({"columns": ["a", "a"]}, "column 'a' more than once"),
        ({"batch_rows": 0}, "batch_rows must be a whole number, at least 1, got 0"),
        ({"missing": "skip"}, "missing must be one of 'error', 'keep', got 'skip'"),
    ],
)
def test_bad_requests_are_refused_before_the_first_batch(stored, options, sentence):
    with pytest.raises(InputError, match=sentence):
        iter_batches(stored, **options)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_and_infinite_values_are_named(stored, rows, value):
    rows.loc[[133, 200], "c"] = value
    rows.to_parquet(stored) if stored.suffix == ".parquet" else rows.to_csv(
        stored, index=False, sep="," if stored.suffix == ".csv" else "\t"
    )
    batches = iter_batches(stored, batch_rows=50)
    assert [len(next(batches)), len(next(batches))] == [50, 50]
    what = r"is missing \(or -9999\)" if np.isnan(value) else "holds infinity"
    with pytest.raises(InputError, match=f"Column 'c' of table '.*rows.*' {what} in row 134"):
        next(batches)
    if np.isnan(value):
        kept = pd.concat(iter_batches(stored, missing="keep"))
        assert np.flatnonzero(kept["c"].isna()).tolist() == [133, 200]


@pytest.mark.usefixtures("small_blocks")
def test_text_in_a_csv_is_named_by_row(table):
    lines = [f"{k},{k}.5" for k in range(100)]
    lines[70] = "70,seven"
    path = table("a,b\n" + "\n".join(lines) + "\n")
    with pytest.raises(InputError, match="Column 'b' of table .* holds text, not numbers: 'seven' in row 71"):
        list(iter_batches(path, batch_rows=10))
    assert len(pd.concat(iter_batches(path, drop=["b"]))) == 100


@pytest.mark.parametrize(
    ("columns", "text"), [(["c", "d"], "'x' in row 1"), (["d"], "'x' in row 1"), (["c", "b"], "'y' in row 2")]
)
def test_text_is_found_among_the_columns_asked_for(table, columns, text):
    path = table("a,b,c,d\n1,2,3,x\n4,y,5,6\n")
    with pytest.raises(InputError, match=f"Column '{columns[-1]}' of table .*: {text}"):
        next(iter_batches(path, columns=columns))
    assert next(iter_batches(path, columns=["c", "a"])).to_numpy().tolist() == [[3.0, 1.0], [5.0, 4.0]]


def test_parquet_of_every_kind_of_number(tmp_path):
    path = tmp_path / "kinds.parquet"
    frame = pd.DataFrame(
        {
            "whole": [1, 2],
            "small": np.float32([0.5, 1.5]),
            "truth": [True, False],
            "perhaps": pd.array([1, 2], "Int64"),
        },
        index=pd.Index(["p1", "p2"], name="person"),
    )
    frame.to_parquet(path)
    (batch,) = iter_batches(path)
    assert list(batch.columns) == list(frame.columns)
    assert batch.to_numpy().tolist() == [[1.0, 0.5, 1.0, 1.0], [2.0, 1.5, 0.0, 2.0]]


def test_what_is_no_number_in_a_parquet_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    days = pa.array([0, 1], pa.date32())
    pq.write_table(pa.table({"x": [1.0, 2.0], "site": ["A", "B"], "day": days}), path)
    with pytest.raises(InputError, match=r"Column 'site' of table .* holds text, not numbers: .* drop=\['site'\]"):
        iter_batches(path)
    with pytest.raises(InputError, match="Column 'day' of table .* holds date32"):
        iter_batches(path, columns=["x", "day"])
    assert len(next(iter_batches(path, columns=["x"]))) == 2


def test_files_that_are_something_else(table):
    with pytest.raises(InputError, match="cannot be read as .parquet"):
        iter_batches(table("a,b\n1,2\n", "table.parquet"))
    with pytest.raises(InputError, match="has the ending '.xlsx'; batches are read from"):
        iter_batches(table("a", "table.xlsx"))
    with pytest.raises(InputError, match="has no rows"):
        next(iter_batches(table("a,b\n")))
    with pytest.raises(InputError, match="Row 1 of table .* has 3 cells"):
        next(iter_batches(table("a,b\n1,2,3\n")))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": 5}, "columns must name columns, got 5"),
        ({"columns": ["a", 1j]}, "columns must name columns, got 1j"),
        ({"drop": [None]}, "drop must name columns, got None"),
        ({"batch_rows": 2.5}, "batch_rows must be a whole number"),
        ({"batch_rows": 1 + 2j}, "batch_rows must be a whole number"),
        ({"missing": None}, "missing must be one of"),
        ({"delimiter": ",,"}, "delimiter must be one character"),
        ({"delimiter": ""}, "delimiter must be one character"),
        ({"decimal": None}, "decimal must be one character"),
    ],
)
def test_odd_arguments_get_a_sentence(table, options, sentence):
    with pytest.raises(InputError, match=sentence):
        iter_batches(table("a,b\n1,2\n"), **options)


def test_odd_paths_and_sizes_get_a_sentence(table):
    with pytest.raises(InputError, match="path must be the path of a table, got None"):
        iter_batches(None)
    with pytest.raises(InputError, match="is more than memory holds"):
        next(iter_batches(table("a,b\n1,2\n"), batch_rows=10**17))


def test_a_truncated_parquet_is_refused(stored, table):
    if stored.suffix == ".parquet":
        with pytest.raises(InputError, match="cannot be read as .parquet"):
            iter_batches(table(stored.read_bytes()[:-100], "cut.parquet"))


# Memory: small here, the sizes of the promise where slow tests run


def test_reading_takes_little_more_than_the_array(tmp_path):
    write_csv(tmp_path / "t.csv", 10_000, 100)
    assert measure("csv", tmp_path / "t.csv", 10_000, 100).peak_mb < 8 + 100


@pytest.mark.slow
def test_a_large_csv_stays_under_three_arrays(tmp_path):
    path = tmp_path / "t.csv"
    write_csv(path, 100_000, 200)
    assert measure("csv", path, 100_000, 200).ratio < 3.0


@pytest.mark.slow
@pytest.mark.parametrize("layout", PARQUET_CASES)
def test_memory_of_a_stream_does_not_grow_with_its_rows(tmp_path, layout):
    """One group of rows has its dictionaries full only from some 130,000 rows on; held whole, it would grow by 72 MB."""
    peaks = []
    for n_rows in (150_000, 600_000):
        path = tmp_path / f"{n_rows}.parquet"
        write_parquet(path, n_rows, 20, one_group=layout == "one group")
        peaks.append(measure(f"parquet, {layout}", path, n_rows, 20).peak_mb)
    assert peaks[-1] < peaks[0] + 36
