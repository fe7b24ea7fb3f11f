"""Tables: loaded from files, fetched from public sources, or drawn; and checked before anything is fitted."""

from precisionnet.datasets.columns import check_target, guess_task, refuse_bad_numbers, refuse_unusable
from precisionnet.datasets.dataset import Dataset, Split
from precisionnet.datasets.drawn.synthetic import (
    SyntheticDataset,
    make_gaussian_classification,
    make_gaussian_regression,
    make_sparse_precision,
)
from precisionnet.datasets.files.streaming import iter_batches
from precisionnet.datasets.loading.any_table import load_table
from precisionnet.datasets.loading.loaders import load_adni, load_ants, load_enigma, load_freesurfer, load_participants
from precisionnet.datasets.public.cohorts import fetch_abide, fetch_ants_mindboggle

__all__ = [
    "Dataset",
    "Split",
    "SyntheticDataset",
    "check_target",
    "fetch_abide",
    "fetch_ants_mindboggle",
    "guess_task",
    "iter_batches",
    "load_adni",
    "load_ants",
    "load_enigma",
    "load_freesurfer",
    "load_participants",
    "load_table",
    "make_gaussian_classification",
    "make_gaussian_regression",
    "make_sparse_precision",
    "refuse_bad_numbers",
    "refuse_unusable",
]
