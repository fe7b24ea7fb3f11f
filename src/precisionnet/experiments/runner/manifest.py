"""``experiment.json``: what a results folder is about, and whether a run may go on in it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from precisionnet.errors import InputError
from precisionnet.experiments.runner.jobs import Experiment
from precisionnet.experiments.runner.json_values import differences, digest, plain
from precisionnet.versions import versions

MANIFEST = "experiment.json"
FORMAT = "precisionnet-experiment"
FORMAT_VERSION = 1
_MOST = 3
"""Differences that fit into a sentence."""


def make_manifest(experiment: Experiment) -> dict[str, Any]:
    """Everything about an experiment but its results."""
    manifest: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "name": experiment.name,
            "config": experiment.config,
            "config_hash": digest(experiment.config),
            "data_hash": experiment.data_hash,
            "about": experiment.about,
            "created": now(),
            "versions": versions(),
            "total": len(experiment.jobs),
            "jobs": [{"job": job.name, "method": job.method, "seed": job.seed} for job in experiment.jobs],
        }
    )
    return manifest


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """What stands in the folder's ``experiment.json``; None where there is no such file."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read ({error.strerror}): check its permissions.") from error
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{str(path)!r} was not written by precisionnet; name another folder.")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{str(path)!r} has format version {manifest.get('format_version')!r}, and this precisionnet reads "
            f"{FORMAT_VERSION}: install a version that matches, or name another folder."
        )
    return manifest


DERIVED = ("spaces", "fixed", "rungs")
"""Parts of a config that follow from the others: told only where nothing else tells two configs apart."""


def refuse_another(folder: Path, there: dict[str, Any], here: dict[str, Any]) -> None:
    """Rows of two experiments never share a folder; the sentence names what tells them apart."""
    found = differences(there.get("config", {}), here["config"])
    about = [text for text in found if not text.startswith(DERIVED)] or found
    if there.get("name") != here["name"]:
        about = [f"{there.get('name')}, not {here['name']}"]  # all else differs, too
    if not about and there.get("data_hash") != here["data_hash"]:
        about = [f"data {str(there.get('data_hash'))[:12]}, not {here['data_hash'][:12]}"]
    if not about and there.get("jobs") != here["jobs"]:
        about = [f"other fits, those of precisionnet {there.get('versions', {}).get('precisionnet')}"]
    if about:
        listed = "; ".join(about[:_MOST]) + (f"; and {len(about) - _MOST} more" if len(about) > _MOST else "")
        raise InputError(
            f"{str(folder)!r} holds another experiment ({listed}): name another folder, or delete that one."
        )


def now() -> str:
    """This moment, as a row has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
