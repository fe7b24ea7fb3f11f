"""
Brain age, with a map of the brain
==================================

Predict age from cortical thickness, test the prediction on sites that the model has not seen, and draw what it rests
on where it belongs: on the brain. The cohort is made up, so that you can compare the map with the truth.
"""

# %%
# **A made-up cohort.** 400 people at four sites, 68 regions named as FreeSurfer names them. Thickness falls with age,
# most in the frontal lobe; regions depend on each other by a sparse graph that both hemispheres share; each site's
# scanner adds something of its own.
import numpy as np
import pandas as pd

from precisionnet import PNNRegressor
from precisionnet.datasets import Dataset, make_gaussian_regression
from precisionnet.datasets.neuro.regions import DESIKAN
from precisionnet.evaluation import group_folds, measure

rng = np.random.default_rng(0)
n_people = 400
age = pd.Series(rng.uniform(20, 80, n_people).round(1), name="age")
site = pd.Series(rng.choice(["Oslo", "Lyon", "Kyoto", "Perth"], n_people), name="site")
fall = {region: 0.010 if "frontal" in region else 0.002 for region in DESIKAN}  # millimetres a year
both_sides = make_gaussian_regression(n_people, len(DESIKAN), graph="small_world", random_state=0).X.to_numpy()
both_sides = 0.25 * both_sides / both_sides.std()
scanner = site.map({"Oslo": 0.0, "Lyon": 0.05, "Kyoto": -0.05, "Perth": 0.1}).to_numpy()
X = pd.DataFrame(
    {
        f"{side}_{region}": 2.8 - fall[region] * age + both_sides[:, i] + scanner + rng.normal(scale=0.1, size=n_people)
        for side in ("lh", "rh")
        for i, region in enumerate(DESIKAN)
    }
)

# %%
# **A fit.** Every person is also predicted by the networks that left that person out: ``oob_mae_`` is their error.
model = PNNRegressor(n_members=4, max_epochs=60, random_state=0).fit(X, age)
print(f"off by {model.oob_mae_:.1f} years; always guessing the median: {(age - age.median()).abs().mean():.1f}")
model.plot.prediction(age)

# %%
# **Whole sites held out.** A model that has seen a site may have learned its scanner. ``group_folds`` predicts every
# site by models that never saw it, and puts ridge and the plain guess beside the network.
data = Dataset(X, age, site=site)
folds = group_folds(data, site, "regression", n_folds=4)
held_out = measure(data, "regression", {"n_members": 4, "max_epochs": 30}, folds=folds)
held_out.scores[["mae", "r2"]].round(2)

# %%
# **On the brain.** What the prediction owes to each region: the frontal lobe stands out, as it was made to. Ten edges
# show which pairs of regions the data join most strongly: left and right of one region.
# sphinx_gallery_thumbnail_number = 2
model.plot.brain(edges=10, which="data")
