"""Outputs appear whole or not at all, and what they replace is never lost.

A file is written beside its place, flushed to the disk and renamed into it: a reader finds the old file or the new one,
and so does everybody after a crash. The rename keeps the mode and, where the system allows it, the owner of the file
that it replaces.

A process that is killed leaves its scratch file or folder behind, ``.partial-0a1b2c3d-NAME``. A writer holds a lock on
its scratch for as long as it lives, so the next writer to the same place can tell the dead from the living: it removes
the former and leaves the latter alone.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from precisionnet.errors import OutputError, PrecisionNetError

if sys.platform != "win32":
    import fcntl

DEAD_AFTER = 24 * 3600.0
"""Seconds after which a scratch file counts as left behind where the file system has no locks."""

_LEFTOVER = re.compile(r"\.partial-[0-9a-f]{8}-(.+)", re.DOTALL)
_ATTEMPTS = 20
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_LOOK = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def whole_file(target: str | Path) -> Iterator[Path]:
    """Write a file in one step: it is there when the block ends well, and as it was before when it does not.

    Parameters
    ----------
    target : str or Path
        Where the file goes; missing folders are made. A link is followed.

    Yields
    ------
    Path
        An empty scratch file beside the target; write into it.

    Raises
    ------
    OutputError
        One sentence for whatever the system refuses.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with whole_file(place) as scratch:
    ...     _ = scratch.write_text("a,b")
    >>> place.read_text()
    'a,b'
    """
    with _place(target) as place:
        if place.exists() and not place.is_file():
            raise OutputError(f"Cannot write to {str(target)!r}: it is not an ordinary file; name one.")
        # What replaces a private file is private from its first byte on.
        mode, flags = 0o600 if place.exists() else 0o666, os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with _scratch(place, lambda path: os.close(os.open(path, flags, mode))) as scratch:
            yield scratch
            _flush(scratch)
            _replace(scratch, place)
            _flush(place.parent)


@contextmanager
def whole_folder(target: str | Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Write a folder of files: all of it is there when the block ends well, nothing when it does not.

    A new folder appears in one step. Over an earlier output each file is replaced in one step, those in subfolders
    last; no file is missing at any moment, and files that only the earlier output has stay.

    Parameters
    ----------
    target : str or Path
        Where the folder goes; missing parents are made. A link is followed.
    is_ours : callable
        Tells whether a folder is an earlier output, which may be replaced. A folder that holds anything else is
        refused, before any work is done and once more at the end.

    Yields
    ------
    Path
        An empty scratch folder beside the target; write into it.

    Raises
    ------
    OutputError
        One sentence for whatever the system refuses.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "output"
    >>> with whole_folder(place, is_ours=lambda folder: False) as scratch:
    ...     _ = (scratch / "page.html").write_text("<p>")
    >>> [path.name for path in place.iterdir()]
    ['page.html']
    """
    with _place(target) as place:
        refuse_foreign(place, is_ours, target)
        mode = 0o700 if place.exists() else 0o777
        with _scratch(place, lambda path: os.mkdir(path, mode)) as scratch:
            yield scratch
            for folder, _, names in os.walk(scratch):
                for name in names:
                    _flush(Path(folder, name))
                _flush(Path(folder))
            refuse_foreign(place, is_ours, target)  # a file may have been put there in the meantime
            if place.exists() and (os.name == "nt" or any(place.iterdir())):
                _replace_one_by_one(scratch, place)
            else:
                _replace(scratch, place)
            _flush(place.parent)


def refuse_foreign(folder: str | Path, is_ours: Callable[[Path], bool], target: str | Path | None = None) -> None:
    """Refuse a folder that holds anything but an earlier output.

    Parameters
    ----------
    folder : str or Path
        Where an output is to go; it need not be there.
    is_ours : callable
        Tells whether a folder is an earlier output. It is not asked about an empty folder, or one that holds nothing
        but what a killed process left behind.
    target : str or Path, optional
        The folder's name in the complaint, by default the folder itself.
    """
    place, name = Path(folder), str(folder if target is None else target)
    try:
        if place.exists() and not place.is_dir():
            raise OutputError(f"Cannot write to {name!r}: it is a file, not a folder; name a new or empty folder.")
        foreign = place.is_dir() and names_in(place) and not is_ours(place)
    except PrecisionNetError:
        raise
    except OSError as error:
        raise OutputError(f"Cannot write to {name!r}: {error.strerror}; choose another place.") from error
    if foreign:
        raise OutputError(
            f"Cannot write to {name!r}: the folder holds files that are not an earlier output; "
            "name a new or empty folder."
        )


def refuse_inputs(target: str | Path, inputs: Iterable[str | Path]) -> None:
    """Refuse a file that is one of the inputs, or lies in a folder that is one.

    Parameters
    ----------
    target : str or Path
        Where an output is to go; it need not be there.
    inputs : iterable of str or Path
        Files and folders that are read.
    """
    try:
        place = Path(target).resolve()
        read = next((one for one in inputs if Path(one).resolve() in (place, *place.parents)), None)
    except (OSError, RuntimeError, ValueError):  # no such place: writing there says so
        return
    if read is not None:
        raise OutputError(f"Cannot write to {str(target)!r}: {str(read)!r} is read; choose another place.")


def names_in(folder: Path) -> set[str]:
    """List the names in a folder, but for those that killed or working processes have given to their scratch files.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    set of str
        Names.
    """
    return {name for name in os.listdir(folder) if not _LEFTOVER.fullmatch(name)}


def _replace(scratch: Path, place: Path) -> None:
    """Rename into place, with mode and owner of what is there."""
    with suppress(FileNotFoundError):
        before = place.stat()
        mine = scratch.stat()
        if hasattr(os, "chown") and (before.st_uid, before.st_gid) != (mine.st_uid, mine.st_gid):
            with suppress(PermissionError):  # only root gives files away; a member of the group keeps it
                os.chown(scratch, -1, before.st_gid)
            with suppress(PermissionError):
                os.chown(scratch, before.st_uid, -1)
        os.chmod(scratch, stat.S_IMODE(before.st_mode))
    os.replace(scratch, place)


def _replace_one_by_one(scratch: Path, place: Path) -> None:
    """Rename every file of a scratch folder into its place, those in subfolders last."""
    folders = [Path(folder) for folder, _, _ in os.walk(scratch)]
    for folder in sorted(folders, key=lambda path: len(path.parts)):
        there = place / folder.relative_to(scratch)
        there.mkdir(exist_ok=True)
        for file in sorted(path for path in folder.iterdir() if not path.is_dir()):
            _replace(file, there / file.name)
        _flush(there)


def _flush(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    is_folder = path.is_dir()
    if is_folder and not _DIRECTORY:  # Windows opens no folders
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not is_folder:  # some network file systems flush no folders
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _place(target: str | Path) -> Iterator[Path]:
    """Find the place of ``target`` and make the folders above it; they go again if nothing came of it.

    Links are followed, so that never a link is replaced, only what it leads to. Whatever the system refuses becomes one
    sentence.
    """
    resolved, missing = False, list[Path]()
    try:
        place = Path(target).resolve()
        for parent in place.parents:
            if parent.exists() and not parent.is_dir():
                raise OutputError(f"Cannot write to {str(target)!r}: {str(parent)!r} is a file; choose another place.")
        missing = [folder for folder in place.parents if not folder.exists()]
        resolved = True
        yield place
        for folder in missing:
            _flush(folder.parent)
    except BaseException as error:
        for folder in missing:
            with suppress(OSError):  # not empty: it has another use by now
                folder.rmdir()
        # resolve() reports a loop of links as RuntimeError and a NUL in the name as ValueError
        odd = not resolved and isinstance(error, RuntimeError | ValueError)
        if odd or (isinstance(error, OSError) and not isinstance(error, PrecisionNetError)):
            reason = getattr(error, "strerror", None) or str(error)
            raise OutputError(f"Cannot write to {str(target)!r}: {reason}; choose another place.") from error
        raise


@contextmanager
def _scratch(place: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Make a locked scratch file or folder beside ``place``; what is left of it in the end goes.

    What dead writers to the same place left behind goes first.
    """
    _sweep(place)
    for attempt in range(_ATTEMPTS):
        scratch = place.parent / f".partial-{uuid.uuid4().hex[:8]}-{place.name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            make(scratch)
        except FileNotFoundError:  # another writer that failed took the folder with it
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        lock = _lock(scratch)
        if lock is not None:
            break
    else:
        raise OSError("the scratch file was removed again and again")
    try:
        yield scratch
    finally:
        _remove(scratch)
        if lock >= 0:
            os.close(lock)


def _lock(scratch: Path) -> int | None:
    """Return a locked descriptor, -1 where there are no locks, None where another writer took the scratch for dead."""
    if sys.platform == "win32":  # and a file that is open could not be renamed there
        return -1
    try:
        descriptor = os.open(scratch, _LOOK)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.lstat(scratch)):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:  # a file system without locks
        os.close(descriptor)
        return -1
    os.close(descriptor)
    return None


def _sweep(place: Path) -> None:
    """Remove what dead writers to ``place`` left behind."""
    with suppress(OSError):  # it is only tidying
        for name in os.listdir(place.parent):
            found = _LEFTOVER.fullmatch(name)
            if found is not None and found[1] == place.name:
                with suppress(OSError):
                    _remove_if_dead(place.parent / name)


def _remove_if_dead(leftover: Path) -> None:
    if not stat.S_ISDIR(mode := leftover.lstat().st_mode) and not stat.S_ISREG(mode):
        return
    lock = _lock(leftover)
    if lock is None or (lock < 0 and time.time() - leftover.lstat().st_mtime < DEAD_AFTER):
        return
    try:
        _remove(leftover)
    finally:
        if lock >= 0:
            os.close(lock)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
