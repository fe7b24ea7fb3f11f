"""Names that attack: whatever a table, a column, an id or a class is called, it stays text and stays in its place."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from precisionnet.cli import console
from precisionnet.errors import did_you_mean, printable, shown, some
from precisionnet.report.interactive import scripts

FIGURES = ("scores", "outcome", "effects", "graph", "heat_map", "error_by_target", "calibration")
QUICK = ("--max-epochs", "1", "--n-members", "2")
LONG = "q" * 10_000
COLUMNS = [
    "<script>alert(1)</script>",
    "../../outside",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "two\nlines\r\tand more",
    LONG,
    "a$b$c$\\frac{x",
    "\u202egnp.exe\u2066\u2028",
    "\"' onload='alert(1)' &lt;b&gt; --> ]]> {{ 7*7 }} {% raw %}",
]
TARGET = "<img src=x onerror=alert(2)>\x1b[2J"
ID = "/etc/i\x1bd</style><script>alert(3)</script>"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Page(HTMLParser):
    """What a browser would make of the page: its elements and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        if tag == "script":
            self.scripts.append("")
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text += data


@pytest.fixture
def hostile(gaussian):
    frame = gaussian.X.set_axis(COLUMNS, axis=1)
    frame[TARGET] = gaussian.y.round(3).to_numpy()
    frame[ID] = [f"../<b>{i}</b>\x1b[1A" for i in range(len(frame))]
    return frame


def is_clean(done, most: int = 6_000) -> bool:
    """No control character but line ends, and no name of ten thousand characters, on the terminal."""
    return not CONTROL.search(done.out + done.err) and len(done.out) < most and len(done.err) < most


def is_data(script: str) -> bool:
    """JSON that a parser reads, and in which nothing could end the element."""
    return not re.search("[<>&]", script) and isinstance(json.loads(script), dict)


def is_safe(report) -> bool:
    """Only the elements of our own template and of matplotlib; no script but our own; no handler; no control character."""
    text = report.read_text(encoding="utf-8")
    page = Page(text)
    handlers = {name for name in page.attributes if name.startswith("on")} | page.attributes & {"src", "srcdoc"}
    foreign = page.elements & {"img", "iframe", "object", "embed", "link", "base", "form", "foreignobject"}
    return (
        not handlers
        and not foreign
        and all(script.strip() == scripts() or is_data(script) for script in page.scripts)
        and not CONTROL.search(text)
        and "49" not in re.findall(r"&lt;b&gt; --&gt;.{9}(..)", text)
    )


def test_the_whole_path_with_hostile_columns(precisionnet, hostile, tmp_path, with_pictures, with_files):
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / "<svg onload=alert(4)>\x1b[31m\n.csv"
    hostile.to_csv(path, index=False)
    fit = precisionnet("fit", path, "--target", TARGET, "--id", ID, "--out", tmp_path / "out", *QUICK)
    assert fit.code == 0, fit.err
    assert is_clean(fit)
    assert is_safe(tmp_path / "out" / "report.html")
    assert "<script>alert(1)</script>" in Page((tmp_path / "out" / "report.html").read_text()).text  # shown as text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "figures",
        "model",
        "predictions.csv",
        "report.html",
    ]
    assert list(folder.iterdir()) == [path]
    figures = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert figures == {f"{name}.{ending}" for name in FIGURES for ending in ("svg", "png", "pdf")}
    written = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert set(written.iloc[:, 0]) <= set(hostile[ID])  # data goes back as it came

    show = precisionnet("show", tmp_path / "out", "--edges", tmp_path / "edges.csv")
    assert show.code == 0, show.err
    assert is_clean(show)
    predict = precisionnet("predict", tmp_path / "out", path, "--id", ID, "-o", tmp_path / "p.csv")
    assert predict.code == 0, predict.err
    assert is_clean(predict)
    printed = precisionnet("predict", tmp_path / "out", path, "--id", ID)
    assert printed.code == 0, printed.err
    assert is_clean(printed, 60_000)
    assert len(pd.read_csv(io.StringIO(printed.out))) == len(hostile)


def test_hostile_classes(precisionnet, hostile, tmp_path, with_pictures):
    labels = np.array(["<script>alert(5)</script>", "\x1b[31m../b", "c" * 10_000])
    hostile[TARGET] = labels[pd.qcut(hostile[TARGET], 3, labels=False)]
    hostile.to_csv(tmp_path / "t.csv", index=False)
    fit = precisionnet("fit", tmp_path / "t.csv", "--target", TARGET, "--id", ID, "--out", tmp_path / "out", *QUICK)
    assert fit.code == 0, fit.err
    assert is_clean(fit)
    assert is_safe(tmp_path / "out" / "report.html")
    assert is_clean(precisionnet("show", tmp_path / "out"))
    printed = precisionnet("predict", tmp_path / "out", tmp_path / "t.csv", "--id", ID)
    assert printed.code == 0, printed.err
    assert is_clean(printed, 3_000_000)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "t.csv"]


def test_hostile_names_in_checks(precisionnet, hostile, tmp_path):
    hostile.iloc[3, :8] = 99.5
    hostile["\x1b[7m" + LONG + "\n"] = 1.0
    hostile["again\x1b"] = hostile[COLUMNS[0]]
    hostile["site\n" + LONG] = np.where(hostile[TARGET] > 0, "\x1b[31mA" + LONG, "<b>B\n")
    hostile.to_csv(tmp_path / "t.csv", index=False)
    done = precisionnet(
        "datasets", "check", tmp_path / "t.csv", "--target", TARGET, "--id", ID, "--site", "site\n" + LONG
    )
    assert done.code == 1, done.err
    assert is_clean(done)
    assert max(map(len, done.out.splitlines())) <= 80
    assert "is constant" in " ".join(done.out.split())


def test_hostile_names_in_a_comparison(precisionnet, hostile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, out = tmp_path / "<b>\x1b[31m\n.csv", tmp_path / "out\x1b[2J\u202e"
    hostile.to_csv(path, index=False)
    plain = ("--methods", "ridge,median", "--repeats", 1, "--jobs", 1)
    done = precisionnet("compare", path, "--target", TARGET, "--id", ID, *plain, "--out", out)
    assert done.code == 0, done.err
    assert is_clean(done)
    assert is_safe(out / "index.html")
    manifest = json.loads((out / "experiment.json").read_text())
    (out / "experiment.json").write_text(json.dumps(manifest | {"name": "\x1b[31mred\n"}))
    for command in (["status"], ["status", out], ["page", out]):
        done = precisionnet("experiments", *command)
        assert done.code == 0, done.err
        assert is_clean(done)
        assert r"out\x1b[2J" in done.out.replace("\n", "")  # a long path is wrapped
    (out / "rows.jsonl").write_text("\x1b[31m no json\n{}\n")
    for command in (["status"], ["status", out], ["page", out]):
        assert is_clean(precisionnet("experiments", *command))


FORMULAS = ["=1+1", "+SUM(A1)", "@x", "-cmd|' /C calc'!A0", "\t=1", "x5", "x6", "x7"]
STARTS = re.compile(r"[=+@\t\r]|-[A-Za-z]")


@pytest.mark.parametrize("target", ["numbers", "classes"])
def test_no_written_table_holds_what_a_spreadsheet_would_run(precisionnet, gaussian, tmp_path, target):
    frame = gaussian.X.set_axis(FORMULAS, axis=1).assign(y=gaussian.y.round(3).to_numpy())
    frame["=id"] = [f"{FORMULAS[i % 5].strip()}{i}" for i in range(len(frame))]
    if target == "classes":
        frame["y"] = np.array(["=a", "@b", "-5"])[pd.qcut(frame["y"], 3, labels=False)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    done = precisionnet("fit", tmp_path / "t.csv", "--target", "y", "--id", "=id", "--out", out, *QUICK)
    assert done.code == 0, done.err
    assert precisionnet("show", out, "--edges", tmp_path / "edges.csv").code == 0
    for where in (["-o", tmp_path / "p.csv"], ["-o", tmp_path / "p.tsv"], []):
        done = precisionnet("predict", out, tmp_path / "t.csv", "--id", "=id", *where)
        assert done.code == 0, done.err
    (tmp_path / "printed.csv").write_text(done.out)
    for path in (
        out / "predictions.csv",
        *(tmp_path / name for name in ("edges.csv", "p.csv", "p.tsv", "printed.csv")),
    ):
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",") for cell in row]
        assert not [cell for cell in cells if STARTS.match(cell)], path
    ids = pd.read_csv(tmp_path / "p.csv").iloc[:, 0]
    assert ids.str.removeprefix("'").tolist() == frame["=id"].tolist()
    if target == "classes":
        assert {"'=a", "'@b", "-5"} == set(pd.read_csv(out / "predictions.csv", dtype=str)["true"])  # numbers stay


@pytest.mark.parametrize("name", COLUMNS)
def test_hostile_names_in_refusals(precisionnet, hostile, tmp_path, name):
    hostile[name] = "\x1b[31mtext\n" + LONG
    hostile[:20].to_csv(tmp_path / "t.csv", index=False)
    for arguments in (
        ["--target", TARGET, "--id", ID],
        ["--target", name + "?", "--id", ID],
        ["--target", TARGET, "--id", name + "?"],
        ["--target", TARGET, "--id", ID, "--drop", name + "?"],
    ):
        done = precisionnet("fit", tmp_path / "t.csv", "--out", tmp_path / "out", *arguments)
        assert done.code == 2
        assert is_clean(done, 2_000)
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    "name", ["\x1b[31m\n.csv", "<b>.csv", "a" * 5000 + ".csv", "../" * 40 + "nowhere.csv", "\x1b.docx"]
)
def test_hostile_file_names_that_are_not_there(precisionnet, tmp_path, name):
    for command in (["fit", "--target", "y", "--out", tmp_path / "o"], ["datasets", "check"]):
        done = precisionnet(*command[:1], *([command[1]] if command[0] == "datasets" else []), tmp_path / name, *(
            command[1:] if command[0] == "fit" else []
        ))  # fmt: skip
        assert done.code == 2
        assert is_clean(done, 2_000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a file name")
def test_a_file_name_that_is_no_unicode(hostile, tmp_path):
    """In a process of its own: names like this arrive as half characters, which no stream can encode."""
    path = os.fsencode(tmp_path) + b"/\xff\xfe.csv"
    hostile.to_csv(os.fsdecode(path), index=False)
    arguments = ["fit", path, "--target", TARGET, "--id", ID, "--out", str(tmp_path / "out"), *QUICK]
    done = subprocess.run([sys.executable, "-m", "precisionnet", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert is_safe(tmp_path / "out" / "report.html")


def test_words_for_a_sentence():
    assert shown("plain") == "'plain'"
    assert shown(np.int64(3)) == "3"
    assert shown(np.str_("x")) == "'x'"
    assert shown("a\nb\x1b\u202e") == r"'a\nb\x1b\u202e'"
    assert len(shown(LONG)) == 60
    assert len(some([LONG] * 9)) < 250
    assert len(did_you_mean(LONG + "1", [LONG])) < 100
    assert printable("naïve 脳 👩‍🔬 a\tb\udcff") == r"naïve 脳 👩‍🔬 a\tb\udcff"


def test_a_long_path_is_still_whole(capsys, monkeypatch):
    monkeypatch.setattr(console.out, "_width", 400)
    path = "/".join(["folder"] * 40)
    console.say(f"Wrote {path}")
    assert path in capsys.readouterr().out
