"""Drawn people: columns that move with age, patients whose brains are ahead, sites and sexes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@dataclass(frozen=True)
class People:
    X: pd.DataFrame
    age: pd.Series
    dx: pd.Series
    site: pd.Series
    sex: pd.Series

    @property
    def controls(self) -> np.ndarray:
        return np.flatnonzero(self.dx == "control")


def people(n: int = 240, shift: float = 4.0, seed: int = 0) -> People:
    rng = np.random.default_rng(seed)
    index = pd.Index([f"s{i}" for i in range(n)], name="who")
    patient, age = np.arange(n) % 3 == 0, rng.uniform(20, 80, n)
    site, sex = rng.integers(3, size=n), rng.integers(2, size=n)
    brain = age + shift * patient
    X = 0.3 * brain[:, None] * rng.uniform(0.5, 1.5, 8) + 6 * rng.standard_normal((n, 8))
    X += 2.0 * rng.standard_normal((3, 8))[site] + sex[:, None] * rng.standard_normal(8)
    return People(
        pd.DataFrame(X, index=index, columns=[f"region_{i}" for i in range(8)]),
        pd.Series(age, index=index, name="age"),
        pd.Series(np.where(patient, "patient", "control"), index=index, name="dx"),
        pd.Series(np.array(["Bonn", "Oslo", "Rome"])[site], index=index, name="site"),
        pd.Series(np.array(["F", "M"])[sex], index=index, name="sex"),
    )


@pytest.fixture
def drawn() -> People:
    return people()


@pytest.fixture
def ridge():
    return make_pipeline(StandardScaler(), Ridge(10.0))
