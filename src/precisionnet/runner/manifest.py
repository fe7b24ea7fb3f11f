"""``experiment.json``: what a results folder is about, and whether a run and its rows belong to it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from precisionnet.errors import InputError, shown
from precisionnet.runner.jobs import Experiment, Row
from precisionnet.runner.lines import StoredLine, differences, digest, parse_json, plain
from precisionnet.versions import versions

MANIFEST = "experiment.json"
FORMAT = "precisionnet-experiment"
FORMAT_VERSION = 1
DERIVED = ("spaces", "fixed", "rungs")
"""Parts of a config that follow from the others: named only where nothing else tells two configs apart."""
USUAL_METRICS = {"regression": ("mae",), "classification": ("accuracy",)}
"""Metrics by task, for folders that were made before the manifest listed them."""
_MOST = 3
"""Differences that fit into a sentence."""


def make_manifest(experiment: Experiment) -> dict[str, Any]:
    """Collect everything about an experiment but its results."""
    manifest: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "name": experiment.name,
            "recipe_version": experiment.recipe_version,
            "config": experiment.config,
            "config_hash": digest(experiment.config),
            "data_hash": experiment.data_hash,
            "about": experiment.about,
            "metrics": experiment.metrics,
            "created": now(),
            "versions": versions(),
            "total": len(experiment.jobs),
            "jobs": [{"job": job.name, "method": job.method, "seed": job.seed} for job in experiment.jobs],
        }
    )
    return manifest


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Read and check the folder's ``experiment.json``; None where there is no such file."""
    path = folder / MANIFEST
    try:
        manifest = parse_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read ({error.strerror}): check its permissions.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{str(path)!r} was not written by precisionnet; name another folder.")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{str(path)!r} has format version {shown(manifest.get('format_version'))}, and this precisionnet reads "
            f"{FORMAT_VERSION}: install a version that matches, or name another folder."
        )
    if not _whole(manifest):
        raise InputError(f"{str(path)!r} was edited or damaged: it does not list its fits; name another folder.")
    return manifest


def refuse_another(folder: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse to mix the rows of two experiments in one folder; the sentence names what tells them apart.

    More repeats of what is there are no other experiment: its fits stay, and those that are missing are added. Nor does
    a parameter tell two apart that the folder's version did not have: had it changed a number, the recipe's version
    would be another.
    """
    config, longer = _with_newer_parameters(there.get("config", {}), here["config"]), _has_fewer_repeats(there, here)
    found = differences(config | {"repeats": here["config"]["repeats"]} if longer else config, here["config"])
    about = [text for text in found if not text.startswith(DERIVED)] or found
    if there.get("name") != here["name"]:
        about = [f"{there.get('name')}, not {here['name']}"]  # all else differs, too
    if not about and there.get("data_hash") != here["data_hash"]:
        about = [f"data {str(there.get('data_hash'))[:12]}, not {here['data_hash'][:12]}"]
    fits, of_it = ({tuple(job.values()) for job in manifest["jobs"]} for manifest in (here, there))
    if not about and not (of_it < fits if longer else of_it == fits):
        about = [f"other fits, those of precisionnet {there.get('versions', {}).get('precisionnet')}"]
    if not about and there.get("recipe_version") != here["recipe_version"]:
        about = [f"recipe version {there.get('recipe_version') or 'unknown'}, not {here['recipe_version']}"]
    if about:
        listed = "; ".join(about[:_MOST]) + (f"; and {len(about) - _MOST} more" if len(about) > _MOST else "")
        raise InputError(
            f"{str(folder)!r} holds another experiment ({listed}): name another folder, or delete that one."
        )


def _with_newer_parameters(config: Mapping[str, Any], newer: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the ``fixed`` parameters of a config those that only a newer one has."""
    fixed, added = config.get("fixed"), newer.get("fixed")
    if not isinstance(fixed, Mapping) or not isinstance(added, Mapping):
        return dict(config)
    return {**config, "fixed": {**added, **fixed}}


def _has_fewer_repeats(there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    before, now = (manifest.get("config", {}).get("repeats") for manifest in (there, here))
    return isinstance(before, int) and isinstance(now, int) and before < now


def check_rows(path: Path, lines: Sequence[StoredLine], manifest: Mapping[str, Any]) -> None:
    """Refuse a row that is not a result of this experiment, comes twice, or has no number where it needs one."""
    methods = {entry["job"]: entry["method"] for entry in manifest["jobs"]}
    metrics = required_metrics(manifest)
    first: dict[str, int] = {}
    for row, number, _ in lines:
        job = row.get("job")
        if not isinstance(job, str) or job not in methods:
            why = f"is of {shown(job)}, which is no fit of this experiment"
        elif job in first:
            why = f"repeats line {first[job]}: both are of {job}"
        else:
            first[job] = number
            why = _wrong(row, methods[job], metrics)
        if why:
            raise InputError(
                f"Line {number} of {str(path)!r} {why}; the file was edited: delete that line, and what is missing is "
                "done again."
            )


def required_metrics(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """List the numbers that every row of the folder must have."""
    about = manifest.get("about") or {}
    usual = ("frobenius_error",) if about.get("kind") == "theorem" else USUAL_METRICS.get(str(about.get("task")), ())
    return tuple(manifest.get("metrics", usual))


def missing_metric(row: Row, metrics: Sequence[str]) -> str | None:
    """Name the first metric that is missing or not a finite number; None where there is none."""
    return next((name for name in metrics if not _is_finite(row.get(name))), None)


def now() -> str:
    """Return this moment as a row has it: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _wrong(row: Row, method: str, metrics: Sequence[str]) -> str:
    """Say what a row lacks; an empty text where it is fine."""
    name = f"{row.get('method')}/{row.get('repeat')}"
    setting = re.findall(r"/(\w+)=([^/]*)", row["job"])
    repeat = row.get("repeat")
    if (
        row.get("method") != method
        or isinstance(repeat, bool)
        or not isinstance(repeat, int)
        or not f"{row['job']}/".startswith(f"{name}/")
        or any(str(row.get(key)) != value for key, value in setting)
    ):
        return f"does not match the name of its fit, {row['job']}"
    if "error" in row:
        return "" if isinstance(row["error"], str) else "has an error that is not text"
    missing = missing_metric(row, metrics)
    return f"has no number {missing!r}" if missing else ""


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _whole(manifest: Mapping[str, Any]) -> bool:
    """Whether what the code relies on is there and of the right type."""
    jobs, metrics = manifest.get("jobs"), manifest.get("metrics", [])
    return (
        isinstance(manifest.get("name"), str)
        and isinstance(manifest.get("config"), dict)
        and isinstance(manifest.get("about", {}), dict)
        and isinstance(manifest.get("versions", {}), dict)
        and isinstance(jobs, list)
        and all(
            isinstance(e, dict) and isinstance(e.get("job"), str) and isinstance(e.get("method"), str) for e in jobs
        )
        and manifest.get("total") == len(jobs)
        and isinstance(metrics, list)
        and all(isinstance(name, str) for name in metrics)
    )
