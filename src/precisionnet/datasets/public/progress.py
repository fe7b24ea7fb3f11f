"""A progress bar a file, drawn by rich on a terminal and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


class FileBar:
    """What pooch asks of a progress bar: ``total``, ``update``, ``reset`` and ``close``."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    @property
    def total(self) -> float | None:
        """Bytes to come, as far as the server says; a new total is a new attempt and starts from nothing."""
        return self._progress.tasks[self._progress.task_ids.index(self._task)].total

    @total.setter
    def total(self, n_bytes: int) -> None:
        self._progress.reset(self._task, total=n_bytes or None)

    def update(self, n_bytes: int) -> None:
        """So many more have come."""
        self._progress.update(self._task, advance=n_bytes)

    def reset(self) -> None:
        """Start from nothing; pooch does so at the end, to fill the bar exactly."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Nothing to do: the bars go down together, with ``file_bars``."""


@contextmanager
def file_bars(shown: bool) -> Iterator[Callable[[str], FileBar | None]]:
    """What makes a bar for a file's name, or None where none shall be drawn."""
    # Imported late: most calls find every file in its place and never come here.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda name: None
        return
    with Progress(TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), console=console) as bars:
        yield lambda name: FileBar(bars, name)
