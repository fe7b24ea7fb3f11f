"""Measure the page of a fit in headless Chromium: its weight, and the time until its graph can be worked with.

The time is the browser's own, from the start of the navigation until the last script has run: the explorer is then
ready. A page is loaded five times by one browser, and the median is kept. Run with nothing else running:

    python -m benchmarks.report.run
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from precisionnet.datasets import Dataset, make_gaussian_regression
from precisionnet.evaluation import measure
from precisionnet.evidence import edge_inference
from precisionnet.report import render
from precisionnet.versions import versions

OUT = Path(__file__).parents[2] / "results" / "report.csv"
COLUMNS = (10, 68, 148)
LOADS = 5


def page_of(n_columns: int) -> str:
    """Return the page of a quick fit of so many columns."""
    data = make_gaussian_regression(n_samples=5 * n_columns + 60, n_features=n_columns, sparsity=0.1, random_state=0)
    names = [f"a_region_of_some_atlas_{i:03d}_thickness" for i in range(n_columns)]
    site = pd.Series(np.arange(len(data)) % 8, index=data.X.index, name="site")
    table = Dataset(data.X.set_axis(names, axis=1), data.y, site=site)
    result = measure(table, "regression", {"n_members": 4, "max_epochs": 2})
    return render(result, "table.csv", "2026-01-01", data_graph=edge_inference(table.X), data=table)


def loads(browser: Any, page: Path) -> list[float]:
    """Return the milliseconds until the scripts of the page have run, load by load."""
    found = []
    for _ in range(LOADS + 1):  # the first one starts the browser's own machinery
        browser.get(page.as_uri())
        assert browser.execute_script("return document.querySelector('.explorer').dataset.ready") == "yes"
        script = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        found.append(float(browser.execute_script(script)))
    return found[1:]


def main() -> None:
    """Write one row per number of columns."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,1000"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or ""))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n_columns in COLUMNS:
            page = Path(folder) / f"{n_columns}.html"
            page.write_text(page_of(n_columns), encoding="utf-8")
            times = loads(browser, page)
            rows.append(
                {
                    "n_columns": n_columns,
                    "page_bytes": page.stat().st_size,
                    "ready_ms_median": round(statistics.median(times)),
                    "ready_ms_most": round(max(times)),
                    "browser": f"Chromium {browser.capabilities['browserVersion']}",
                    "precisionnet": versions()["precisionnet"],
                }
            )
            print(rows[-1])
    browser.quit()
    pd.DataFrame(rows).to_csv(OUT, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
