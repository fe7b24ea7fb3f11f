"""The site: a page for every public name, examples that show something, a check of links that finds broken ones."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest
import yaml

import precisionnet

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.fixture
def tools(monkeypatch):
    """The modules that build and check the site."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    yield importlib.import_module("site_pages"), importlib.import_module("check_site")
    for name in ("site_pages", "check_site"):
        sys.modules.pop(name)


def test_every_package_with_public_names_is_in_the_reference(tools):
    pages, _ = tools
    inner = [f"precisionnet.{module.name}" for module in pkgutil.iter_modules(precisionnet.__path__) if module.ispkg]
    public = {name for name in inner if getattr(importlib.import_module(name), "__all__", None)}
    assert public | {"precisionnet"} == set(pages.PACKAGES) - {pages.ERRORS}


def test_every_public_name_has_one_page(tools):
    pages, _ = tools
    made = pages.api_pages()
    names = {(one.package, one.name): one for one in pages.public_names()}
    for package in pages.PACKAGES:
        for name in getattr(importlib.import_module(package), "__all__", ()):
            if not name.startswith("__"):
                assert f":: {names[package, name].documented_as}\n" in made[names[package, name].page]
    assert len({page.lower() for page in made}) == len(made)  # where Status and status are one file
    assert names["precisionnet.estimators", "PNNRegressor"].documented_as == "precisionnet.PNNRegressor"


def test_a_page_lists_the_methods_that_this_project_wrote(tools):
    pages, _ = tools
    members = pages.own_members(precisionnet.PNNRegressor)
    assert {"fit", "predict", "predict_interval", "contributions", "task_graph_"} <= set(members)
    assert not {"get_params", "set_fit_request"} & set(members)


def test_every_command_is_on_the_page_of_commands(tools):
    pages, _ = tools
    commands = {" ".join(words) for words in pages.commands()}
    assert {"fit", "predict", "gap", "datasets check", "experiments status"} <= commands


def site_of(folder: Path, **pages: str) -> Path:
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(f"<html><body>{text}</body></html>", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("b.html", None),
        ("b.html#here", None),
        ("#top", None),
        ("https://example.org/nowhere", None),
        ("c.html", "no file"),
        ("b.html#there", "no place"),
        ("#bottom", "no place"),
    ],
)
def test_links_are_followed_to_files_and_places(tools, tmp_path, link, complaint):
    _, check = tools
    site = site_of(tmp_path, a=f'<p id="top"><a href="{link}">x</a><img src="b.html"></p>', b='<p id="here"></p>')
    broken, followed, elsewhere = check.broken_links(site)
    assert (followed, elsewhere) == ((1, 1) if link.startswith("https") else (2, 0))
    assert [complaint] == [complaint if complaint in line else line for line in broken] if complaint else not broken


def test_a_name_without_a_page_is_found(tools, tmp_path):
    _, check = tools
    complaints, n_names = check.missing_names(tmp_path)
    assert len(complaints) == n_names > 100


def test_there_are_ten_examples_and_each_draws():
    assert len(EXAMPLES) >= 10
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""\n'), path.name
        assert ".plot." in text or "plt." in text or "\npicture\n" in text, path.name
        assert "PRECISIONNET_DATA" not in text
        assert "fetch_" not in text


def test_the_citation_is_of_this_version_and_prefers_the_paper():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == precisionnet.__version__
    paper = cited["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Cavallo", "Rey", "Marques", "Isufi"]
    assert paper["title"] == "Precision Neural Networks: Joint Graph and Relational Learning"


def test_issue_templates_can_be_read():
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    read = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in templates}
    assert read.keys() >= {"bug", "question", "wish"}
    assert all(read[name]["body"] for name in ("bug", "question", "wish"))
