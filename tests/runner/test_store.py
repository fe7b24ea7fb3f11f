"""A results folder loses nothing that was finished, whatever happens to the process or the disk."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import time

import numpy as np
import pandas as pd
import pytest

from precisionnet.errors import InputError, OutputError
from precisionnet.runner.jobs import Job
from precisionnet.runner.lines import digest, plain
from precisionnet.runner.progress import results_folders, status
from precisionnet.runner.store import Store, read_folder
from tests.runner.cheap import cheap_experiment


def result(job: str, size: int = 3):
    """A row and its trials."""
    method, repeat = job.split("/")[:2]
    row = {"job": job, "method": method, "repeat": int(repeat), "mae": 0.1, "finished": "2026-01-01T00:00:00+00:00"}
    return row, [{"job": job, "validation": k / 3} for k in range(size)]


@pytest.fixture
def experiment():
    return cheap_experiment()


@pytest.fixture
def folder(tmp_path, experiment):
    """Two of six fits are finished."""
    with Store(tmp_path / "results", experiment) as store:
        store.add(*result("ridge/0"))
        store.add(*result("joint/0"))
    return tmp_path / "results"


def names(folder) -> list[str]:
    """The files of the folder but for its lock."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def in_a_fork(action) -> int:
    """Run in a process of its own; how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_what_is_added_is_read_back(folder, experiment):
    stored = read_folder(folder)
    assert [row["job"] for row in stored.rows] == ["ridge/0", "joint/0"]
    assert [trial["job"] for trial in stored.trials] == ["ridge/0"] * 3 + ["joint/0"] * 3
    assert {"name", "config", "config_hash", "data_hash", "about", "created", "versions", "total"} <= set(
        stored.manifest
    )
    assert (stored.manifest["config"], stored.manifest["total"]) == (experiment.config, 6)
    splits = pd.read_csv(folder / "splits.csv", index_col="id")
    assert splits.loc["ü", "1"] == "test"
    assert names(folder) == ["experiment.json", "rows.jsonl", "splits.csv", "trials.jsonl"]


def test_values_become_json_and_stay_equal():
    row = {
        "a": np.float32(0.1),
        "b": np.int64(3),
        "c": np.nan,
        "d": (1, np.inf),
        "e": np.array([[1.5]]),
        "f": np.bool_(True),
        5: "ü\n",
    }
    assert plain(row) == {
        "a": float(np.float32(0.1)),
        "b": 3,
        "c": None,
        "d": [1, None],
        "e": [[1.5]],
        "f": True,
        "5": "ü\n",
    }
    assert json.loads(json.dumps(plain(row))) == plain(row)
    with pytest.raises(TypeError, match="cannot write set"):
        plain({"a": {1}})
    assert (
        digest({"a": 1, "b": [2.0]})
        == digest({"b": (np.float64(2.0),), "a": np.int8(1)})
        != digest({"a": 1, "b": [2.5]})
    )


def test_a_line_torn_anywhere_is_cut_off_and_its_fit_done_again(folder, experiment):
    rows, trials = (folder / "rows.jsonl").read_bytes(), (folder / "trials.jsonl").read_bytes()
    first_row = rows.index(b"\n") + 1
    for at in range(first_row, len(rows), 5):  # a kill in the middle of the second row
        (folder / "rows.jsonl").write_bytes(rows[:at])
        (folder / "trials.jsonl").write_bytes(trials)
        assert [row["job"] for row in read_folder(folder).rows] == ["ridge/0"]
        assert {trial["job"] for trial in read_folder(folder).trials} == {"ridge/0"}
        with Store(folder, experiment) as store:
            assert list(store.finished) == ["ridge/0"]
            store.add(*result("joint/0"))
        assert (folder / "rows.jsonl").read_bytes() == rows
        assert (folder / "trials.jsonl").read_bytes() == trials


def test_a_kill_between_trials_and_row_leaves_no_trial_twice(folder, experiment):
    trials = (folder / "trials.jsonl").read_bytes()
    _, half = result("median/0")
    for at in range(0, 100, 7):
        (folder / "trials.jsonl").write_bytes(trials + b"".join(json.dumps(t).encode() + b"\n" for t in half)[:at])
        assert len(read_folder(folder).trials) == 6
        with Store(folder, experiment):
            pass
        assert (folder / "trials.jsonl").read_bytes() == trials


def test_blocks_that_never_reached_the_disk_count_as_torn(folder, experiment):
    with (folder / "rows.jsonl").open("ab") as file:
        file.write(b"\0" * 50 + b'"}\n')
    with Store(folder, experiment) as store:
        assert list(store.finished) == ["ridge/0", "joint/0"]
    assert (folder / "rows.jsonl").read_bytes().count(b"\n") == 2


def test_a_damaged_line_is_named(folder, experiment):
    rows = (folder / "rows.jsonl").read_text()
    (folder / "rows.jsonl").write_text("{oops\n" + rows)
    for attempt in (lambda: Store(folder, experiment), lambda: read_folder(folder)):
        with pytest.raises(InputError, match=r"Line 1 of '.*rows.jsonl' is not a JSON object.*delete that line"):
            attempt()
    assert (folder / "rows.jsonl").read_text() == "{oops\n" + rows


DEEP = "[" * 100_000
GOOD = {"job": "median/0", "method": "median", "repeat": 0, "mae": 1.0}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (DEEP, "is not a JSON object"),
        ('{"a": ' + DEEP, "is not a JSON object"),
        ('{"mae": ' + "9" * 5000 + "}", "is not a JSON object"),
        ('{"job": "ridge/0", "method": "ridge", "repeat": 0, "mae": 1.0}', "repeats line 1: both are of ridge/0"),
        ("{}", "is of None, which is no fit of this experiment"),
        ('{"job": ["ridge/0"]}', "no fit of this experiment"),
        (json.dumps(GOOD | {"job": "svr/0"}), "is of 'svr/0', which is no fit of this experiment"),
        (json.dumps(GOOD | {"method": "joint"}), "does not match the name of its fit, median/0"),
        (json.dumps(GOOD | {"repeat": "0"}), "does not match the name"),
        (json.dumps(GOOD | {"repeat": False}), "does not match the name"),
        (json.dumps(GOOD | {"repeat": 1}), "does not match the name"),
        (json.dumps(GOOD | {"mae": None}), "has no number 'mae'"),
        (json.dumps(GOOD | {"mae": "3.0"}), "has no number 'mae'"),
        (json.dumps(GOOD | {"mae": True}), "has no number 'mae'"),
        (json.dumps(GOOD | {"mae": float("nan")}), "has no number 'mae'"),
        (json.dumps(GOOD | {"mae": 10**400}), "has no number 'mae'"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "mae"}), "has no number 'mae'"),
        (json.dumps(GOOD | {"error": {"a": 1}}), "an error that is not text"),
    ],
)
def test_a_line_that_is_no_row_of_this_experiment_is_named(folder, experiment, line, words):
    rows = (folder / "rows.jsonl").read_text().splitlines()
    content = "\n".join([rows[0], line, rows[1]]) + "\n"
    (folder / "rows.jsonl").write_text(content)
    for attempt in (lambda: Store(folder, experiment), lambda: read_folder(folder), lambda: status(folder)):
        with pytest.raises(InputError, match=rf"Line 2 of '.*rows.jsonl' .*{words}.*delete that line"):
            attempt()
    assert (folder / "rows.jsonl").read_text() == content


def test_a_setting_that_differs_from_its_fit_is_named(tmp_path):
    experiment = cheap_experiment(reuse=True)
    row = {"job": "ridge/0/level=0.2", "method": "ridge", "repeat": 0, "level": 0.2, "mae": 1.0}
    with Store(tmp_path / "r", experiment) as store:
        store.add(row, [])
    assert read_folder(tmp_path / "r").rows == [row]
    (tmp_path / "r" / "rows.jsonl").write_text(json.dumps(row | {"level": 0.5}) + "\n")
    with pytest.raises(InputError, match="does not match the name of its fit"):
        read_folder(tmp_path / "r")


@pytest.mark.parametrize(
    "change", [{"jobs": None}, {"jobs": [1]}, {"total": 7}, {"config": 3}, {"about": []}, {"metrics": [1]}, {"name": 3}]
)
def test_an_edited_manifest_is_a_sentence(folder, change):
    path = folder / "experiment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match="was edited or damaged"):
        read_folder(folder)
    path.write_text('{"format": ' + DEEP)
    with pytest.raises(InputError, match="not written by precisionnet"):
        read_folder(folder)


def test_folders_made_before_metrics_were_listed_are_held_to_those_of_their_task(folder):
    path = folder / "experiment.json"
    manifest = json.loads(path.read_text())
    del manifest["metrics"]
    for about, metric in ({"task": "classification"}, "accuracy"), ({"kind": "theorem"}, "frobenius_error"):
        path.write_text(json.dumps(manifest | {"about": about}))
        with pytest.raises(InputError, match=f"Line 1 .* has no number '{metric}'"):
            read_folder(folder)
    path.write_text(json.dumps(manifest | {"about": {"task": "regression"}}))
    assert len(read_folder(folder).rows) == 2


def test_killed_at_any_moment_the_folder_goes_on(tmp_path):
    """A real process, killed by a real SIGKILL at moments spread over all it does, from making the folder on."""
    experiment = cheap_experiment(repeats=100)
    folder, n_before, lost = tmp_path / "results", 0, 0

    def work():
        with Store(folder, experiment) as store:
            for job in experiment.jobs:
                if job.name not in store.finished:
                    store.add(*result(job.name))

    moments = random.Random(0)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            work()
            os._exit(0)
        time.sleep(moments.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        lost += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        if (folder / "experiment.json").exists():
            n = len(read_folder(folder).rows)
            assert n >= n_before
            n_before = n
    assert lost > 5
    work()
    stored = read_folder(folder)
    assert [row["job"] for row in stored.rows] == [job.name for job in experiment.jobs]
    assert [trial["job"] for trial in stored.trials] == [job.name for job in experiment.jobs for _ in range(3)]
    assert names(folder) == ["experiment.json", "rows.jsonl", "splits.csv", "trials.jsonl"]


@pytest.mark.parametrize("room", range(0, 400, 41))
def test_a_file_that_cannot_grow_takes_half_a_line_back(tmp_path, room):
    """The system's own limit on the size of a file, at every place of the next row and its trials."""
    folder, experiment = tmp_path / "results", cheap_experiment(repeats=100)
    with Store(folder, experiment) as store:
        store.add(*result("ridge/0"))
    rows, trials = (folder / "rows.jsonl").read_bytes(), (folder / "trials.jsonl").read_bytes()
    n_trials = 1 + room % 3  # with few of them the file of rows is the one that meets its limit
    largest = max(len(rows), len(trials)) + 500

    def fill():
        with Store(folder, experiment) as store:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest + room, largest + room))
            with pytest.raises(OutputError, match=r"\(File too large\): \d+ of 300 fits are kept; make room") as caught:  # noqa: PT012
                for repeat in range(100):  # one of them meets the limit
                    store.add(*result(f"joint/{repeat}", n_trials))
            n = len(store.finished)
            assert f" {n} of 300" in str(caught.value)
            assert len(read_folder(folder).rows) == n > 1

    assert in_a_fork(fill) == 0
    for name, before in (("rows.jsonl", rows), ("trials.jsonl", trials)):
        content = (folder / name).read_bytes()
        assert content.startswith(before)
        assert content.endswith(b"}\n")
    n = len(read_folder(folder).rows)
    assert (folder / "trials.jsonl").read_bytes().count(b"\n") == 3 + n_trials * (n - 1)
    with Store(folder, experiment) as store:
        store.add(*result("median/0"))
    assert len(read_folder(folder).rows) == n + 1


def test_one_writer_at_a_time(folder, experiment):
    def refused():
        with pytest.raises(InputError, match="Another run is writing to '.*results': wait until it has ended"):
            Store(folder, experiment)

    with Store(folder, experiment) as store:
        refused()
        assert in_a_fork(refused) == 0
        assert status(folder).running
        store.add(*result("median/0"))  # which the others did not disturb
    assert not status(folder).running
    Store(folder, experiment).close()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"repeats": 1}, r"holds another experiment \(repeats 2, not 1\): name another folder"),
        ({"config": {"repeats": 5}}, r"other fits, those of precisionnet \d"),
        ({"repeats": 3, "recipe_version": 7}, r"\(recipe version unknown, not 7\)"),
        ({"config": {"seed": 1, "repeats": 5}}, r"\(seed 0, not 1\)"),
        ({"config": {"seed": 1, "repeats": 1}}, r"\(repeats 2, not 1; seed 0, not 1\)"),
        ({"config": {"networks": {"order": [1]}}}, r"\(networks.order \[1, 2\], not \[1\]\)"),
        ({"config": {"search": "grid"}}, r"\(search null, not grid\)"),
        ({"config": dict.fromkeys("abcd", 1)}, r"\(a null, not 1; b null, not 1; c null, not 1; and 1 more\)"),
        ({"name": "abide"}, r"\(cheap, not abide\)"),
        ({"data_hash": "e" * 64}, r"\(data dddddddddddd, not eeeeeeeeeeee\)"),
        ({"reuse": True}, r"other fits, those of precisionnet \d"),
        ({"recipe_version": 7}, r"\(recipe version unknown, not 7\)"),
        ({"splits": pd.DataFrame({"0": ["test"]}, index=["a"])}, r"splits.csv' has other splits"),
    ],
)
def test_another_experiment_is_refused(folder, changes, sentence):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=sentence):
        Store(folder, cheap_experiment(**changes))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not status(folder).running


def test_a_parameter_that_came_later_is_no_other_experiment(tmp_path):
    """Which numbers it changes the recipe's version tells; a value that differs, or a parameter that is gone, does."""
    older = {"fixed": {"ridge": 1e-4}}
    Store(tmp_path / "older", cheap_experiment(config=older, recipe_version=4)).close()

    def opened(fixed, version=4):
        Store(tmp_path / "older", cheap_experiment(config={"fixed": fixed}, recipe_version=version)).close()

    for fixed, version, why in (
        ({"ridge": 1e-3, "kernel_rows": 3000}, 4, r"\(fixed.ridge 0.0001, not 0.001\)"),
        ({"kernel_rows": 3000}, 4, r"\(fixed.ridge 0.0001, not null\)"),
        ({"ridge": 1e-4, "kernel_rows": 3000}, 5, r"\(recipe version 4, not 5\)"),
    ):
        with pytest.raises(InputError, match=why):
            opened(fixed, version)
    opened({"ridge": 1e-4, "kernel_rows": 3000})
    assert read_folder(tmp_path / "older").manifest["config"]["fixed"]["kernel_rows"] == 3000


def test_more_repeats_go_on_with_what_is_there(folder):
    before = read_folder(folder)
    longer = cheap_experiment(repeats=4)
    with Store(folder, longer) as store:
        assert list(store.finished) == [row["job"] for row in before.rows]
        store.add(*result("median/3"))
    after = read_folder(folder)
    assert after.rows[:-1] == before.rows
    assert after.manifest["created"] == before.manifest["created"]
    assert (after.manifest["config"]["repeats"], after.manifest["total"]) == (4, 12)
    written = pd.read_csv(folder / "splits.csv", index_col=0, dtype=str)
    pd.testing.assert_frame_equal(written, longer.splits.astype(str), check_names=False)


def test_ids_of_splits_are_no_formulas_for_a_spreadsheet(tmp_path):
    ids = pd.Index(["=HYPERLINK(1)", "-3", "plain", "@a"], name="=id")
    splits = pd.DataFrame({"0": ["train"] * 4}, index=ids)
    for _ in range(2):  # the second run finds its own
        with Store(tmp_path, cheap_experiment(splits=splits)):
            pass
        written = (tmp_path / "splits.csv").read_text().splitlines()
        assert written == ["'=id,0", "'=HYPERLINK(1),train", "-3,train", "plain,train", "'@a,train"]


def test_more_repeats_of_other_splits_are_refused(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    splits = pd.DataFrame({str(repeat): ["train", "test", "train"] for repeat in range(4)}, index=["a", "b", "ü"])
    with pytest.raises(InputError, match=r"splits.csv' has other splits"):
        Store(folder, cheap_experiment(repeats=4, splits=splits))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_run_that_ended_between_splits_and_manifest_goes_on(folder, experiment):
    """The splits of four repeats, the manifest still of two: both runs, the longer and the shorter, may go on."""
    manifest = (folder / "experiment.json").read_bytes()
    Store(folder, cheap_experiment(repeats=4)).close()
    for repeats in (2, 4):
        (folder / "experiment.json").write_bytes(manifest)
        with Store(folder, cheap_experiment(repeats=repeats)) as store:
            assert len(store.finished) == 2
        assert len(pd.read_csv(folder / "splits.csv", index_col=0).columns) == repeats


def test_the_words_about_an_experiment_may_change(folder):
    created = read_folder(folder).manifest["created"]
    with Store(folder, cheap_experiment(about={"kind": "comparison", "expected": "3.6"})):
        pass
    stored = read_folder(folder)
    assert stored.manifest["about"]["expected"] == "3.6"
    assert (stored.manifest["created"], len(stored.rows)) == (created, 2)


def test_other_peoples_folders_are_left_alone(tmp_path, experiment):
    theirs = tmp_path / "theirs"
    for name, content in {"thesis.tex": "x", "rows.jsonl": "{}\n", "experiment.json": "{}"}.items():
        theirs.mkdir()
        (theirs / name).write_text(content)
        with pytest.raises((InputError, OutputError), match="not an experiment's results|not written by precisionnet"):
            Store(theirs, experiment)
        assert [(path.name, path.read_text()) for path in theirs.iterdir() if path.stat().st_size] == [(name, content)]
        for path in theirs.iterdir():
            path.unlink()
        theirs.rmdir()
    theirs.write_text("a file")
    for place, sentence in {
        theirs: "it is a file",
        theirs / "x": "Not a directory",
        "/proc/x": "No such file|denied",
    }.items():
        with pytest.raises(OutputError, match=f"Cannot write to .*({sentence})"):
            Store(place, experiment)
    with pytest.raises(InputError, match="not a results folder"):
        read_folder(tmp_path)


def test_files_beside_the_results_stay(folder, experiment):
    (folder / "index.html").write_text("a page")
    (folder / ".partial-1234-experiment.json").write_text("left by a kill")
    Store(folder, experiment).close()
    assert names(folder) == ["experiment.json", "index.html", "rows.jsonl", "splits.csv", "trials.jsonl"]


def test_scratch_folders_are_apart_and_go_with_their_row(folder, experiment):
    with Store(folder, experiment) as store:
        jobs = [Job("joint", 1, 0).name, Job("joint", 1, 0, {"x": "a/b"}).name, Job("joint", 1, 0, {"x": "../b"}).name]
        places = [store.scratch(name) for name in jobs]
        assert len(set(places)) == 3
        assert {place.parent for place in places} == {folder / "scratch"}
        for place in places:
            place.mkdir(parents=True)
        store.add(*result(jobs[0]))
        assert [place.exists() for place in places] == [False, True, True]


def test_status_is_read_from_the_folder_alone(folder, tmp_path):
    found = status(folder)
    assert (found.name, found.done, found.failed, found.total, found.state) == ("cheap", 2, 0, 6, "interrupted")
    assert [(m.method, m.done, m.total) for m in found.methods] == [("ridge", 1, 2), ("joint", 1, 2), ("median", 0, 2)]
    assert found.last_finished == "2026-01-01T00:00:00+00:00"
    with Store(folder, cheap_experiment()) as store:
        assert status(folder).state == "running"
        for job in cheap_experiment().jobs:
            if job.name not in store.finished:
                row, trials = result(job.name)
                store.add(row | {"error": "Bring more rows."}, trials)
    assert (status(folder).state, status(folder).failed) == ("complete", 4)
    for other in (".hidden", "theirs"):
        (tmp_path / other).mkdir()
        (tmp_path / other / "experiment.json").write_text("{}")
    assert results_folders(tmp_path) == [folder] == results_folders(folder)
