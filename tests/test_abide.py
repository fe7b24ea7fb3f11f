"""Age from cortical thickness, 62 regions, on the real table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from precisionnet import PNNRegressor

NOT_IN_DKT = ("bankssts", "frontalpole", "temporalpole")


def read_abide(folder):
    """1035 people, 62 regions, age; joined on the last seven digits of the subject id."""
    sides = []
    for side in ("lh", "rh"):
        frame = pd.read_csv(folder / "abide" / f"{side}.aparc_table_thickness.tsv", sep="\t", index_col=0)
        sides.append(frame.drop(columns=[c for c in frame if "Mean" in c or any(r in c for r in NOT_IN_DKT)]))
    X = pd.concat(sides, axis=1, join="inner")
    people = pd.read_csv(folder / "abide" / "Phenotypic_V1_0b_preprocessed1.csv").set_index("SUB_ID")
    return X, people.loc[X.index.str[-7:].astype(int), "AGE_AT_SCAN"].set_axis(X.index)


@pytest.mark.data
def test_joint_predicts_age_with_a_sparse_graph(data_folder):
    """60/20/20 with the defaults, three splits: mean MAE under 3.6 years, more than half of theta exactly zero."""
    X, y = read_abide(data_folder)
    assert X.shape == (1035, 62)
    errors = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        seen, test = order[: int(0.8 * len(X))], order[int(0.8 * len(X)) :]
        model = PNNRegressor(random_state=seed).fit(X.iloc[seen], y.iloc[seen])
        assert (model.precision_ == 0).mean() > 0.5
        errors.append(float(np.abs(model.predict(X.iloc[test]) - y.iloc[test]).mean()))
    assert np.mean(errors) < 3.6
