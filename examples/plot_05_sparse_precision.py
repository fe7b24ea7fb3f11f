"""
Only the sparse precision matrix
================================

No target, no network: just the graph of direct dependencies, by the graphical lasso. Every answer comes with a proof
of how far it can be from the optimum, and the penalty is chosen for you.
"""

# %%
# **Rows from a known graph**: 40 columns, 400 rows.
import matplotlib.pyplot as plt
import numpy as np

from precisionnet import GraphicalLasso, GraphicalLassoCV
from precisionnet.datasets import make_gaussian_regression
from precisionnet.precision import graphical_lasso_path, penalty_grid, sample_covariance

drawn = make_gaussian_regression(n_samples=400, n_features=40, graph="small_world", random_state=0)
truth = drawn.theta_true != 0

# %%
# **One penalty.** ``gap_`` is a proved bound on the distance from the optimum; ``status_`` says whether it was
# reached.
fixed = GraphicalLasso(l1_penalty=0.2, scale_free=True).fit(drawn.X)
print(f"{fixed.status_}: {fixed.n_edges_} edges, relative gap {fixed.gap_:.0e}")

# %%
# **The penalty chosen.** Cross-validation picks a graph that predicts held-out rows; eBIC one that is simple; StARS
# one that repeats in other rows. They answer different questions.
for selection in ("cv", "ebic", "stars"):
    chosen = GraphicalLassoCV(selection=selection, scale_free=True, random_state=0).fit(drawn.X)
    edges = np.triu(chosen.precision_ != 0, 1)
    print(f"{selection:5} {edges.sum():3} edges, {(edges & truth).sum()} of {np.triu(truth, 1).sum()} true ones found")

# %%
# **The whole path.** From none to many edges, each solution starting at the one before.
emp_cov = sample_covariance((drawn.X / drawn.X.std()).to_numpy())
penalties = penalty_grid(emp_cov, 30)
path = graphical_lasso_path(emp_cov, penalties)
found = [np.triu(step.precision != 0, 1) for step in path]

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.semilogx(penalties, [(edges & truth).sum() for edges in found], label="true edges")
axes.semilogx(penalties, [(edges & ~truth).sum() for edges in found], label="false edges")
axes.set(xlabel="l1 penalty", ylabel="edges in the solution", title="The path of solutions")
axes.legend()

# %%
# **The graph that StARS chose.**
# sphinx_gallery_thumbnail_number = 2
chosen.plot.graph()
