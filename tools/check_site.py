"""Check a built site: every link between its pages leads somewhere, and every public name has a page with an example.

    python tools/check_site.py site-output/html

Links to other sites are counted, not followed: that would need a network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from site_pages import ERRORS, public_names

POINTS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """What a page points to and what can be pointed at in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors and the target of a tag."""
        given = dict(attrs)
        self.anchors.update(value for key in ("id", "name") if (value := given.get(key)))
        if target := given.get(POINTS.get(tag, "")):
            self.targets.append(target)


def broken_links(site: Path) -> tuple[list[str], int, int]:
    """Return complaints about links inside a site, and how many links were followed and how many not."""
    found = [path for path in sorted(site.rglob("*.html")) if path.relative_to(site).parts[0] != "_static"]
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in found}
    complaints, followed, elsewhere = [], 0, 0
    for path, page in pages.items():
        for target in page.targets:
            split = urlsplit(target)
            if split.scheme or split.netloc:
                elsewhere += split.scheme in ("http", "https")
                continue
            followed += 1
            to = (path.parent / unquote(split.path)).resolve() if split.path else path
            if not to.exists():
                complaints.append(f"{path.relative_to(site.resolve())}: no file {target}")
            elif split.fragment and to in pages and unquote(split.fragment) not in pages[to].anchors:
                complaints.append(f"{path.relative_to(site.resolve())}: no place {target}")
    return sorted(set(complaints)), followed, elsewhere


def missing_names(site: Path) -> tuple[list[str], int]:
    """Return complaints about public names without a page or an example, and the number of names."""
    complaints, names = [], public_names()
    for public in names:
        path = site / "api" / f"{public.page}.html"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if public.documented_as not in Page(text).anchors:
            complaints.append(f"{public.package}.{public.name}: no page that documents it")
        elif public.package != ERRORS and "&gt;&gt;&gt;" not in text:
            complaints.append(f"{public.package}.{public.name}: no example on its page")
    return complaints, len(names)


def main(folder: str) -> int:
    """Print what is wrong and how much was looked at; the exit code is 1 if anything is wrong."""
    site = Path(folder)
    broken, followed, elsewhere = broken_links(site)
    missing, n_names = missing_names(site)
    print("\n".join([*broken, *missing]), end="\n" if broken or missing else "")
    print(f"{n_names} public names, {len(missing)} without a page and an example")
    print(f"{followed} links inside the site, {len(broken)} broken; {elsewhere} links to other sites not followed")
    return 1 if broken or missing or not followed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
