"""Rows of large tables: every kind of source gives the same blocks, and what cannot be fitted is refused by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as arrow_dataset
import pytest
from pyarrow import parquet

from precisionnet.datasets import row_source
from precisionnet.datasets.row_source import open_rows
from precisionnet.errors import InputError


@pytest.fixture
def table(rng):
    frame = pd.DataFrame(rng.standard_normal((700, 3)), columns=list("abc"))
    return frame.assign(y=rng.standard_normal(700), who=[f"p{i // 4}" for i in range(700)], times=np.arange(700) % 3)


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(row_source, "BLOCK_ROWS", 256)


def read(source, **roles):
    return list(open_rows(source, "y", "regression", columns=list("abc"), **roles).blocks())


def folder_of(table, path):
    path.mkdir()
    for number, (begin, end) in enumerate([(0, 300), (300, 301), (301, 700)]):
        table[begin:end].to_parquet(path / f"{number}.parquet", row_group_size=100)
    return path


def sources(table, tmp_path):
    folder = folder_of(table, tmp_path / "folder")
    table.to_csv(tmp_path / "table.csv", index=False)
    table.to_parquet(tmp_path / "table.parquet", row_group_size=130)
    arrow = pa.Table.from_pandas(table)
    return {
        "frame": table,
        "frames": [table[:5], table[5:5], table[5:400], table[400:]],
        "record batches": arrow.to_batches(max_chunksize=99),
        "arrow table": arrow,
        "parquet": tmp_path / "table.parquet",
        "folder": str(folder),
        "dataset": arrow_dataset.dataset(folder),
        "filtered dataset": arrow_dataset.dataset(folder).filter(arrow_dataset.field("a") > -1e9),
        "csv": tmp_path / "table.csv",
    }


def test_every_source_gives_the_same_blocks(table, tmp_path):
    kept = table[table["times"] > 0]
    for name, source in sources(table, tmp_path).items():
        for _ in range(2):  # and starts anew
            blocks = read(source, groups="who", sample_weight="times")
            assert [len(block) for block in blocks] == [
                int((table["times"][i : i + 256] > 0).sum()) for i in (0, 256, 512)
            ]
            np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), kept[list("abc")], err_msg=name)
            np.testing.assert_array_equal(np.concatenate([b.y for b in blocks]), kept["y"], err_msg=name)
            np.testing.assert_array_equal(np.concatenate([b.row for b in blocks]), kept.index, err_msg=name)
            np.testing.assert_array_equal(np.concatenate([b.group for b in blocks]), kept["who"], err_msg=name)


def test_groups_have_one_hash_whatever_their_type():
    def hashes(labels):
        frame = pd.DataFrame({"a": 1.0, "b": 2.0, "y": 3.0, "who": labels})
        return open_rows([frame], "y", "regression", groups="who").blocks().__next__().group_hash

    np.testing.assert_array_equal(hashes([1, 2, 1]), hashes([1.0, 2.0, 1.0]))
    np.testing.assert_array_equal(hashes(["x", "y", "x"]), hashes(pd.Categorical(["x", "y", "x"])))
    np.testing.assert_array_equal(hashes([1, 2, 1]), hashes(["1", "2.0", "1"]))
    assert len(set(hashes(["x", "y", "z"]))) == 3


def test_labels_of_a_csv_are_those_of_parquet(table, tmp_path):
    coded = table.assign(y=np.arange(700) % 2, who=np.arange(700) // 4)
    coded.to_csv(tmp_path / "t.csv", index=False)
    coded.to_parquet(tmp_path / "t.parquet")
    for source in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        block = next(open_rows(source, "y", "classification", columns=list("abc"), groups="who").blocks())
        assert (block.y.dtype.kind, block.group.dtype.kind) == ("i", "i")
        np.testing.assert_array_equal(block.y, coded["y"][:256])


def test_labels_that_change_their_kind_are_refused(table):
    numbered = table.assign(who=np.arange(700) // 4)
    for batches in ([numbered, table], [table, numbered]):
        with pytest.raises(InputError, match="Batch 2 .* changes midway: column 'who'"):
            read(batches, groups="who")


def test_a_source_that_cannot_start_anew_is_refused(table):
    for source in ((part for part in [table]), iter([table]), pa.Table.from_pandas(table).to_reader()):
        with pytest.raises(InputError, match="one-shot"):
            read(source)
    for source in (7, {"a": [1.0]}, None):
        with pytest.raises(InputError, match="parquet"):
            read(source)


def test_dask_collections_without_columns_are_refused(table):
    dask = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=2)
    for source in (dask["a"], dask[["a", "b"]].to_dask_array(), dask.to_bag()):
        with pytest.raises(InputError, match="a Dask .* pass a Dask DataFrame"):
            read(source)


def test_results_of_partitions_are_joined_on_their_way(table, monkeypatch):
    """In the order of the partitions, a few at a time; only the last result comes here."""
    dask = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=7)
    came, original = [], row_source.result_of
    monkeypatch.setattr(row_source, "result_of", lambda *given: came.append(original(*given)) or came[-1])
    source = open_rows(dask, "y", "regression", columns=list("abc"))
    rows = source.over_parts(
        lambda source, blocks: [row for block in blocks for row in block.row.tolist()],
        lambda *parts: [row for part in parts for row in part],
    )
    assert rows == [number * row_source.PARTITION + i for number in range(7) for i in range(100)]
    assert came == [rows]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (lambda t: t.drop(columns="b"), "no column 'b'"),
        (lambda t: t.assign(z=1.0), "a new column 'z'"),
        (lambda t: t.assign(b="high"), "changes midway: column 'b' holds no numbers"),
    ],
)
def test_a_partition_that_is_otherwise_is_refused_by_name(table, second, said):
    delayed = pytest.importorskip("dask").delayed
    parts, empty = [delayed(table), delayed(second(table[:10]))], table.iloc[:0]
    source = pytest.importorskip("dask.dataframe").from_delayed(parts, meta=empty, verify_meta=False)
    with pytest.raises(InputError, match=f"Partition 2 of the Dask DataFrame (has )?{said}"):
        read(source)


def test_a_partition_that_cannot_be_read_is_refused_by_name(table, tmp_path):
    dask = pytest.importorskip("dask.dataframe")
    folder = folder_of(table, tmp_path / "folder")
    table.drop(columns="b").to_parquet(folder / "9.parquet")
    source = open_rows(dask.read_parquet(folder), "y", "regression", columns=list("abc"))
    said = r"^Partition 4 of .*'b'.*bring all partitions to the same"
    with pytest.raises(InputError, match=said):
        list(source.blocks())
    with pytest.raises(InputError, match=said):
        source.over_parts(lambda source, blocks: sum(map(len, blocks)), lambda *parts: sum(parts))


def test_empty_sources_are_refused(table, tmp_path):
    with pytest.raises(InputError, match="empty"):
        read([])
    with pytest.raises(InputError, match="without parquet files"):
        read(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "none.parquet")
    assert read([table[:0]]) == []


def test_a_schema_that_changes_midway_is_refused_before_rows_are_read(table, tmp_path):
    folder = folder_of(table, tmp_path / "folder")
    table[:50].drop(columns="b").to_parquet(folder / "9.parquet")
    with pytest.raises(InputError, match=r"9\.parquet.*'b'"):
        open_rows(folder, "y", "regression", columns=list("abc"))
    table[:50].astype({"b": str}).to_parquet(folder / "9.parquet")
    with pytest.raises(InputError, match=r"'b'.*9\.parquet"):
        open_rows(folder, "y", "regression", columns=list("abc"))
    table[:50].astype({"b": np.float32, "a": int}).to_parquet(folder / "9.parquet")
    assert sum(map(len, read(folder))) == 750


def test_an_index_that_only_the_first_file_has_is_no_column(table, tmp_path):
    (tmp_path / "F").mkdir()
    table[table["a"] > 0].to_parquet(tmp_path / "F" / "0.parquet")
    table.to_parquet(tmp_path / "F" / "1.parquet")
    assert sum(map(len, read(tmp_path / "F"))) == 700 + (table["a"] > 0).sum()


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_file_may_have_nothing_in_a_column(table, tmp_path, empty):
    folder = folder_of(table, tmp_path / "folder")
    part = pd.read_parquet(folder / f"{empty}.parquet")
    part.assign(b=None).to_parquet(folder / f"{empty}.parquet")
    found = np.concatenate([block.X[:, 1] for block in read(folder)])
    assert np.isnan(found).sum() == len(part)
    part.assign(who=None).to_parquet(folder / f"{empty}.parquet")
    with pytest.raises(InputError, match=f"does not say whose row {part.index[0] + 1} is"):
        read(folder, groups="who")
    part.assign(b=None).to_parquet(folder / f"{empty}.parquet")
    table.assign(b="high").to_parquet(folder / "9.parquet")
    with pytest.raises(InputError, match=r"'b' is double at first and .*string in .*9\.parquet"):
        read(folder)


def test_names_that_are_numbers_are_text(table):
    numbered = table[["a", "b", "y"]].set_axis([0, 1, 2], axis=1)
    sources = [numbered, [numbered[:300], numbered[300:]]]
    sources.append(pytest.importorskip("dask.dataframe").from_pandas(numbered, npartitions=2))
    for source in sources:
        rows = open_rows(source, "2", "regression")
        assert rows.columns == ("0", "1")
        np.testing.assert_array_equal(np.concatenate([block.X for block in rows.blocks()]), table[["a", "b"]])


def test_a_column_that_only_later_files_have_is_not_lost_in_silence(table, tmp_path):
    folder = folder_of(table, tmp_path / "folder")
    table[10:50].assign(z=1.0).to_parquet(folder / "9.parquet")  # with an index, which is no column
    with pytest.raises(InputError, match=r"a later file has column 'z'.*columns"):
        open_rows(folder, "y", "regression")
    assert sum(len(block) for block in open_rows(folder, "y", "regression", columns=list("abc")).blocks()) == 740
    table[10:50].to_parquet(folder / "9.parquet")
    open_rows(folder, "y", "regression", groups="who")


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (lambda t: t.drop(columns="b"), "no column 'b'"),
        (lambda t: t.assign(z=1.0), "new column 'z'"),
        (lambda t: t.assign(b="high"), "'b' holds no numbers"),
        (lambda t: t.assign(y=np.nan), "'y' is missing in row 701"),
        (lambda t: t.to_numpy(), "ndarray"),
    ],
)
def test_a_later_batch_that_is_otherwise_is_refused_by_name(table, second, said):
    with pytest.raises(InputError, match=said):
        read([table, second(table[:10])])


def test_roles_are_checked_all_at_once(table):
    with pytest.raises(InputError, match=r"'z'.*'q'"):
        open_rows([table], "z", "regression", groups="q")
    with pytest.raises(InputError, match="'who'.*no numbers"):
        open_rows([table], "y", "regression")
    with pytest.raises(InputError, match="Target 'who' holds no numbers"):
        open_rows([table], "who", "regression", columns=["a", "b"])
    with pytest.raises(InputError, match="both a feature"):
        open_rows([table], "y", "regression", columns=["a", "y"])
    with pytest.raises(InputError, match="at least two"):
        open_rows([table], "y", "regression", columns=["a"])
    with pytest.raises(InputError, match="weight of 0 or more in row 1"):
        read([table.assign(w=-1.0)], sample_weight="w")
    for roles in ({"groups": "y"}, {"groups": "times", "sample_weight": "times"}):
        with pytest.raises(InputError, match=r"is named as .* and as .*one of them"):
            read([table], **roles)
    with pytest.raises(InputError, match="Weight 'who' holds no numbers"):
        open_rows([table], "y", "regression", columns=list("abc"), sample_weight="who")
    for weight in (1e-300, 1e300):
        with pytest.raises(InputError, match=r"Column 'w' .* in row 6, .*rescale the weights"):
            read([table.assign(w=np.where(table.index == 5, weight, 1.0))], sample_weight="w")
    with pytest.raises(InputError, match="whose row 3 is"):
        read([table.assign(who=table["who"].where(table.index != 2))], groups="who")


def test_text_further_down_a_csv_is_refused_by_name(table, tmp_path, monkeypatch):
    monkeypatch.setattr("precisionnet.datasets.csv_files.BLOCK_BYTES", 2**12)
    table.astype({"b": object}).replace({"b": {table["b"].iloc[-1]: "high"}}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match="'b' holds numbers at first"):
        read(tmp_path / "t.csv")


def test_a_damaged_file_is_a_sentence(table, tmp_path):
    folder = folder_of(table, tmp_path / "folder")
    (folder / "2.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match="cannot be read"):
        read(folder)


def test_memory_does_not_depend_on_row_groups(rng, tmp_path):
    """A row group of a whole file is read piece by piece."""
    columns = pa.table({name: rng.standard_normal(100_000) for name in "abcy"})
    pages = {"use_dictionary": False, "data_page_size": 2**14}
    parquet.write_table(columns, tmp_path / "t.parquet", row_group_size=100_000, **pages)
    before = pa.total_allocated_bytes()
    peak = 0
    for _ in open_rows(tmp_path / "t.parquet", "y", "regression").blocks():
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert peak < columns.nbytes / 3
