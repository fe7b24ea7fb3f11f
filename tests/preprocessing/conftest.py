"""Tables measured at several sites, with known site effects and covariates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import sklearn

SIZES = {"north": 45, "east": 30, "west": 22, "south": 13}


class Study(NamedTuple):
    X: pd.DataFrame
    site: pd.Series
    people: pd.DataFrame
    biology: pd.DataFrame
    """What X would be had all been measured at one place."""
    y: pd.Series


def make_study(sizes: dict[str, int] = SIZES, n_features: int = 8, seed: int = 0) -> Study:
    rng = np.random.default_rng(seed)
    site = np.repeat(list(sizes), list(sizes.values()))
    n, codes = len(site), np.repeat(np.arange(len(sizes)), list(sizes.values()))
    # float32 numbers, as neuroCombat makes them; older people in some sites than in others
    age = (rng.uniform(8, 60, n) + 5 * codes).astype(np.float32).astype(float)
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "dx": rng.choice(["a", "b", "c"], n), "age": age})
    factor = rng.normal(size=n)
    noise = rng.normal(size=(n, n_features)) + factor[:, None]
    biology = (
        10 + noise + np.outer(age - 35, rng.uniform(0.02, 0.06, n_features)) + 0.5 * (people[["sex"]] == "m").to_numpy()
    )
    shift = rng.normal(0, 2, (len(sizes), n_features)) + rng.normal(0, 2, (len(sizes), 1))
    spread = rng.uniform(0.5, 2, (len(sizes), 1)) * rng.uniform(0.8, 1.25, (len(sizes), n_features))
    measured = biology + (spread[codes] - 1) * noise + shift[codes]
    names, order = [f"roi{i}" for i in range(n_features)], rng.permutation(n)
    index = [f"p{i}" for i in range(n)]

    def rows(values, columns):
        return pd.DataFrame(np.asarray(values)[order], columns=columns, index=index)

    return Study(
        rows(measured, names),
        pd.Series(site[order], index=index, name="site"),
        people.iloc[order].set_axis(index),
        rows(biology, names),
        pd.Series((factor + 0.3 * rng.normal(size=n))[order], index=index, name="score"),
    )


@pytest.fixture(scope="session")
def study() -> Study:
    return make_study()


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield
