"""``precisionnet reproduce`` of an experiment on stability, and the option of a sparse covariance."""

from __future__ import annotations

import pandas as pd

CONFIG = """
name = "small"
kind = "stability"
methods = ["glasso", "vnn"]
repeats = 1
[data]
n_features = 6
sparsity = 0.4
n_fit = 60
n_samples = [50, 200, 800]
[tuning]
search = "none"
[networks]
readout = ["mean"]
max_epochs = [1]
weight_steps = [3]
"""


def test_reproduce_stability_from_a_file(precisionnet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(CONFIG)
    done = precisionnet("reproduce", "small.toml", "--jobs", 1)
    assert done.code == 0, done.err
    assert "What is expected of an estimate, and what came out:" in done.out
    assert "The paper's claims" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    out = tmp_path / "results-small"
    assert (out / "figure-stability.svg").exists()
    slopes = pd.read_csv(out / "summary.csv").set_index("method")["slope"]
    for method in ("glasso", "vnn"):
        assert f"{slopes[method]:+.2f}" in done.out


def test_a_threshold_without_a_covariance_network_is_refused(precisionnet, table, tmp_path):
    done = precisionnet(
        "fit", table, "--target", "age", "--id", "who", "--covariance-threshold", "hard", "--out", tmp_path / "o"
    )
    assert done.code != 0
    assert "--covariance-threshold hard has no effect with --method joint" in done.sentence
