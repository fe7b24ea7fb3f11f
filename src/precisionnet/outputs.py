"""Outputs appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from precisionnet.errors import OutputError


@contextmanager
def whole_folder(target: str | Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """A scratch folder that becomes ``target`` when the block ends well, and vanishes when it does not.

    An earlier output of ours (as ``is_ours`` tells) is replaced; a folder that holds anything else is refused, and so
    is a place that cannot be written, before any work is done.
    """
    place = _resolve(target)
    if place.exists() and not place.is_dir():
        raise OutputError(f"Cannot write to {str(target)!r}: it is a file, not a folder; name a new or empty folder.")
    if place.is_dir() and any(place.iterdir()) and not is_ours(place):
        raise OutputError(
            f"Cannot write to {str(target)!r}: the folder holds files that are not an earlier output; "
            "name a new or empty folder."
        )
    with _scratch(place, target) as scratch:
        scratch.mkdir()
        yield scratch
        _swap_in(scratch, place)


@contextmanager
def whole_file(target: str | Path) -> Iterator[Path]:
    """A scratch file that becomes ``target`` when the block ends well."""
    place = _resolve(target)
    if place.exists() and not place.is_file():
        raise OutputError(f"Cannot write to {str(target)!r}: it is not an ordinary file; name one.")
    with _scratch(place, target) as scratch:
        scratch.touch()
        yield scratch
        os.replace(scratch, place)


def _resolve(target: str | Path) -> Path:
    """Where ``target`` really is: links are followed, so that never a link is replaced, only what it leads to."""
    place = Path(target).resolve()
    for parent in place.parents:
        if parent.exists() and not parent.is_dir():
            raise OutputError(
                f"Cannot write to {str(target)!r}: {str(parent)!r} is a file, not a folder; choose another."
            )
    return place


@contextmanager
def _scratch(place: Path, target: str | Path) -> Iterator[Path]:
    """A path beside ``place`` with the same ending; the folders made for it go again if nothing came of it."""
    missing = [folder for folder in place.parents if not folder.exists()]
    scratch = place.parent / f".partial-{uuid.uuid4().hex[:8]}-{place.name}"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        yield scratch
    except BaseException as error:
        shutil.rmtree(scratch, ignore_errors=True)
        with suppress(OSError):
            scratch.unlink()
        for folder in missing:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        if isinstance(error, OSError) and not isinstance(error, OutputError):
            reason = error.strerror or str(error)
            raise OutputError(f"Cannot write to {str(target)!r}: {reason}; choose another place.") from error
        raise


def _swap_in(scratch: Path, place: Path) -> None:
    if not place.exists():
        os.rename(scratch, place)
        return
    old = scratch.with_name(scratch.name + "-old")
    os.rename(place, old)
    try:
        os.rename(scratch, place)
    except OSError:
        os.rename(old, place)
        raise
    shutil.rmtree(old)
