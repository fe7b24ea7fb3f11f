"""What the commands print with: results to standard output, everything else to standard error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from precisionnet.errors import printable

LONGEST_WORD = 300
"""A longer run of characters without a space is no path and no name that anybody reads."""

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def error(sentence: str) -> None:
    """One sentence, no traceback. Markup in a column's name is text."""
    err.print(Text.assemble(("Error: ", "bold red"), _safe(sentence)))


def note(sentence: str) -> None:
    """Something to know that does not stop the command."""
    err.print(Text.assemble(("Note: ", "bold yellow"), _safe(sentence)))


def warn(sentence: str) -> None:
    """Something that may mislead, and that ``--strict`` stops at."""
    err.print(Text.assemble(("Warning: ", "bold magenta"), _safe(sentence)))


def say(text: str) -> None:
    """A plain line of the result."""
    out.print(_safe(text))


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], n_text: int = 1) -> None:
    """A small table: the first ``n_text`` columns are text, the others are numbers."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        shown.add_column(_safe(name), justify="left" if i < n_text else "right", overflow="ellipsis", no_wrap=True)
    for row in rows:
        shown.add_row(*(_safe(cell) for cell in row))
    out.print(shown)


def listing(rows: Iterable[tuple[str, str, str]]) -> None:
    """Sentences that hang beside their label: (label, its style, sentence)."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, style, sentence in rows:
        grid.add_row(Text(label, style=style), _safe(sentence))
    out.print(grid)


def _safe(text: str) -> Text:
    """Names come from strangers' files: no escape sequence, line break or endless word reaches the terminal."""
    return Text(re.sub(rf"\S{{{LONGEST_WORD},}}", lambda word: f"{word[0][:60]}…{word[0][-20:]}", printable(text)))


class EpochBar:
    """A progress bar fed with the rows of the history."""

    def __init__(self, progress: Progress, task: Any) -> None:
        self._progress, self._task = progress, task

    def __call__(self, row: dict[str, float]) -> None:
        """Advance by an epoch and show its losses."""
        losses = f"train {row['train_loss']:.3f}"
        if row["validation_loss"] == row["validation_loss"]:
            losses += f"  validation {row['validation_loss']:.3f}"
        self._progress.update(self._task, advance=1, losses=losses)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A sign of life on a terminal while something takes more than a moment."""
    with err.status(what):
        yield


@contextmanager
def epochs(max_epochs: int) -> Iterator[EpochBar]:
    """Show training; without a terminal nothing is drawn until the end."""
    columns = (
        TextColumn("training"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[losses]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err) as progress:
        task = progress.add_task("training", total=max_epochs, losses="")
        yield EpochBar(progress, task)
        progress.update(task, total=progress.tasks[0].completed)  # early stopping is an end, too
