"""
A table larger than memory
==========================

The graph of a table needs its means and covariances, and these can be added up batch by batch. So the file is read in
pieces, and the memory that is needed is that of one piece.
"""

# %%
# **A file of many rows.** Here 50,000; nothing below changes with fifty million.
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from precisionnet import GraphicalLasso
from precisionnet.datasets import iter_batches, make_gaussian_regression

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.parquet"
drawn = make_gaussian_regression(n_samples=50_000, n_features=25, graph="hub", random_state=0)
table = pa.Table.from_pandas(drawn.X, preserve_index=False)
pq.write_table(table, path, row_group_size=5_000)

# %%
# **Read and learn in batches.** ``partial_fit`` adds the rows of a batch to what it has and solves again, starting at
# the solution before. csv files are read in the same way.
graph = GraphicalLasso(l1_penalty=0.05, scale_free=True)
for number, batch in enumerate(iter_batches(path, batch_rows=5_000), start=1):
    graph.partial_fit(batch)
    if number in (1, 2, 5, 10):
        print(f"{5_000 * number:6} rows: {graph.n_edges_} edges, {graph.status_}")

# %%
# **The same as from all rows at once.**
whole = GraphicalLasso(l1_penalty=0.05, scale_free=True).fit(drawn.X)
print(f"largest difference: {abs(whole.precision_ - graph.precision_).max():.0e}")

# %%
# **Networks, too.** ``fit_table`` goes over the file twice, for moments and for windows of rows dealt at random, and
# learns a window per epoch. Few networks and epochs here, to be quick.
from precisionnet import PNNRegressor

with_target = Path(folder.name) / "with_target.parquet"
pq.write_table(table.append_column("y", pa.array(drawn.y)), with_target)
model = PNNRegressor(n_members=4, max_epochs=5, random_state=0)
model.fit_table(with_target, target="y", window_rows=8_000)
print(f"{model.n_rows_['training']} rows, mean absolute error out of fold {model.oob_mae_:.2f}")
folder.cleanup()

# %%
# Hubs, as they were drawn:
graph.plot.graph()
