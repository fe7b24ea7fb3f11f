"""How the site is built: ``make site``. Pages are the files beside this one, the docstrings and examples/."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
TOOLS = str(HERE.parent / "tools")
sys.path.insert(0, TOOLS)
os.environ["PYTHONPATH"] = os.pathsep.join([TOOLS, os.environ.get("PYTHONPATH", "")])  # for workers, too
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two examples run at a time

from site_pages import write_pages  # noqa: E402

from precisionnet import __version__  # noqa: E402

write_pages(HERE / "api")

project = "precisionnet"
author = "The precisionnet developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/**/*.py", "gallery/**/*.ipynb", "gallery/sg_execution_times.rst", "sg_execution_times.rst"]

# Markdown pages stay readable by themselves: links between them are plain links to files and headings.
myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # the pages of decisions begin at their own level

# The reference: what the docstrings say.
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
python_use_unqualified_type_names = True
add_module_names = False

# The gallery: every script of examples/ is run.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("precisionnet",),
    "reference_url": {"precisionnet": None},
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "plot_gallery": "True",
    "image_scrapers": ("matplotlib", "site_pictures.returned_figure"),
    "capture_repr": ("_repr_html_",),
    "matplotlib_animations": False,
    "parallel": 2,
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_theme = "pydata_sphinx_theme"
html_title = "precisionnet"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "precisionnet", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": [], "faq": []}


def files_outside(app: object, page: str, source: list[str]) -> None:
    """Make a link to a Markdown file outside docs/ a download, and a link to a folder there plain text."""

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        return f"`{text.strip('`')}`" if (HERE / page).parent.joinpath(target).is_dir() else f"[{text}](path:{target})"

    source[0] = re.sub(r"\[([^\]]+)\]\(((?:\.\./)+results(?:/[^)#]*\.md|/[^).#]*)?)\)", link, source[0])


def setup(app: object) -> None:
    """Called by Sphinx."""
    app.connect("source-read", files_outside)  # type: ignore[attr-defined]
