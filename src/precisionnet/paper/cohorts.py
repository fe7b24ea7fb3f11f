"""Table 1 of the paper: age from cortical thickness, on ABIDE, on ADNI, and on the cohorts measured with ANTs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from precisionnet.datasets import Dataset, fetch_abide, fetch_ants_mindboggle, load_adni
from precisionnet.errors import InputError, some
from precisionnet.experiments.config import Config
from precisionnet.experiments.paper.published import published
from precisionnet.experiments.protocol import data_hash, make_folds, splits_frame
from precisionnet.experiments.runner.jobs import Experiment, Job
from precisionnet.experiments.sources import TableSource
from precisionnet.experiments.tune_and_test import TuneAndTest

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


def cohort_experiment(config: Config, data_folder: Path | None) -> Experiment:
    """Every method of the config, tuned and tested on the same splits of the cohort."""
    cohort = config.data["cohort"]
    data = load_cohort(cohort, data_folder)
    folds = make_folds(data, config.repeats, config.seed, config.fractions, task="regression")
    work = TuneAndTest(TableSource(data, folds), "regression", config.networks, config.tuning)
    caveat = [CAVEATS[cohort]] if cohort in CAVEATS else []
    return Experiment(
        name=config.name,
        config={**config.hashed(), **work.resolved(config.methods)},
        data_hash=data_hash(data),
        jobs=tuple(Job(method, fold.repeat, fold.seed) for method in config.methods for fold in folds),
        work=work,
        splits=splits_frame(data, folds),
        about={
            "kind": "comparison",
            **cohort_about(cohort),
            "task": "regression",
            "target": "age",
            "n_rows": len(data),
            "n_features": data.X.shape[1],
            "n_people": len(data) if data.groups is None else int(data.groups.nunique()),
            "notes": [*caveat, *data.notes],
            "expected": dict(config.expected),
            "published": published(cohort),
        },
    )


def cohort_about(cohort: str) -> dict[str, str]:
    """What a page says of the cohort."""
    return {
        "title": TITLES[cohort],
        "unit": "years",
        "source": SOURCES[cohort],
        "description": DESCRIPTIONS[cohort],
    }


def load_cohort(cohort: str, data_folder: Path | None) -> Dataset:
    """Features, age and people; rows with a missing region are left out, as a network needs them all."""
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
    """The thickness table of ADNI2 and the table of the people, found by their names."""
    if folder is None:
        raise InputError(
            "ADNI is given to registered users only: pass --data DIR, a folder with UCSFFSX51*.csv and ADNIMERGE.csv "
            "from ida.loni.usc.edu."
        )
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(folder)!r}: pass --data DIR with ADNI's tables.")
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
