"""The report in a real browser: nothing overflows, nothing is fetched, every picture is there."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from precisionnet.cli.app import app
from precisionnet.datasets import Dataset
from precisionnet.evaluation import measure
from precisionnet.report import render
from precisionnet.report.experiment_page import build_page
from tests.made_rows import PUBLISHED, comparison_rows, manifest, synthetic_rows

pytestmark = pytest.mark.browser

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if BROWSER is None or DRIVER is None:
        pytest.skip("no Chromium with its driver here; `make test-browser` installs Debian's")
    selenium = pytest.importorskip("selenium.webdriver", reason="pip install -e '.[browser]'")
    options = selenium.ChromeOptions()
    options.binary_location = BROWSER
    profile = tmp_path_factory.mktemp("profile")
    for flag in (
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--disable-quic", f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = selenium.Chrome(options=options, service=selenium.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module", params=["regression", "classification"])
def page(request, gaussian, classes, tmp_path_factory):
    y = gaussian.y if request.param == "regression" else classes
    X = gaussian.X.rename(columns={"x0": "a_very_long_region_name_of_the_kind_that_atlases_have_thickness"})
    result = measure(Dataset(X, y), request.param, {"max_epochs": 3})
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(result, "table.csv", "2026-01-01"), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [360, 1400])
def test_page_fits_the_window(browser, page, width):
    # Headless Chromium does not go below 500 px by itself; device metrics do.
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())
    assert browser.execute_script("return window.innerWidth") == width
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    heights = browser.execute_script(
        "return [...document.querySelectorAll('svg')].filter(s => !s.closest('.unscripted'))"
        ".map(s => s.getBoundingClientRect().height)"
    )
    assert len(heights) >= 6
    assert min(heights) > 80
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_parameters_open(browser, page):
    browser.get(page.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    text = browser.execute_script("return document.querySelector('#details').innerText")
    assert "learning_rate" in text
    assert "scikit-learn" in text


@pytest.fixture(scope="module", params=["comparison", "synthetic"])
def experiment_page(request, tmp_path_factory):
    if request.param == "comparison":
        head, rows = (
            manifest(published=PUBLISHED, notes=["A note."], source="a_long_name_of_a_table" * 5),
            comparison_rows(),
        )
        rows[3] |= {"error": "Training produced a value that is not finite: lower --learning-rate."}
    else:
        head, rows = manifest("synthetic"), synthetic_rows()
    path = tmp_path_factory.mktemp("experiment") / "index.html"
    path.write_text(build_page(head, rows, len(rows)).html, encoding="utf-8")
    return path


OUTSIDE = """
const bounds = e => e.getBoundingClientRect();
return [...document.querySelectorAll('figure svg')].flatMap(svg => {
  const box = bounds(svg);
  return [...svg.querySelectorAll('text')].filter(t => {
    const r = bounds(t);
    return r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1;
  }).map(t => t.textContent.trim());
});
"""
OVERLAPPING = """
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
return [...document.querySelectorAll('figure svg')].flatMap(svg => {
  const all = [...svg.querySelectorAll('text')].map(t => [t.textContent.trim(), t.getBoundingClientRect()]);
  return all.flatMap(([a, r], i) => all.slice(i + 1).filter(([_, s]) => overlap(r, s)).map(([b, _]) => [a, b]));
});
"""


@pytest.mark.parametrize("width", [360, 420, 1280])
def test_an_experiment_fits_the_window(browser, experiment_page, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(experiment_page.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE) == []
    assert browser.execute_script(OVERLAPPING) == []
    verdict = browser.execute_script("return document.querySelector('.verdict').getBoundingClientRect().top")
    assert verdict < 300
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.fixture(scope="module", params=["explain", "graphs"])
def evidence_page(request, gaussian, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evidence")
    X = gaussian.X.rename(columns={"x0": "a_very_long_region_name_of_the_kind_that_atlases_have_thickness"})
    dx = np.where(np.arange(len(X)) % 2, "patient", "control")
    X.assign(age=gaussian.y).to_csv(folder / "table.csv", index=False)
    X.assign(dx=dx, age=gaussian.y).to_csv(folder / "groups.csv", index=False)
    commands = {
        "explain": [
            ["fit", folder / "table.csv", "--target", "age", "--out", folder / "fit", "--n-members", "2",
             "--max-epochs", "2"],
            ["explain", folder / "fit", folder / "table.csv", "--out", folder / "out", "--permutations", "19"],
        ],
        "graphs": [
            ["graphs", folder / "groups.csv", "--by", "dx", "--covariate", "age", "--out", folder / "out",
             "--permutations", "99"],
        ],
    }  # fmt: skip
    for command in commands[request.param]:
        done = CliRunner().invoke(app, [str(argument) for argument in command])
        assert done.exit_code == 0, done.output
    return folder / "out" / f"{request.param}.html"


@pytest.mark.parametrize("width", [360, 420, 1280])
def test_evidence_fits_the_window(browser, evidence_page, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(evidence_page.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE) == []
    assert browser.execute_script("return document.querySelectorAll('figure svg').length") >= 2
    verdict = browser.execute_script("return document.querySelector('.verdict').getBoundingClientRect().top")
    assert verdict < 400
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
