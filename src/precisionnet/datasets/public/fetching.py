"""The files of a data set, from the data folder where they are there already, else from the network.

A file counts as there when its sha256 is right; then nothing is written and no connection is made, so that a folder
filled once serves machines without network, and may be read-only. Files lie in ``<data folder>/<data set>/``, beside
``DESCRIPTION.md`` with the terms of use and the citation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from precisionnet.datasets.public.downloading import download, sha256_of, sweep
from precisionnet.datasets.public.downloading import file_bars
from precisionnet.datasets.public.registry import RemoteDataset, RemoteFile, find_dataset
from precisionnet.errors import FetchError, InputError, OutputError
from precisionnet.outputs import whole_file

DATA_VARIABLE = "PRECISIONNET_DATA"
DESCRIPTION_NAME = "DESCRIPTION.md"


def data_folder(argument: str | Path | None = None) -> Path:
    """Where data files are looked for and kept: the argument, else $PRECISIONNET_DATA, else the platform's cache.

    The first that is given is taken, whether it exists or not; an empty variable counts as not given. The platform's
    cache is ``~/.cache/precisionnet`` on Linux (or below ``$XDG_CACHE_HOME``), ``~/Library/Caches/precisionnet`` on
    macOS and ``%LOCALAPPDATA%\\precisionnet\\precisionnet\\Cache`` on Windows.
    """
    return _folder_and_source(argument)[0]


def fetch_files(
    name: str,
    data_folder: str | Path | None = None,
    *,
    progress: bool = True,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Path]:
    """The files of data set ``name`` on this machine, by their base names; those that are missing are downloaded.

    Parameters
    ----------
    name
        A name in ``registry.DATASETS``.
    data_folder
        Where to look and to keep them; see :func:`data_folder` for what holds when it is left out.
    progress
        Draw a bar a file while it comes, if standard error is a terminal.
    tell
        Called with what the user should know: another attempt, a file that had to be replaced, and, when something was
        downloaded, the terms of use and the citation. Left out, it is printed to standard error.

    Raises
    ------
    FetchError
        A file could not be had, or what came is not that file; the data folder is as it was.
    OutputError
        A file must be downloaded and the data folder cannot be written.
    """
    dataset = find_dataset(name)
    folder, source = _folder_and_source(data_folder)
    say = tell or _to_stderr
    needed = [file for file in dataset.files if not _is_there(file, folder / file.name, say)]
    if needed:
        _fetch(dataset, needed, folder, source, progress, say)
    return {file.base_name: folder / file.name for file in dataset.files}


def _folder_and_source(argument: str | Path | None) -> tuple[Path, str]:
    """The data folder, and who named it, for the sentence that says it cannot be used."""
    if argument is not None and not isinstance(argument, str | os.PathLike):
        raise InputError(f"data_folder must be a path, got {argument!r}.")
    if argument is not None and not str(argument).strip():
        raise InputError("data_folder is empty: name a folder, or leave it out for the default.")
    if argument is not None:
        chosen, source = str(argument), "the argument data_folder"
    elif os.environ.get(DATA_VARIABLE, "").strip():
        chosen, source = os.environ[DATA_VARIABLE], DATA_VARIABLE
    else:
        import pooch  # late: it takes a quarter of a second to import

        chosen, source = str(pooch.os_cache("precisionnet")), "the platform's cache"
    return Path(os.path.expanduser(chosen)).absolute(), source


def _is_there(file: RemoteFile, place: Path, tell: Callable[[str], None]) -> bool:
    try:
        if not place.is_file():
            return False
        right = sha256_of(place) == file.sha256
    except OSError as error:
        raise FetchError(
            f"Cannot read {str(place)!r}: {error.strerror or error}; make it readable or name another data folder."
        ) from error
    if not right:
        tell(f"{str(place)!r} is not the file it should be (changed, or cut?): fetching it anew.")
    return right


def _fetch(
    dataset: RemoteDataset,
    needed: list[RemoteFile],
    folder: Path,
    source: str,
    progress: bool,
    tell: Callable[[str], None],
) -> None:
    described = folder / dataset.name / DESCRIPTION_NAME
    sweep(described)
    with file_bars(progress) as bar_for:
        for file in needed:
            place = folder / file.name
            sweep(place)
            with _saying_what_to_do(f"save {file.url} there by hand", folder, source):
                download(file, place, bar_for(file.base_name), tell)
            # After every file, not at the end: whatever happens next, no data lies there without its terms.
            with _saying_what_to_do("make room there", folder, source), whole_file(described) as scratch:
                scratch.write_text(dataset.description, encoding="utf-8")
    tell(
        f"{dataset.title}: fetched {len(needed)} of {len(dataset.files)} files into {str(folder / dataset.name)!r}.\n\n"
        f"Terms of use\n{dataset.terms}\n\nPlease cite\n{dataset.citation}\n\n"
        f"This is kept in {str(described)!r}."
    )


@contextmanager
def _saying_what_to_do(otherwise: str, folder: Path, source: str) -> Iterator[None]:
    """``whole_file`` advises another place; here that means another data folder, and who named this one matters."""
    try:
        yield
    except OutputError as error:
        what = str(error).rpartition(";")[0]
        raise OutputError(
            f"{what}; name another data folder than {str(folder)!r} (which comes from {source}), or {otherwise}."
        ) from error


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr)
