"""``precisionnet``: the commands and their options."""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from precisionnet._version import __version__
from precisionnet.cli.datasets import app as datasets_app
from precisionnet.cli.evidence import explain, gap, graphs
from precisionnet.cli.experiments import compare, experiments_app, reproduce
from precisionnet.cli.messages import Commands
from precisionnet.cli.options import (
    READING,
    CompleteRows,
    Drop,
    Duplicates,
    Format,
    IdColumn,
    Measures,
    ModelFolder,
    Open,
    Person,
    Regions,
    Scheduler,
    Site,
    Tables,
    TaskOption,
    all_at_once,
    check_ending,
    check_folds,
    check_model,
    check_out,
    check_page,
    check_parameters,
    check_task,
    load_options,
    with_model_parameters,
)
from precisionnet.inputs import (
    is_huge,
    is_parquet_folder,
    refuse_for_stream,
    refuse_missing_table,
    refuse_missing_tables,
)
from precisionnet.interrupts import heed_ctrl_c_once
from precisionnet.outputs import refuse_inputs

app = Commands(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Precision Neural Networks: a sparse graph of your table's columns, learned together with a network on it.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"precisionnet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def fit(
    tables: Tables,
    target: Annotated[str, typer.Option(metavar="COL", help="Column to predict.")],
    id_column: IdColumn = None,
    person: Person = None,
    site: Site = None,
    task: TaskOption = "auto",
    drop: Drop = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Column that is an input beside the regions, such as sex; may be repeated."),
    ] = None,
    format: Format = "auto",
    regions: Regions = "all",
    measures: Measures = None,
    duplicates: Duplicates = "auto",
    complete_rows: CompleteRows = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Stop at what the check of the table warns of.", rich_help_panel=READING),
    ] = False,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the results.")] = "precisionnet-output",
    open_it: Open = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of the folds and the fit.")] = 0,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Test with N more fits, each without a fold, in place of what networks left out."
        ),
    ] = None,
    hold_out: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Test on whole sites, years or subjects of a column, by fits without them."),
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COL", help="Test in time: rows are predicted by fits on all before them.")
    ] = None,
    scheduler: Scheduler = None,
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Read the table piece by piece, as a folder of parquet files and a huge file."),
    ] = False,
    **parameters: Any,
) -> None:
    """Learn a network and its graph from a table; write the model, a tested prediction of every row and a report."""
    folder = is_parquet_folder(tables)
    all_at_once(
        *(partial(refuse_missing_table, table) for table in ([] if folder else tables)),
        partial(check_parameters, parameters),
        partial(check_task, task),
        partial(check_folds, folds, hold_out, time),
        partial(check_out, out),
    )
    if stream or folder or is_huge(tables):
        whole = {"--site": site, "--folds": folds, "--hold-out": hold_out, "--time": time, "--covariate": covariate}
        whole |= {"--measures": measures, "--complete-rows": complete_rows, "--strict": strict}
        whole |= {"--scheduler": scheduler}  # whose workers cannot read files of this machine
        whole |= {"--id": id_column is not None and id_column != person, "--regions": regions != "all"}
        whole |= {"--format": format not in ("auto", "table"), "--duplicates": duplicates not in ("auto", "keep")}
        refuse_for_stream(tables, whole)
        from precisionnet.cli.fit_stream import StreamRequest, run_fit_stream

        dropped = tuple(drop or ())
        run_fit_stream(StreamRequest(tables[0], target, task, person, dropped, Path(out), seed, parameters, open_it))
        return
    beside, inputs = (hold_out, time), covariate or []
    loading = load_options(target, id_column, person, site, drop, format, regions, duplicates, measures, beside, inputs)
    from precisionnet.cli.tables import rows_to_fit

    missing = parameters["missing"]
    loading |= {"categories": True, "id": id_column or "auto"}
    data, kind, findings = rows_to_fit(
        tables,
        loading,
        task,
        complete_rows=complete_rows,
        missing=missing,
        strict=strict,
        named=[("--hold-out", hold_out), ("--time", time), *(("--covariate", name) for name in inputs)],
    )
    from precisionnet.cli.fit import explain_command, folds_to_test, run_fit
    from precisionnet.workers import on_scheduler

    tested = folds_to_test(data, kind, seed, n_folds=folds, hold_out=hold_out, time=time)
    source = " + ".join(Path(table).name for table in tables)
    explain = explain_command(Path(out), tables, id_column, person)
    with on_scheduler(scheduler):
        run_fit(
            data,
            findings,
            kind,
            Path(out),
            seed,
            tested,
            parameters,
            source,
            guessed=task == "auto",
            explain=explain,
            open_it=open_it,
        )


app.command()(with_model_parameters(fit, missing="indicator"))


@app.command()
def predict(
    model: ModelFolder,
    tables: Tables,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="csv, tsv or parquet; standard output if not given."),
    ] = None,
    id_column: IdColumn = None,
    interval: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Add columns lower and upper that hold this share of targets, 0.95 say."),
    ] = None,
    recalibrate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE", help="Rows of the new place with a known target, to put a bias right; repeatable."
        ),
    ] = None,
    page: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page: how the rows differ from the training rows.")
    ] = None,
) -> None:
    """Predict the rows of a new table, and say whether they are like the training rows; columns are matched by name."""
    check_ending(output)
    check_page(page)
    folder = is_parquet_folder(tables)
    refuse_missing_tables([*([] if folder else tables), *(recalibrate or [])])
    for file in (output, page):
        if file is not None:
            refuse_inputs(file, [*tables, *(recalibrate or [])])
    check_model(model)
    from precisionnet.cli.predict import PredictRequest, run_predict

    asked = PredictRequest(model, tables, output, id_column, interval, tuple(recalibrate or ()), page)
    if folder or is_huge(tables):
        from precisionnet.cli.predict_stream import run_predict_stream

        run_predict_stream(asked)
        return
    run_predict(asked)


@app.command()
def show(
    model: ModelFolder,
    edges: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write every edge to a csv, tsv or parquet file.")
    ] = None,
) -> None:
    """Print what is in a model."""
    check_ending(edges)
    check_model(model)
    from precisionnet.cli.show import run_show

    run_show(model, edges)


app.command()(explain)
app.command()(graphs)
app.command()(with_model_parameters(gap))
app.add_typer(datasets_app, name="datasets")
app.command()(compare)
app.command()(reproduce)
app.add_typer(experiments_app, name="experiments")


@app.command()
def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the results.")] = "demo-output",
) -> None:
    """Fit a real table and the paper's synthetic recipe, and say where the reports are."""
    from precisionnet.cli.fit import run_demo

    run_demo(Path(out))


def main() -> None:
    """Run the command line; a signal that stops it leaves nothing half-written behind."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # end like Ctrl-C does: through the clean-up of what is half-written
            signal.signal(getattr(signal, name), lambda number, _: sys.exit(128 + number))
    heed_ctrl_c_once()
    app()


if __name__ == "__main__":
    main()
