"""Cells as people and programs write them: recognised, or refused by file, column and row."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precisionnet.datasets import load_participants, load_table
from precisionnet.datasets.cells import decimal_points, to_numbers
from precisionnet.errors import Complaints, InputError

ROWS = "a,b,y\n1.5,2,3\n2.5,1,4\n3.5,7,5\n"


def load(tmp_path, text, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_table(path, target="y", **options)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", ROWS.encode("utf-8-sig")),
        ("t.csv", ROWS.replace(",", ";").encode()),
        ("t.csv", ROWS.replace(",", ";").replace(".", ",").encode()),
        ("t.csv", ROWS.replace(",", ";").replace(".", ",").encode("utf-8-sig")),
        ("t.tsv", ROWS.replace(",", "\t").replace(".", ",").encode()),
        ("t.csv", ROWS.replace("\n", "\r\n").encode()),
        ("t.txt", ROWS.replace(",", "\t").encode()),
    ],
)
def test_the_same_table_however_it_is_written(tmp_path, name, content):
    data = load(tmp_path, content, name)
    np.testing.assert_array_equal(data.X, [[1.5, 2], [2.5, 1], [3.5, 7]])
    assert list(data.y) == [3, 4, 5]


def test_decimal_commas_are_said(tmp_path):
    data = load(tmp_path, "a;b;y\n1,5;2;3\n2,25;1;4\n")
    assert any("Column 'a' of" in note and "has decimal commas" in note for note in data.notes)


def test_thickness_with_three_decimals_and_commas(tmp_path):
    """'2,413' may be two thousand, but not in a file cut by semicolons, nor beside '2,5'."""
    np.testing.assert_array_equal(load(tmp_path, "a;b;y\n2,413;2,512;20,125\n2,900;2,111;30,250\n").y, [20.125, 30.25])
    data = load(tmp_path, "a\tb\ty\n2,413\t2,5\t20\n2,900\t2,1\t30,5\n", "t.tsv")
    np.testing.assert_array_equal(data.X, [[2.413, 2.5], [2.9, 2.1]])
    with pytest.raises(InputError, match="'2,413' in row 1 of .*decimal commas, or thousands"):
        load(tmp_path, "a\tb\ty\n2,413\t2\t20\n2,900\t2\t30\n", "t.tsv")
    with pytest.raises(InputError, match="Column 'y' holds text, not numbers: '20,125' in row 1"):
        load(tmp_path, "a\tb\ty\n1\t2\t20,125\n2\t2\t30,250\n", "t.tsv")


def test_commas_beside_decimal_points_are_not_decimal(tmp_path):
    for text in ("a;b;y\n2.41;1,234;1\n2.5;2,345;2\n", "a;b;y\n2,41;1.234;1\n2,01;987;2\n"):
        with pytest.raises(InputError, match="decimal commas, or thousands"):
            load(tmp_path, text)


NUMBERS_NOT_READ = {
    "american": (",", [f'"{v:,.2f}"' for v in np.linspace(600, 5432.1, 30)], r"'1,099.87' in row 4 .*save it without them, as 1099.87"),
    "german": (";", [f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in np.linspace(600, 5432.1, 30)], "thousands"),
    "millions": (",", [f'"{v:,}"' for v in range(2_000_000, 2_000_030)], "as 2000000"),
    "units": (",", [f"{v:.1f} mm3" for v in np.linspace(2, 5, 30)], "a number with its unit"),
    "unit and thousands": (",", [f'"{v:,.1f} ml"' for v in np.linspace(900, 1100, 30)], "a number with its unit"),
}  # fmt: skip


@pytest.mark.parametrize("how", NUMBERS_NOT_READ)
def test_numbers_written_otherwise_are_never_labels(tmp_path, how):
    cut, cells, said = NUMBERS_NOT_READ[how]
    rows = [cut.join((str(i), cell, str(i % 7))) for i, cell in enumerate(cells)]
    with pytest.raises(InputError, match=f"Column 'a' holds text, not numbers: .*{said}"):
        load(tmp_path, "\n".join([cut.join("xay"), *rows]), categories=True)


def test_commas_in_a_file_with_points_are_named_with_the_points(tmp_path):
    """Points may be thousands: then every column with a decimal comma would be text, and the target classes."""
    rows = [f"{5 + i}.{100 + i};0,{10 + i};{30 + i},5" for i in range(30)]
    with pytest.raises(Complaints) as caught:
        load(tmp_path, "\n".join(["a;b;y", *rows]), categories=True)
    of_target, of_features = sorted(caught.value.sentences, reverse=True)
    assert "Column 'y' holds text, not numbers: '30,5' in row 1" in of_target
    assert "'0,10' in row 1" in of_features
    assert "column 'a' has points" in of_features
    rows = [f'"1.{100 + i},5",{i}.5,{i}' for i in range(30)]
    with pytest.raises(InputError, match=r"'1.100,5' .*save it without them, as 1100\.5\)"):
        load(tmp_path, "\n".join(["a,b,y", *rows]))


def test_digits_of_other_scripts_are_text_and_not_a_traceback(tmp_path):
    for digit in ("３", "٣"):
        with pytest.raises(InputError, match="Column 'b' holds text"):
            load(tmp_path, f"a,b,y\n1,{digit},3\n2,1,4\n")


def test_dates_are_never_numbers(tmp_path):
    days = pd.Series([datetime.datetime(2024, 1, 1), None, datetime.datetime(2024, 1, 2)], dtype=object)
    read = to_numbers(days, "a", "t.xlsx")
    assert read.unreadable.tolist() == [True, False, True]
    assert np.isnan(read.values).all()
    ages = [30.5, 40.5, datetime.datetime(2024, 3, 2), *np.linspace(20, 80, 20)]
    pd.DataFrame({"a": range(23), "b": range(23), "y": ages}).to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.raises(InputError, match=r"Column 'y' holds text.*2024-03-02.* in row 3 of '.*t.xlsx' \(a date\?"):
        load_table(tmp_path / "t.xlsx", target="y")


def test_a_target_with_one_stray_word_names_the_cell(tmp_path):
    rows = "".join(f"{i},{i % 3},{i + 0.5}\n" for i in range(20))
    with pytest.raises(InputError, match="Column 'y' holds text, not numbers: 'unknown' in row 21"):
        load(tmp_path, f"a,b,y\n{rows}1,2,unknown\n")


@pytest.mark.parametrize(
    "word", ["", "NA", "n/a", "N/A", "nan", "NaN", "None", "null", "-9999", "-9999.0", "#N/A", "<NA>"]
)
def test_missing_is_missing(tmp_path, word):
    data = load(tmp_path, f"a,b,y\n1.5,2,3\n{word},1,4\n3.5,7,5\n")
    assert data.X["a"].isna().tolist() == [False, True, False]
    assert any("missing in 1 of 3 rows: 'a' 1" in note for note in data.notes)
    if "-9999" in word:
        assert any("-9999 was read as missing in 1 of 3 rows" in note for note in data.notes)
    data = load(tmp_path, f"a,b,y\n1.5,2,3\n2,1,{word}\n3.5,7,5\n")
    assert data.X.index.tolist() == [1, 3]


def test_a_number_that_looks_like_a_code_among_its_like_is_a_number(tmp_path):
    data = load(tmp_path, "a,b,y\n-9999,2,3\n-12000,1,4\n-8000,7,5\n")
    assert not data.X.isna().any().any()


def test_open_ages(tmp_path):
    (tmp_path / "participants.tsv").write_text("participant_id\tage\nsub-1\t45\nsub-2\t89+\nsub-3\t89+\n")
    data = load_participants(tmp_path / "participants.tsv")
    assert list(data.y) == [45, 89, 89]
    assert any("'89+' was read without the plus in 2 rows" in note for note in data.notes)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,y\n1,2,3\n2,oops,4\n", r"Column 'b' holds text, not numbers: 'oops' in row 2 of '.*t.csv'"),
        ("a,b,y\n1,2,3\n2,2024-03-02,4\n", r"'2024-03-02' in row 2 of .*\(a date\?"),
        ("a,b,y\n1,2,3\n2,02-Mar,4\n", r"'02-Mar' in row 2 of .*\(a date\?"),
        ('a,b,y\n1,"1,234",3\n2,"5,678",4\n', r"'1,234' in row 1 of .*decimal commas, or thousands"),
        ("a,b,y\n", "has no rows: only a header was found"),
        ("", "is empty"),
        (b"a,b,y\n1,2,3\n\x00\x01\x02", "is not text"),
        (b"PK\x03\x04\x00\x00rest", "is not text, but a workbook or zip archive"),
        (b"\x1f\x8b\x08\x00rest", "is not text, but compressed"),
        ("a,b,y\n1,2,3\n".encode("utf-16"), "is not text, but UTF-16 text"),
        ("a,b,y\n1,2,3\n1,2\n1,2,3,4\n", "Row 2 of table .* has 2 cells, but the header has 3"),
        (b"a,b\xe9\x81,y\n1,2,3\n", "is not UTF-8 text"),
        ("a,a,y\n1,2,3\n", "more than one column named 'a'"),
    ],
)  # fmt: skip
def test_what_is_refused_says_where(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        load(tmp_path, text)


WINDOWS = "alter;größe;stadt;y\n" + "".join(f"{i};{i},5;{'Köln' if i % 2 else 'Bonn'};{i}\n" for i in range(30))


def test_windows_text_is_read_and_said(tmp_path):
    data = load(tmp_path, WINDOWS.encode("cp1252"), categories=True)
    same = load(tmp_path, WINDOWS, "u.csv", categories=True)
    pd.testing.assert_frame_equal(data.X, same.X)
    assert data.X["größe"].tolist()[:2] == [0.5, 1.5]
    assert set(data.X["stadt"]) == {"Köln", "Bonn"}
    assert any("is not UTF-8 and was read" in note and "cp1252" in note for note in data.notes)
    assert not any("cp1252" in note for note in same.notes)
    late = ROWS.replace("a,b", "a,who") * 1 + "".join(f"{i}.5,{'é' if i == 90_000 else 'e'},1\n" for i in range(90_001))
    assert load(tmp_path, late.encode("cp1252"), categories=True).X["who"].iloc[-1] == "é"
    for damaged in (WINDOWS.encode() + b"1;2,5;K\xf6ln;3\n", WINDOWS.encode("cp1252") + b"1;2,5;K\x9dln;3\n"):
        with pytest.raises(InputError, match="is not UTF-8 text"):
            load(tmp_path, damaged, categories=True)


def days(tmp_path, *cells, **options):
    rows = [f"{i},{cell},{i % 7}" for i, cell in enumerate(cells)]
    return load(tmp_path, "\n".join(["a,when,y", *rows]), categories=True, **options)


@pytest.mark.parametrize(
    ("cells", "month", "order", "guessed"),
    [
        (("03/02/2024", "05/25/2024"), 3, "month/day/year", False),
        (("03/02/2024", "25/05/2024"), 2, "day/month/year", False),
        (("03.02.2024", "05.05.2024"), 2, "day/month/year", False),
        (("03/02/2024", "05/05/2024"), 2, "day/month/year", True),
        (("2024-02-03", "2024-05-05"), 2, None, False),
    ],
)
def test_the_order_of_dates_is_kept_and_a_guess_is_a_doubt(tmp_path, cells, month, order, guessed):
    data = days(tmp_path, *cells)
    assert data.X["when"].dt.month[1] == month
    assert data.X.attrs.get("date_orders", {}).get("when") == order
    assert any("a guess" in doubt and "2024-01-31" in doubt for doubt in data.doubts) == guessed
    assert any("read as" in note for note in data.notes) == (order is not None and not guessed)


def test_the_order_of_dates_may_be_given(tmp_path):
    data = days(tmp_path, "03/02/2024", "05/05/2024", date_orders={"when": "month/day/year"})
    assert data.X["when"].dt.month[1] == 3
    assert not data.doubts
    with pytest.raises(InputError, match=r"'when' of .* as month/day/year .* '25/05/2024' in row 2, .*2024-01-31"):
        days(tmp_path, "03/02/2024", "25/05/2024", date_orders={"when": "month/day/year"})
    with pytest.raises(InputError, match="'whne' .did you mean 'when'.*date_orders= must name"):
        days(tmp_path, "03/02/2024", date_orders={"whne": "month/day/year"})
    with pytest.raises(InputError, match="date_orders must map columns"):
        days(tmp_path, "03/02/2024", date_orders="month/day/year")
    with pytest.raises(InputError, match="date_orders= must be"):
        days(tmp_path, "03/02/2024", "05/05/2024", date_orders={"when": "mdy"})


def test_a_date_in_a_workbook(tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": [2.0, datetime.datetime(2024, 3, 2), 4.0], "y": [1, 2, 3]})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.raises(InputError, match=r"Column 'b' holds text.*2024-03-02.* in row 2 of '.*t.xlsx' \(a date\?"):
        load_table(tmp_path / "t.xlsx", target="y")


def test_labels_keep_their_zeros_and_numbers_stay_numbers(tmp_path):
    assert list(load(tmp_path, "a,b,y\n1,2,007\n2,1,011\n").y) == ["007", "011"]
    assert load(tmp_path, "a,b,y\n1,2,0\n2,1,1\n").y.dtype == np.int64
    assert load(tmp_path, "a,b,y\n1,2,0.5\n2,1,1\n").y.dtype == np.float64
    assert list(load(tmp_path, "a,b,y\n1,2, yes\n2,1,no \n").y) == ["yes", "no"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6).filter(lambda v: v != -9999), min_size=1, max_size=20))
def test_numbers_are_read_as_they_were_written(values):
    for written in ([repr(v) for v in values], [f" {v!r} " for v in values]):
        read = to_numbers(pd.Series(written), "a", "t.csv")
        assert not read.unreadable.any()
        np.testing.assert_array_equal(read.values, values)
    frame = pd.DataFrame({"a": [f"{v:.2f}".replace(".", ",") for v in values]})
    assert decimal_points(frame, "t.csv", certain=False)
    np.testing.assert_allclose(to_numbers(frame["a"], "a", "t.csv").values, [float(f"{v:.2f}") for v in values])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=8), st.none(), st.integers(), st.floats()), min_size=1, max_size=8))
def test_no_cell_breaks_the_reader(cells):
    read = to_numbers(pd.Series(cells, dtype=object), "a", "t.csv")
    assert len(read.values) == len(cells)
    assert not np.isfinite(read.values[read.unreadable]).any()
