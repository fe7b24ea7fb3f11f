"""Options that several commands share, and what is refused before anything heavy is imported.

A typing mistake should not cost five seconds: no NumPy, pandas or torch here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from precisionnet.errors import InputError, ModelFileError, PrecisionNetError, refuse_all
from precisionnet.parameters import PARAMETERS, Parameter, settings_of

FORMATS = "[auto|freesurfer|aseg|ants|adni|enigma|participants|regions|table]"
WRITERS = (".csv", ".tsv", ".parquet")
COHORTS = ("abide", "ants", "adni")
"""Names that ``compare`` takes in the place of a table, as in ``paper.config``."""
FEWEST_PERMUTATIONS = 19
"""Fewest permutations of a test, as in ``evidence``."""

READING, EXPERT = "How the table is read", "Expert options (the model and its training)"
"""Panels of the help, after the common options."""

# Tables.
Tables = Annotated[list[str], typer.Argument(metavar="TABLE", help="csv, tsv, parquet or xlsx; several are joined.")]
IdColumn = Annotated[
    str | None, typer.Option("--id", metavar="COL", help="Column that identifies a row; not a feature.")
]
Person = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column that says whose row it is, where a person has several; else the id does."),
]
Site = Annotated[str | None, typer.Option(metavar="COL", help="Column that says where a row was measured.")]
Drop = Annotated[list[str] | None, typer.Option(metavar="COL", help="Column to leave out; may be repeated.")]
Format = Annotated[
    str,
    typer.Option(
        metavar=FORMATS, help="What the tables are; 'table' takes every column as it stands.", rich_help_panel=READING
    ),
]
Regions = Annotated[
    str,
    typer.Option(
        metavar="[all|dkt62]", help="Of Desikan-Killiany's 68 regions, all or DKT's 62.", rich_help_panel=READING
    ),
]
Duplicates = Annotated[
    str,
    typer.Option(
        metavar="[auto|first|mean|drop|keep]",
        help="Which rows to keep of an id whose rows differ; auto drops and lists them, unless they are visits.",
        rich_help_panel=READING,
    ),
]
Measures = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        help="Measures of brain regions to use together: thickness, area, volume (with subcortical).",
        rich_help_panel=READING,
    ),
]
CompleteRows = Annotated[
    bool,
    typer.Option(
        "--complete-rows",
        help="Leave out rows in which the target or a feature is missing.",
        rich_help_panel=READING,
    ),
]
TaskOption = Annotated[str, typer.Option(metavar="[auto|regression|classification]", help="What the target is.")]

# Models and experiments.
ModelFolder = Annotated[str, typer.Argument(metavar="MODEL", help="Model folder, or the output folder of fit.")]
Jobs = Annotated[
    int | None, typer.Option(metavar="N", help="Fits at the same time; as many as there are cores if not given.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A dask.distributed scheduler to run the fits on, such as tcp://host:8786."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of splits and fits.")]
Permutations = Annotated[
    int | None, typer.Option(metavar="N", help="Drawn targets or relabellings to compare with; at least 19.")
]
Defaults = Annotated[
    bool, typer.Option("--defaults", help="Tune nothing: every method as it is when no parameter is set.")
]
Open = Annotated[bool, typer.Option("--open", help="Show the page in a browser when it is written.")]
Quick = Annotated[bool, typer.Option("--quick", help="A run of minutes: fewer repeats and fewer parameters to try.")]


def with_model_parameters(command: Callable[..., None], **defaults: Any) -> Callable[..., None]:
    """Give ``command(..., **parameters)`` one option per model parameter, made from ``precisionnet.parameters``.

    ``defaults`` are those that differ on the command line.
    """
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            p.name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(p.name, p.initial), annotation=_annotation(p)
        )
        for p in PARAMETERS
    ]

    def wrapper(**values: Any) -> None:
        command(**values)

    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    wrapper.__signature__ = inspect.Signature([*keyword_only, *added])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in [*own, *added]}
    return wrapper


def _annotation(parameter: Parameter) -> Any:
    kind: Any = parameter.kind | None if parameter.optional or parameter.by_recipe else parameter.kind
    metavar = f"[{'|'.join(parameter.choices)}]" if parameter.choices else None
    help = parameter.help
    if parameter.by_recipe:  # the option's own default is None, which says nothing
        help = f"{help}  [default: {parameter.default}; paper: {parameter.paper}]"
    return Annotated[kind, typer.Option(help=help, metavar=metavar, rich_help_panel=EXPERT)]


def load_options(
    target: str | None,
    id_column: str | None,
    person: str | None,
    site: str | None,
    drop: list[str] | None,
    format: str,
    regions: str,
    duplicates: str = "auto",
    measures: str | None = None,
    beside: Sequence[str | None] = (),
    inputs: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the arguments of ``load_table``; a column that is named in two roles is refused.

    ``beside`` are columns that are kept beside the features, where they are named; id and person are kept anyway.
    ``inputs`` are covariates that the network sees.
    """
    from precisionnet.arguments import refuse_two_roles  # with NumPy, which --help does not need

    dropped = [("--drop", name) for name in drop or []]
    refuse_two_roles([("--target", target), ("--id", id_column), ("--site", site), *dropped])
    refuse_two_roles([("--target", target), ("--person", person)])  # a person may well be the id
    kept = [name for name in beside if name is not None and name not in (id_column, person)]
    refuse_two_roles([("--target", target), *dropped, *(("--hold-out or --time", name) for name in kept)])
    refuse_two_roles(
        [
            ("--target", target),
            ("--id", id_column),
            *dropped,
            *(("--covariate", name) for name in dict.fromkeys(inputs)),
        ]
    )
    return {
        "target": target,
        "id": id_column,
        "person": id_column if person is None and id_column is not None and id_column in beside else person,
        "site": "auto" if site is None else site,
        "drop": drop or [],
        "format": format,
        "regions": regions,
        "duplicates": duplicates,
        "measures": None if measures is None else [name.strip() for name in measures.split(",") if name.strip()],
        **({"covariates": kept} if kept else {}),
        **({"inputs": list(dict.fromkeys(inputs))} if inputs else {}),
    }


def held_out_site(site: str | None, hold_out: str | None) -> str | None:
    """Return the column of sites: the one whose groups are left out; two columns are refused."""
    if site is not None and hold_out is not None and site != hold_out:
        raise InputError(
            f"--site {site} and --hold-out {hold_out} name two columns, and a row has one group: leave --site out."
        )
    return hold_out if site is None else site


def all_at_once(*checks: Callable[[], object]) -> None:
    """Run every check, and raise all that they refuse in one answer."""
    complaints = list[str]()
    for check in checks:
        try:
            check()
        except PrecisionNetError as error:
            complaints += getattr(error, "sentences", [str(error)])
    refuse_all(complaints)


def check_parameters(parameters: dict[str, Any]) -> None:
    """Refuse model parameters out of their range or without effect, all at once, by the names of their options."""
    settings_of(parameters, name_of=option_name)


def option_name(parameter: str) -> str:
    """Return the option by which a model parameter is given."""
    return f"--{parameter.replace('_', '-')}"


def check_task(task: str) -> None:
    """Refuse an unknown ``--task``."""
    if task not in ("auto", "regression", "classification"):
        raise InputError(f"--task must be auto, regression or classification, got {task!r}.")


def check_folds(folds: int | None, hold_out: str | None, time: str | None) -> None:
    """Refuse folds that are too few, and two ways to test at once."""
    if folds is not None and folds < 2:
        raise InputError(f"--folds must be at least 2, got {folds}; 5 is usual.")
    if hold_out is not None and time is not None:
        raise InputError(
            f"--hold-out {hold_out} and --time {time} are two ways to test one fit: give one of them, and run it twice "
            "to have both."
        )


def check_model(folder: str) -> None:
    """Refuse a model folder that is missing, empty or a file."""
    place = Path(folder)
    try:
        kind = "is a file" if place.is_file() else "does not exist"
        if place.is_dir():
            kind = "" if any(place.iterdir()) else "is empty"
    except (OSError, ValueError) as error:
        kind = f"cannot be reached ({getattr(error, 'strerror', None) or error})"
    if kind:
        raise ModelFileError(f"Model folder {folder!r} {kind}: pass the folder that precisionnet fit wrote.")


def check_out(out: str) -> None:
    """Refuse an output folder without a name: '' would mean the current folder."""
    if not out.strip():
        raise InputError("--out is empty: name a folder for the results.")


def named_cohort(tables: list[str]) -> str | None:
    """Return the cohort that stands in the place of a table; a file of that name is a table."""
    (first, *more) = tables
    return first if first in COHORTS and not more and not Path(first).exists() else None


def check_target(target: str | None, cohort: str | None, data: str | None) -> None:
    """Refuse a table without a target, and a cohort with another target than its own."""
    if cohort is None and target is None:
        raise InputError("--target is missing: name the column to predict.")
    if cohort is None and data is not None:
        raise InputError(f"--data is where the tables of {', '.join(COHORTS)} are: leave it out with a table.")
    if cohort is not None and target not in (None, "age"):
        raise InputError(f"{cohort} is compared on age: leave --target {target} out.")


def check_search(repeats: int | None, search: str, trials: int | None, *, defaults: bool = False) -> None:
    """Refuse a search that contradicts itself."""
    if defaults and (search != "grid" or trials is not None):
        raise InputError("--defaults tunes nothing, --search and --trials say how to tune: give one of them.")
    check_repeats(repeats)
    if search not in ("grid", "optuna"):
        raise InputError(f"--search must be grid or optuna, got {search!r}.")
    if trials is not None and trials < 1:
        raise InputError(f"--trials must be at least 1, got {trials}.")
    if trials is not None and search == "grid":
        raise InputError("--trials is the budget of --search optuna: add that, or leave --trials out.")


def check_repeats(repeats: int | None, what: str | None = None) -> None:
    """Refuse a number of repeats that is none, and one number for all experiments of the paper."""
    if repeats is not None and repeats < 1:
        raise InputError(f"--repeats must be at least 1, got {repeats}; 5 is usual.")
    if repeats is not None and what == "all":
        raise InputError("--repeats is of one experiment, and each has its own: name the experiment.")


def check_workers(jobs: int | None, scheduler: str | None) -> None:
    """Refuse workers on this machine and on a cluster at the same time."""
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}; leave it out to use every core.")
    if jobs is not None and scheduler is not None:
        raise InputError("--jobs counts processes on this machine, a scheduler has its own workers: give one of them.")


def check_permutations(permutations: int | None) -> None:
    """Refuse so few permutations that nothing could be found."""
    if permutations is not None and permutations < FEWEST_PERMUTATIONS:
        raise InputError(
            f"--permutations must be at least {FEWEST_PERMUTATIONS}, got {permutations}: with fewer no p-value can be "
            "0.05."
        )


def check_group_columns(
    by: str | None,
    covariates: list[str],
    paired_by: str | None,
    person: str | None,
    id_column: str | None,
) -> None:
    """Refuse what has no effect without groups, and a column in two roles."""
    from precisionnet.arguments import refuse_two_roles  # with NumPy, which --help does not need

    if by is None and paired_by is not None:
        raise InputError("--paired-by pairs people across groups: name the column of groups with --by, too.")
    if paired_by is not None and person is not None:
        raise InputError(
            "--paired-by and --person both say whose row it is: give --paired-by where people have rows in every "
            "group, --person where they do not."
        )
    twice = [name for name in dict.fromkeys(covariates) if covariates.count(name) > 1]
    if twice:
        raise InputError(f"--covariate {twice[0]} is given more than once: name it once.")
    beside = [("--by", by), *(("--covariate", name) for name in covariates)]
    refuse_two_roles([*beside, ("--id", id_column)])
    refuse_two_roles([*beside, ("--paired-by", paired_by)])  # who is paired may well be the id


def check_gap_columns(
    target: str, by: str | None, controls: str | None, site: str | None, roles: dict[str, list[str]]
) -> None:
    """Refuse controls without groups, and a column in two roles; a covariate may be an input and adjusted for."""
    from precisionnet.arguments import refuse_two_roles  # with NumPy, which --help does not need

    if by is None and controls is not None:
        raise InputError(f"--controls {controls} names a group: name the column of groups with --by, too.")
    twice = [name for names in roles.values() for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"Column {twice[0]!r} is given twice as the same kind of covariate: name it once.")
    named = {"--input": roles["inputs"], "--regress-out": roles["regress_out"], "--covariate": roles["adjust_for"]}
    for option, names in named.items():
        refuse_two_roles([("--target", target), ("--by", by), ("--site", site), *((option, name) for name in names)])
    refuse_two_roles([(option, name) for option in ("--input", "--regress-out") for name in named[option]])


def check_data(cohort: str | None, folder: str | None) -> None:
    """Refuse a folder of tables that is not there, and ADNI without one: it cannot be fetched."""
    if folder is not None and not Path(folder).is_dir():
        raise InputError(f"--data {folder!r} is not a folder: pass the one that holds the tables.")
    if cohort == "adni" and folder is None:
        raise InputError(
            "ADNI is given to registered users only: pass --data DIR, a folder with UCSFFSX51*.csv and ADNIMERGE.csv "
            "from ida.loni.usc.edu."
        )


def check_reading(reading: str | None) -> None:
    """Refuse a reading that does not exist."""
    if reading not in (None, "paper", "flattened", "both"):
        raise InputError(f"--reading must be paper, flattened or both, got {reading!r}.")


def check_results(folder: str, *, below: bool = False) -> None:
    """Refuse a folder in which no experiment is stored, itself or (``below``) in a folder in it."""
    found = (Path(folder) / "experiment.json").is_file()
    if not found and not (below and any(Path(folder).glob("**/experiment.json"))):
        raise InputError(f"{folder!r} is not a results folder: pass one that precisionnet compare or reproduce made.")


def check_ending(output: str | None) -> None:
    """Refuse an output file of a kind that cannot be written."""
    if output is not None and Path(output).suffix.lower() not in WRITERS:
        raise InputError(f"Cannot write {output!r}: its ending must be one of {', '.join(WRITERS)}.")


def check_page(page: str | None) -> None:
    """Refuse a page that no browser would open by its name."""
    if page is not None and Path(page).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"Cannot write the page {page!r}: its ending must be .html.")


def show_if_asked(wanted: bool, out: str, page: str) -> None:
    """Show a page that was written, where that is asked for."""
    if wanted:
        from precisionnet.cli import console

        console.open_page(Path(out) / page)
