"""What the commands print with: results to standard output, everything else to standard error; pages to a browser.

Names and values come from strangers' files. Every function here spells control characters out, so that none reaches
the terminal, and takes markup for text.
"""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from precisionnet.cli.messages import in_options
from precisionnet.errors import printable

LONGEST_WORD = 300
"""A longer run of characters without a space is no path and no name that anybody reads."""

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def error(sentence: str) -> None:
    """Print why the command stops: one sentence, no traceback."""
    err.print(Text.assemble(("Error: ", "bold red"), safe(in_options(sentence))))


def errors(sentences: Sequence[str]) -> None:
    """Print all that stops a command: one sentence, or a numbered list."""
    if len(sentences) == 1:
        error(sentences[0])
        return
    error(f"{len(sentences)} things stand in the way.")
    for number, sentence in enumerate(sentences, 1):
        err.print(Text.assemble((f"  {number}. ", "bold red"), safe(in_options(sentence))))


def note(sentence: str) -> None:
    """Print something to know that does not stop the command."""
    err.print(Text.assemble(("Note: ", "bold yellow"), safe(in_options(sentence))))


def warn(sentence: str) -> None:
    """Print something that may mislead, and that ``--strict`` stops at."""
    err.print(Text.assemble(("Warning: ", "bold magenta"), safe(in_options(sentence))))


def say(text: str) -> None:
    """Print a plain line of the result."""
    out.print(safe(text))


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], n_text: int = 1) -> None:
    """Print a small table: the first ``n_text`` columns are text, the others are numbers."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        shown.add_column(safe(name), justify="left" if i < n_text else "right", overflow="ellipsis", no_wrap=True)
    for row in rows:
        shown.add_row(*(safe(cell) for cell in row))
    out.print(shown)


def listing(rows: Iterable[tuple[str, str, str]]) -> None:
    """Print sentences that hang beside their label: (label, its style, sentence)."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, style, sentence in rows:
        grid.add_row(safe(label, style), safe(in_options(sentence)))
    out.print(grid)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a sign of life on a terminal while something takes more than a moment."""
    with err.status(safe(what)):
        yield


def open_page(page: Path) -> bool:
    """Show a page in the reader's browser, and say so where there is none; the page is written either way."""
    try:
        shown = webbrowser.open(page.resolve().as_uri())
    except (OSError, ValueError, webbrowser.Error):
        shown = False
    if not shown:
        note(f"No browser could be started here: open {page} in one.")
    return shown


def safe(text: str, style: str = "") -> Text:
    """Text without escape sequences, line breaks and endless words."""
    shortened = re.sub(rf"\S{{{LONGEST_WORD},}}", lambda word: f"{word[0][:60]}…{word[0][-20:]}", printable(text))
    return Text(shortened, style=style)
