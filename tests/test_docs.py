"""What the README and the docs say is run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from precisionnet.parameters import PARAMETERS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in blocks(page, "python"):
        exec(compile(snippet, page.name, "exec"), names)


@pytest.mark.data
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python fetch")], ids=lambda p: p.name)
def test_snippets_that_fetch_run(page, data_folder):
    for snippet in blocks(page, "python fetch"):
        exec(compile(snippet, page.name, "exec"), {})


def test_command_lines_in_the_readme_run(tmp_path, monkeypatch, gaussian):
    """Every ``precisionnet ...`` line of the README, in order, with its table drawn here."""
    from typer.testing import CliRunner

    from precisionnet.cli.app import app

    monkeypatch.chdir(tmp_path)
    gaussian.X.assign(age=gaussian.y, subject=range(len(gaussian.X))).to_csv("thickness.csv", index=False)
    gaussian.X.assign(subject=range(len(gaussian.X))).to_csv("new.csv", index=False)
    lines = [line for block in blocks(ROOT / "README.md", "sh") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("precisionnet ")]
    assert {command[1] for command in commands} >= {"fit", "predict", "show"}
    for command in commands:
        done = CliRunner().invoke(app, command[1:])
        assert done.exit_code == 0, (command, done.output, done.exception)


def test_notation_names_every_parameter_the_paper_has():
    text = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    for parameter in PARAMETERS:
        if parameter.symbol:
            assert f"`{parameter.name}`" in text, parameter.name


def test_parameter_page_is_the_table():
    text = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    for parameter in PARAMETERS:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{parameter.name}` "))
        assert f"`{parameter.default!r}`" in row
        assert parameter.help in row.replace("\\|", "|")


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "decisions").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


def test_speeds_in_the_readme_are_the_committed_rows():
    rows = pd.read_csv(ROOT / "results" / "precision_bench.csv").set_index(["problem", "n", "solver"])
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    def times_slower(n: int, solver: str) -> str:
        if ("sparse_rule", n, solver) not in rows.index:
            return "–"
        row = rows.loc[("sparse_rule", n, solver)]
        return f"{'>= ' if row.status == 'timeout' else ''}{row.ratio_to_ours:.0f}x"

    for n in (200, 500, 1000, 2000):
        ours = rows.loc[("sparse_rule", n, "precisionnet")]
        peers = [times_slower(n, solver) for solver in ("scikit-learn", "scikit-learn tuned", "skglm", "R glasso")]
        assert f"| {n} | {1000 * ours.seconds:.3g} ms | {ours.inversions:.1f} | {' | '.join(peers)} |" in text


def test_results_in_the_readme_are_the_committed_rows():
    rows = pd.read_csv(ROOT / "results" / "abide_defaults.csv")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for method, group in rows.groupby("method"):
        row = next(line for line in text.splitlines() if line.startswith(f"| {method} "))
        assert f"{group.mae_years.mean():.2f} ± {group.mae_years.std():.2f}" in row
        if group.zeros.notna().all():
            assert f"{group.zeros.mean() / 62**2:.0%}" in row


def test_figures_on_data_in_the_readme_are_the_committed_rows():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    sites = (
        pd.read_csv(ROOT / "results" / "abide_sites.csv")
        .groupby("preparation")[["site_accuracy", "ridge_mae_years"]]
        .mean()
    )
    raw, combat = sites.loc["raw"], sites.loc["ComBat"]
    assert f"in {raw.site_accuracy:.0%} of cases before `ComBat` and in {combat.site_accuracy:.0%} after" in text
    assert f"from {raw.ridge_mae_years:.1f} to {combat.ridge_mae_years:.1f} years" in text
    memory = pd.read_csv(ROOT / "results" / "data_memory.csv").set_index(["case", "rows"])
    assert f"a peak of {memory.ratio['csv', 200_000]:.1f} times its array" in text
    many = memory.peak_mb["parquet, many groups"]
    assert many[1_000_000] < many[100_000] + 50
