"""Tables: read from files, or drawn."""

from precisionnet.datasets.columns import check_target, guess_task, numeric_features, split_columns
from precisionnet.datasets.dataset import Dataset, Split
from precisionnet.datasets.synthetic import GaussianRegression, make_gaussian_regression, make_sparse_precision
from precisionnet.datasets.tables import read_table, read_tables

__all__ = [
    "Dataset",
    "GaussianRegression",
    "Split",
    "check_target",
    "guess_task",
    "make_gaussian_regression",
    "make_sparse_precision",
    "numeric_features",
    "read_table",
    "read_tables",
    "split_columns",
]
