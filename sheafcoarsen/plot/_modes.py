"""Plot of eigenmodes: eigenvalues, and the lowest modes on the vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sheafcoarsen._support import checks, tables
from sheafcoarsen.plot import draw, positions
from sheafcoarsen.plot._surface import draw_tangents, fill_faces, tangent_vectors
from sheafcoarsen.plot.positions import Scene, UpAxis
from sheafcoarsen.solve import Eigenmodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def modes(
    E: Eigenmodes,
    pos: ArrayLike | Mapping | None = None,
    faces: ArrayLike | None = None,
    *,
    view: tuple[float, float] = (20, -60),
    up: UpAxis = "z",
    ax: Axes | None = None,
) -> Axes:
    """Plot eigenvalues, and up to six of the lowest modes at the positions of the vertices.

    For real stalks of dimension 1 a mode is drawn in colours centred at zero; for real stalks of
    dimension 2 and complex ones of dimension 1 as arrows, in the coordinates of the stalks; for
    others the colour is norm(x_v). The sign of a mode is arbitrary, and so is the basis of the
    modes of one eigenvalue.

    With ``faces``, colours fill the faces of a surface, and arrows are the tangent vectors that
    :func:`field` draws for coordinates in the default frames, with ``power`` 1.

    Parameters
    ----------
    E : Eigenmodes
    pos : array_like, shape (n, 2) or (n, 3), or dict from vertex labels to positions, optional
        By default computed from distances in the graph.
    faces : array_like of int, shape (f, k), optional
        Faces of a surface with the vertices ``pos`` in space, as in :func:`partition`.
    view, up : pair of float, str
        The view of positions in space, as in :func:`surface`.
    ax : matplotlib Axes, optional
        Its area is divided into inset axes, ``child_axes``: the eigenvalues, then one for each
        mode.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError, TypeError
        Positions that are not finite, or do not have two or three coordinates for each vertex;
        faces that are not a surface; axes that are not plane.

    See Also
    --------
    field : tangent vectors on a surface.
    surface : numbers on a surface.
    sheafcoarsen.eigenmodes : what is drawn.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> E = sc.eigenmodes(sc.CellularSheaf.constant(nx.karate_club_graph()), 3)
    >>> ax = sc.plot.modes(E, ax=Figure(figsize=(11, 5)).add_subplot())
    >>> [panel.get_title() for panel in ax.child_axes[1:]]
    ['1: 0', '2: 1.187', '3: 2.394']
    """
    checks.kind("E", E, Eigenmodes)
    places, order, scene = positions.flat_places(E.sheaf, pos, faces, view, up)
    count = min(len(E.values), 6)
    columns = min(count, 2 if count == 4 else 3)
    reach = draw.frame_of(places)[1]
    flat = float(reach[1] / reach[0])
    if flat < 0.4:
        columns = 1
    rows = -(-count // columns)
    side = 2.6 if columns > 1 else 4.0
    fresh = ax is None
    ax = draw.axes_or_new(ax, 4 + side * columns, max((side * flat + 0.3) * rows, 3.2) + 0.4)
    if fresh:  # panels are placed explicitly; a layout engine would add margins
        ax.figure.set_layout_engine("none")  # type: ignore[union-attr]
        ax.set_position((0.01, 0.02, 0.98, 0.90))
    ax.set_axis_off()
    left = 0.30 if columns > 1 else 0.42
    _draw_values(ax.inset_axes((0.06, 0.12, left - 0.10, 0.76)), E)
    width, height = (1 - left) / columns, 1.0 / rows
    for i in range(count):
        row, column = divmod(i, columns)
        box = (left + column * width, 1 - (row + 1) * height, 0.96 * width, 0.86 * height)
        panel = ax.inset_axes(box)
        value = "0" if i < E.n_zero else f"{E.values[i]:.4g}"
        draw.title(panel, f"{i + 1}: {value}", fontsize=9, pad=3)
        how = _draw_mode(panel, E, i, places, order, scene)
        draw.frame(panel, places)
    drawn = "" if count == len(E.values) else f", the first {count} drawn"
    modes = tables.counted(len(E.values), "lowest mode")
    draw.title(ax, f"{modes}{drawn}, {tables.counted(E.n_zero, 'section')}; {how}")
    return ax


def _draw_values(ax: Axes, E: Eigenmodes) -> None:
    """Draw eigenvalues by index, zeros hollow; the label says whether k splits a multiplet."""
    values = E.values.astype(np.float64)
    number = np.arange(1, len(values) + 1)
    style: dict = {"markersize": 5, "clip_on": False}
    zero = number <= E.n_zero
    ax.plot(number[~zero], values[~zero], "o", color=draw.DARK, zorder=3, **style)
    style |= {"markerfacecolor": "white", "markeredgecolor": draw.MIDDLE, "markeredgewidth": 1.4}
    ax.plot(number[zero], values[zero], "o", zorder=4, label="sections", **style)
    draw.scale(ax, values)
    draw.tick_whole_numbers(ax)
    ax.set_xlabel("i" + (" (next eigenvalue equal up to rounding)" if E.tied else ""), fontsize=9)
    draw.title(ax, r"eigenvalue $\lambda_i$", fontsize=9, pad=3)
    ax.tick_params(labelsize=8)


def _draw_mode(
    ax: Axes, E: Eigenmodes, i: int, places: np.ndarray, order: np.ndarray, scene: Scene | None
) -> str:
    """Draw one mode, from back to front, and return a description."""
    x, dims = E.vectors[:, i], E.sheaf.vertex_dims
    is_complex, one = x.dtype.kind == "c", bool((dims == 1).all())
    planar = one if is_complex else bool((dims == 2).all())
    if scene is not None and planar:
        fill_faces(ax, scene)
        draw_tangents(ax, scene, tangent_vectors(x, scene, None, 1), 150, False, False)
        return "arrows: tangent vectors"
    signs = _draw_edges(ax, E, places) if scene is None else ""
    if planar:
        vectors = np.stack([x.real, x.imag], axis=1) if is_complex else x.reshape(-1, 2)
        _draw_arrows(ax, places, vectors)
        return "arrows: " + (
            "real and imaginary parts" if is_complex else "coordinates in each stalk"
        )
    owner = np.repeat(np.arange(len(dims)), dims)
    values = x if one else np.sqrt(np.bincount(owner, np.abs(x) ** 2, len(dims)))
    reach = float(np.abs(values).max(initial=0.0)) or 1.0
    cmap, norm = draw.number_colors(np.array([-reach if one else 0.0, reach]))
    how = "red and blue: the two signs" if one else "light: where stalks hold most"
    if scene is not None:
        fill_faces(ax, scene, cmap(norm(values[scene.faces].mean(axis=1)))[:, :3], 0.9)
        return how
    area = draw.disc_area(places, draw.width_in_points(ax) ** 2)
    style: dict = {"cmap": cmap, "norm": norm, "s": area, "edgecolors": "0.35"}
    style |= {"c": values[order], "linewidths": 0.3 if len(places) <= draw.MARKERS else 0.0}
    draw.marks(ax, "mode", places[order], **style)
    return how + signs


def _draw_edges(ax: Axes, E: Eigenmodes, places: np.ndarray) -> str:
    """Draw the edges, negative ones red, unless there are too many; return a note on red ones.

    Loops are not drawn.
    """
    F = E.sheaf
    proper = F.edges[:, 0] != F.edges[:, 1]
    edges = F.edges[proper]
    if len(edges) > draw.LINES:
        return ""
    width = 0.3 if len(edges) > 4 * draw.MARKERS else 0.6
    draw.lines(ax, "edges", places, edges, color="0.8", linewidths=width)
    negative = edges[draw.signed_weights(F)[proper] < 0]
    draw.lines(ax, "negative edges", places, negative, color=draw.NEGATIVE, linewidths=width)
    return ", lines of negative edges red" if len(negative) else ""


def _draw_arrows(ax: Axes, places: np.ndarray, arrows: np.ndarray) -> None:
    """Draw arrows at up to 400 evenly spread vertices and where the mode is largest.

    The longest is a little longer than the median distance between neighbouring ones of these
    vertices, and at least a twentieth of the extent of all, so that a mode on a few vertices is
    seen.
    """
    sizes = np.linalg.norm(arrows, axis=1)
    some = positions.spread_out(places, 400) if len(places) > 400 else np.arange(len(places))
    some = np.union1d(some, np.argsort(sizes)[-10:])
    length = max(
        1.1 * positions.usual_gap(places[some]), 0.05 * float(np.ptp(places, axis=0).max())
    )
    shown = length * arrows[some] / (float(sizes.max(initial=0.0)) or 1.0)
    style: dict = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.005}
    style |= {"headwidth": 3.5, "headlength": 4, "headaxislength": 3.5, "pivot": "middle"}
    style["minlength"] = 0  # not dots that look larger than short arrows
    ax.quiver(*places[some].T, *shown.T, color=draw.DARK, zorder=3, label="mode", **style)
