"""ComBat equals neuroCombat 0.2.12, as far as neuroCombat itself goes (it stops iterating at 1e-4)."""

from __future__ import annotations

import builtins

import numpy as np
import pandas as pd
import pytest

from precisionnet.preprocessing import ComBat
from tests.preprocessing.conftest import make_study

oracle = pytest.importorskip("neuroCombat.neuroCombat", reason="neuroCombat is the oracle of these tests")

KINDS = {
    "parametric": {},
    "non-parametric": {"parametric": False},
    "mean only": {"mean_only": True},
    "non-parametric mean only": {"parametric": False, "mean_only": True},
    "plain": {"empirical_bayes": False},
    "plain mean only": {"empirical_bayes": False, "mean_only": True},
}
COVARIATES = [(), ("age",), ("sex", "dx"), ("sex", "dx", "age")]


def theirs(study, covariates, empirical_bayes=True, parametric=True, mean_only=False):
    return oracle.neuroCombat(
        study.X.to_numpy().T.copy(),
        study.people.assign(site=study.site),
        "site",
        categorical_cols=[name for name in covariates if name != "age"],
        continuous_cols=[name for name in covariates if name == "age"],
        eb=empirical_bayes,
        parametric=parametric,
        mean_only=mean_only,
    )


def compare(study, covariates, parameters, tolerance):
    kept = study.people[list(covariates)] if covariates else None
    ours = ComBat(**parameters)
    data = ours.fit_transform(study.X, site=study.site, covariates=kept)
    out = theirs(study, covariates, **parameters)
    estimates = out["estimates"]
    np.testing.assert_allclose(ours.scale_**2, estimates["var.pooled"][:, 0], rtol=1e-10)
    np.testing.assert_allclose(ours.mean_, (estimates["stand.mean"] + estimates["mod.mean"]).mean(axis=1), rtol=1e-10)
    np.testing.assert_allclose(ours.site_location_, estimates["gamma.star"], atol=tolerance, rtol=0)
    np.testing.assert_allclose(ours.site_variance_, np.asarray(estimates["delta.star"], float), atol=tolerance, rtol=0)
    np.testing.assert_allclose(data, out["data"].T, atol=10 * tolerance, rtol=0)


@pytest.mark.parametrize("covariates", COVARIATES)
@pytest.mark.parametrize("kind", list(KINDS))
def test_parameters_and_rows_are_neurocombats(study, kind, covariates):
    compare(study, covariates, KINDS[kind], 1e-4 if kind == "parametric" else 1e-10)


@pytest.mark.parametrize("covariates", COVARIATES)
def test_where_neurocombat_iterates_to_the_end_the_numbers_are_the_same(study, covariates, monkeypatch):
    monkeypatch.setattr(oracle.it_sol, "__defaults__", (1e-13,))
    compare(study, covariates, {}, 1e-10)


def test_the_same_with_few_rows_a_site_and_more_columns_than_rows(monkeypatch):
    monkeypatch.setattr(oracle.it_sol, "__defaults__", (1e-13,))
    compare(make_study({"a": 2, "b": 3, "c": 9}, n_features=40, seed=3), ("age",), {}, 1e-9)


@pytest.mark.parametrize("kind", list(KINDS))
def test_new_rows_are_those_of_neurocombat_from_training(study, kind, monkeypatch):
    """Without covariates: with them it puts the mean training effect in place of each new row's own."""
    # It calls int() on arrays of one number, which NumPy 2.4 refuses.
    monkeypatch.setattr(oracle, "int", lambda value: builtins.int(np.asarray(value).item()), raising=False)
    monkeypatch.setattr(oracle.it_sol, "__defaults__", (1e-13,))
    old = study._replace(X=study.X[:80], site=study.site[:80], people=study.people[:80])
    estimates = theirs(old, (), **KINDS[kind])["estimates"]
    expected = oracle.neuroCombatFromTraining(study.X[80:].to_numpy().T, study.site[80:], estimates)["data"].T
    ours = ComBat(**KINDS[kind]).fit(old.X, site=old.site).transform(study.X[80:], site=study.site[80:])
    np.testing.assert_allclose(ours, expected, atol=1e-9, rtol=0)


@pytest.mark.data
def test_on_real_rows(data_folder, monkeypatch):
    from tests.preprocessing.test_real_sites import read_sites

    monkeypatch.setattr(oracle.it_sol, "__defaults__", (1e-13,))
    X, people = read_sites(data_folder)
    people["age"] = people["age"].astype(np.float32).astype(float)
    kept = ComBat().fit_transform(X, site=people["site"], covariates=people[["sex", "dx", "age"]])
    out = oracle.neuroCombat(X.to_numpy().T.copy(), pd.DataFrame(people), "site", ["sex", "dx"], ["age"])
    np.testing.assert_allclose(kept, out["data"].T, atol=1e-9, rtol=0)
