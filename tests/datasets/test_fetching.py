"""Fetching against a server on this machine that misbehaves on purpose: right files or nothing, and one clear sentence."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from precisionnet.datasets.public import fetching, registry
from precisionnet.datasets.public.fetching import data_folder as chosen_folder
from precisionnet.datasets.public.fetching import fetch_files
from precisionnet.datasets.public.registry import DATASETS, RemoteFile, describe
from precisionnet.errors import FetchError, InputError, OutputError, PrecisionNetError

CONTENT = {name: "".join(f"{name}\t{i}\n" for i in range(6000)).encode() for name in ("lh.tsv", "rh.tsv", "people.csv")}
PAGE = b"\n<!DOCTYPE html>\n<html><body>Please log in</body></html>"


class Handler(http.server.BaseHTTPRequestHandler):
    """Does for each path what its script says; the last entry of a script stays."""

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        self.server.requests.append(name)
        script = self.server.scripts.get(name, ["right"])
        getattr(self, "serve_" + (script.pop(0) if len(script) > 1 else script[0]))(CONTENT[name])

    def answer(self, body, status=200, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def serve_right(self, content):
        self.answer(content)

    def serve_gzipped(self, content):
        self.answer(gzip.compress(content), Content_Encoding="gzip")

    def serve_wrong(self, content):
        self.answer(content[::-1])

    def serve_empty(self, content):
        self.answer(b"")

    def serve_page(self, content):
        self.answer(PAGE, Content_Type="text/html")

    def serve_missing(self, content):
        self.answer(PAGE, 404)

    def serve_busy(self, content):
        self.answer(PAGE, 503)

    def serve_forbidden(self, content):
        self.answer(PAGE, 403)

    def serve_moved(self, content):
        self.answer(b"", 302, Location=self.path.replace("/raw/", "/elsewhere/"))
        self.server.scripts[self.path.rpartition("/")[2]] = ["right"]

    def serve_circle(self, content):
        self.answer(b"", 302, Location=self.path)

    def serve_cut(self, content):
        self.answer(content[: len(content) // 2], length=len(content))
        self.close_connection = True

    def serve_silence(self, content):
        self.close_connection = True

    def serve_nonsense(self, content):
        self.answer(content, length="a lot")

    def serve_hang(self, content):
        self.answer(content[:40_000], length=len(content))
        self.server.stop.wait(10)

    def serve_slow(self, content):
        self.answer(b"", length=len(content))
        for start in range(0, len(content), 10_000):
            time.sleep(0.05)
            self.wfile.write(content[start : start + 10_000])
            self.wfile.flush()

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts, self.requests, self.stop = {}, [], threading.Event()

    @property
    def files(self):
        base = f"http://127.0.0.1:{self.server_port}/raw"
        return tuple(
            RemoteFile(f"abide/{name}", f"{base}/{name}", hashlib.sha256(content).hexdigest())
            for name, content in CONTENT.items()
        )

    def handle_error(self, request, client_address):
        pass  # a client that was killed


@pytest.fixture
def server(monkeypatch):
    with Server() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        monkeypatch.setitem(registry.DATASETS, "abide", replace(DATASETS["abide"], files=server.files))
        monkeypatch.setattr(fetching, "WAITS", (0.01, 0.02))
        monkeypatch.setattr(fetching, "TIMEOUT", (0.3, 0.3))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield server
        server.stop.set()
        server.shutdown()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "new" / "cache"


def held(cache):
    """Every file in the cache by name, after a look at each: right, or the description."""
    found = sorted(path for path in cache.rglob("*") if path.is_file())
    for path in found:
        right = describe("abide").encode() if path.name == "DESCRIPTION.md" else CONTENT[path.name]
        assert path.read_bytes() == right, path
    return [path.name for path in found]


ALL = sorted(["DESCRIPTION.md", *CONTENT])


def fetch(cache, **options):
    said = []
    paths = fetch_files("abide", cache, tell=said.append, **options)
    assert {name: path.read_bytes() for name, path in paths.items()} == CONTENT
    return said


def test_everything_comes_once_with_its_terms(server, cache, capsys):
    paths = fetch_files("abide", cache)
    assert paths == {name: cache / "abide" / name for name in CONTENT}
    assert held(cache) == ALL
    assert sorted(server.requests) == sorted(CONTENT)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("Terms of use") == 1
    assert "CC BY-NC-SA" in err
    assert "Di Martino" in err
    assert str(cache / "abide" / "DESCRIPTION.md") in err

    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    assert fetch_files("abide", str(cache)) == paths
    assert capsys.readouterr() == ("", "")
    assert len(server.requests) == 3
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


def test_files_in_the_cache_can_be_read_by_others(server, cache):
    old = os.umask(0o022)
    try:
        fetch(cache)
    finally:
        os.umask(old)
    assert {oct(path.stat().st_mode & 0o777) for path in (cache / "abide").iterdir()} == {"0o644"}


@pytest.mark.parametrize("script", [["gzipped"], ["moved"], ["slow"]])
def test_odd_but_fine(server, cache, script):
    server.scripts["rh.tsv"] = script
    assert len(fetch(cache)) == 1  # only the terms: no attempt failed
    assert held(cache) == ALL


@pytest.mark.parametrize("failure", ["busy", "cut", "silence", "hang"])
def test_what_may_pass_is_tried_again(server, cache, failure):
    server.scripts["rh.tsv"] = [failure, failure, "right"]
    said = fetch(cache)
    assert held(cache) == ALL
    assert server.requests.count("rh.tsv") == 3
    assert [text for text in said if re.match(r"abide/rh.tsv: .*; trying again in 0.0[12] s\.$", text)] == said[:2]


FAILURES = {
    "wrong": (1, r"not the one expected \(sha256 \w{12}\.\.\., not \w{12}\.\.\.\); try again later"),
    "empty": (1, "an empty file came; try again later"),
    "page": (1, r"a web page came instead of the file \(a login page.*; open the address in a browser"),
    "missing": (1, "the server answered 404 Not Found; the file has moved or is gone"),
    "forbidden": (1, "the server answered 403 Forbidden; try again later"),
    "nonsense": (1, "the request failed"),
    "circle": (31, "the request failed .*redirects"),
    "busy": (3, "the server answered 503 Service Unavailable; try again later"),
    "cut": (3, "the connection was cut before the file was whole; check the connection"),
    "silence": (3, "there is no connection to 127.0.0.1; check the connection"),
    "hang": (3, "127.0.0.1 does not answer; check the connection"),
}


@pytest.mark.parametrize(
    ("failure", "name"),
    [(failure, "lh.tsv") for failure in FAILURES] + [(failure, "rh.tsv") for failure in FAILURES if failure != "hang"],
)
def test_a_failure_leaves_only_right_files_and_says_what_to_do(server, cache, failure, name):
    server.scripts[name] = [failure]
    attempts, sentence = FAILURES[failure]
    with pytest.raises(FetchError, match=sentence) as raised:
        fetch(cache)
    text = str(raised.value)
    assert text.startswith(f"Cannot fetch 'abide/{name}' from http://127.0.0.1:{server.server_port}/raw/{name}: ")
    assert text.endswith(f"or save it by hand as {str(cache / 'abide' / name)!r}.")
    assert "\n" not in text
    assert server.requests.count(name) == attempts
    if name == "lh.tsv":
        assert not cache.parent.exists()  # not even the folders that were made for it
    else:
        assert held(cache) == ["DESCRIPTION.md", "lh.tsv"]
    server.scripts.clear()
    fetch(cache)
    assert held(cache) == ALL


def test_without_network_files_that_are_there_are_enough(server, cache):
    fetch(cache)
    server.shutdown()
    server.server_close()
    n_requests = len(server.requests)
    assert fetch(cache) == []
    (cache / "abide" / "rh.tsv").unlink()
    with pytest.raises(FetchError, match="no connection to 127.0.0.1"):
        fetch(cache)
    assert held(cache) == ["DESCRIPTION.md", "lh.tsv", "people.csv"]
    assert len(server.requests) == n_requests


def test_files_put_there_by_hand_are_used_and_nothing_is_added(server, cache):
    (cache / "abide").mkdir(parents=True)
    for name, content in CONTENT.items():
        (cache / "abide" / name).write_bytes(content)
    assert fetch(cache) == []
    assert held(cache) == sorted(CONTENT)
    assert server.requests == []


def test_a_wrong_file_is_named_and_replaced(server, cache):
    fetch(cache)
    place = cache / "abide" / "people.csv"
    place.write_bytes(CONTENT["people.csv"].replace(b"\n", b"\r\n"))
    server.requests.clear()
    said = fetch(cache)
    assert said[0] == f"{str(place)!r} is not the file it should be (changed, or cut?): fetching it anew."
    assert "fetched 1 of 3 files" in said[1]
    assert server.requests == ["people.csv"]
    assert held(cache) == ALL


def test_a_wrong_file_stays_when_there_is_no_other_and_is_not_used(server, cache):
    fetch(cache)
    place = cache / "abide" / "people.csv"
    place.write_bytes(b"mine")
    server.scripts["people.csv"] = ["missing"]
    with pytest.raises(FetchError, match="404"):
        fetch(cache)
    assert place.read_bytes() == b"mine"
    assert sorted(path.name for path in place.parent.iterdir()) == ALL


@pytest.mark.parametrize("where", ["below a file", "a file", "in /proc", "a folder in its place", "too long"])
def test_a_folder_that_cannot_be_written(server, tmp_path, where, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "abide" / "lh.tsv").mkdir(parents=True)
    folder = {
        "below a file": tmp_path / "file" / "cache",
        "a file": tmp_path / "file",
        "in /proc": Path("/proc/precisionnet"),
        "a folder in its place": tmp_path / "taken",
        "too long": tmp_path / ("x" * 300),
    }[where]
    monkeypatch.setenv("PRECISIONNET_DATA", str(folder))
    with pytest.raises((OutputError, FetchError)) as raised:
        fetch(None)
    if where != "too long":
        assert str(raised.value).startswith(f"Cannot write to '{folder}/abide/lh.tsv': ")
        assert "(which comes from PRECISIONNET_DATA), or save http://" in str(raised.value)
    assert "name another data folder" in str(raised.value)
    assert server.requests == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["abide", "file", "lh.tsv", "taken"]


def test_precedence_of_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PRECISIONNET_DATA", str(tmp_path / "variable"))
    assert chosen_folder(tmp_path / "argument") == tmp_path / "argument"
    assert chosen_folder() == tmp_path / "variable"
    monkeypatch.setenv("PRECISIONNET_DATA", "~/variable")
    assert chosen_folder() == tmp_path / "home" / "variable"
    assert chosen_folder("~/x") == tmp_path / "home" / "x"
    monkeypatch.chdir(tmp_path)
    assert chosen_folder("x") == tmp_path / "x"
    for nothing in ("", " "):
        monkeypatch.setenv("PRECISIONNET_DATA", nothing)
        with pytest.raises(InputError, match="data_folder is empty"):
            chosen_folder(nothing)
        if sys.platform == "linux":
            assert chosen_folder() == tmp_path / "xdg" / "precisionnet"
    monkeypatch.delenv("PRECISIONNET_DATA")
    assert chosen_folder().name == ("precisionnet" if sys.platform != "win32" else "Cache")
    with pytest.raises(InputError, match="must be a path, got 3"):
        chosen_folder(3)
    assert list(tmp_path.iterdir()) == []


ELSEWHERE = """
import json, resource, sys
from dataclasses import replace
from precisionnet.datasets.public import registry
from precisionnet.datasets.public.fetching import fetch_files
from precisionnet.errors import PrecisionNetError
files, cache, largest = json.loads(sys.argv[1])
files = tuple(registry.RemoteFile(*file) for file in files)
registry.DATASETS["abide"] = replace(registry.DATASETS["abide"], files=files)
if largest:
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
print("ready", flush=True)
sys.stdin.readline()
try:
    fetch_files("abide", cache)
except PrecisionNetError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def elsewhere(server, cache, largest=0):
    """A process of its own that fetches as soon as it gets a line."""
    files = [(file.name, file.url, file.sha256) for file in server.files]
    return subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE, json.dumps([files, str(cache), largest])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start(process):
    process.stdin.write("\n")
    process.stdin.flush()


def test_several_processes_at_once(server, cache):
    server.scripts = {name: ["slow"] for name in CONTENT}
    processes = [elsewhere(server, cache) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        start(process)
    for process in processes:
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
    assert len(server.requests) > len(CONTENT)  # they did meet
    assert held(cache) == ALL


def test_a_killed_process_leaves_nothing_that_counts(server, cache):
    server.scripts["rh.tsv"] = ["hang"]
    process = elsewhere(server, cache)
    start(process)
    deadline = time.monotonic() + 20
    while not any(path.stat().st_size for path in cache.rglob(".partial-*-rh.tsv")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert sorted(path.name for path in (cache / "abide").iterdir())[1:] == ["DESCRIPTION.md", "lh.tsv"]
    server.scripts.clear()
    leftover = next(cache.rglob(".partial-*"))

    # Its writer is dead: the next one to write this file clears it away.
    fetch(cache)
    assert not leftover.exists()
    assert held(cache) == ALL


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file sizes")
def test_no_room_on_the_disk(server, cache):
    process = elsewhere(server, cache, largest=30_000)  # a limit on the size of files fails as a full disk does
    _, err = process.communicate("\n", timeout=30)
    assert process.returncode == 1
    assert err.startswith(
        f"OutputError: Cannot write to '{cache}/abide/lh.tsv': File too large; name another data folder"
    )
    assert "which comes from the argument data_folder" in err
    assert server.requests == ["lh.tsv"]
    assert not cache.exists()


def test_interrupted_by_the_user(server, cache, monkeypatch):
    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "sha256_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch(cache)
    assert not cache.exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("script", [["right"], ["gzipped"], ["cut", "right"]])
def test_a_bar_a_file_on_a_terminal_only(server, tmp_path, monkeypatch, script):
    monkeypatch.setenv("TERM", "xterm")
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    drawn = {}
    for stream, progress in ((Terminal(), True), (Terminal(), False), (io.StringIO(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        server.scripts["lh.tsv"] = list(script)
        fetch(tmp_path / f"{len(drawn)}", progress=progress)
        drawn[len(drawn)] = stream.getvalue()
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn[0])
    assert all(re.search(rf"{name} +━{{24}} +(\S+)/\1 ", last) for name in CONTENT), last
    assert drawn[1] == drawn[2] == ""


def test_certificates_and_proxies_have_sentences_of_their_own():
    untrusted = requests.exceptions.SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
    assert "certificate shown for there is not to be trusted" in str(fetching._diagnosis(untrusted, "there"))
    proxy = fetching._diagnosis(requests.exceptions.ProxyError("no"), "there")
    assert (str(proxy), proxy.remedy) == ("the proxy does not let it through", "check the proxy settings")
    bundle = fetching._diagnosis(OSError("Could not find a suitable TLS CA certificate bundle"), "there")
    assert str(bundle) == "the request failed (Could not find a suitable TLS CA certificate bundle)"


def test_unknown_names_are_refused_with_the_nearest():
    for function in (describe, fetch_files):
        with pytest.raises(
            InputError, match=r"no data set 'abid' \(did you mean 'abide'\?\): choose one of abide, ants"
        ):
            function("abid")
    assert issubclass(FetchError, PrecisionNetError)
    assert issubclass(FetchError, OSError)


@pytest.mark.parametrize("name", DATASETS)
def test_the_description_says_what_it_must(name):
    dataset, text = DATASETS[name], describe(name)
    assert dataset.title
    assert text.startswith(f"# {dataset.title}\n")
    assert re.findall(r"^## (.*)$", text, re.M) == ["What is in it", "Source", "Terms of use", "Citation"]
    assert "CC BY" in dataset.terms
    assert "https://doi.org/" in dataset.citation
    for file in dataset.files:
        owner, repository, commit = file.url.removeprefix("https://raw.githubusercontent.com/").split("/")[:3]
        assert f"{owner}/{repository}" in text
        assert commit in text
        assert file.base_name in text
        assert file.name == f"{name}/{file.base_name}"
        assert re.fullmatch("[0-9a-f]{40}", commit)
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)


@pytest.mark.data
@pytest.mark.parametrize("name", DATASETS)
def test_the_real_files_are_used_without_network(name, data_folder, monkeypatch):
    def refuse(*_):
        raise AssertionError("went to the network")

    monkeypatch.setattr(fetching, "download", refuse)
    said = []
    paths = fetch_files(name, data_folder, tell=said.append)
    assert said == []
    assert list(paths) == [file.base_name for file in DATASETS[name].files]
    for file in DATASETS[name].files:
        assert hashlib.sha256(paths[file.base_name].read_bytes()).hexdigest() == file.sha256


@pytest.mark.data
def test_the_registry_says_what_the_readme_of_the_data_says(data_folder):
    readme = data_folder / "README.md"
    if not readme.is_file():
        pytest.skip("the data folder has no README.md with the hashes")
    for dataset in DATASETS.values():
        for file in dataset.files:
            line = next(line for line in readme.read_text().splitlines() if line.startswith(f"| {file.name} |"))
            assert file.sha256 in line
            assert line.split("|")[2].rpartition(", ")[2].strip() == file.url.split("/", 6)[6]
