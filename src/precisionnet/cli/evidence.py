"""``explain``, ``graphs`` and ``gap``: the commands that say what is beyond chance, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from precisionnet.cli.options import (
    CompleteRows,
    Drop,
    Duplicates,
    Format,
    IdColumn,
    Jobs,
    Measures,
    ModelFolder,
    Open,
    Permutations,
    Person,
    Regions,
    Scheduler,
    Site,
    Tables,
    check_gap_columns,
    check_group_columns,
    check_model,
    check_out,
    check_parameters,
    check_permutations,
    check_workers,
    load_options,
    show_if_asked,
)
from precisionnet.inputs import refuse_missing_tables


def explain(
    model: ModelFolder,
    tables: Annotated[
        list[str], typer.Argument(metavar="TABLE", help="The table or tables that the model was fitted on.")
    ],
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for the results; an interrupted run goes on in it.")
    ] = "precisionnet-explain",
    open_it: Open = False,
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="The target's column; the model knows it if not given.")
    ] = None,
    id_column: IdColumn = None,
    person: Person = None,
    duplicates: Duplicates = "auto",
    permutations: Permutations = None,
    quick: Annotated[bool, typer.Option("--quick", help="30 drawn targets instead of 100: coarser p-values.")] = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of the fits.")] = 0,
) -> None:
    """Say which columns and edges a model's predictions rest on, and how sure that is."""
    check_out(out)
    check_permutations(permutations)
    check_workers(jobs, scheduler)
    refuse_missing_tables(tables)
    check_model(model)
    from precisionnet.cli.explain import run_explain
    from precisionnet.workers import on_scheduler

    with on_scheduler(scheduler):
        run_explain(
            model,
            tables,
            Path(out),
            target=target,
            id_column=id_column,
            person=person,
            duplicates=duplicates,
            permutations=permutations,
            jobs=jobs,
            seed=seed,
            quick=quick,
        )
    show_if_asked(open_it, out, "explain.html")


def graphs(
    tables: Tables,
    by: Annotated[str | None, typer.Option(metavar="COL", help="Column of groups to compare; not a feature.")] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Column to take out first, such as age or site; may be repeated."),
    ] = None,
    id_column: IdColumn = None,
    person: Person = None,
    paired_by: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column that says whose row it is, where all are in every group."),
    ] = None,
    site: Site = None,
    drop: Drop = None,
    format: Format = "auto",
    regions: Regions = "all",
    measures: Measures = None,
    duplicates: Duplicates = "auto",
    complete_rows: CompleteRows = False,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the results.")] = "precisionnet-graphs",
    open_it: Open = False,
    permutations: Permutations = None,
    bootstraps: Annotated[
        int, typer.Option(metavar="N", min=0, help="Draws for intervals of strength and other measures of columns.")
    ] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="199 relabellings instead of 1000: coarser p-values.")] = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of the relabellings.")] = 0,
) -> None:
    """Estimate the graph of a table with evidence for every edge; compare it between groups of rows."""
    check_out(out)
    check_permutations(permutations)
    check_workers(jobs, scheduler)
    covariates = covariate or []
    check_group_columns(by, covariates, paired_by, person, id_column)
    refuse_missing_tables(tables)
    loading = load_options(None, id_column, person, site, drop, format, regions, duplicates, measures)
    from precisionnet.cli.graphs import run_graphs
    from precisionnet.workers import on_scheduler

    with on_scheduler(scheduler):
        run_graphs(
            tables,
            loading,
            Path(out),
            by=by,
            covariates=covariates,
            paired_by=paired_by,
            permutations=permutations,
            bootstraps=bootstraps,
            jobs=jobs,
            seed=seed,
            quick=quick,
            complete_rows=complete_rows,
        )
    show_if_asked(open_it, out, "graphs.html")


def gap(
    tables: Tables,
    target: Annotated[str, typer.Option(metavar="COL", help="Column to predict: age in years.")],
    by: Annotated[str | None, typer.Option(metavar="COL", help="Column of groups to compare; not a feature.")] = None,
    controls: Annotated[
        str | None, typer.Option(metavar="GROUP", help="The group to learn from; everybody if not given.")
    ] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Covariate that only the comparison is adjusted for; may be repeated."),
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Covariate that the network sees, as a node; may be repeated."),
    ] = None,
    regress_out: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Covariate to take out of the features first; may be repeated."),
    ] = None,
    site: Site = None,
    combat: Annotated[
        bool, typer.Option("--combat", help="Harmonise the features between sites, fitted on training rows.")
    ] = False,
    id_column: IdColumn = None,
    person: Person = None,
    drop: Drop = None,
    format: Format = "auto",
    regions: Regions = "all",
    measures: Measures = None,
    duplicates: Duplicates = "auto",
    complete_rows: CompleteRows = False,
    folds: Annotated[int, typer.Option(metavar="N", min=2, help="Outer folds; each is a whole fit.")] = 5,
    permutations: Permutations = None,
    quick: Annotated[bool, typer.Option("--quick", help="199 drawn tables instead of 1999: coarser p-values.")] = False,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder for the results.")] = "precisionnet-gap",
    scheduler: Scheduler = None,
    open_it: Open = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of folds and fits.")] = 0,
    **parameters: Any,
) -> None:
    """Predict everybody's age out of fold, take the age bias out of the gap, and compare groups."""
    check_parameters(parameters)
    check_out(out)
    check_permutations(permutations)
    roles = {"inputs": input or [], "regress_out": regress_out or [], "adjust_for": covariate or []}
    check_gap_columns(target, by, controls, site, roles)
    refuse_missing_tables(tables)
    loading = load_options(target, id_column, person, site, drop, format, regions, duplicates, measures)
    from precisionnet.cli.gap import run_gap
    from precisionnet.workers import on_scheduler

    with on_scheduler(scheduler):
        run_gap(
            tables,
            loading,
            Path(out),
            parameters,
            by=by,
            controls=controls,
            roles=roles,
            combat=combat,
            folds=folds,
            permutations=permutations,
            quick=quick,
            seed=seed,
            complete_rows=complete_rows,
        )
    show_if_asked(open_it, out, "gap.html")
