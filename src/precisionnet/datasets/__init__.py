"""Tables: loaded from files, fetched from public sources, or drawn; and checked before anything is fitted."""

from precisionnet.datasets.batches import iter_batches
from precisionnet.datasets.dataset import Dataset, Split
from precisionnet.datasets.neuro.loaders import load_adni, load_ants, load_enigma, load_freesurfer, load_participants
from precisionnet.datasets.public.cohorts import fetch_abide, fetch_ants_mindboggle
from precisionnet.datasets.synthetic import (
    SyntheticDataset,
    make_gaussian_classification,
    make_gaussian_regression,
    make_sparse_precision,
)
from precisionnet.datasets.tables import load_table
from precisionnet.datasets.validation import check_target, guess_task, refuse_bad_numbers, refuse_unusable

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
