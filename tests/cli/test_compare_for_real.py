"""``precisionnet compare`` with real methods: left alone, killed and run again, and on a cluster, the rows are the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from precisionnet.datasets import make_gaussian_regression

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow

TIMES = {"seconds", "fit_seconds", "tune_seconds", "predict_seconds", "finished"}
METHODS = "joint,ridge,hist_gb,median"


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    data = make_gaussian_regression(90, 6, sparsity=0.4, random_state=0)
    path = tmp_path_factory.mktemp("table") / "table.csv"
    data.X.assign(y=data.y).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def left_alone(table, tmp_path_factory) -> list[dict]:
    out = tmp_path_factory.mktemp("alone") / "out"
    done = compare(table, out)
    said = done.communicate()
    assert done.returncode == 0, said
    assert "joint predicts y with MAE" in said[0]
    for name in ("summary.csv", "index.html", "figure-repeats.svg", "figure-repeats.png", "splits.csv", "trials.jsonl"):
        assert (out / name).stat().st_size > 0
    return rows(out)


def compare(table: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "precisionnet", "compare", str(table), "--target", "y", "--methods", METHODS]
    command += ["--quick", "--repeats", "2", "--out", str(out), *more]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "500"}
    )


def lines(out: Path) -> list[str]:
    path = out / "rows.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def rows(out: Path) -> list[dict]:
    """In one order, without what a clock decides."""
    found = [json.loads(line) for line in lines(out)]
    kept = [{key: value for key, value in row.items() if key not in TIMES} for row in found]
    return sorted(kept, key=lambda row: (row["method"], row["repeat"]))


def test_rows_hold_what_was_promised(left_alone):
    assert len(left_alone) == 8
    for row in left_alone:
        assert {"method", "repeat", "mae", "config_hash", "data_hash", "seed", "versions", "parameters"} <= set(row)
    assert len({row["config_hash"] for row in left_alone}) == 1
    assert {row["seed"] for row in left_alone if row["method"] == "joint"} == {
        row["seed"] for row in left_alone if row["method"] == "ridge"
    }
    assert all(row["n_train"] == 54 and row["n_test"] == 18 for row in left_alone)


def test_killed_and_run_again(table, left_alone, tmp_path):
    out = tmp_path / "out"
    process = compare(table, out)
    deadline = time.monotonic() + 600
    while not lines(out) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = len(lines(out))
    assert 1 <= before < 8
    again = compare(table, out)
    _, told = again.communicate()
    assert again.returncode == 0, told
    assert "of 8 fits are already here" in told
    assert rows(out) == left_alone


def test_on_a_cluster(table, left_alone, tmp_path):
    out = tmp_path / "out"
    with distributed.LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=":0") as cluster:
        done = compare(table, out, "--scheduler", cluster.scheduler_address)
        said = done.communicate()
    assert done.returncode == 0, said
    assert rows(out) == left_alone


def test_another_config_or_table_in_the_folder_is_refused(table, tmp_path):
    out = tmp_path / "out"
    cheap = ("--methods", "ridge,median", "--jobs", "1")
    first = compare(table, out, *cheap)
    assert (first.communicate(), first.returncode)[1] == 0
    kept = lines(out)
    other = compare(table, out, *cheap, "--repeats", "1")
    _, told = other.communicate()
    assert other.returncode == 2
    assert "repeats" in told
    assert "Traceback" not in told
    text = table.read_text().splitlines()
    changed = tmp_path / "other.csv"
    changed.write_text("\n".join(text[:-1]) + "\n")
    other = compare(changed, out, *cheap)
    _, told = other.communicate()
    assert other.returncode == 2
    assert "data" in told
    assert lines(out) == kept
