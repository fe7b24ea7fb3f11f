"""Draw the picture of README.md and of the site's home page: the model of the gallery's brain-age example.

python tools/readme_picture.py docs/_static/picture.png
"""

from __future__ import annotations

import runpy
import sys
from io import BytesIO
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

from precisionnet import GraphicalLasso
from precisionnet.evidence import edge_inference

TITLES = ("What a prediction of age rests on", "Which regions depend directly on each other")
HEIGHT, GUTTER = 560, 40
"""Of the picture and between its halves, in pixels."""
EXAMPLE = Path(__file__).parents[1] / "examples" / "plot_02_brain_age.py"


def draw(path: Path) -> None:
    """Fit the example's model and draw it on the brain; beside it the graph of one hemisphere with evidence."""
    made = runpy.run_path(str(EXAMPLE))
    plt.close("all")
    left_side = made["X"].filter(like="lh_").rename(columns=lambda name: name.removeprefix("lh_"))
    graph = GraphicalLasso(l1_penalty=0.1, scale_free=True).fit(left_side)
    brain = made["model"].plot.brain()
    circle = graph.plot.graph(evidence=edge_inference(left_side))
    pictures = []
    for axes, title in zip((brain, circle), TITLES, strict=True):
        axes.set_title(title, loc="left", fontsize=14)
        drawn = BytesIO()
        axes.figure.savefig(drawn, dpi=110, facecolor="white", bbox_inches="tight")
        picture = Image.open(drawn).convert("RGB")
        pictures.append(
            picture.resize((round(picture.width * HEIGHT / picture.height), HEIGHT), Image.Resampling.LANCZOS)
        )
    whole = Image.new("RGB", (sum(picture.width for picture in pictures) + GUTTER, HEIGHT), "white")
    whole.paste(pictures[0], (0, 0))
    whole.paste(pictures[1], (pictures[0].width + GUTTER, 0))
    whole.quantize(255).save(path, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
