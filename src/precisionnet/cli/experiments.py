"""``precisionnet compare``, ``reproduce`` and ``experiments``: many fits whose rows are stored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from precisionnet.cli.messages import Commands
from precisionnet.cli.options import (
    CompleteRows,
    Defaults,
    Drop,
    Duplicates,
    Format,
    IdColumn,
    Jobs,
    Measures,
    Open,
    Quick,
    Regions,
    Scheduler,
    Seed,
    Site,
    TaskOption,
    check_data,
    check_out,
    check_reading,
    check_repeats,
    check_results,
    check_search,
    check_target,
    check_task,
    check_workers,
    held_out_site,
    load_options,
    named_cohort,
    show_if_asked,
)
from precisionnet.inputs import refuse_missing_tables

if TYPE_CHECKING:
    from precisionnet.datasets import Dataset
    from precisionnet.datasets.checks import Finding
    from precisionnet.types import TaskName

experiments_app = Commands(help="Say how far experiments are; make their pages and figures again from the stored rows.")


def compare(
    tables: Annotated[
        list[str],
        typer.Argument(metavar="TABLE", help="csv, tsv, parquet or xlsx, several are joined; or abide, ants or adni."),
    ],
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="Column to predict; age for abide, ants and adni.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Methods to compare; all that can do it if not given.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(metavar="N", help="Random splits; 5 if not given, 2 with --quick.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            "--groups", "--person", metavar="COL", help="Column that says whose row it is; a person is never split."
        ),
    ] = None,
    id_column: IdColumn = None,
    site: Site = None,
    hold_out: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column of sites, or of other groups, that are also left out whole."),
    ] = None,
    task: TaskOption = "auto",
    drop: Drop = None,
    format: Format = "auto",
    regions: Regions = "all",
    measures: Measures = None,
    duplicates: Duplicates = "auto",
    complete_rows: CompleteRows = False,
    data: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where abide, ants or adni is; the first two are fetched if not given."),
    ] = None,
    quick: Quick = False,
    defaults: Defaults = False,
    rivals: Annotated[
        bool, typer.Option("--rivals", help="Also CatBoost, RealMLP, xRFM and TabICL, as far as they are installed.")
    ] = False,
    search: Annotated[
        str, typer.Option(metavar="[grid|optuna]", help="Try every combination of parameters, or a budget of trials.")
    ] = "grid",
    trials: Annotated[
        int | None, typer.Option(metavar="N", help="Trials of --search optuna, for each method; 20 if not given.")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    seed: Seed = None,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for the results; an interrupted run goes on in it.")
    ] = "precisionnet-compare",
    open_it: Open = False,
) -> None:
    """Should I use this here? Tune and test every method on the same splits of your table, and say so."""
    check_task(task)
    check_out(out)
    check_search(repeats, search, trials, defaults=defaults)
    check_workers(jobs, scheduler)
    cohort = named_cohort(tables)
    check_data(cohort, data)
    check_target(target, cohort, data)
    refuse_missing_tables(tables if cohort is None else ())
    rows: Dataset
    findings: list[Finding] = []
    about: dict[str, str] = {}
    kind: TaskName = "regression"
    if cohort is not None:
        from precisionnet.cli.compare import cohort_rows

        rows, about = cohort_rows(cohort, None if data is None else Path(data), hold_out)
    else:
        place = held_out_site(site, hold_out)
        loading = load_options(target, id_column, person, place, drop, format, regions, duplicates, measures)
        loading |= {"categories": True, "id": id_column or "auto"}
        from precisionnet.cli.tables import rows_to_fit

        rows, kind, findings = rows_to_fit(
            tables,
            loading,
            task,
            complete_rows=complete_rows,
            missing="median",
            strict=False,
            named=[("--hold-out", hold_out)],
        )
    from precisionnet.cli.compare import run_compare

    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    source = " + ".join(Path(table).name for table in tables)
    run_compare(
        rows,
        findings,
        kind,
        names,
        repeats,
        seed or 0,
        search,
        trials,
        Path(out),
        source,
        jobs,
        scheduler,
        quick=quick,
        guessed=task == "auto" and cohort is None,
        defaults=defaults,
        rivals=rivals,
        hold_out=hold_out,
        about=about,
    )
    show_if_asked(open_it, out, "index.html")


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="synthetic, abide, ants, adni, theorem, convergence or stability; all; or the path of a .toml file.",
        ),
    ],
    reading: Annotated[
        str | None,
        typer.Option(
            metavar="[paper|flattened|both]",
            help="How to read what the paper leaves open; both if not given, and a .toml file as it is written.",
        ),
    ] = None,
    quick: Quick = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Splits or draws of one experiment; more go on in its folder. As written if not given."
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder for the results; results-WHAT if not given.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where the tables are; needed for adni, else fetched. With all: ADNI's."),
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    seed: Seed = None,
) -> None:
    """Run an experiment of the paper and set its figures beside ours; interrupted, it goes on where it was."""
    if out is not None:
        check_out(out)
    check_workers(jobs, scheduler)
    check_data(what, data)
    check_reading(reading)
    check_repeats(repeats, what)
    from precisionnet.cli.reproduce import run_reproduce

    run_reproduce(what, reading, out, data, jobs, scheduler, seed, repeats, quick=quick)


@experiments_app.command("status")
def show_status(
    folder: Annotated[
        str | None, typer.Argument(metavar="[DIR]", help="A results folder; every one below this folder if not given.")
    ] = None,
) -> None:
    """Say how many fits of an experiment are finished, and whether it is running."""
    if folder is not None:
        check_results(folder)
    from precisionnet.cli.compare import run_status

    run_status(folder)


@experiments_app.command()
def page(
    folders: Annotated[list[str], typer.Argument(metavar="DIR...", help="Results folders, or folders of several.")],
) -> None:
    """Make summary.csv, the figures and index.html again from the stored rows alone."""
    for folder in folders:
        check_results(folder, below=True)
    from precisionnet.cli.compare import run_page

    run_page(folders)
