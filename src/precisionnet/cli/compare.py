"""``precisionnet compare`` and ``experiments``: run the fits, write the page, print the answer.

Modules with networks are imported where they are used, so that a mistake is told before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precisionnet.cli import console
from precisionnet.cli.messages import in_options
from precisionnet.errors import InputError, OutputError, PrecisionNetError
from precisionnet.types import TaskName

if TYPE_CHECKING:
    from precisionnet.datasets import Dataset
    from precisionnet.datasets.checks import Finding
    from precisionnet.report.experiment_page import ExperimentPage
    from precisionnet.runner.jobs import Experiment
    from precisionnet.runner.progress import Status

QUICK_REPEATS, REPEATS = 2, 5
VERDICTS = {
    "holds": ("holds", "green"),
    "does not hold": ("does not", "bold red"),
    "level": ("level", "dim"),
    "undecidable": ("undecidable", "dim"),
    "open": ("open", "dim"),
}
"""The word for each outcome of a claim, and the word's style."""


def cohort_rows(cohort: str, folder: Path | None, hold_out: str | None = None) -> tuple[Dataset, dict[str, str]]:
    """Return the rows of a known cohort, fetched where they are not in the folder, and what its page says of them.

    ``hold_out`` names the groups that are left out: its site, or what else is known of a row.
    """
    from precisionnet.paper.cohorts import cohort_about, load_cohort

    with console.working(f"loading {cohort}"):
        data = load_cohort(cohort, folder)
    known = {} if data.covariates is None else {str(name): data.covariates[name] for name in data.covariates}
    known |= {} if data.site is None else {"site": data.site}
    if hold_out is not None and hold_out not in known:
        raise InputError(f"--hold-out {hold_out}: {cohort} has no such groups; known are {', '.join(known)}.")
    return data if hold_out is None else replace(data, site=known[hold_out].rename("site")), cohort_about(cohort)


def run_compare(
    data: Dataset,
    findings: Sequence[Finding],
    task: TaskName,
    methods: list[str] | None,
    repeats: int | None,
    seed: int,
    search: str,
    trials: int | None,
    out: Path,
    source: str,
    jobs: int | None,
    scheduler: str | None,
    *,
    quick: bool,
    guessed: bool,
    defaults: bool = False,
    rivals: bool = False,
    hold_out: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Compare methods on a table; ``about`` is what the page says differently."""
    from precisionnet.evaluation.comparison import compare_experiment
    from precisionnet.evaluation.methods import QUICK_GRID, RIVALS, quick_methods, usual_methods
    from precisionnet.evaluation.tuning import Tuning

    if methods is None and quick:
        methods = list(quick_methods(task))
    if rivals:
        methods = [*(methods if methods is not None else usual_methods(task)), *RIVALS]
    said = [
        *data.notes,
        *(finding.sentence for finding in findings if finding.level != "note" or finding.check == "encoding"),
    ]
    told = [in_options(sentence) for sentence in said]
    experiment = compare_experiment(
        replace(data, notes=(*told, *_filled(data))),
        task,
        methods,
        repeats if repeats is not None else QUICK_REPEATS if quick else REPEATS,
        seed,
        tuning=Tuning("none" if defaults else search, **({} if trials is None else {"trials": trials})),  # type: ignore[arg-type]
        networks=QUICK_GRID if quick and not defaults else None,
        hold_out=hold_out,
        source=source,
        about=about,
    )
    how = f"{task} (guessed; --task sets it)" if guessed else task
    size = f"{len(data)} rows, {data.X.shape[1]} columns, {len(experiment.jobs)} fits"
    console.note(f"{experiment.about['target']}: {how}, {size}")
    for sentence in experiment.about["skipped"]:
        console.note(sentence)
    run_write_print(experiment, out, jobs, scheduler, [*told, *experiment.about["skipped"]])


def _filled(data: Dataset) -> list[str]:
    """Say what happens to missing values, where there are some."""
    from precisionnet.preprocessing.column_kinds import columns_of_labels

    if not data.X.isna().any(axis=None):
        return []
    if columns_of_labels(data.X):
        return ["Medians of the training rows, or no level, stand for missing values, and a column says where."]
    return ["Missing values are filled with their column's median of the training rows; boosting takes them as gaps."]


def run_write_print(
    experiment: Experiment, out: Path, jobs: int | None, scheduler: str | None, told: Sequence[str] = ()
) -> ExperimentPage:
    """Run the fits that are not stored yet, write the page and the figures, print the answer; return the page."""
    from precisionnet.cli.progress import fits
    from precisionnet.report.experiment_page import write_results
    from precisionnet.runner.run import run_experiment

    try:
        with fits() as on_event:
            run_experiment(experiment, out, jobs=jobs, scheduler=scheduler, on_event=on_event)
    except KeyboardInterrupt as stopped:
        console.note(str(stopped) or f"Stopped: finished fits are kept in {out}; run the same command again to go on.")
        raise
    try:
        with console.working("drawing"):
            page = write_results(out)
    except OutputError as error:
        raise OutputError(f"All fits are kept, but not their page. {error} The same command then draws it.") from error
    _print_page(page, out, told)
    return page


def _print_page(page: ExperimentPage, out: Path, told: Sequence[str]) -> None:
    """Print the answer first, then the tables, then where everything is; what was ``told`` is not said again."""
    for sentence in page.warnings:
        if sentence not in told:
            console.note(sentence)
    for line in page.failed:
        console.warn(f"{line['method']} failed ({line['where']}): {line['why']}")
    console.say(page.verdict)
    for shown in page.tables:
        console.say("")
        if shown.title:
            console.say(shown.title)
        console.table(shown.columns, shown.rows)
    if page.claims:
        console.say("")
        console.say(page.about.get("claims_heading", "The paper's claims, under this protocol") + ":")
        console.listing(
            (*VERDICTS[claim["verdict"]], f"{claim['claim']} ({str(claim['numbers']).rstrip('.')})")
            for claim in page.claims
        )
    console.say("")
    console.say(f"Wrote {out / 'index.html'}, {out / 'summary.csv'}, {out / 'rows.jsonl'} and figures")


def run_status(folder: str | None) -> None:
    """Print how far one experiment is, or every one below the current folder."""
    from precisionnet.runner.progress import results_folders, status

    if folder is not None:
        _print_status(Path(folder), status(Path(folder)), by_method=True)
        return
    found = results_folders(Path())
    if not found:
        console.say("No results folder here: precisionnet compare or precisionnet reproduce makes one.")
    for place in found:
        try:
            _print_status(place, status(place), by_method=len(found) == 1)
        except PrecisionNetError as error:  # one folder that cannot be read does not hide the others
            console.warn(str(error))


def run_page(folders: list[str]) -> None:
    """Write the summary, the figures and the page of every folder again, and one page over several experiments."""
    from precisionnet.report.experiment_page import PAGE, write_results
    from precisionnet.report.overview import write_overview
    from precisionnet.runner.manifest import MANIFEST

    for folder in folders:
        if not (Path(folder) / MANIFEST).is_file():
            write_overview(Path(folder))
            console.say(f"Wrote {Path(folder) / PAGE}")
            continue
        for sentence in write_results(Path(folder)).warnings:
            console.note(sentence)
        console.say(f"Wrote {Path(folder) / PAGE}")


def _print_status(folder: Path, found: Status, *, by_method: bool) -> None:
    last = f", last one {found.last_finished[:16].replace('T', ' ')} UTC" if found.last_finished else ""
    failed = f", {found.failed} of them failed" if found.failed else ""
    console.say(f"{folder}: {found.name}, {found.state}, {found.done} of {found.total} fits{failed}{last}")
    if by_method:
        cells = [[line.method, str(line.done), str(line.failed), str(line.total)] for line in found.methods]
        console.table(["method", "done", "failed", "of"], cells)
    if found.state == "interrupted":
        console.say("Run the same command again to go on.")
