"""``precisionnet reproduce``: one experiment of the paper or all of them, in one reading or in both.

Every reading has a folder of its own, so that a run goes on where it was and a second reading can be added later; one
page stands over them. Modules with networks are imported where they are used, so that a mistake is told before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from precisionnet.cli import console
from precisionnet.cli.compare import run_write_print
from precisionnet.errors import InputError, did_you_mean, shown

if TYPE_CHECKING:
    from precisionnet.paper.config import Config
    from precisionnet.report.experiment_page import ExperimentPage

ALL, BOTH = "all", "both"
DRAWN_ONLY = ("synthetic", "theorem")
"""Kinds that read no table."""


@dataclass(frozen=True)
class Planned:
    """One run: an experiment in one reading, or one without readings."""

    name: str
    config: Config
    folder: Path
    reading: str | None


def run_reproduce(
    what: str,
    reading: str | None,
    out: str | None,
    data: str | None,
    jobs: int | None,
    scheduler: str | None,
    seed: int | None,
    repeats: int | None,
    *,
    quick: bool,
) -> None:
    """Run an experiment of the paper, all of them, or one written in a TOML file of the same form."""
    stem = Path(what).stem if what.endswith(".toml") else what
    root = Path(out or f"results-{stem}{'-quick' if quick else ''}")
    planned = plan(what, reading, root, data, quick=quick)
    written: dict[Path, ExperimentPage] = {}
    for one in planned:
        config = one.config if seed is None else replace(one.config, seed=seed)
        config = config if repeats is None else replace(config, repeats=repeats)
        if len(planned) > 1:
            console.say("")
            console.say(f"== {one.name}{'' if one.reading is None else f', reading: {one.reading}'}")
        with console.working("preparing"):
            from precisionnet.paper import build

            try:
                experiment = build(config, _tables(one.name, what, data))
            except InputError as error:
                if what == ALL and one.name == "adni":
                    console.note(f"adni is left out. {error}")
                    continue
                raise
        expected = config.expected.get("quick" if quick else "full", "")
        if expected:
            console.note(f"Expected: {expected}")
        notes = list(experiment.about.get("notes", []))
        for sentence in notes:
            console.note(sentence)
        written[one.folder] = run_write_print(experiment, one.folder, jobs, scheduler, notes)
    if any(one.folder != root for one in planned):
        _write_overview(root, written)


def plan(what: str, reading: str | None, root: Path, data: str | None = None, *, quick: bool) -> list[Planned]:
    """List the runs; every config is read and checked before the first of them begins."""
    from precisionnet.paper.config import builtin, experiments, load_config
    from precisionnet.paper.readings import READINGS

    is_file = what.endswith(".toml")
    if not is_file and what != ALL and what not in experiments():
        known = [*experiments(), ALL]
        raise InputError(
            f"There is no experiment {shown(what)}{did_you_mean(what, known)}: choose one of {', '.join(known)}, or "
            "pass the path of a .toml file."
        )
    planned = []
    for name in experiments() if what == ALL else [what]:
        path = Path(name) if is_file else builtin(name)
        place = root / name if what == ALL else root
        config = load_config(path, quick)
        if data is not None and what != ALL and config.kind in DRAWN_ONLY:
            raise InputError(f"{config.name} draws its rows, and --data is where tables are: leave it out.")
        if not config.read_twice and reading is not None and what != ALL:
            raise InputError(f"{config.name} compares no networks, and has no readings: leave --reading out.")
        if not config.read_twice or (is_file and reading is None):
            planned.append(Planned(name, config, place, None))
            continue
        readings = READINGS if reading in (None, BOTH) else [str(reading)]
        planned += [Planned(name, load_config(path, quick, one), place / one, one) for one in readings]
    return planned


def _tables(name: str, what: str, data: str | None) -> Path | None:
    """Return the folder of tables; where everything is run it is ADNI's, as the others can be fetched."""
    return None if data is None or (what == ALL and name != "adni") else Path(data)


def _write_overview(root: Path, written: Mapping[Path, ExperimentPage]) -> None:
    from precisionnet.report.overview import write_overview

    with console.working("drawing"):
        overview = write_overview(root, written)
    console.say("")
    console.say("Side by side:")
    for heading, verdict in overview.verdicts:
        console.say(f"{heading}: {verdict}")
    console.say("")
    console.say(f"Wrote {root / 'index.html'}, which shows all of it")
