"""Show a figure that an example of the gallery ends a block with, as a notebook does.

The functions of ``precisionnet.plots`` return figures that pyplot does not know, which sphinx-gallery would not find.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def returned_figure(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figure that the block's last line is, and return what shows it."""
    last = block_vars["example_globals"].get("___")
    if not isinstance(last, Figure):
        return ""
    path = next(block_vars["image_path_iterator"])
    last.savefig(path, dpi=150, facecolor="white")
    return figure_rst([path], gallery_conf["src_dir"])
