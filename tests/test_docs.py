"""What the README and the docs say is run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
import sklearn.datasets

from precisionnet.evaluation.methods import METHODS
from precisionnet.evaluation.statistics import interval
from precisionnet.paper.cohorts import TABLE_1
from precisionnet.parameters import PARAMETERS
from precisionnet.runner import read_folder
from tests.cheap import cheap_baselines, short_training

__all__ = ["cheap_baselines", "short_training"]

ROOT = Path(__file__).parents[1]
METHODS_OF_A_COMPARISON = [
    name
    for name, spec in METHODS.items()
    if "regression" in spec.tasks and not spec.fixed and spec.family in ("network", "baseline")
]
ENDINGS = ("", "-defaults", "-rivals")
"""Of the folders under results/accuracy: tuned, as they come, and tuned beside rivals."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)


def runs(pages: list[Path]) -> list[object]:
    """Pages as parameters; those that repeat README's fit with the defaults are slow."""
    slow = {"index.md", "start.md"}
    return [pytest.param(p, id=p.name, marks=[pytest.mark.slow] if p.name in slow else []) for p in pages]


@pytest.mark.parametrize("page", runs([p for p in PAGES if blocks(p, "python")]))
def test_python_snippets_run(page, tmp_path, monkeypatch):
    """As they stand, on an eighth of the diabetes table."""
    whole = sklearn.datasets.load_diabetes

    def load_diabetes(**settings):
        return tuple(part[::8] for part in whole(**settings))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn.datasets.load_diabetes", load_diabetes)
    names: dict[str, object] = {}
    for snippet in blocks(page, "python"):
        exec(compile(snippet, page.name, "exec"), names)


@pytest.mark.data
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python fetch")], ids=lambda p: p.name)
def test_snippets_that_fetch_run(page, data_folder):
    for snippet in blocks(page, "python fetch"):
        exec(compile(snippet, page.name, "exec"), {})


@pytest.mark.slow
def test_command_lines_run(tmp_path, monkeypatch, gaussian):
    """Every ``precisionnet ...`` line of README and the first page, in order and once, with its table drawn here."""
    from typer.testing import CliRunner

    from precisionnet.cli.app import app

    monkeypatch.chdir(tmp_path)
    gaussian.X.assign(age=gaussian.y, subject=range(len(gaussian.X))).to_csv("thickness.csv", index=False)
    gaussian.X.assign(subject=range(len(gaussian.X))).to_csv("new.csv", index=False)
    found = [block for page in ("README.md", "docs/start.md") for block in blocks(ROOT / page, "sh")]
    lines = [line.removeprefix(".venv/bin/") for block in found for line in block.splitlines()]
    commands = list(
        dict.fromkeys(tuple(shlex.split(line, comments=True)) for line in lines if line.startswith("precisionnet "))
    )
    assert {command[1] for command in commands} >= {"fit", "predict", "show"}
    for command in commands:
        done = CliRunner().invoke(app, list(command[1:]))
        assert done.exit_code == 0, (command, done.output, done.exception)


def test_the_readme_is_short_and_begins_with_what_to_do():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    beginning = "\n".join(lines[:40])
    for command in ("make demo", "make test", "pip install -c constraints.txt .", "precisionnet fit", "report.html"):
        assert command in beginning
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", beginning)
    assert (ROOT / picture).stat().st_size < 150_000


def test_notation_names_every_parameter_the_paper_has():
    text = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    for parameter in PARAMETERS:
        if parameter.symbol:
            assert f"`{parameter.name}`" in text, parameter.name


def test_parameter_page_is_the_table():
    text = (ROOT / "docs" / "parameters.md").read_text(encoding="utf-8")
    for parameter in PARAMETERS:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{parameter.name}` "))
        cells = [cell.strip() for cell in row.split(" | ")]
        assert cells[1] == f"`{parameter.default!r}`"
        assert cells[2] == (f"`{parameter.paper!r}`" if parameter.by_recipe else "")
        assert parameter.help in row.replace("\\|", "|")


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "decisions").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            made = target.endswith(".rst")  # by `make site`, whose own check follows its links
            assert made or (page.parent / target).exists(), (page.name, target)


def told() -> str:
    """README and the pages that hold tables and figures tied to rows."""
    pages = ("README.md", "docs/results.md", "docs/data.md")
    return "\n\n".join((ROOT / page).read_text(encoding="utf-8") for page in pages)


def test_speeds_in_the_readme_are_the_committed_rows():
    rows = pd.read_csv(ROOT / "results" / "precision_bench.csv").set_index(["problem", "n", "solver"])
    text = told()

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
    text = told()
    for method, group in rows.groupby("method"):
        row = next(line for line in text.splitlines() if line.startswith(f"| {method} "))
        assert f"{group.mae_years.mean():.2f} ± {group.mae_years.std():.2f}" in row
        if group.zeros.notna().all():
            assert f"{group.zeros.mean() / 62**2:.0%}" in row


@pytest.mark.parametrize(("folder", "column"), [("abide", 0), ("ants", 2)])
@pytest.mark.parametrize("ending", ENDINGS)
def test_accuracy_in_the_readme_is_that_of_the_committed_rows(folder, column, ending):
    summary = pd.read_csv(ROOT / "results" / "accuracy" / f"{folder}{ending}" / "summary.csv")
    text = told()
    part = text.split(f"<!-- results/accuracy{ending} -->")[1].split("\n\n")[0]
    rows = {line.split(" | ")[0].strip("| *"): line.strip("| ").split(" | ")[1:] for line in part.splitlines()}
    for row in summary[summary["metric"] == "mae"].itertuples():
        cells = rows[NAMES.get(row.method, METHODS[row.method].label)][column : column + 2]
        assert cells[0] == f"{row.mean:.2f} ± {row.std:.2f}"
        if row.method != "joint":
            assert cells[1] == f"{row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}]"


NAMES = {"joint_mean": "Joint, mean readout", "joint_mlp": "Joint, flat readout"}


def test_other_accuracies_in_the_readme_are_the_committed_rows():
    text = " ".join(told().split())
    folder = ROOT / "results" / "accuracy"
    single = pd.read_csv(folder / "mean_readout.csv").groupby(["cohort", "method"])["mae"].mean()
    for cohort in ("abide", "ants"):
        assert ", ".join(f"{single[cohort, m]:.2f}" for m in ("joint", "glasso", "sample", "vnn")) in text
    few = pd.read_csv(folder / "few_rows.csv").groupby(["method", "rows"])["mae"].mean()
    answers = " ".join((ROOT / "docs" / "faq.md").read_text(encoding="utf-8").split())
    for method in ("joint", "ridge"):
        assert ", ".join(f"{few[method, n]:.2f}" for n in (50, 100, 200)) in text
        assert ", ".join(f"{few[method, n]:.2f}" for n in (50, 100, 200)) in answers
    sparse = pd.read_csv(folder / "sparse.csv").groupby(["cohort", "predict_on"])[["mae", "zeros", "covered"]].mean()
    for cohort in ("abide", "ants"):
        dense, thin = sparse.loc[cohort, "task"], sparse.loc[cohort, "sparse"]
        assert f"{thin.mae:.2f} years with {thin.zeros:.0%} zeros, {dense.mae:.2f} without" in text
        assert f"{dense.covered:.1%}" in text


def test_classes_in_the_readme_are_the_committed_rows():
    text = told()
    rows = pd.read_csv(ROOT / "results" / "accuracy" / "classes.csv")
    for (table, measure), line in CLASS_LINES.items():
        values = rows[rows["table"] == table].pivot_table(index="split", columns="method", values=measure)
        cells = [f"{values['joint'].mean():.3f}"]
        for other in ("svc", "logistic"):
            _, low, high = interval((values[other] - values["joint"]).to_numpy(), 0.2 / 0.6)
            cells.append(f"{values[other].mean():.3f} [{low:+.3f}, {high:+.3f}]")
        assert f"| {line} | {' | '.join(cells)} |" in text


CLASS_LINES = {
    (table, measure): f"{table.replace('_', ' ')}, {measure.replace('_', ' ')}"
    for table in ("breast_cancer", "wine", "digits")
    for measure in ("accuracy", "log_loss")
}


def test_figures_on_data_in_the_readme_are_the_committed_rows():
    text = " ".join(told().split())
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


def experiment(name: str) -> pd.DataFrame:
    lines = (ROOT / "results" / name / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    return pd.DataFrame([json.loads(line) for line in lines])


def spread(values: pd.Series) -> str:
    return f"{values.mean():.2f} ± {values.std():.2f}"


def test_cohorts_in_the_readme_are_the_committed_rows():
    text = told()
    abide, ants = (experiment(f"{name}/flattened").set_index("method") for name in ("abide", "ants"))
    assert (len(abide), len(ants)) == (50, 55)
    for method in METHODS_OF_A_COMPARISON:
        paper = TABLE_1["abide"].get(method, {}).get("mae", "–")
        error = graph = "–"
        if method in abide.index:  # the experiment has no naive since its second version
            edges, error = abide.loc[method, "edges"], spread(abide.loc[method, "mae"])
            graph = f"{edges.min():.0f} to {edges.max():.0f}" if edges.notna().all() else "–"
        cells = [error, paper, graph, spread(ants.loc[method, "mae"])]
        assert f"| {METHODS[method].label} | {' | '.join(cells)} |" in text


@pytest.mark.parametrize("cohort", ["abide", "ants"])
def test_the_cohort_in_the_papers_reading_is_the_committed_rows(cohort):
    text = told().split(f"<!-- results/{cohort}/paper -->")[1].split("\n\n")[0]
    errors = experiment(f"{cohort}/paper").groupby("method")["mae"]
    assert set(errors.groups) >= {"joint", "glasso", "sample", "vnn"}
    for method, own in errors:
        assert f"| {METHODS[method].label} | {spread(own)} |" in text


@pytest.mark.parametrize("reading", ["paper", "flattened"])
def test_synthetic_figures_are_the_committed_rows(reading):
    text = told().split(f"<!-- results/synthetic/{reading} -->")[1].split("\n\n")[0]
    rows = experiment(f"synthetic/{reading}")
    names = ["joint", "naive", "glasso", "sample", "ridge"]
    for sparsity, group in rows.groupby("sparsity"):
        means = group.groupby("method")
        errors = [f"{means['mae'].mean()[name]:.2f}" for name in names]
        graph = [f"{means[metric].mean()[name]:.{digits}f}" for metric, digits in (("l1_error", 0), ("density", 2))
                 for name in ("joint", "glasso")]  # fmt: skip
        assert f"| {sparsity:g} | {' | '.join(errors + graph)} |" in text


def test_slopes_in_the_readme_are_the_committed_rows():
    text = " ".join(told().split())
    slopes = pd.read_csv(ROOT / "results" / "theorem" / "summary.csv").set_index(["vary", "series"])["slope"]
    for key in (("n_samples", "glasso"), ("sparsity", "glasso"), ("n_features", "glasso"), ("nuclear_distance", "one")):
        assert f"{slopes[key]:+.2f}" in text


def test_times_of_the_grid_in_the_readme_are_the_committed_rows():
    text = " ".join(told().split())
    for row in pd.read_csv(ROOT / "results" / "grid_bench.csv").itertuples():
        assert f"{row.times_faster:.1f} times" in text


@pytest.mark.parametrize(
    "name",
    [
        "abide/flattened",
        "abide/paper",
        "ants/flattened",
        "ants/paper",
        "convergence",
        "stability",
        "synthetic/flattened",
        "synthetic/paper",
        "theorem",
        *(f"accuracy/{c}{e}" for c in ("abide", "ants") for e in ENDINGS),
        "stability-paper",
        "accuracy/abide-sites-defaults",
        "accuracy/abide-sites-tuned",
    ],
)
def test_committed_summaries_are_made_from_the_committed_rows(name):
    """To the digits that every processor computes alike."""
    from precisionnet.report.experiment_page import in_order, summary

    stored = read_folder(ROOT / "results" / name)
    made = pd.read_csv(StringIO(summary(stored.manifest["about"]["kind"], in_order(stored.rows)).to_csv(index=False)))
    committed = pd.read_csv(ROOT / "results" / name / "summary.csv")
    pd.testing.assert_frame_equal(made, committed, rtol=1e-6, atol=1e-9)


def test_the_table_of_sites_left_out_is_made_of_the_committed_rows():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    table = page.split("<!-- results/accuracy/abide-sites -->")[1].strip().split("\n\n")[0]
    methods = {"Joint": "joint", "GP": "gp", "SVR": "svr", "Boosting": "hist_gb", "Ridge": "ridge", "Median": "median"}
    known = {}
    for folder in ("defaults", "tuned"):
        rows = pd.read_csv(ROOT / "results" / "accuracy" / f"abide-sites-{folder}" / "summary.csv")
        rows = rows[rows["metric"] == "mae"]
        known |= {(folder, *key): mean for key, mean in rows.set_index(["held_out", "method"])["mean"].items()}
    shown, columns = 0, [("defaults", False), ("defaults", True), ("tuned", True)]
    for line in table.splitlines()[2:]:
        method, *cells = (cell.strip(" *") for cell in line.strip("|").split("|"))
        for cell, (folder, left_out) in zip(cells, columns, strict=True):
            if cell != "–":
                assert float(cell) == pytest.approx(known[folder, left_out, methods[method]], abs=0.0051)
                shown += 1
    assert shown == 17


def test_a_committed_folder_makes_its_page(tmp_path):
    from precisionnet.report.experiment_page import write_results

    shutil.copytree(ROOT / "results" / "abide" / "flattened", tmp_path / "abide")
    outcome = write_results(tmp_path / "abide")
    assert (tmp_path / "abide" / "index.html").read_text(encoding="utf-8") == outcome.html
    assert (tmp_path / "abide" / "figure-repeats.svg").exists()


def test_what_a_command_rebuilds_is_not_committed():
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8")
    for made in ("index.html", "figure-*.png", "figure-*.svg"):
        assert f"/results/**/{made}" in ignored
