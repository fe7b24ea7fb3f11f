"""``precisionnet reproduce``: an experiment of the paper, or one written in a TOML file of the same form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from precisionnet.cli import console
from precisionnet.cli.experiments import run_write_print
from precisionnet.paper.config import builtin, load_config


def run_reproduce(
    what: str,
    out: str | None,
    data: str | None,
    jobs: int | None,
    scheduler: str | None,
    seed: int | None,
    *,
    quick: bool,
) -> None:
    """The whole command."""
    is_file = what.endswith(".toml")
    config = load_config(Path(what) if is_file else builtin(what), quick)
    if seed is not None:
        config = replace(config, seed=seed)
    place = Path(out or f"results-{Path(what).stem if is_file else what}{'-quick' if quick else ''}")
    with console.working("preparing"):
        from precisionnet.paper import build  # with the networks: mistakes are told before that

        experiment = build(config, None if data is None else Path(data))
    expected = config.expected.get("quick" if quick else "full", "")
    if expected:
        console.note(f"Expected: {expected}")
    run_write_print(experiment, place, jobs, scheduler)
