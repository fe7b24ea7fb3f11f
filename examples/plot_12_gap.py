"""
The brain-age gap
=================

"Your brain looks four years older than you are." That number has a bias: predictions lean towards the mean age, so
the young look old and the old look young. ``gap_study`` predicts everybody out of fold, takes the bias out, and says
whether groups differ.
"""

# %%
# **A made-up cohort** in which patients' brains are five years ahead.
import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV

from precisionnet.datasets.neuro.regions import DESIKAN
from precisionnet.gap import gap_study
from precisionnet.plots import gap_against_age, styled

rng = np.random.default_rng(0)
age = pd.Series(rng.uniform(20, 80, 400), name="age")
diagnosis = pd.Series(rng.choice(["control", "patient"], 400, p=[0.75, 0.25]), name="diagnosis")
sex = pd.DataFrame({"sex": rng.choice(["F", "M"], 400)})
brain_age = age + 5.0 * (diagnosis == "patient")
slopes = rng.uniform(-0.008, -0.001, len(DESIKAN))
X = pd.DataFrame(
    2.8 + brain_age.to_numpy()[:, None] * slopes + rng.normal(scale=0.25, size=(400, len(DESIKAN))),
    columns=[f"lh_{region}" for region in DESIKAN],
)

# %%
# **The study.** Age is learned from controls only. Any regressor does: ridge takes a second here, ``PNNRegressor`` is
# what is used if none is given, and then regions that drive a difference are named, too.
study = gap_study(
    X,
    age,
    labels=diagnosis,
    controls="control",
    adjust_for=sex,
    regressor=RidgeCV(np.logspace(-2, 4, 13)),
    n_permutations=999,
)
print(study.summary())

# %%
# **Before and after.** On the left the gap falls with age in everybody, patients or not. On the right it does not,
# and what is left between the groups is the shift that was planted.
with styled():
    picture = gap_against_age(study.gaps, "age")
picture

# %%
# **Is the correction any good?** The correlation of the gap with age in controls, whose rows were corrected without
# themselves:
study.correlations.round(3)
