"""The benchmark beside PyTorch Geometric compares the same filter, and writes what the curves read."""

from __future__ import annotations

import pandas as pd
import pytest
from benchmarks.scale import curves

pytest.importorskip("torch_geometric")


def test_quick_rows_are_of_one_filter_and_make_curves(tmp_path):
    from benchmarks.scale import pyg

    pyg.main(["--quick", "--out", str(tmp_path / "pyg.csv")])
    rows = pd.read_csv(tmp_path / "pyg.csv")
    assert tuple(rows.columns) == pyg.FIELDS
    assert len(rows) == len(pyg.QUICK_SIZES) * (4 + 3)
    assert (rows["difference"] < 1e-4).all()  # outputs, and gradients of signals, coefficients and learnt weights
    assert (rows[["forward_seconds", "backward_seconds", "seconds"]] > 0).all(axis=None)
    found = curves.filters(rows)
    assert len({curve.panel for curve in found}) == 2
    assert all(curve.x == list(pyg.QUICK_SIZES) for curve in found)
    curves.draw(found, tmp_path / "curves.svg")
    assert "TAGConv, batch" in curves.table(found)
