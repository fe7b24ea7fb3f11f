"""
How sure is a prediction?
=========================

A number without its uncertainty is half an answer. Three things belong beside a prediction: an interval for the row,
an honest error for the model, and a warning where new rows are unlike those it learned from.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from precisionnet import PNNRegressor
from precisionnet.evaluation import compare_rows

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=1)
model = PNNRegressor(random_state=0).fit(X_train, y_train)

# %%
# **An honest error.** Each network leaves some rows out. ``oob_mae_`` is the error on rows that were left out: it
# needs no further split, and should be close to that on new rows.
print(f"left-out rows {model.oob_mae_:.1f}, new rows {np.abs(model.predict(X_test) - y_test).mean():.1f}")

# %%
# **An interval for each row.** Wider where errors are larger. Of 90 % intervals about nine in ten should hold the
# truth.
low, high = model.predict_interval(X_test, coverage=0.9).T
held = (low <= y_test) & (y_test <= high)
print(f"{held.mean():.0%} of new rows are inside their 90 % interval")

order = np.argsort(model.predict(X_test))
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
axes.vlines(range(len(order)), low[order], high[order], color="#9bb7d4", label="90 % interval")
axes.scatter(range(len(order)), y_test.iloc[order], s=14, color=np.where(held.iloc[order], "#1f3f66", "#c2472f"))
axes.set(xlabel="new people, by prediction", ylabel="disease progression", title="Truth: blue inside, red outside")
axes.legend()

# %%
# **Rows unlike the others.** The model file keeps means and covariances of its training rows (no row of them), and
# can say that somebody measured blood pressure in other units.
strange = X_test.assign(bp=X_test["bp"] * 133.3 / 1000)
print(compare_rows(model, strange).sentence())

# %%
# **Whole predictions against the truth**, of new rows.
model.plot.prediction(y_test, X_test)
