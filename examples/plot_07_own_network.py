"""
Your own network
================

The graph and the network are learned together, and the network may be yours: any ``torch`` module that is called with
the rows and a matrix. The rest (training, out-of-bag errors, intervals, saving) stays as it is.
"""

# %%
# **A network in ten lines.** ``x`` has shape (rows, columns, 1), ``shift`` is the matrix that is being learned. This
# one looks at each column and at what its neighbours in the graph say, and adds a gate.
import torch
from sklearn.datasets import load_diabetes

from precisionnet import PNNRegressor


class GatedNeighbours(torch.nn.Module):
    """What a column holds, and what its neighbours hold, let through by a gate."""

    def __init__(self, n_nodes, n_outputs, width=16):
        super().__init__()
        self.look = torch.nn.Linear(2, width)
        self.gate = torch.nn.Linear(2, width)
        self.read = torch.nn.Linear(n_nodes * width, n_outputs)

    def forward(self, x, shift):
        """Rows and matrix in, one number per row and output out."""
        seen = torch.cat([x, shift @ x], dim=-1)
        features = torch.tanh(self.look(seen)) * torch.sigmoid(self.gate(seen))
        return self.read(features.flatten(1))


# %%
# **Give the class as** ``network``. It is called with the number of columns and of outputs, once for each member.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
own = PNNRegressor(network=GatedNeighbours, n_members=4, max_epochs=60, random_state=0).fit(X, y)
usual = PNNRegressor(n_members=4, max_epochs=60, random_state=0).fit(X, y)
print(f"error on left-out rows: own {own.oob_mae_:.1f}, usual {usual.oob_mae_:.1f}")

# %%
# **It learns like any other.** The dotted line is the epoch that was kept.
own.plot.training()

# %%
# **And it explains like any other.** A saved model is loaded with ``load(folder, network=GatedNeighbours)``: files
# hold numbers, never code.
own.plot.nodes()
