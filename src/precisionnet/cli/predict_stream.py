"""``precisionnet predict`` for a table that is read piece by piece: predictions are written as the rows come."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from precisionnet.cli import console
from precisionnet.cli.predict import (
    PredictRequest,
    advice_on,
    correction_of,
    correction_sentence,
    predictions,
    refuse_for_classes,
    shift_warnings,
)
from precisionnet.datasets import Dataset, refuse_bad_numbers
from precisionnet.datasets.dataset import NO_ID
from precisionnet.datasets.roles import gaps_note
from precisionnet.datasets.row_pieces import find_pieces
from precisionnet.datasets.table_files import find
from precisionnet.errors import InputError, did_you_mean, refuse_all, shown, some
from precisionnet.estimators import load
from precisionnet.estimators.survey import random_numbers
from precisionnet.evaluation import compare_rows
from precisionnet.outputs import whole_file
from precisionnet.tables_out import spreadsheet_safe

COMPARED = 20_000
"""Rows that are compared with the training rows, drawn at random."""


class Appender(Protocol):
    """Writes predictions part by part."""

    def __call__(self, frame: pd.DataFrame) -> None:
        """Write further rows."""


def run_predict_stream(asked: PredictRequest) -> None:
    """Predict piece by piece, write, and say how the rows differ from the training rows."""
    model = load(asked.model)
    refuse_for_classes(model, asked)
    if asked.page is not None:
        raise InputError(
            f"--page needs the whole table in memory, and {asked.tables[0]!r} is read piece by piece: leave it out."
        )
    correction, warned = correction_of(model, asked) if asked.labelled else (None, [])
    for sentence in warned:
        console.warn(sentence)
    n_rows, sample = 0, _Sample()
    n_missing, n_incomplete = pd.Series(0, index=list(model.fitted.blocks.names)), 0
    with _appender(asked.output) as append:
        for X in _pieces(model, asked):
            frame = predictions(model, Dataset(X), asked.interval, correction)
            append(frame)
            sample.add(X, n_rows)
            n_rows += len(X)
            n_missing += X.isna().sum()
            n_incomplete += int(X.isna().any(axis=1).sum())
        if not n_rows:  # said here, so that an earlier file stays
            raise InputError(f"Table {asked.tables[0]!r} has no rows: pass one that has.")
    for sentence in gaps_note(n_missing, n_incomplete, n_rows):
        console.note(sentence)
    shift = compare_rows(model, sample.rows)
    said = "" if n_rows <= COMPARED else f"Of {COMPARED:,} rows drawn at random: "
    for sentence in shift_warnings(shift, advice_on(model, shift, correction)):
        console.warn(said + sentence)
    if correction is not None:
        console.note(correction_sentence(correction))
    if asked.output is not None:
        console.say(f"Wrote {n_rows} predictions to {asked.output}")


def _pieces(model: Any, asked: PredictRequest) -> Iterator[pd.DataFrame]:
    """Yield the model's columns, checked, with the id or the row's number for index."""
    table, names = asked.tables[0], list(model.fitted.blocks.names)
    encoder = model.encoder_
    labels = [c.name for c in encoder.columns_ if c.kind not in ("number", "left out")] if encoder is not None else []
    source = find_pieces(table, (*labels, *([] if asked.id_column is None else [asked.id_column])))
    known = source.schema.names
    wanted = [*names, *([] if asked.id_column is None else [asked.id_column])]
    refuse_all(
        [
            f"Table {table!r} has no column {shown(name)}{did_you_mean(name, known)}, which the model or --id needs; "
            f"it has {some(known)}."
            for name in wanted
            if find(name, known) is None
        ]
    )
    found = {name: str(find(name, known)) for name in wanted}
    first = 0
    for where, piece in source.read(list(dict.fromkeys(found.values()))):
        frame = piece.to_pandas() if isinstance(piece, pa.RecordBatch) else piece
        if not len(frame):
            continue
        X = pd.DataFrame({name: frame[found[name]].to_numpy() for name in names})
        numbers, missing = X.drop(columns=labels), "error" if model.medians_ is None else "median"
        try:
            _refuse_text(numbers, first)
            refuse_bad_numbers(numbers, missing=missing, droppable=False, first=first + 1)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        if asked.id_column is None:
            X.index = pd.RangeIndex(first + 1, first + len(X) + 1, name=NO_ID)  # as in the file
        else:
            X.index = pd.Index(frame[found[asked.id_column]], name=asked.id_column)
            _refuse_no_id(X.index, where, first)
        first += len(X)
        yield X


def _refuse_no_id(ids: pd.Index[Any], where: str, first: int) -> None:
    """Name the first row without an id, of rows that come after ``first`` others."""
    empty = ids.isna() | (ids == "")
    if empty.any():
        raise InputError(
            f"{where} has no id in column {shown(ids.name)} in row {first + int(empty.argmax()) + 1}: fill it in or "
            "remove such rows."
        )


def _refuse_text(X: pd.DataFrame, first: int) -> None:
    """Name the first cell with text, of rows that come after ``first`` others."""
    for name, column in X.items():
        if not pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
            other = column.notna() & pd.to_numeric(column, errors="coerce").isna()
            row = int((other if other.any() else column.notna()).argmax())
            raise InputError(
                f"Column {shown(name)} holds text, not numbers: {shown(column.iloc[row])} in row {first + row + 1}; "
                "correct it."
            )


class _Sample:
    """A uniform sample of rows, those with the smallest random numbers."""

    def __init__(self) -> None:
        self.rows, self._chance = pd.DataFrame(), np.empty(0)

    def add(self, X: pd.DataFrame, first: int) -> None:
        """Take in further rows."""
        chance = random_numbers(np.arange(first, first + len(X)), 0)
        bound = self._chance[-1] if len(self._chance) == COMPARED else 1.0
        new = chance < bound
        self._chance = np.concatenate([self._chance, chance[new]])
        order = np.argsort(self._chance, kind="stable")[:COMPARED]
        self.rows = pd.concat([self.rows, X[new]] if len(self.rows) else [X[new]]).iloc[order]
        self._chance = self._chance[order]


@contextmanager
def _appender(output: str | None) -> Iterator[Appender]:
    """Yield what writes predictions; the file appears whole or not at all."""
    if output is None:
        yield _Text(sys.stdout, ",")
        return
    ending = Path(output).suffix.lower()
    with whole_file(output) as scratch:
        if ending == ".parquet":
            with _Parquet(scratch) as writer:
                yield writer
            return
        with scratch.open("w", encoding="utf-8", newline="") as file:
            yield _Text(file, "\t" if ending == ".tsv" else ",")


class _Text:
    def __init__(self, file: Any, separator: str) -> None:
        self._file, self._separator, self._begun = file, separator, False

    def __call__(self, frame: pd.DataFrame) -> None:
        spreadsheet_safe(frame).to_csv(
            self._file, index=False, sep=self._separator, lineterminator="\n", header=not self._begun
        )
        self._begun = True


class _Parquet:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def __enter__(self) -> _Parquet:
        return self

    def __call__(self, frame: pd.DataFrame) -> None:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        self._writer = self._writer or parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
