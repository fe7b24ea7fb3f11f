"""Tables as they come: every kind of column becomes numbers, learned from the training rows alone."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from precisionnet.errors import InputError
from precisionnet.preprocessing import TableEncoder


@pytest.fixture
def mixed() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "dose": rng.normal(size=n),
            "city": rng.choice(["Oslo", "Bergen", "Paris", "Rome", "Bern"], n, p=[0.5, 0.3, 0.185, 0.01, 0.005]),
            "smoker": rng.choice(["Yes", "no"], n),
            "stage": rng.choice(["mild", "moderate", "severe"], n),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "ok": rng.random(n) < 0.5,
            "name": [f"person {i}" for i in range(n)],
        }
    )
    frame.loc[:29, "dose"] = np.nan
    frame.loc[10:49, "city"] = None
    frame.loc[0, "smoker"] = None
    return frame


def test_kinds_and_nodes(mixed):
    encoder = TableEncoder().fit(mixed)
    kinds = {column.name: column.kind for column in encoder.columns_}
    assert kinds == {
        "dose": "number", "city": "category", "smoker": "boolean", "stage": "ordinal", "size": "ordinal", "when": "date",
        "ok": "boolean", "name": "left out",
    }  # fmt: skip
    nodes = encoder.transform(mixed)
    assert nodes.index.equals(mixed.index)
    assert np.isfinite(nodes.to_numpy()).all()
    assert encoder.get_feature_names_out().tolist() == [
        "dose", "dose=(missing)", "city=Bergen", "city=Paris", "city=(other)", "city=(missing)", "smoker", "stage",
        "size", "when", "ok",
    ]  # fmt: skip
    sources = [str(encoder.feature_names_in_[i]) for i in encoder.sources_]
    assert [name.split("=")[0] for name in nodes.columns] == sources
    assert nodes["stage"].groupby(mixed["stage"]).first().to_dict() == {"mild": 0.0, "moderate": 1.0, "severe": 2.0}
    assert nodes["size"].groupby(mixed["size"], observed=True).first().to_dict() == {"S": 0.0, "M": 1.0, "L": 2.0}
    assert nodes["when"].between(2020, 2022.6).all()
    known = mixed["city"].notna()
    assert (nodes.loc[known, "city=(other)"] == mixed.loc[known, "city"].isin(["Rome", "Bern"])).all()
    assert (nodes["dose=(missing)"] == mixed["dose"].isna()).all()
    assert (nodes.loc[:29, "dose"] == mixed["dose"].median()).all()


def test_it_says_what_it_did(mixed):
    said = " ".join(TableEncoder().fit(mixed).describe())
    for word in (
        "'city' (5 levels)",
        "'smoker' (yes/no)",
        "'when' (date)",
        "'Bern', 'Rome'",
        "1 %",
        "'name' (300 different",
    ):
        assert word in said
    assert TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})).describe() == []


def test_unseen_levels_say_nothing_or_count_as_rare(mixed):
    encoder = TableEncoder().fit(mixed)
    new = mixed.iloc[[100, 101]].assign(city=["Atlantis", "Bergen"], smoker="maybe", name="x")
    assert encoder.unseen_levels(new) == {"city": ["Atlantis"], "smoker": ["maybe"]}
    nodes = encoder.transform(new)
    assert nodes.iloc[0][["city=Bergen", "city=Paris", "city=(other)"]].tolist() == [0.0, 0.0, 1.0]
    assert (nodes["smoker"] == encoder.transform(mixed)["smoker"].median()).all()
    two = TableEncoder().fit(pd.DataFrame({"sex": ["f"] * 6 + ["m"] * 4, "x": range(10)}))
    assert two.transform(pd.DataFrame({"sex": ["?"], "x": [1]}))["sex=m"].tolist() == [0.4]


def test_rows_outside_training_change_no_bit(mixed):
    """The fit, and what it makes of the training rows, do not know the other rows."""
    training = mixed.iloc[:200]
    before = TableEncoder().fit(training)
    other = mixed.copy()
    other.loc[200:, "city"], other.loc[200:, "dose"], other.loc[200:, "smoker"] = "Nowhere", 1e9, "perhaps"
    after = TableEncoder().fit(other.iloc[:200])
    assert before.to_document() == after.to_document()
    assert before.transform(training).to_numpy().tobytes() == after.transform(other.iloc[:200]).to_numpy().tobytes()


def test_the_order_of_rows_and_columns_changes_nothing(mixed):
    encoder = TableEncoder().fit(mixed)
    shuffled = mixed.sample(frac=1, random_state=1)
    assert TableEncoder().fit(shuffled).to_document() == encoder.to_document()
    pd.testing.assert_frame_equal(encoder.transform(mixed[mixed.columns[::-1]]), encoder.transform(mixed))
    pd.testing.assert_frame_equal(encoder.transform(mixed.drop(columns="name")), encoder.transform(mixed))


def test_a_weight_of_two_is_the_row_standing_there_twice(mixed):
    weight = np.random.default_rng(1).integers(0, 3, len(mixed))
    twice = mixed.loc[mixed.index.repeat(weight)]
    assert TableEncoder().fit(mixed, sample_weight=weight).to_document() == TableEncoder().fit(twice).to_document()


def test_documents_come_back_and_changed_ones_are_refused(mixed):
    encoder = TableEncoder().fit(mixed)
    said = json.loads(json.dumps(encoder.to_document()))
    again = TableEncoder.from_document(said)
    pd.testing.assert_frame_equal(again.transform(mixed), encoder.transform(mixed))
    for place, value in (
        ("kind", "magic"),
        ("middle", []),
        ("levels", ["a", "a"]),
        ("levels", "ab"),
        ("other", 1),
        ("name", 3),
    ):
        changed = json.loads(json.dumps(said))
        changed["columns"][1][place] = value
        with pytest.raises(ValueError, match="encoder"):
            TableEncoder.from_document(changed)
    for changed in ({}, said | {"more": 1}, said | {"indicator_share": 2}, said | {"columns": said["columns"][:1] * 2}):
        with pytest.raises(ValueError, match="encoder"):
            TableEncoder.from_document(changed)


def test_a_step_of_a_pipeline(mixed):
    y = (mixed["city"] == "Bergen") * 2.0 + (mixed["smoker"] == "Yes") + 0.1 * mixed["dose"].fillna(0)
    model = make_pipeline(TableEncoder(), Ridge())
    said = cross_val_predict(clone(model), mixed, y, cv=3)
    assert np.corrcoef(said, y)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series(["ja", "nein"] * 5), "boolean"),
        (pd.Series(["II", "I", "IV", "III", "I"] * 4), "ordinal"),
        (pd.Series([1, 2, 3, None] * 5, dtype="Int64"), "number"),
        (pd.Series(["1", "2.5", None] * 5), "number"),
        (pd.Series([True, False, None] * 5, dtype=object), "boolean"),
        (pd.Series([1, 2, 1, 2] * 5, dtype="category"), "category"),
        (pd.Series(pd.period_range("2020-01", periods=20, freq="M")), "date"),
        (pd.Series([None] * 20, dtype=object), "left out"),
        (pd.Series(["a"] * 20), "left out"),
        (pd.Series(["a"] * 10 + [None] * 10), "category"),
        (pd.Series([f"{i}x" for i in range(15)] + ["y"] * 2), "left out"),
    ],
)
def test_what_a_column_is(column, kind):
    encoder = TableEncoder().fit(pd.DataFrame({"c": column, "x": np.arange(len(column))}))
    assert encoder.columns_[0].kind == kind
    assert np.isfinite(encoder.transform(pd.DataFrame({"c": column, "x": 0})).to_numpy()).all()


def test_names_that_clash_are_told_apart():
    table = pd.DataFrame({"c": ["a", "b"] * 10, "c=b": range(20)})
    assert TableEncoder().fit(table).get_feature_names_out().tolist() == ["c=b", "c=b'"]


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (lambda t: t.drop(columns="dose"), "no column 'dose'"),
        (lambda t: t.assign(dose="much"), "'dose' held numbers in fit and holds 'much'"),
        (lambda t: t.assign(when="tomorrow"), "'when' held dates in fit and holds 'tomorrow'"),
        (lambda t: t.assign(when=3.0), "'when' held dates in fit and holds numbers"),
        (lambda t: pd.concat([t, t[["dose"]]], axis=1), "'dose' stands more than once"),
        (lambda t: t.to_numpy()[:, :3], "3 features"),
    ],
)
def test_other_tables_are_refused(mixed, new, sentence):
    with pytest.raises(InputError, match=sentence):
        TableEncoder().fit(mixed).transform(new(mixed))


def test_a_table_of_nothing_is_refused(mixed):
    with pytest.raises(InputError, match=r"No column can be used \('name': 300 different"):
        TableEncoder().fit(mixed[["name"]])
    with pytest.raises(InputError, match="holds complex128"):
        TableEncoder().fit(pd.DataFrame({"a": [1j, 2j]}))
    with pytest.raises(InputError, match="indicator_share"):
        TableEncoder(-1).fit(mixed)


def test_blank_cells_among_numbers_are_gaps():
    frame = pd.DataFrame({"x": ["1", "2.5", " ", "4"] * 10, "z": np.arange(40.0)})
    encoder = TableEncoder().fit(frame)
    column = next(one for one in encoder.columns_ if one.name == "x")
    assert column.kind == "number"
    assert len(encoder.transform(frame)) == 40


def test_dates_written_in_another_order_are_refused():
    table = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=20), "dose": np.arange(20.0)})
    american, european = table.copy(), table.copy()
    american.attrs["date_orders"], european.attrs["date_orders"] = (
        {"when": "month/day/year"},
        {"when": "day/month/year"},
    )
    encoder = TableEncoder().fit(american)
    assert [column.date_order for column in encoder.columns_] == ["month/day/year", ""]
    there = TableEncoder.from_document(encoder.to_document())
    pd.testing.assert_frame_equal(there.transform(american), encoder.transform(table))
    with pytest.raises(InputError, match="'when' was read as month/day/year in fit and as day/month/year now"):
        there.transform(european)
    for wrong in ("year", None, ["day/month/year"]):
        document = encoder.to_document()
        document["columns"][0]["date_order"] = wrong
        with pytest.raises(ValueError, match="contradicts itself"):
            TableEncoder.from_document(document)
