"""One file from the network: whole, with the right hash and in its place, or not at all.

pooch speaks HTTP and ``outputs.whole_file`` does the rest. pooch's own ``retrieve`` works alike but falls short here:
it throws a wrong file away before one can see that it is a proxy's error page, it cannot tell a cut connection (worth
another attempt) from a 404 (not worth one), its files are readable by their owner alone, even in a folder that a group
shares, and what it leaves behind when killed cannot be told from other files.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from precisionnet.datasets.public.downloading import FileBar
from precisionnet.datasets.public.registry import RemoteFile
from precisionnet.errors import FetchError
from precisionnet.outputs import whole_file

TIMEOUT = (5.0, 30.0)
"""Seconds to wait for a connection, and for the next bytes; as many as it takes for a slow file that keeps coming."""
WAITS = (1.0, 4.0)
"""Seconds before the second attempt, and before the third and last."""
DEAD_AFTER = 3600.0
"""Seconds without a byte after which a partial file has no process any more: a living one gives up far earlier."""

_CHUNK = 2**14
_PASSING_STATUS = (408, 425, 429)  # besides 5xx: the server asks for another attempt
_WEB_PAGE = re.compile(rb"(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body|\?xml)", re.I | re.S)


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


def sweep(place: Path) -> None:
    """Remove what processes that were killed have left behind of the file at ``place``, and nothing of living ones."""
    with suppress(OSError):  # it is only tidying
        for partial in place.parent.glob(f".partial-????????-{place.name}"):
            if time.time() - partial.stat().st_mtime > DEAD_AFTER:
                partial.unlink()


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
    """What an error of requests means, and whether it may pass."""
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
