"""Where the rows of a large table come from: files, Arrow datasets, batches and Dask, piece by piece.

A piece is an Arrow record batch or a data frame of a few thousand rows. Every source can be gone over again from the
start; one that cannot is refused. Parquet is read through small buffers, one per column, so that memory does not depend
on how a file was cut into row groups.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as arrow_dataset
from pyarrow import parquet

from precisionnet.datasets.batches import PAGE_BUFFER_BYTES, PARQUET, PARQUET_ROWS, is_number
from precisionnet.datasets.csv_files import CsvSource, NotANumber
from precisionnet.datasets.table_files import DELIMITED, find_delimiter
from precisionnet.errors import InputError, shown
from precisionnet.workers import dask_client, result_of

Piece = pa.RecordBatch | pd.DataFrame
Reader = Callable[[list[str]], Iterator[tuple[str, Any]]]
"""Columns -> pieces that hold at least these, each with what a sentence calls it."""


@dataclass(frozen=True)
class Pieces:
    """A source of pieces.

    Parameters
    ----------
    name : str
        What a sentence calls the source.
    schema : pyarrow.Schema
        Columns and types, as the first piece has them.
    read : callable
        Start from the first row: columns -> pieces, each with what a sentence calls it.
    exact : bool, default=False
        Whether later pieces must have these columns and no others, as batches and partitions must.
    lazy_parts : tuple, default=()
        Partitions of a Dask DataFrame, each to be computed where it lies.
    late : tuple of str, default=()
        Columns of later files of a folder that its first one has not.
    """

    name: str
    schema: pa.Schema
    read: Reader
    exact: bool = False
    lazy_parts: tuple[Any, ...] = ()
    late: tuple[str, ...] = ()


def find_pieces(source: Any, labels: tuple[str, ...] = (), codes: tuple[str, ...] = ()) -> Pieces:
    """Return the pieces of whatever was given as a table.

    Parameters
    ----------
    source : str, Path, pyarrow.dataset.Dataset, pyarrow.Table, DataFrame, Dask DataFrame or re-iterable of batches
        The table.
    labels : tuple of str, default=()
        Columns of a text file that are read as text; all others are numbers.
    codes : tuple of str, default=()
        Columns of a text file that are labels, too, but are read as numbers where they begin with numbers: whole ones
        become integers, as they are in parquet.

    Returns
    -------
    Pieces
        To be read as often as wanted.
    """
    if isinstance(source, str | Path):
        return _of_path(Path(source), labels, codes)
    if isinstance(source, arrow_dataset.Dataset):
        return _of_dataset(source, "The dataset")
    if type(source).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(source, "to_delayed"):
        return _of_dask(source)
    if isinstance(source, pa.Table):
        return _of_batches(source.to_batches(max_chunksize=PARQUET_ROWS))
    if isinstance(source, pd.DataFrame):
        return _of_batches([source])
    return _of_batches(source)


def _of_path(path: Path, labels: tuple[str, ...], codes: tuple[str, ...]) -> Pieces:
    name, ending = f"Table {str(path)!r}", path.suffix.lower()
    if path.is_dir():
        pattern = f"{glob.escape(str(path))}/**/*"
        if not any(file.lower().endswith(PARQUET) for file in glob.iglob(pattern, recursive=True)):
            raise InputError(f"{name} is a folder without parquet files: pass a file, or a folder of parquet files.")
        with _readable(name):
            dataset = arrow_dataset.dataset(path, format="parquet", partitioning="hive")
            found = [_without_index(one.physical_schema).names for one in dataset.get_fragments()]
        late = dict.fromkeys(column for names in found for column in names if column not in dataset.schema.names)
        return replace(_of_dataset(dataset, name), late=tuple(late))
    if not path.is_file():
        raise InputError(f"{name} does not exist: pass the path of a parquet or csv file, or of a parquet folder.")
    if ending in PARQUET:
        with _readable(name):
            return _of_dataset(arrow_dataset.dataset(path, format="parquet"), name)
    if ending in DELIMITED:
        return _of_text(path, name, labels, codes)
    raise InputError(
        f"{name} has the ending {path.suffix!r}, which is not read piece by piece: save it as .parquet or .csv."
    )


def _of_text(path: Path, name: str, labels: tuple[str, ...], codes: tuple[str, ...]) -> Pieces:
    opened = CsvSource.open(path, find_delimiter(path), ".")
    text = opened.text_columns(range(len(opened.names)), n_blocks=1)
    kinds = [pa.string() if one in labels or i in text else pa.float64() for i, one in enumerate(opened.names)]

    def read(columns: list[str]) -> Iterator[tuple[str, Any]]:
        places = [opened.names.index(one) for one in columns]
        whole = {i for i, place in enumerate(places) if columns[i] in codes and kinds[place] == pa.float64()}
        try:
            with _readable(name):
                for number, batch in enumerate(opened.batches({place: kinds[place] for place in places})):
                    arrays = list(batch.columns)
                    if not number:
                        whole = {i for i in whole if _all_whole(arrays[i])}
                    for i in whole:
                        if not _all_whole(arrays[i]):
                            raise InputError(
                                f"{name} changes midway: column {shown(columns[i])} holds whole numbers at first and "
                                "others further down; correct it, or leave it out."
                            )
                        arrays[i] = arrays[i].cast(pa.int64())
                    yield name, pa.RecordBatch.from_arrays(arrays, names=columns)
        except NotANumber as error:
            raise InputError(
                f"{name} changes midway: column {shown(opened.names[error.position])} holds numbers at first and text "
                "further down; correct it, or leave it out."
            ) from error

    return Pieces(name, pa.schema(list(zip(opened.names, kinds, strict=True))), read)


def _all_whole(column: Any) -> bool:
    numbers = column.drop_null().to_numpy(zero_copy_only=False)
    return bool(((numbers % 1 == 0) & (abs(numbers) < 2**53)).all())


def _of_dataset(dataset: Any, name: str) -> Pieces:
    schema = dataset.schema
    try:
        with _readable(name):
            fragments = list(dataset.get_fragments())
            schema = _with_types(schema, fragments)
            for fragment in fragments:
                _refuse_other_schema(fragment, _without_index(schema), name)
        filtered = False
    except InputError:
        raise
    except ValueError:  # a filter: Arrow itself has to read
        filtered = True

    def read(columns: list[str]) -> Iterator[tuple[str, Any]]:
        with _readable(name):
            if filtered:
                for batch in dataset.to_batches(columns=columns, batch_size=PARQUET_ROWS, use_threads=False):
                    yield name, batch
                return
            for fragment in dataset.get_fragments():
                for batch in _fragment_batches(fragment, schema, columns):
                    yield name, batch

    return Pieces(name, _without_index(schema), read)


def _fragment_batches(fragment: Any, schema: pa.Schema, columns: list[str]) -> Iterator[Any]:
    held = isinstance(fragment, arrow_dataset.ParquetFileFragment)
    if not held or not set(columns) <= set(fragment.physical_schema.names):
        yield from fragment.to_batches(
            schema=schema, columns=columns, batch_size=PARQUET_ROWS, use_threads=False, batch_readahead=1
        )
        return
    groups = [group.id for group in fragment.row_groups]
    # Without buffers of its own, pyarrow would hold the compressed bytes of a whole row group.
    with parquet.ParquetFile(fragment.open(), pre_buffer=False, buffer_size=PAGE_BUFFER_BYTES) as file:
        for batch in file.iter_batches(batch_size=PARQUET_ROWS, row_groups=groups, columns=columns):
            yield batch.select(columns)


def _with_types(schema: pa.Schema, fragments: list[Any]) -> pa.Schema:
    """Give a column that is all null in the first file the type that it has in a later one."""
    for number, field in enumerate(schema):
        if pa.types.is_null(field.type):
            later = [own.field(field.name) for one in fragments if field.name in (own := one.physical_schema).names]
            schema = schema.set(number, next((one for one in later if not pa.types.is_null(one.type)), field))
    return schema


def _refuse_other_schema(fragment: Any, schema: pa.Schema, name: str) -> None:
    """Arrow would fill a column that a file has not with nulls, without a word."""
    own, path = fragment.physical_schema, getattr(fragment, "path", "")
    keys = arrow_dataset.get_partition_keys(fragment.partition_expression)
    for field in schema:
        if field.name not in own.names:
            if field.name in keys:
                continue
            raise InputError(
                f"{name} changes midway: file {path!r} has no column {shown(field.name)}, which the first file has; "
                "bring all files to the same columns."
            )
        found = own.field(field.name).type
        if is_number(found) != is_number(field.type) and not pa.types.is_null(found):
            raise InputError(
                f"{name} changes midway: column {shown(field.name)} is {field.type} at first and {found} in {path!r}; "
                "bring all files to the same types."
            )


def _without_index(schema: pa.Schema) -> pa.Schema:
    """Leave out an index that pandas wrote along."""
    index = {name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)}
    return pa.schema([field for field in schema if field.name not in index])


def _of_batches(source: Any) -> Pieces:
    if isinstance(source, Mapping | bytes) or not hasattr(source, "__iter__"):
        raise InputError(
            f"The source is {type(source).__name__}: pass the path of a parquet file or folder, an Arrow dataset, a "
            "Dask DataFrame, or batches that can be gone over several times."
        )
    if iter(source) is source:
        raise InputError(
            f"The source is a one-shot {type(source).__name__}, and a fit goes over the rows more than once: pass a "
            "list of batches, or an object whose __iter__ starts from the first batch every time."
        )
    first = next(iter(source), None)
    if first is None:
        raise InputError("The source is empty: it has no batches; pass one with rows.")

    def read(columns: list[str]) -> Iterator[tuple[str, Any]]:
        for number, batch in enumerate(source, 1):
            for piece in cut(batch, number):
                yield f"Batch {number} of the source", piece

    return Pieces("The source", schema_of(next(iter(cut(first, 1)))), read, exact=True)


def cut(batch: Any, number: int) -> Iterator[Any]:
    """Yield a batch in pieces; what is no batch is refused."""
    if isinstance(batch, pa.Table):
        yield from batch.to_batches(max_chunksize=PARQUET_ROWS) or [pa.RecordBatch.from_pylist([], batch.schema)]
    elif isinstance(batch, pd.DataFrame):
        named = batch.rename(columns=str)  # as in the schema; Arrow's names are text
        for begin in range(0, max(len(batch), 1), PARQUET_ROWS):
            yield named.iloc[begin : begin + PARQUET_ROWS]
    elif isinstance(batch, pa.RecordBatch):
        yield batch
    else:
        raise InputError(
            f"Batch {number} of the source is {type(batch).__name__}: batches must be data frames or Arrow record "
            "batches, whose columns have names."
        )


def _of_dask(source: Any) -> Pieces:
    if getattr(source, "ndim", 0) != 2 or not hasattr(source, "columns"):
        raise InputError(
            f"The source is a Dask {type(source).__name__}, whose columns have no names: pass a Dask DataFrame; "
            "dask.dataframe.from_dask_array makes one of an array."
        )
    parts = tuple(source.to_delayed())

    def read(columns: list[str]) -> Iterator[tuple[str, Any]]:
        client = dask_client()
        for number, part in enumerate(parts, 1):
            for piece in cut(result_of(part, client, parts), number):
                yield f"Partition {number} of the Dask DataFrame", piece

    return Pieces("The Dask DataFrame", schema_of(source._meta), read, exact=True, lazy_parts=parts)


def schema_of(piece: Any) -> pa.Schema:
    """Return the columns and types of a piece; of a data frame only whether they are numbers is looked at."""
    if isinstance(piece, pa.RecordBatch):
        return _without_index(piece.schema)
    return pa.schema([(str(name), frame_kind(kind)) for name, kind in zip(piece.columns, piece.dtypes, strict=True)])


def frame_kind(kind: Any) -> pa.DataType:
    """Return float64 for a data frame's column of numbers, text for any other."""
    numbers = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)
    return pa.float64() if numbers else pa.string()


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn what Arrow raises into a sentence."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        detail = " ".join(str(error).split())[:160]
        raise InputError(
            f"{name} cannot be read ({detail}): check that it is whole, and that all its files have the same columns "
            "and types."
        ) from error
