"""Plot of a partition: the fine graph with its clusters, and the coarse graph.

Lightness, shape or position distinguish objects, never hue alone. Large plots consist of one
collection of markers, rasterized in vector files, and omit lines that would be indistinguishable;
a note says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import Vertices, counted, vertex_indices
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.plot._surface import fill_cells, fill_faces, scene_at
from sheafcoarsen.plot.axes import (
    MARKERS,
    NEGATIVE,
    NUMBERED,
    add_legend_below,
    cluster_colors,
    disc_area,
    draw_discs,
    draw_frame,
    draw_lines,
    negative_edges,
    set_title,
    two_panels,
    write_names,
    write_texts,
)
from sheafcoarsen.plot.positions import (
    LINES,
    Places,
    Scene,
    UpAxis,
    places_of,
    surface_places,
    view_from,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


NARROW = 5e4
"""Area of a panel, in square points, up to which labels are smaller and have more lines."""


def partition(
    C: Coarsening,
    pos: ArrayLike | Mapping | None = None,
    faces: ArrayLike | None = None,
    *,
    names: Vertices | None = None,
    view: tuple[float, float] = (20, -60),
    up: UpAxis = "z",
    ax: Axes | None = None,
) -> Axes:
    """Plot the fine graph with its clusters, and the coarse graph next to it.

    A coarse vertex is drawn at the vertex of its cluster nearest to their mean. Its area is
    proportional to the dimension r_a of its stalk (hollow if that is 0), the width of a coarse edge
    to the dimension of its stalk; a ring is a loop-cell. Both panels draw a cluster in the same
    colour, different from its neighbours'; up to 20 clusters have bold numbers. In sheaves with
    real stalks of dimension 1 negative edges are red; a coarse edge is if most of the edges between
    its clusters are negative, because the sign of its own maps depends on the signs of the modes.

    Without ``pos``, a graph is drawn by its quotient if it has more than 50,000 edges, more than
    1000 edges that join more than a quarter of all pairs of its vertices, or more than 500 vertices
    of which one has more than ten times the mean degree. The quotient has a disc of vertices for
    each cluster, and lines for the strongest links between clusters. With ``pos``, more than 50,000
    edges are not drawn.

    Parameters
    ----------
    C : Coarsening
    pos : array_like, shape (n, 2) or (n, 3), or dict from vertex labels to positions, optional
        Positions of the fine vertices. By default computed from distances in the graph, in
        near-linear time.
    faces : array_like of int, shape (f, k), optional
        Faces of a surface with the vertices ``pos`` in space: they are filled, and hidden vertices
        are not drawn. The mean of a cluster is that of its visible vertices.
    names : array_like of int or bool, or sequence of names, optional
        Vertices whose names, or indices without names, are written next to them in the left panel.
        By default, without faces, all of up to 20 vertices with names that are not integers. A name
        is moved round its vertex to where it covers least of other names and of vertices.
    view : pair of float
        Elevation and azimuth in degrees of the view of positions in space, as in matplotlib's
        ``view_init``.
    up : {"z", "y", "x", "-z", "-y", "-x"}
        The coordinate axis that points up, or down with a minus sign.
    ax : matplotlib Axes, optional
        Its area is divided into two inset axes, ``child_axes``: the fine graph and the coarse
        graph.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError, TypeError
        Positions that are not finite, or do not have two or three coordinates for each vertex;
        faces that are not a surface; axes that are not plane.
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    See Also
    --------
    surface : numbers on a surface.
    elimination : the eliminated vertices and the remaining graph.
    hierarchy : the sizes of all levels.
    sheafcoarsen.Coarsening.quotient : the graph of clusters for networkx.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> C = sc.coarsen(F, sc.select(F, 5), rank=2)
    >>> ax = sc.plot.partition(C, ax=Figure(figsize=(10, 5)).add_subplot())
    >>> [panel.get_title().partition(":")[0] for panel in ax.child_axes]
    ['fine graph', 'coarse graph']
    """
    check_coarsening(C)
    chosen = None if names is None else vertex_indices("names", names, C.fine)
    scene = None
    if faces is None:
        places = places_of(C, pos, view_from(view, up))
    else:
        scene = scene_at(C.fine, pos, faces, view, up)
        places = surface_places(C, scene)
    ax, left, right, panel_area = two_panels(ax, places.fine, 1.4)
    labels, K = C.partition.labels, C.partition.n_clusters
    colors = cluster_colors(C.clusters.pairs, K)
    radius = _draw_fine(left, C, places, colors, panel_area, scene)
    if scene is not None:
        fill_cells(left, scene, colors[labels, :3])
        fill_faces(right, scene)
    discs = _draw_coarse(right, C, places, colors, panel_area)
    by_vertices = scene is None and not places.by_quotient
    draw_frame(left, places.fine)
    draw_frame(right, places.coarse if by_vertices else places.fine)
    if K <= NUMBERED:
        shown, numbers = np.flatnonzero(places.seen), [str(a) for a in range(K)]
        # write a number to the lower left of a vertex too small for it; names are at the right
        shifts = np.full(K, -radius - 4 if by_vertices else 0.0)
        write_texts(left, shown, places.coarse, shifts, numbers, "bold")
        shifts = np.where(discs > 100 * len(str(K - 1)), 0.0, -np.sqrt(discs) / 2 - 4)
        write_texts(right, shown, places.coarse, shifts, numbers, "bold")
    if by_vertices or chosen is not None:
        write_names(left, C.fine, places.fine, chosen)
    return ax


def _draw_fine(
    ax: Axes,
    C: Coarsening,
    places: Places,
    colors: np.ndarray,
    panel_area: float,
    scene: Scene | None,
) -> float:
    """Draw the fine graph and return the radius of its vertices in points."""
    n, labels = C.fine.n_vertices, C.partition.labels
    edges = C.fine.edges[C.fine.edges[:, 0] != C.fine.edges[:, 1]]
    counts = f"{counted(n, 'vertex', 'vertices')} in {counted(len(colors), 'cluster')}"
    set_title(ax, f"fine graph: {counts}", 11)
    area = 0.0
    if scene is not None:
        what = "faces of more than one cluster are divided among them"
    else:
        what = (_draw_links if places.by_quotient else _draw_edges)(ax, C, places, colors, edges)
        order = places.order
        area = np.clip(0.12 * panel_area / max(n, 1), 0.3, 60 * panel_area / 1e5)
        area = min(area, disc_area(places.fine, panel_area, 0.7))
        outline = 0.4 if n <= 2000 else 0
        draw_discs(ax, "vertices", places.fine[order], area, colors[labels[order]], outline)
    loops = C.fine.n_edges - len(edges)
    if loops:
        what += f"; {counted(loops, 'loop')} not drawn"
    text = f"places {places.how}\n{what}"
    if panel_area <= NARROW:
        text = text.replace(" from", "\nfrom").replace(", ", ",\n")
    ax.set_xlabel(text, fontsize=10 if panel_area > NARROW else 8)
    return float(np.sqrt(area) / 2)


def _draw_edges(
    ax: Axes, C: Coarsening, places: Places, colors: np.ndarray, edges: np.ndarray
) -> str:
    """Draw the fine edges, unless there are too many, and return a description of them."""
    from matplotlib.colors import to_rgba

    if len(edges) > LINES:
        return f"{len(edges):,} edges not drawn"
    negative = negative_edges(C.fine)[C.fine.edges[:, 0] != C.fine.edges[:, 1]]
    few = len(edges) <= MARKERS
    tail, head = C.partition.labels[edges].T
    inside = tail == head
    own = np.where(inside[:, None], colors[tail], to_rgba("0.6"))
    own[negative] = to_rgba(NEGATIVE)
    width = float(np.clip(1500 / max(len(edges), 1), 0.4, 1.4))
    crossing: dict = {"colors": own[~inside], "linewidths": 0.7 * width, "zorder": 1}
    crossing["linestyles"] = (0, (3, 2)) if few else "solid"
    draw_lines(ax, "crossing edges", places.fine, edges[~inside], **crossing)
    internal: dict = {"colors": own[inside], "linewidths": 1.3 * width, "zorder": 2}
    draw_lines(ax, "internal edges", places.fine, edges[inside], **internal)
    what = "solid: inside a cluster, dashed: crossing" if few else "grey: crossing edges"
    if negative.any():
        what = what if few else "thick: inside a cluster, thin: crossing"
        what += "; red: negative"
    return what


def _draw_links(
    ax: Axes, C: Coarsening, places: Places, colors: np.ndarray, edges: np.ndarray
) -> str:
    """Draw a line for each retained link between clusters, and return a description of them."""
    counts = np.diff(C.clusters.pair_ptr)
    kept = counts[places.links]
    widths = 0.4 + 3.5 * np.sqrt(kept / kept.max(initial=1))
    negative = _draw_pairs(ax, C, places, "links", widths, "0.6", 1)
    K, between, all_drawn = len(colors), int(counts.sum()), len(kept) == len(counts)
    text = "lines: " + ("" if all_drawn else f"{int(kept.sum()):,} of ")
    text += f"{between:,} edges between clusters\n"
    text += "red: most are negative; " if negative else ""
    text += f"{len(edges) - between:,} inside not drawn"
    if len(counts) > K * (K - 1) / 4 and not all_drawn:
        text += f"\n{len(counts):,} pairs of clusters are linked: distances mean little"
    return text


def _draw_coarse(
    ax: Axes, C: Coarsening, places: Places, colors: np.ndarray, panel_area: float
) -> np.ndarray:
    """Draw the coarse graph and return the areas of its vertices, shape (K,)."""
    K, crossing, shown = len(places.coarse), C.n_crossing_edges, places.seen
    n_loops, kept = C.sheaf.n_edges - crossing, int(places.links.sum())
    largest = max(int(C.ranks.max(initial=0)), 1)
    area = disc_area(places.coarse[shown], panel_area, 0.35)  # leave space for edges between rings
    sizes = np.maximum(area * C.ranks / largest, 0.04 * area)
    # width of lines and rings, in points, for each dimension of an edge stalk
    unit = float(np.clip(0.4 * np.sqrt(area), 0.5, 5))
    unit /= max(int(C.sheaf.edge_dims.max(initial=0)), 1)
    handles, notes = [], []
    if kept > LINES:
        notes.append(f"{crossing:,} crossing edges")
    else:
        handles += _draw_crossing_edges(ax, C, places, unit)
    if K <= MARKERS:
        handles += _draw_loops(ax, C, places, sizes, area, unit)
    elif n_loops:
        notes.append(f"{n_loops:,} loop-cells")
    faces = np.where((C.ranks > 0)[:, None], colors, 1.0)
    outline = 0.5 if K <= 2000 else 0
    draw_discs(ax, "vertices", places.coarse[shown], sizes[shown], faces[shown], outline)
    style: dict = {"markeredgecolor": "0.15", "markeredgewidth": 0.5}
    for d in _both_ends(C.ranks[shown]):
        style |= {"color": "0.5" if d else "1.0", "markersize": 12 * max(np.sqrt(d / largest), 0.2)}
        handles.append(_disc_handle(f"vertex stalk dim {d}", **style))
    counts = f"{counted(K, 'vertex', 'vertices')}, {counted(crossing, 'edge')}"
    set_title(ax, f"coarse graph: {counts}, {counted(n_loops, 'loop')}", 11)
    hidden = K - int(shown.sum())
    if hidden:
        notes.append(f"{counted(hidden, 'hidden vertex', 'hidden vertices')}")
    elif kept < crossing:
        notes.append(f"the weakest {crossing - kept:,} of {crossing:,} edges")
    size = 10 if panel_area > NARROW else 8
    if notes:
        ax.set_xlabel(f"{' and '.join(notes)} not drawn", fontsize=size)
    if handles:
        style = {"handlelength": 1.4, "columnspacing": 1.0, "handletextpad": 0.5}
        add_legend_below(ax, handles, 18 if notes else 2, fontsize=size, ncols=3, **style)
    return sizes


def _draw_crossing_edges(ax: Axes, C: Coarsening, places: Places, unit: float) -> list:
    """Draw the coarse crossing edges and return legend entries."""
    from matplotlib.lines import Line2D

    dims = C.sheaf.edge_dims[np.flatnonzero(places.links)]
    widths = np.maximum(unit * dims, 0.15)
    negative = _draw_pairs(ax, C, places, "crossing edges", widths, "0.55", 2)
    handles = [
        Line2D([], [], color="0.55", linewidth=max(unit * d, 0.15), label=f"edge stalk dim {d}")
        for d in _both_ends(dims)
    ]
    if negative:
        handles.append(Line2D([], [], color=NEGATIVE, label="mostly negative edges"))
    return handles


def _draw_pairs(
    ax: Axes, C: Coarsening, places: Places, label: str, widths: np.ndarray, grey: str, zorder: int
) -> bool:
    """Draw a line for each retained pair of clusters and return whether some are negative.

    Lines of pairs whose crossing edges are mostly negative are red, the others grey.
    """
    from matplotlib.colors import to_rgba

    counts = np.diff(C.clusters.pair_ptr)
    signs = np.where(negative_edges(C.fine)[C.clusters.crossing_edges], -1, 1)
    sums = np.bincount(np.repeat(np.arange(len(counts)), counts), signs, len(counts))
    negative = sums[places.links] < 0
    style: dict = {"linewidths": widths, "zorder": zorder}
    style["colors"] = np.where(negative[:, None], to_rgba(NEGATIVE), to_rgba(grey))
    draw_lines(ax, label, places.coarse, C.clusters.pairs[places.links], **style)
    return bool(negative.any())


def _draw_loops(
    ax: Axes, C: Coarsening, places: Places, sizes: np.ndarray, area: float, unit: float
) -> list:
    """Draw a ring for each loop-cell and return legend entries."""
    loops, dims = C.sheaf.edges[C.n_crossing_edges :, 0], C.sheaf.edge_dims[C.n_crossing_edges :]
    loops, dims = loops[places.seen[loops]], dims[places.seen[loops]]
    gap, widths = min(4.0, 1 + 0.25 * np.sqrt(area)), np.maximum(unit * dims, 0.6)
    style: dict = {"facecolors": "none", "edgecolors": "0.3", "zorder": 2, "label": "loop-cells"}
    style["s"] = (np.sqrt(sizes[loops]) + gap + widths) ** 2
    style |= {"linewidths": widths, "rasterized": len(loops) > MARKERS}
    ax.scatter(*places.coarse[loops].T, **style)
    style = {"markersize": 11, "markerfacecolor": "none", "markeredgecolor": "0.3"}
    return [
        _disc_handle(f"loop-cell, dim {d}", markeredgewidth=max(unit * d, 0.6), **style)
        for d in _both_ends(dims)
    ]


def _disc_handle(label: str, **style: Any) -> Any:
    """Return a disc or a ring as a legend entry."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker="o", label=label, **style)


def _both_ends(values: np.ndarray) -> list[int]:
    """Return the smallest and the largest value, or one value if they are equal."""
    return sorted({int(values.min()), int(values.max())}) if len(values) else []
