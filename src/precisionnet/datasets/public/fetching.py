"""The files of a data set, from the data folder where they are there already, else from the network.

A file counts as there when its sha256 is right; then nothing is written and no connection is made, so that a folder
filled once serves machines without network, and may be read-only. Files lie in ``<data folder>/<data set>/``, beside
``DESCRIPTION.md`` with the terms of use and the citation.

Each file comes whole, with the right hash and in its place, or not at all: pooch speaks HTTP and ``outputs.whole_file``
does the rest. pooch's own ``retrieve`` works alike but falls short here: it throws a wrong file away before one can see
that it is a proxy's error page, it cannot tell a cut connection (worth another attempt) from a 404 (not worth one), its
files are readable by their owner alone, even in a folder that a group shares, and what it leaves behind when killed
cannot be told from other files.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from precisionnet.datasets.public.registry import RemoteDataset, RemoteFile, find_dataset
from precisionnet.errors import FetchError, InputError, OutputError
from precisionnet.outputs import whole_file

if TYPE_CHECKING:
    from rich.progress import Progress

DATA_VARIABLE = "PRECISIONNET_DATA"
DESCRIPTION_NAME = "DESCRIPTION.md"
TIMEOUT = (5.0, 30.0)
"""Seconds to wait for a connection, and for the next bytes; as many as it takes for a slow file that keeps coming."""
WAITS = (1.0, 4.0)
"""Seconds before the second attempt, and before the third and last."""
_CHUNK = 2**14
_PASSING_STATUS = (408, 425, 429)  # besides 5xx: the server asks for another attempt
_WEB_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body|\?xml)", re.I | re.S)


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
        Draw a bar for each file while it comes, if standard error is a terminal.
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
    with file_bars(progress) as bar_for:
        for file in needed:
            place = folder / file.name
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


class _NotDelivered(Exception):
    """One attempt failed. Not an OSError, which ``whole_file`` would take for a disk that cannot be written."""

    def __init__(self, reason: str, *, passing: bool = False, remedy: str = "") -> None:
        super().__init__(reason)
        self.passing, self.remedy = passing, remedy


def download(file: RemoteFile, place: Path, bar: FileBar | None, tell: Callable[[str], None]) -> None:
    """Put ``file`` into its ``place``, or leave that as it was and raise FetchError or OutputError."""
    try:
        with whole_file(place) as scratch:
            for wait in (*WAITS, None):
                try:
                    _attempt(file, scratch, bar)
                    break
                except _NotDelivered as failure:
                    if wait is None or not failure.passing:
                        raise
                    tell(f"{file.name}: {failure}; trying again in {wait:g} s.")
                time.sleep(wait)
    except _NotDelivered as failure:
        remedy = failure.remedy or "check the connection and try again"
        raise FetchError(
            f"Cannot fetch {file.name!r} from {file.url}: {failure}; {remedy}, or save it by hand as {str(place)!r}."
        ) from failure.__cause__


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes, as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _attempt(file: RemoteFile, scratch: Path, bar: FileBar | None) -> None:
    import pooch  # both late: together they take half a second to import, and are only needed here
    from requests.exceptions import RequestException

    try:
        pooch.HTTPDownloader(progressbar=bar or False, chunk_size=_CHUNK, timeout=TIMEOUT)(file.url, str(scratch), None)
    except (OSError, ValueError) as error:
        # The disk's errors carry a number; requests' are OSErrors without one, or ValueErrors of headers without sense.
        if isinstance(error, RequestException | ValueError) or error.errno is None:
            raise _diagnosis(error, urlsplit(file.url).hostname or file.url) from error
        raise
    digest = sha256_of(scratch)
    if digest != file.sha256:
        raise _wrong_file(scratch, digest, file.sha256)


def _diagnosis(error: Exception, host: str) -> _NotDelivered:
    """Say what an error of requests means, and whether it may go away by itself."""
    from requests import exceptions as kinds

    detail = " ".join(str(error).split())
    if isinstance(error, kinds.HTTPError) and error.response is not None:
        status = error.response.status_code
        said = f"the server answered {status} {error.response.reason or ''}".rstrip()
        if status in (404, 410):
            return _NotDelivered(said, remedy="the file has moved or is gone, so update precisionnet")
        return _NotDelivered(said, passing=status >= 500 or status in _PASSING_STATUS, remedy="try again later")
    if isinstance(error, kinds.SSLError) and "CERTIFICATE_VERIFY_FAILED" in detail:
        remedy = "if your network reads encrypted traffic, name its certificates in REQUESTS_CA_BUNDLE"
        return _NotDelivered(f"the certificate shown for {host} is not to be trusted", remedy=remedy)
    if isinstance(error, kinds.ProxyError):
        return _NotDelivered("the proxy does not let it through", passing=True, remedy="check the proxy settings")
    # While the file is coming, requests reports a timeout as a ConnectionError.
    if isinstance(error, kinds.Timeout) or (isinstance(error, kinds.ConnectionError) and "timed out" in detail):
        return _NotDelivered(f"{host} does not answer", passing=True)
    if isinstance(error, kinds.ChunkedEncodingError | kinds.ContentDecodingError):
        return _NotDelivered("the connection was cut before the file was whole", passing=True)
    if isinstance(error, kinds.ConnectionError):
        return _NotDelivered(f"there is no connection to {host}", passing=True)
    return _NotDelivered(f"the request failed ({detail[:160]})")


def _wrong_file(scratch: Path, digest: str, expected: str) -> _NotDelivered:
    with scratch.open("rb") as stream:
        opening = stream.read(4096)
    if _WEB_PAGE.match(opening):
        return _NotDelivered(
            "a web page came instead of the file (a login page, or an error page of a proxy?)",
            remedy="open the address in a browser, log in to the network if it asks you to, and try again",
        )
    came = f"the file that came is not the one expected (sha256 {digest[:12]}..., not {expected[:12]}...)"
    return _NotDelivered(came if opening else "an empty file came", remedy="try again later or update precisionnet")


class FileBar:
    """A progress bar as pooch needs it, with ``total``, ``update``, ``reset`` and ``close``."""

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
        """Advance the bar by so many bytes."""
        self._progress.update(self._task, advance=n_bytes)

    def reset(self) -> None:
        """Start from nothing; pooch does so at the end, to fill the bar exactly."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Do nothing: ``file_bars`` removes all bars together."""


@contextmanager
def file_bars(shown: bool) -> Iterator[Callable[[str], FileBar | None]]:
    """Yield a function that makes the bar of a file, or returns None where no bar is drawn."""
    # Imported late: most calls find every file in its place and never come here.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda name: None
        return
    with Progress(TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), console=console) as bars:
        yield lambda name: FileBar(bars, name)
