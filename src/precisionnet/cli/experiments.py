"""``precisionnet experiments``: how far experiments are, and their pages made again; and what ``reproduce`` and
``compare`` share: run, write, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from precisionnet.errors import OutputError, PrecisionNetError

if TYPE_CHECKING:
    from precisionnet.experiments.runner.jobs import Experiment
    from precisionnet.experiments.runner.status import Status
    from precisionnet.report.experiment_page import Outcome

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Say how far experiments are; make their pages and figures again from the stored rows.",
)

Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Fits at the same time; as many as there are cores if not given.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A dask.distributed scheduler to run the fits on, such as tcp://host:8786."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of splits and fits.")]
Defaults = Annotated[
    bool, typer.Option("--defaults", help="Tune nothing: every method as it is when no parameter is set.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A run of minutes: fewer repeats and fewer parameters to try.")]


@app.command("status")
def show_status(
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="A results folder; every one below this folder if not given.")
    ] = None,
) -> None:
    """Say how many fits of an experiment are finished, and whether it is running."""
    from precisionnet.cli import console
    from precisionnet.cli.precheck import check_results

    if folder is not None:
        check_results(folder)
    from precisionnet.experiments.runner.status import results_folders, status

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


@app.command()
def page(
    folders: Annotated[list[str], typer.Argument(metavar="DIR...", help="Results folders.")],
) -> None:
    """Make summary.csv, the figures and index.html again from the stored rows alone."""
    from precisionnet.cli import console
    from precisionnet.cli.precheck import check_results

    for folder in folders:
        check_results(folder)
    from precisionnet.report.experiment_page import PAGE, write_results

    for folder in folders:
        outcome = write_results(Path(folder))
        for sentence in outcome.warnings:
            console.note(sentence)
        console.say(f"Wrote {Path(folder) / PAGE}")


def run_write_print(
    experiment: Experiment, out: Path, jobs: int | None, scheduler: str | None, told: Sequence[str] = ()
) -> None:
    """Fit what is not there yet, write the page and the figures, print the answer; not again what was ``told``."""
    from precisionnet.cli import console
    from precisionnet.cli.progress import fits
    from precisionnet.experiments.runner.running import run_experiment
    from precisionnet.report.experiment_page import write_results

    try:
        with fits() as on_event:
            run_experiment(experiment, out, jobs=jobs, scheduler=scheduler, on_event=on_event)
    except KeyboardInterrupt as stopped:
        console.note(str(stopped) or f"Stopped: finished fits are kept in {out}; run the same command again to go on.")
        raise
    try:
        with console.working("drawing"):
            outcome = write_results(out)
    except OutputError as error:
        raise OutputError(f"All fits are kept, but not their page. {error} The same command then draws it.") from error
    print_outcome(outcome, out, told)


def print_outcome(outcome: Outcome, out: Path, told: Sequence[str] = ()) -> None:
    """The answer first, then the tables, then where everything is."""
    from precisionnet.cli import console

    for sentence in outcome.warnings:
        if sentence not in told:
            console.note(sentence)
    for line in outcome.failed:
        console.warn(f"{line['method']} failed ({line['where']}): {line['why']}")
    console.say(outcome.verdict)
    for shown in outcome.tables:
        console.say("")
        if shown.title:
            console.say(shown.title)
        console.table(shown.columns, shown.rows)
    if outcome.claims:
        console.say("")
        console.say("The paper's claims, under this protocol:")
        styles = {True: ("holds", "green"), False: ("does not", "bold red"), None: ("open", "dim")}
        console.listing(
            (*styles[claim["holds"]], f"{claim['claim']} ({str(claim['numbers']).rstrip('.')})")
            for claim in outcome.claims
        )
    console.say("")
    console.say(f"Wrote {out / 'index.html'}, {out / 'summary.csv'}, {out / 'rows.jsonl'} and figures")


def _print_status(folder: Path, found: Status, *, by_method: bool) -> None:
    from precisionnet.cli import console

    last = f", last one {found.last_finished[:16].replace('T', ' ')} UTC" if found.last_finished else ""
    failed = f", {found.failed} of them failed" if found.failed else ""
    console.say(f"{folder}: {found.name}, {found.state}, {found.done} of {found.total} fits{failed}{last}")
    if by_method:
        columns, cells = ["method", "done", "failed", "of"], list[list[str]]()
        for line in found.methods:
            cells.append([line.method, str(line.done), str(line.failed), str(line.total)])
        console.table(columns, cells)
    if found.state == "interrupted":
        console.say("Run the same command again to go on.")
