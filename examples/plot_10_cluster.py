"""
On a cluster
============

A comparison is hundreds of fits that do not need each other. On one machine they share its cores; with the address of
a dask scheduler they run wherever its workers are. Here the "cluster" is two workers on this machine.
"""

# %%
# **Workers.** On a real cluster start ``dask scheduler`` once and ``dask worker ADDRESS`` on each machine (or use
# ``dask_jobqueue`` for Slurm), and give that address.
from distributed import LocalCluster
from sklearn.datasets import load_diabetes

from precisionnet.evaluation import Tuning, compare
from precisionnet.plots import repeats, styled

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
    rows = compare(
        X,
        y,
        methods=["joint", "ridge", "median"],
        repeats=3,
        tuning=Tuning(search="none"),  # every method as it comes
        networks={"n_members": [4], "max_epochs": [30]},
        scheduler=cluster.scheduler_address,
    )

# %%
# **One row per fit**, with its seed, the hash of the data and the versions: a run can be taken apart later. With
# ``folder=`` the rows are kept on disk and an interrupted run goes on where it was.
rows[["method", "repeat", "mae", "r2", "seconds"]].round(2)

# %%
# From a shell the same is ``precisionnet compare table.csv --target y --scheduler tcp://host:8786``; every command that
# takes long has that option. In Python, members, permutations and bootstraps of a single fit go wherever
# ``joblib.parallel_config`` sends them.
with styled():
    scores = rows.pivot_table(index="repeat", columns="method", values="mae")
    picture = repeats(scores, {"joint": "Joint", "ridge": "Ridge", "median": "Median"}, "mean absolute error")
picture
