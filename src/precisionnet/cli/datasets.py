"""``precisionnet datasets``: check a table before a fit; list, describe and fetch public ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from precisionnet.cli.messages import Commands, in_words_of
from precisionnet.cli.options import (
    CompleteRows,
    Drop,
    Duplicates,
    Format,
    IdColumn,
    Measures,
    Person,
    Regions,
    Site,
    Tables,
    TaskOption,
    check_task,
    load_options,
)
from precisionnet.errors import refuse_all
from precisionnet.inputs import refuse_missing_tables

if TYPE_CHECKING:
    from precisionnet.datasets.checks import Finding
    from precisionnet.datasets.public.registry import RemoteDataset

app = Commands(help="Check a table before a fit; list, describe and fetch public data sets.")

DatasetName = Annotated[str, typer.Argument(metavar="NAME", help="One of those that `datasets list` names.")]
DataFolder = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Where data sets are kept; $PRECISIONNET_DATA or the platform's cache if not given.",
    ),
]
STYLES = {"note": "dim", "warning": "bold yellow", "error": "bold red"}
"""Levels of findings, in the order in which they are printed."""
SYNTHETIC = {
    "make_gaussian_regression": "Gaussian rows from a sparse precision, a linear target with noise; the true graph "
    "comes with them.",
    "make_gaussian_classification": "The same with classes.",
}


@app.command()
def check(
    tables: Tables,
    target: Annotated[str | None, typer.Option(metavar="COL", help="Column to predict.")] = None,
    id_column: IdColumn = None,
    person: Person = None,
    site: Site = None,
    drop: Drop = None,
    format: Format = "auto",
    regions: Regions = "all",
    task: TaskOption = "auto",
    measures: Measures = None,
    duplicates: Duplicates = "auto",
    missing: Annotated[
        str, typer.Option(metavar="[error|median|indicator]", help="What fit will do about gaps.")
    ] = "indicator",
    complete_rows: CompleteRows = False,
    strict: Annotated[bool, typer.Option("--strict", help="Take warnings for errors.")] = False,
) -> None:
    """Say in plain sentences what is in a table and what may mislead a fit; exit code 1 if something must be mended."""
    refuse_missing_tables(tables)
    from precisionnet.arguments import check_choice
    from precisionnet.cli import console
    from precisionnet.cli.tables import judged, read_tables
    from precisionnet.datasets.checks import Finding, check_dataset

    check_task(task)
    check_choice("--missing", missing, ("error", "median", "indicator"))
    loading = load_options(target, id_column, person, site, drop, format, regions, duplicates, measures)
    loading |= {"categories": True, "id": id_column or "auto", "complete_rows": complete_rows}
    data, complaints = read_tables(tables, loading)
    if complaints:
        refuse_all(judged(data, complaints, task, missing, tables[0])[2])
    with console.working("checking"):
        findings = check_dataset(data, None if task == "auto" else task, missing)  # type: ignore[arg-type]
    loaded = [Finding("note", "loading", sentence) for sentence in data.notes]
    with in_words_of("fit"):  # the findings are about a fit, and what its options do
        ready = _print_findings([*findings, *loaded], strict=strict)
    if not ready:
        raise typer.Exit(1)


def _print_findings(findings: Sequence[Finding], *, strict: bool) -> bool:
    """Print facts first, then warnings, then errors, then the verdict; return whether the data set passes."""
    from precisionnet.cli import console

    ordered = [finding for level in STYLES for finding in findings if finding.level == level]
    console.listing((finding.level, STYLES[finding.level], finding.sentence) for finding in ordered)
    console.say("")
    errors, warned = (sum(finding.level == level for finding in findings) for level in ("error", "warning"))
    warnings = f"{warned} warning{'' if warned == 1 else 's'}"
    if errors:
        console.say(f"Not ready for a fit: {errors} error{'' if errors == 1 else 's'} to mend first.")
    elif warned and strict:
        console.say(f"Refused, as --strict takes warnings for errors: {warnings}.")
    elif warned:
        console.say(f"A fit is possible; {warnings} to look at first.")
    else:
        console.say("Nothing stands in the way of a fit.")
    return not errors and not (warned and strict)


@app.command("list")
def list_datasets(data: DataFolder = None) -> None:
    """Name the public data sets, say which are on this machine, and name the makers of synthetic ones."""
    from precisionnet.cli import console
    from precisionnet.datasets.public.fetching import data_folder
    from precisionnet.datasets.public.registry import DATASETS

    folder = data_folder(data)
    for name, dataset in DATASETS.items():
        here = all((folder / file.name).is_file() for file in dataset.files)
        where = f"On this machine, in {folder / name}" if here else f"Not here yet: precisionnet datasets fetch {name}"
        console.say(f"{name}: {dataset.title}")
        console.say(_summary(dataset))
        console.say(where)
        console.say("")
    console.say("Synthetic, in Python (from precisionnet.datasets import ...):")
    console.listing((f"  {name}", "", what) for name, what in SYNTHETIC.items())


@app.command()
def describe(name: DatasetName) -> None:
    """Print what a data set holds, where it comes from, its terms of use and what to cite."""
    from precisionnet.datasets.public import registry

    _say_text(registry.describe(name))


@app.command()
def fetch(name: DatasetName, data: DataFolder = None) -> None:
    """Download a public data set, or find it on this machine; say what it is, its terms and what to cite."""
    from precisionnet.cli import console
    from precisionnet.datasets.public.fetching import fetch_files
    from precisionnet.datasets.public.registry import find_dataset

    dataset, told = find_dataset(name), list[str]()

    def tell(text: str) -> None:
        told.append(text)
        console.note(text.partition("\n")[0])  # the terms are printed below in any case

    files = fetch_files(name, data, tell=tell)
    console.say(f"{dataset.title}{'' if told else ' (already there)'}")
    console.say(_summary(dataset))
    for path in files.values():
        console.say(f"  {path}")
    for heading, text in (("Terms of use", dataset.terms), ("Please cite", dataset.citation)):
        console.say("")
        console.say(heading)
        _say_text(text)


def _say_text(markdown: str) -> None:
    """Paragraphs and list items as wide as the terminal is."""
    from precisionnet.cli import console

    for paragraph in re.sub(r"(?<=\S)\n(?![-#\n]) *", " ", markdown).splitlines():
        console.say(paragraph)


def _summary(dataset: RemoteDataset) -> str:
    """The first paragraph under the title: what it is, of how many people, of what age."""
    first = next(text for text in dataset.description.split("\n\n") if not text.startswith("#"))
    return " ".join(first.split()).rpartition(".")[0] + "."
