"""The pictures in docs/images that the README and several pages show.

Run from the repository: ``python docs/pictures.py``. `fidelity.png` comes from
``python -m benchmarks.fidelity``. Other pictures of the site are drawn while it is built, by the
code beside them.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch, Polygon

import sheafcoarsen as sc

HERE = Path(__file__).parent
IMAGES = HERE / "images"
DATA = HERE.parent / "notebooks" / "data"
SIZE = (5.0, 4.2)
MIDDLE, RED = "#2A7F8E", "#B2182B"


def save(figure, name):
    """Write a figure in as few colours as it needs."""
    path = IMAGES / name
    figure.savefig(path, dpi=100)
    plt.close(figure)
    shrink(path)


def shrink(path):
    """Write a PNG file again with a palette of 128 colours."""
    from PIL import Image

    with Image.open(path) as image:
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
    flat.quantize(128).save(path, optimize=True)


def karate():
    """Draw the karate club in five clusters, and its coarse sheaf."""
    F = sc.CellularSheaf.constant(nx.karate_club_graph())
    C = sc.coarsen(F, sc.select(F, n_clusters=5), rank=2)
    figure, ax = plt.subplots(figsize=(2 * SIZE[0], SIZE[1]), layout="constrained")
    sc.plot.partition(C, ax=ax)
    save(figure, "karate.png")


def surface():
    """Draw the smoothest tangent field of a mesh."""
    points, faces = sc.read_mesh(DATA / "spot.off.gz")
    F = sc.gallery.tangent_bundle(points, faces, weights="cotan")
    E = sc.eigenmodes(F, 1, mass=sc.gallery.vertex_areas(points, faces))
    figure = plt.figure(figsize=SIZE, layout="constrained")
    ax = figure.add_subplot()
    sc.plot.field(points, faces, E.vectors[:, 0], up="y", colorbar=False, ax=ax)
    save(figure, "surface.png")


def poses():
    """Draw the way of a robot, found from relative poses."""
    S = sc.synchronize(sc.read_g2o(DATA / "intel.g2o.gz", poses=True), refine=True)
    figure, ax = plt.subplots(figsize=SIZE, layout="constrained")
    sc.plot.poses(S, ax=ax)
    save(figure, "poses.png")


def plane(ax, x, y, color, *vectors):
    """Draw a stalk of dimension 2 as a tilted plane, and vectors (colour, end) in it."""
    a, b = np.array([0.62, 0.0]), np.array([0.26, 0.42])
    at = np.array([x, y])
    corners = [at + s * a + t * b for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    ax.add_patch(Polygon(corners, facecolor=color, alpha=0.16, edgecolor=color))
    style = {"arrowstyle": "-|>", "mutation_scale": 13, "lw": 2, "shrinkA": 0, "shrinkB": 0}
    for shade, (s, t) in vectors:
        ax.add_patch(FancyArrowPatch(at, at + s * a + t * b, color=shade, **style))


def sheaf():
    """Draw two stalks, an edge, and the two restriction maps."""
    figure, ax = plt.subplots(figsize=(8.6, 3.9), layout="constrained")
    plane(ax, 0, 1.5, MIDDLE, (MIDDLE, (0.75, 0.35)))
    plane(ax, 6, 1.5, RED, (RED, (0.1, 0.9)))
    plane(ax, 3, 2.6, "0.4", (MIDDLE, (0.5, 0.7)), (RED, (0.85, 0.1)))
    style = {"ha": "center", "va": "center", "fontsize": 13}
    ax.text(3, 3.28, "stalk $F(e)$ of the edge", **style)
    for x, name, color in ((0, "u", MIDDLE), (6, "v", RED)):
        side = 1 if x == 0 else -1
        ax.add_patch(
            FancyArrowPatch(
                (x + 0.75 * side, 1.9),
                (3 - 0.95 * side, 2.5),
                arrowstyle="->",
                mutation_scale=14,
                color="0.25",
                connectionstyle=f"arc3,rad={-0.2 * side}",
            )
        )
        ax.text(x + 0.1 * side, 2.5, f"restriction map $F_{{{name} \\to e}}$", **style)
        ax.text(x - 1.75 * side, 1.5, f"stalk $F({name})$\nwith $x_{name}$", color=color, **style)
        ax.plot([x, x], [0.16, 1.02], color="0.6", lw=1, ls=(0, (2, 3)))
        ax.add_patch(Circle((x, 0), 0.1, color="0.15", zorder=2))
        ax.text(x, -0.35, f"${name}$", **style)
    ax.plot([0, 6], [0, 0], color="0.3", lw=2, zorder=1)
    ax.plot([3, 3], [0.1, 2.12], color="0.6", lw=1, ls=(0, (2, 3)))
    ax.text(3, -0.35, "edge $e = (u, v)$", **style)
    text = (
        "The maps take $x_u$ and $x_v$ into one space. Their difference there is $(\\delta x)_e$."
    )
    ax.text(3, -0.85, text, **style)
    ax.set(xlim=(-2.6, 8.6), ylim=(-1.05, 3.5), aspect="equal")
    ax.axis("off")
    save(figure, "sheaf.png")


if __name__ == "__main__":
    for draw in (karate, surface, poses, sheaf):
        draw()
