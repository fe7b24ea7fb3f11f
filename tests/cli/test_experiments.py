"""compare, reproduce and experiments: run as a person would, with tiny budgets."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from rich.console import Console

from precisionnet.cli import console
from precisionnet.cli.progress import fits, time_left
from precisionnet.runner.run import Event

PLAIN = ("--methods", "ridge,median", "--repeats", 2, "--jobs", 1)
THEOREM = """
name = "small"
kind = "theorem"
repeats = 2
[data]
n_samples = [100, 400]
n_features = [10, 20]
sparsity = [0.1, 0.2]
distances = [0.3, 3.0]
[data.base]
n_features = 20
n_samples = 200
sparsity = 0.2
[quick]
repeats = 1
[expected]
quick = "slopes of some sign, in seconds"
"""
SYNTHETIC = """
name = "drawn"
kind = "synthetic"
methods = ["glasso", "sample"]
repeats = 2
[data]
n_features = 6
n_samples = 50
sparsity = [0.2, 0.5]
tuned_at = 0.2
[networks]
n_layers = [1]
n_filters = [2]
order = [1]
l1_scale = [1.0]
max_epochs = [1]
"""
FILES = {"experiment.json", "rows.jsonl", "trials.jsonl", "summary.csv", "index.html"}


def rows_of(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def files_of(folder):
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def narrow(run):
    return max(map(len, run.out.splitlines())) <= 80


@pytest.fixture
def compared(precisionnet, table, tmp_path):
    done = precisionnet("compare", table, "--target", "age", "--id", "who", *PLAIN, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    return done, tmp_path / "out"


def test_compare_answers_in_words_table_and_page(compared):
    done, out = compared
    figures = {f"figure-{name}.{ending}" for name in ("repeats", "differences") for ending in ("svg", "png")}
    assert files_of(out) == FILES | figures | {"splits.csv"}
    rows = rows_of(out)
    assert sorted((row["method"], row["repeat"]) for row in rows) == [
        (method, repeat) for method in ("median", "ridge") for repeat in (0, 1)
    ]
    first, *_ = done.out.split("\n\n")
    assert "ridge predicts age" in " ".join(first.split())
    mean = pd.DataFrame(rows).groupby("method")["mae"].mean()
    assert f"{mean['ridge']:.2f}"[:3] in done.out
    assert done.out.index("\nridge ") < done.out.index("\nmedian ")
    assert narrow(done)
    assert "regression (guessed; --task sets it), 120 rows, 8 columns, 4 fits" in done.sentence
    assert "4 of 4 fits" in done.err
    summary = pd.read_csv(out / "summary.csv").set_index(["method", "metric"])
    assert summary.loc[("ridge", "mae"), "mean"] == pytest.approx(mean["ridge"])
    assert summary[["difference", "low", "high"]].isna().all(axis=None)  # joint is not among them
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "table.csv" in page
    assert " ".join(first.split()) in " ".join(page.replace("&#39;", "'").split())


def test_compare_again_fits_nothing_and_writes_the_same_page(precisionnet, table, compared):
    _, out = compared
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    done = precisionnet("compare", table, "--target", "age", "--id", "who", *PLAIN, "--out", out)
    assert "All 4 fits are already here" in done.sentence
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_compare_classes_with_people_kept_together(precisionnet, table, classes, tmp_path):
    frame = pd.read_csv(table).drop(columns="age")
    frame.assign(level=classes, who=[f"p{i // 3}" for i in range(len(frame))]).to_csv(table, index=False)
    done = precisionnet(
        "compare", table, "--target", "level", "--groups", "who", "--methods", "logistic,majority", "--repeats", 2,
        "--jobs", 1, "--out", tmp_path / "o", "--seed", 7,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "Accuracy (%)" in done.out
    splits = pd.read_csv(tmp_path / "o" / "splits.csv")
    sides = splits.filter(like="repeat").groupby([i // 3 for i in range(len(splits))]).nunique()
    assert sides.shape == (40, 2)
    assert (sides == 1).all(axis=None)
    assert narrow(done)


@pytest.mark.slow
def test_a_network_beside_a_plain_model_in_a_quick_run(precisionnet, table, tmp_path):
    done = precisionnet(
        "compare", table, "--target", "age", "--drop", "who", "--methods", "glasso,glasso_mlp,ridge", "--quick", "--repeats", 1,
        "--jobs", 1, "--out", tmp_path / "o",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = {row["method"]: row for row in rows_of(tmp_path / "o")}
    assert rows["glasso"]["n_candidates"] == 1  # the defaults
    assert rows["glasso_mlp"]["parameters"]["readout"] == "mlp"
    assert "zeros" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--methods", "joint,rigde"), "did you mean 'ridge'"),
        (("--methods", "svc"), "svr"),
        (("--methods", ","), "No method is named"),
        (("--repeats", 0), "--repeats must be at least 1, got 0"),
        (("--search", "random"), "--search must be grid or optuna"),
        (("--search", "optuna", "--trials", 0), "--trials must be at least 1"),
        (("--jobs", 0), "--jobs must be at least 1"),
        (("--jobs", 2, "--scheduler", "tcp://127.0.0.1:1"), "give one of them"),
        (("--defaults", "--search", "optuna"), "give one of them"),
        (("--data", "."), "leave it out with a table"),
        (("--out", " "), "--out is empty"),
        (("--task", "ranking"), "--task must be"),
    ],
)
def test_what_compare_cannot_do_is_one_sentence(precisionnet, table, tmp_path, arguments, words):
    done = precisionnet("compare", table, "--target", "age", "--id", "who", "--out", tmp_path / "o", *arguments)
    assert done.code == 2
    assert words in done.sentence
    assert done.out == ""
    assert not (tmp_path / "o").exists()


def test_a_folder_of_another_comparison_is_left_as_it_is(precisionnet, table, compared):
    _, out = compared
    before = (out / "rows.jsonl").read_bytes()
    done = precisionnet(
        "compare", table, "--target", "age", "--id", "who", *PLAIN, "--repeats", 1, "--out", out,
    )  # fmt: skip
    assert done.code == 2
    assert "repeats" in done.sentence
    assert "name another folder" in done.sentence
    assert (out / "rows.jsonl").read_bytes() == before


def test_somebody_elses_folder_is_refused(precisionnet, table, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("chapter one")
    done = precisionnet("compare", table, "--target", "age", "--id", "who", *PLAIN, "--out", tmp_path / "mine")
    assert done.code == 2
    assert "name a new or empty folder" in done.sentence
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(THEOREM)
    (tmp_path / "drawn.toml").write_text(SYNTHETIC)
    return tmp_path


def test_reproduce_a_theorem_from_a_file(precisionnet, small):
    done = precisionnet("reproduce", "small.toml", "--quick", "--jobs", 1)
    assert done.code == 0, done.err
    assert "Expected: slopes of some sign" in done.sentence
    out = small / "results-small-quick"
    assert files_of(out) == FILES | {"figure-theorem.svg", "figure-theorem.png"}
    assert {row["repeat"] for row in rows_of(out)} == {0}
    assert "slope  theorem" in done.out
    assert narrow(done)
    slopes = pd.read_csv(out / "summary.csv")
    assert f"{slopes['slope'][0]:+.2f}" in done.out
    assert {"standard_error", "first_level", "last_level"} <= set(slopes)
    assert slopes["last_level"].dtype == float


def test_reproduce_a_figure_from_a_file(precisionnet, small):
    done = precisionnet("reproduce", "drawn.toml", "--jobs", 1, "--seed", 5, "--out", "here")
    assert done.code == 0, done.err
    rows = rows_of(small / "here")
    assert sorted({row["sparsity"] for row in rows}) == [0.2, 0.5]
    assert json.loads((small / "here" / "experiment.json").read_text())["config"]["seed"] == 5
    assert (small / "here" / "figure-sparsity.svg").exists()
    assert "Density of the graph" in done.out
    assert "claims" in done.out
    assert narrow(done)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (("theorm",), "did you mean 'theorem'"),
        (("nowhere.toml",), "nowhere.toml"),
        (("odd.toml",), "did you mean 'repeats'"),
        (("adni",), "registered users only"),
        pytest.param(("small.toml", "--scheduler", "tcp://127.0.0.1:1"), "tcp://127.0.0.1:1", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_reproduced_is_one_sentence(precisionnet, small, what, words):
    (small / "odd.toml").write_text(THEOREM.replace("repeats = 2", "repeat = 2", 1))
    done = precisionnet("reproduce", *what)
    assert done.code == 2, done.out
    assert words in done.sentence
    assert not list(small.glob("results-*"))


def test_status_and_page_of_an_interrupted_run(precisionnet, table, small):
    assert "No results folder here" in precisionnet("experiments", "status").out
    command = ("compare", table, "--target", "age", "--id", "who", *PLAIN)
    assert precisionnet(*command).code == 0
    out = small / "precisionnet-compare"
    assert "precisionnet-compare: compare, complete, 4 of 4 fits" in precisionnet("experiments", "status").out
    lines = (out / "rows.jsonl").read_text().splitlines(keepends=True)
    (out / "rows.jsonl").write_text("".join(lines[:3]))
    status = precisionnet("experiments", "status", out).out
    assert "interrupted, 3 of 4 fits" in " ".join(status.split())
    assert "Run the same command again" in status
    done = precisionnet("experiments", "page", out)
    assert done.code == 0, done.err
    assert "3 of 4 fits are here" in done.sentence
    done = precisionnet(*command)
    assert "3 of 4 fits are already here" in done.sentence
    assert [row["job"] for row in rows_of(out)] == [json.loads(line)["job"] for line in lines]


def test_a_page_is_made_again_from_rows_alone_in_whatever_order_they_finished(precisionnet, small):
    assert precisionnet("reproduce", "drawn.toml", "--jobs", 1).code == 0
    out = small / "results-drawn"
    made = [path for path in out.iterdir() if path.suffix in (".html", ".csv", ".svg", ".png")]
    before = {path.name: path.read_bytes() for path in made}
    for path in made:
        path.unlink()
    lines = (out / "rows.jsonl").read_text().splitlines(keepends=True)
    (out / "rows.jsonl").write_text("".join(reversed(lines)))
    assert precisionnet("experiments", "page", out).code == 0
    assert {path.name: path.read_bytes() for path in made if path.exists()} == before


def test_pages_of_what_is_no_results_folder(precisionnet, tmp_path):
    for command in ("page", "status"):
        done = precisionnet("experiments", command, tmp_path)
        assert done.code == 2
        assert "is not a results folder" in done.sentence


@pytest.mark.slow
def test_one_broken_folder_does_not_hide_the_others(precisionnet, small):
    assert precisionnet("reproduce", "small.toml", "--quick", "--jobs", 1).code == 0
    for name, text in (("a_foreign", "{"), ("broken", (small / "results-small-quick" / "experiment.json").read_text())):
        (small / name).mkdir()
        (small / name / "experiment.json").write_text(text)
    (small / "broken" / "rows.jsonl").write_text("edited by hand\n{}\n")
    done = precisionnet("experiments", "status")
    assert done.code == 0
    assert "results-small-quick" in done.out
    assert "Line 1 of 'broken/rows.jsonl' is not a JSON object" in done.sentence
    assert "a_foreign" not in done.out + done.err


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_a_line_now_and_then(monkeypatch):
    text, clock = io.StringIO(), Clock()
    monkeypatch.setattr(console, "err", Console(file=text, width=80))
    with fits(clock) as tell:
        tell(Event("started", 0, 100))
        for done in range(1, 101):
            clock.now += 1.0
            tell(Event("finished", done, 100, seconds_left=float(100 - done)))
    assert text.getvalue().splitlines() == [
        "30 of 100 fits, about 70 s left",
        "60 of 100 fits, about 40 s left",
        "90 of 100 fits, about 10 s left",
        "100 of 100 fits",
    ]


def test_on_a_terminal_the_time_left_counts_down(monkeypatch):
    text, clock = io.StringIO(), Clock()
    monkeypatch.setattr(console, "err", Console(file=text, width=80, force_terminal=True))
    with fits(clock) as tell:
        tell(Event("resumed", 2, 10))
        tell(Event("finished", 3, 10, seconds_left=600.0))
        tell._progress.refresh()
        clock.now = 300.0
        tell._progress.refresh()
        tell(Event("finished", 10, 10, seconds_left=0.0))
        tell._progress.refresh()
    shown = text.getvalue()
    assert "Going on from an earlier run: 2 of 10" in shown
    assert "3/10" in shown
    assert "left" not in shown.rpartition("10/10")[2]
    assert shown.index("about 10 min left") < shown.index("about 5 min left")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3, "a few seconds left"), (44, "about 40 s left"), (150, "about 2 min left"), (7200, "about 2.0 h left")],
)
def test_time_left_is_as_precise_as_a_guess(seconds, text):
    assert time_left(seconds) == text


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(precisionnet, table, tmp_path):
    out = tmp_path / "out"
    command = (
        "compare",
        table,
        "--target",
        "age",
        "--id",
        "who",
        "--methods",
        "ridge,svr",
        "--jobs",
        1,
        "--out",
        out,
    )
    running = subprocess.Popen(
        [sys.executable, "-m", "precisionnet", *map(str, command)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(1200):
        if (out / "rows.jsonl").exists() and (out / "rows.jsonl").read_text().count(
            "\n"
        ) >= 2:  # the last one may not be on the disk yet
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode != 0
    assert "run again to go on" in " ".join(told.split())
    assert "Traceback" not in told
    kept = rows_of(out)
    assert 1 <= len(kept) < 10
    assert not (out / "index.html").exists()
    done = precisionnet(*command)
    assert done.code == 0, done.err
    assert rows_of(out)[: len(kept)] == kept
    assert len(rows_of(out)) == 10
