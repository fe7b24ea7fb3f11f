"""
Which edges may I believe?
==========================

Every estimated graph has edges that are there by chance. Two tests tell them from the others: ``edge_inference`` for
the graph of the data, ``task_evidence`` for what a prediction rests on.
"""

# %%
# **A table whose graph is known.** Twelve columns in a chain: each depends on its neighbours and on nothing else.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from precisionnet import PNNRegressor
from precisionnet.datasets import make_gaussian_regression
from precisionnet.evidence import edge_inference, task_evidence

drawn = make_gaussian_regression(n_samples=200, n_features=12, graph="chain", random_state=0)
X = drawn.X

# %%
# **The data's graph.** Each edge has a partial correlation, a 95 % interval, a p-value and a q-value (the false
# discovery rate: of the edges with q below 0.05 about one in twenty is false).
found = edge_inference(X)
print(f"method: {found.method}")
found.edges.sort_values("p_value").head(4).round(3)

# %%
# How many of them are true?
sure = found.edges[found.edges["q_value"] <= 0.05]
position = {name: i for i, name in enumerate(X.columns)}
true = [drawn.theta_true[position[a], position[b]] != 0 for a, b in zip(sure["source"], sure["target"], strict=True)]
print(f"{sum(true)} of {len(true)} edges beyond chance are true; the chain has {len(position) - 1}")

# %%
# **What a prediction rests on.** Here the target is a product of two columns plus a third: an edge and a node.
y = pd.Series(2 * X.iloc[:, 2] * X.iloc[:, 3] + X.iloc[:, 8], name="score")
y += 0.5 * np.random.default_rng(0).normal(size=len(y))
model = PNNRegressor(n_members=1, max_epochs=40, random_state=0).fit(X, y)

# %%
# ``task_evidence`` fits the same network to many drawn targets and asks what stands out. 30 draws take seconds and
# give coarse p-values; 100 is the default.
evidence = task_evidence(model, X, y, n_permutations=30, random_state=0)
print(evidence.summary())

# %%
# **One picture each.** Coloured is what is beyond chance; pale is what noise could have made as well.
figure, (left, right) = plt.subplots(1, 2, figsize=(14, 7), layout="constrained")
model.plot.graph("data", evidence=found, ax=left)
model.plot.nodes(evidence=evidence, ax=right)
