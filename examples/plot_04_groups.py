"""
Do two groups have different graphs?
====================================

Two estimated graphs always differ. ``compare_graphs`` asks whether they differ by more than chance: in the whole,
edge by edge and node by node, with covariates such as age taken out first.
"""

# %%
# **Two groups with one planted difference.** In patients the columns ``insula`` and ``cuneus`` go together; in
# controls they do not. Everything else is the same, but patients are older, and all columns fall with age.
import numpy as np
import pandas as pd

from precisionnet.evidence import compare_graphs
from precisionnet.plots import evidence_graph, styled

names = ["insula", "cuneus", "precuneus", "lingual", "fusiform", "pericalcarine"]
rng = np.random.default_rng(0)
group = np.repeat(["control", "patient"], [150, 100])
age = rng.normal(np.where(group == "patient", 60, 50), 8)
values = rng.normal(size=(250, 6))
values[:, 2] += 0.6 * values[:, 1]
values[:, 4] += 0.6 * values[:, 3]
values[group == "patient", 0] += 0.9 * values[group == "patient", 1]
X = pd.DataFrame(values - 0.05 * age[:, None], columns=names)

# %%
# **The test.** People are given to the groups at random, many times; a difference counts if chance rarely makes one
# as large. ``covariates`` takes age out first: without that, two groups of different age differ in everything.
found = compare_graphs(X, group, covariates=pd.DataFrame({"age": age}), n_permutations=499, random_state=0)
print(found.summary())

# %%
# Edge by edge, with intervals. A difference is the first group's partial correlation minus the second's.
found.edges.sort_values("p_value").head(3)[["source", "target", "difference", "ci_low", "ci_high", "q_value"]].round(3)

# %%
# **The picture.** Coloured edges differ beyond chance; pale ones do not.
edges = found.edges.assign(sure=found.edges["q_value"] <= 0.05)
with styled():
    picture = evidence_graph(edges, names, value="difference", signs=("stronger in controls", "stronger in patients"))
picture
