"""The committed rows behind docs/evidence.md say what is claimed of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from benchmarks.evidence import page

FOLDER = Path(__file__).parents[1] / "results" / "evidence"


@pytest.fixture(scope="module")
def synthetic():
    return page.wide("task_synthetic.csv")


def test_intervals_cover():
    rows = pd.read_csv(FOLDER / "coverage.csv")
    claimed = rows[rows["claims_coverage"] & (rows["n_draws"] > 20)]
    assert len(claimed) > 250
    for what in ("edges", "zeros"):
        share = claimed[f"coverage_{what}"].dropna()
        assert 0.94 < share.mean() < 0.97
        assert share.between(0.93, 0.97).mean() > 0.97
    assert claimed["fdr"].mean() <= 0.1


def test_groups_without_a_difference_are_seldom_called_different():
    rows = pd.read_csv(FOLDER / "groups.csv")
    exchangeable = rows[(rows["kind"] == "same") & ~rows["design"].str.startswith("other tails")]
    for test in ("structure", "global_strength", "edges", "nodes"):
        rate = (exchangeable[test] * exchangeable["draws"]).groupby(exchangeable["design"]).sum()
        rate /= exchangeable.groupby("design")["draws"].sum()
        assert rate.between(0.025, 0.075).all(), rate


def test_edges_of_a_known_task_are_found(synthetic):
    products, mixed = (synthetic[synthetic["kind"] == kind] for kind in ("products", "mixed"))
    assert products["auroc_p"].astype(float).mean() >= 0.98
    assert mixed["auroc_p"].astype(float).mean() >= 0.9
    for cells in (products, mixed):
        assert cells["found"].astype(int).sum() >= 0.5 * cells["products"].astype(int).sum()


def test_null_targets_seldom_report_an_edge(synthetic):
    runs = synthetic["n_permutations"].astype(int).sum()
    assert runs >= 200
    assert synthetic["null_runs_that_report"].astype(int).sum() <= 0.08 * runs


def test_the_summary_is_made_of_the_rows():
    for part in (page.coverage, page.groups, page.synthetic, page.cohorts):
        assert part().startswith("| ")
