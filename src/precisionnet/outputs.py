"""Outputs appear whole or not at all: written beside their place, then renamed into it."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from precisionnet.errors import OutputError, PrecisionNetError


@contextmanager
def whole_folder(target: str | Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """A scratch folder that becomes ``target`` when the block ends well, and vanishes when it does not.

    An earlier output of ours (as ``is_ours`` tells) is replaced; a folder that holds anything else is refused, before
    any work is done and once more at the end.
    """
    with _scratch(target) as (scratch, place):
        if place.exists() and not place.is_dir():
            raise OutputError(
                f"Cannot write to {str(target)!r}: it is a file, not a folder; name a new or empty folder."
            )
        _refuse_foreign(place, target, is_ours)
        scratch.mkdir()
        yield scratch
        if not place.exists():
            os.rename(scratch, place)
            return
        old = scratch.with_name(scratch.name + "-old")
        os.rename(place, old)
        try:
            _refuse_foreign(old, target, is_ours)  # someone may have put a file there while we were at work
            os.rename(scratch, place)
        except BaseException:
            os.rename(old, place)
            raise
        shutil.rmtree(old)


@contextmanager
def whole_file(target: str | Path) -> Iterator[Path]:
    """A scratch file that becomes ``target`` when the block ends well."""
    with _scratch(target) as (scratch, place):
        if place.exists() and not place.is_file():
            raise OutputError(f"Cannot write to {str(target)!r}: it is not an ordinary file; name one.")
        scratch.touch()
        yield scratch
        os.replace(scratch, place)


def _refuse_foreign(folder: Path, target: str | Path, is_ours: Callable[[Path], bool]) -> None:
    if folder.is_dir() and any(folder.iterdir()) and not is_ours(folder):
        raise OutputError(
            f"Cannot write to {str(target)!r}: the folder holds files that are not an earlier output; "
            "name a new or empty folder."
        )


@contextmanager
def _scratch(target: str | Path) -> Iterator[tuple[Path, Path]]:
    """A path beside the place of ``target``, and that place; the folders made for them go again if nothing came of it.

    Links are followed, so that never a link is replaced, only what it leads to. Whatever the system refuses becomes one
    sentence.
    """
    scratch, missing = None, list[Path]()
    try:
        place = Path(target).resolve()
        for parent in place.parents:
            if parent.exists() and not parent.is_dir():
                raise OutputError(f"Cannot write to {str(target)!r}: {str(parent)!r} is a file; choose another place.")
        missing = [folder for folder in place.parents if not folder.exists()]
        scratch = place.parent / f".partial-{uuid.uuid4().hex[:8]}-{place.name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        yield scratch, place
    except BaseException as error:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
            with suppress(OSError):
                scratch.unlink()
        for folder in missing:
            with suppress(OSError):  # not empty: somebody else uses it by now
                folder.rmdir()
        # resolve() reports a loop of links as RuntimeError and a NUL in the name as ValueError
        odd = scratch is None and isinstance(error, RuntimeError | ValueError)
        if odd or (isinstance(error, OSError) and not isinstance(error, PrecisionNetError)):
            reason = getattr(error, "strerror", None) or str(error)
            raise OutputError(f"Cannot write to {str(target)!r}: {reason}; choose another place.") from error
        raise
