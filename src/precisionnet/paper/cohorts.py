"""Table 1 of the paper: age from cortical thickness, on ABIDE, on ADNI, and on the cohorts measured with ANTs.

The paper's own figures are here as data: mean absolute error of age in years and zero entries of the estimated
precision, mean and standard deviation over five repeats. The paper's PCA is ``pca_mlp`` here, its GL ``glasso``. Figure
2 is printed without numbers, and the paper has no table of the cohorts measured with ANTs alone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from precisionnet.datasets import Dataset, fetch_abide, fetch_ants_mindboggle, load_adni
from precisionnet.errors import InputError, some
from precisionnet.evaluation.comparison import TableSource, TuneAndTest, count_people, fit_jobs
from precisionnet.evaluation.metrics import headline
from precisionnet.evaluation.protocol import data_hash, make_folds, splits_frame
from precisionnet.paper.config import Config
from precisionnet.runner.jobs import Experiment
from precisionnet.versions import recipe_version

TITLES = {
    "abide": "ABIDE: age from cortical thickness",
    "ants": "IXI, NKI and OASIS: age from cortical thickness",
    "adni": "ADNI: age from cortical thickness",
}
DESCRIPTIONS = {
    "abide": "ABIDE I, 62 cortical regions measured with FreeSurfer 6.",
    "ants": "IXI, NKI-Rockland and OASIS-1, 62 cortical regions measured with ANTs (Mindboggle labels).",
    "adni": "ADNI2, 68 cortical regions measured with FreeSurfer, the first good scan of each person.",
}
CAVEATS = {
    "abide": "The paper measured the same 1035 people with ANTs; the public table used here is FreeSurfer's.",
    "ants": "The paper has no figures for these cohorts; regions and measurement are those of its ABIDE table.",
}
SOURCES = {"abide": "fetch_abide()", "ants": 'fetch_ants_mindboggle(cohorts="INO")', "adni": "load_adni()"}

TABLE_1: dict[str, dict[str, dict[str, str]]] = {
    "adni": {
        "pca_mlp": {"mae": "10.3 ± 0.7"},
        "vnn": {"mae": "6.06 ± 0.20"},
        "sample": {"mae": "5.78 ± 0.10", "n_zeros": "0 ± 0"},
        "glasso": {"mae": "5.81 ± 0.06", "n_zeros": "4546 ± 0"},
        "joint": {"mae": "5.31 ± 0.18", "n_zeros": "1225 ± 1126"},
    },
    "abide": {
        "pca_mlp": {"mae": "4.41 ± 0.34"},
        "vnn": {"mae": "5.81 ± 0.11"},
        "sample": {"mae": "5.94 ± 0.02", "n_zeros": "0 ± 0"},
        "glasso": {"mae": "5.80 ± 0.11", "n_zeros": "2232 ± 0"},
        "joint": {"mae": "3.64 ± 0.65", "n_zeros": "2771 ± 976"},
    },
}

SIZES = {"adni": "1142 people, 68 regions", "abide": "1035 people, 62 regions"}


def cohort_experiment(config: Config, data_folder: Path | None) -> Experiment:
    """Build the comparison of every method of the config on the same splits of the cohort."""
    cohort = config.data["cohort"]
    data = load_cohort(cohort, data_folder)
    folds = make_folds(data, config.repeats, config.seed, config.fractions, task="regression")
    work = TuneAndTest(TableSource(data, folds), "regression", config.networks, config.tuning)
    caveat = [CAVEATS[cohort]] if cohort in CAVEATS else []
    return Experiment(
        name=config.name,
        config={**config.hashed(), **work.resolved(config.methods)},
        data_hash=data_hash(data),
        jobs=fit_jobs(config.methods, folds),
        work=work,
        splits=splits_frame(data, folds),
        metrics=(headline("regression"),),
        recipe_version=recipe_version(config.networks),
        about={
            "kind": "comparison",
            **cohort_about(cohort),
            "task": "regression",
            "target": "age",
            "n_rows": len(data),
            "n_features": data.X.shape[1],
            "n_people": count_people(data),
            "notes": [*caveat, *data.notes],
            "expected": dict(config.expected),
            "published": published(cohort),
        },
    )


def published(cohort: str) -> dict[str, Any] | None:
    """Return the paper's part of a page, None where the paper has no such cohort.

    Parameters
    ----------
    cohort : str
        Name of the cohort.

    Returns
    -------
    dict or None
        A caption, the metric, and the paper's figures by method.

    Examples
    --------
    >>> from precisionnet.paper import published
    >>> published("abide")["rows"]["joint"]["mae"]
    '3.64 ± 0.65'
    """
    if cohort not in TABLE_1:
        return None
    return {
        "caption": f"Table 1, {cohort.upper()} ({SIZES[cohort]}): MAE of age in years and zeros of theta.",
        "metric": "mae",
        "rows": TABLE_1[cohort],
    }


def cohort_about(cohort: str) -> dict[str, str]:
    """Return what a page says of the cohort."""
    return {
        "title": TITLES[cohort],
        "unit": "years",
        "source": SOURCES[cohort],
        "description": DESCRIPTIONS[cohort],
    }


def load_cohort(cohort: str, data_folder: Path | None) -> Dataset:
    """Load features, age and people of a cohort; rows with a missing region are left out, as a network needs all.

    Parameters
    ----------
    cohort : {"abide", "ants", "adni"}
        Name of the cohort.
    data_folder : Path or None
        Folder with its tables. Without one, abide and ants are fetched.

    Returns
    -------
    Dataset
        The cohort.

    Examples
    --------
    >>> load_cohort("abide", None)  # doctest: +SKIP
    Dataset(1035 rows, 62 columns, 1035 people, 20 sites, target 'age')
    """
    if cohort == "abide":
        data = fetch_abide(data_folder)
    elif cohort == "ants":
        data = fetch_ants_mindboggle(data_folder, cohorts="INO")
        data = replace(data, notes=())  # that sex is no feature is no news here
    else:
        table, people = adni_files(data_folder)
        data = load_adni(table, people, target="age")
    complete = data.without_missing()
    if len(complete) < len(data):
        lost = f"{len(data) - len(complete)} of {len(data)} rows miss a region or the age and were left out."
        complete = replace(complete, notes=(*data.notes, lost))
    return complete


def adni_files(folder: Path | None) -> tuple[Path, Path]:
    """Find the thickness table of ADNI2 and the table of the people by their names."""
    if folder is None:
        raise InputError(
            "ADNI is given to registered users only: name the folder of its tables, UCSFFSX51*.csv and ADNIMERGE.csv "
            "from ida.loni.usc.edu."
        )
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}: name the folder of ADNI's tables.")
    tables = [path for path in sorted(folder.iterdir()) if path.suffix.lower() == ".csv"]

    def named(*starts: str) -> list[Path]:
        """Those whose name starts with the first start that any of them has."""
        for start in starts:
            found = [path for path in tables if path.name.upper().startswith(start)]
            if found:
                return found
        return []

    # ADNI2 was measured with FreeSurfer 5.1; other tables of that name hold the other phases.
    thickness, people = named("UCSFFSX51", "UCSFFSX"), named("ADNIMERGE", "PTDEMOG")
    for found, wanted in ((thickness, "UCSFFSX51*.csv"), (people, "ADNIMERGE*.csv or PTDEMOG*.csv")):
        if not found:
            raise InputError(f"Folder {str(folder)!r} has no {wanted}: download it from ida.loni.usc.edu.")
        if len(found) > 1:
            names = some([path.name for path in found])
            raise InputError(f"Folder {str(folder)!r} has several tables {wanted} ({names}): leave one of them there.")
    return thickness[0], people[0]
