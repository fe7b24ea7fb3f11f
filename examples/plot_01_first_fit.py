"""
A first fit
===========

Learn to predict one column from the others, see how good that is on rows the model has not seen, and look at the
graph that was learned with it.
"""

# %%
# Any table of numbers does. Here: 442 people with diabetes, ten measurements, and how far the disease went in a year.
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from precisionnet import PNNRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)

# %%
# The defaults are meant to be used as they are. ``random_state`` makes the fit repeatable.
model = PNNRegressor(random_state=0).fit(X_train, y_train)
print(f"R2 on new rows: {model.score(X_test, y_test):.2f}")
print(f"mean absolute error on rows that networks left out: {model.oob_mae_:.1f}")

# %%
# How far off are single predictions? ``predict_interval`` says it row by row.
print(model.predict_interval(X_test, coverage=0.9)[:3].round())

# %%
# **The graph.** Two columns are joined where they go together even when all other columns are known. Blue edges are
# positive partial correlations, red ones negative. Cholesterol (s1), its "bad" (s2) and "good" (s3) part and their
# ratio (s4) form a knot of their own: they are computed from each other.
model.plot.graph()

# %%
# **What the prediction rests on.** Importances are in the units of the target.
model.plot.nodes()

# %%
# **How well it predicts.** Every training row is predicted by networks that did not learn from it.
model.plot.prediction(y_train)
