"""Pages shown in a browser, where there is one."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from precisionnet.cli import console


def open_page(page: Path) -> bool:
    """Show a page in the reader's browser, and say so where there is none; the page is written either way."""
    try:
        shown = webbrowser.open(page.resolve().as_uri())
    except (OSError, ValueError, webbrowser.Error):
        shown = False
    if not shown:
        console.note(f"No browser could be started here: open {page} in one.")
    return shown
