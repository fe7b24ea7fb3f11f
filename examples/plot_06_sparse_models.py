"""
How few edges are enough?
=========================

By default the networks predict with a matrix that has no zeros. ``predict_on="sparse"`` keeps them to the edges of
the sparse graph, and ``sparsity_curve`` finds the sparsest graph that costs no accuracy.
"""

# %%
from sklearn.datasets import load_diabetes

from precisionnet import PNNRegressor, sparsity_curve

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)

# %%
# **One sparse model.** Where the graph has no edge, no network has one.
sparse = PNNRegressor(predict_on="sparse", l1_scale=2.0, n_members=4, max_epochs=40, random_state=0).fit(X, y)
no_edge = sparse.precision_ == 0
print(f"{no_edge.sum() // 2} of {10 * 9 // 2} pairs have no edge")
print("and no network uses one:", all((shift[no_edge] == 0).all() for shift in sparse.shifts_))

# %%
# **The curve.** One call fits along the path of penalties. The error is that of rows which networks left out; the
# chosen graph is the sparsest within one standard error of the best.
few = PNNRegressor(n_members=4, max_epochs=40, random_state=0)
curve = sparsity_curve(few, X, y, l1_scales=[0.5, 1.0, 2.0, 4.0, 8.0])
curve.frame.round(2)

# %%
sparse.plot.sparsity(curve)

# %%
# **The chosen model** is fitted already.
curve.model.plot.graph()
