"""Plot of a partition: the fine graph with its clusters, and the coarse graph.

Lightness, shape or position distinguish objects, never hue alone. Large plots consist of one
collection of markers, rasterized in vector files, and omit lines that would be indistinguishable;
a note says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import counted
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.plot._surface import PLAIN, Scene, fill_cells, fill_faces, scene_of
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
)
from sheafcoarsen.plot.positions import (
    LINES,
    Places,
    computed_places,
    flat_places,
    surface_places,
    vertex_places,
)
from sheafcoarsen.plot.projection import UpAxis, checked_view, view_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


NARROW = 5e4
"""Area of a panel, in square points, below which labels have two lines."""


def partition(
    C: Coarsening,
    pos: ArrayLike | Mapping | None = None,
    faces: ArrayLike | None = None,
    *,
    view: tuple[float, float] = (20, -60),
    up: UpAxis = "z",
    ax: Axes | None = None,
) -> Axes:
    """Plot the fine graph with its clusters, and the coarse graph next to it.

    A coarse vertex is drawn at the mean position of its cluster. Its area is proportional to the
    dimension r_a of its stalk (hollow if that is 0), the width of a coarse edge to the dimension of
    its stalk; a ring is a loop-cell. Both panels draw a cluster in the same colour, different from
    its neighbours'; up to 20 clusters are numbered, and up to 20 vertices with names that are not
    integers have their names. In sheaves with real stalks of dimension 1 negative edges are red; on
    the right this depends on the signs of the modes, unlike the signs of ``C.quotient(weights)``.

    Without ``pos``, a graph with more than 50,000 edges, with edges between more than a quarter of
    all pairs of its vertices, or with a few hubs that most edges meet, is drawn by its quotient: a
    disc of vertices for each cluster, and lines for the strongest links between clusters, red if
    most of their edges are negative. With ``pos``, more than 50,000 edges are not drawn.

    Parameters
    ----------
    C : Coarsening
    pos : array_like, shape (n, 2) or (n, 3), or dict from vertex labels to positions, optional
        Positions of the fine vertices. By default computed from distances in the graph, in
        near-linear time.
    faces : array_like of int, shape (f, k), optional
        Faces of a surface with the vertices ``pos`` in space: they are filled, and hidden vertices
        are not drawn. A coarse vertex is drawn in the middle of its cluster's visible vertices.
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
        faces that are not a surface.
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
    seen_from = view_from(*checked_view(view, up))
    scene = None
    if faces is not None:
        if pos is None:
            raise ValueError("`faces` require positions in space: pass `pos` of shape (n, 3)")
        given = vertex_places(C.fine, pos)
        if given.shape[1] != 3:
            raise ValueError(
                "`faces` require positions in space: `pos` must have shape (n, 3), "
                f"got {given.shape}"
            )
        scene = scene_of(given, faces, view, up)
        places = surface_places(C, scene)
    elif pos is not None:
        places = flat_places(C, vertex_places(C.fine, pos), seen_from)
    else:
        places = computed_places(C)
    ax, left, right, panel_area = two_panels(ax, places.fine, 1.4)
    colors = cluster_colors(C.clusters.pairs, C.partition.n_clusters)
    _draw_fine(left, C, places, colors, panel_area, scene)
    if scene is not None:
        fill_cells(left, scene, colors[C.partition.labels, :3])
        fill_faces(right, scene, np.tile(PLAIN, (len(scene.faces), 1)))
    discs = _draw_coarse(right, C, places, colors, panel_area)
    for panel in (left, right):
        draw_frame(panel, places.fine)
    if len(colors) <= NUMBERED:
        shown = np.flatnonzero(places.seen)
        inner = places.coarse
        if scene is None and not places.by_quotient:
            inner = _middle_vertices(C, places)
        numbers = [str(a) for a in range(len(colors))]
        _write(left, shown, inner, np.zeros(len(colors)), numbers)
        # place a number next to its disc if the disc is too small to contain it
        offsets = np.where(discs > 120, 0.0, np.sqrt(discs) / 2 + 4)
        _write(right, shown, places.coarse, offsets, numbers)
    names = C.fine.vertex_labels or ()
    if len(names) <= NUMBERED and scene is None and not places.by_quotient:
        texts = ["" if isinstance(name, int) else str(name) for name in names]
        _write(left, np.flatnonzero(texts), places.fine, np.full(len(texts), 10.0), texts)
    return ax


def _draw_fine(
    ax: Axes,
    C: Coarsening,
    places: Places,
    colors: np.ndarray,
    panel_area: float,
    scene: Scene | None,
) -> None:
    n, labels = C.fine.n_vertices, C.partition.labels
    edges = C.fine.edges[C.fine.edges[:, 0] != C.fine.edges[:, 1]]
    counts = f"{counted(n, 'vertex', 'vertices')} in {counted(len(colors), 'cluster')}"
    set_title(ax, f"fine graph: {counts}", 11)
    if scene is not None:
        what = "faces of more than one cluster are divided among them"
    elif places.by_quotient:
        what = _draw_links(ax, C, places, len(edges))
    else:
        what = _draw_edges(ax, places.fine, C, colors)
    if scene is None:
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


def _draw_edges(ax: Axes, places: np.ndarray, C: Coarsening, colors: np.ndarray) -> str:
    """Draw the fine edges, unless there are too many, and return a description of them."""
    from matplotlib.colors import to_rgba

    labels = C.partition.labels
    proper = C.fine.edges[:, 0] != C.fine.edges[:, 1]
    edges, negative = C.fine.edges[proper], negative_edges(C.fine)[proper]
    if len(edges) > LINES:
        return f"{len(edges):,} edges not drawn"
    few = len(edges) <= MARKERS
    inside = labels[edges[:, 0]] == labels[edges[:, 1]]
    width = float(np.clip(1500 / max(len(edges), 1), 0.4, 1.4))
    own = np.where(inside[:, None], colors[labels[edges[:, 0]]], to_rgba("0.6"))
    own[negative] = to_rgba(NEGATIVE)
    style: dict = {"linestyles": (0, (3, 2)) if few else "solid", "zorder": 1}
    style["colors"] = own[~inside]
    draw_lines(ax, "crossing edges", places, edges[~inside], linewidths=0.7 * width, **style)
    style = {"colors": own[inside], "zorder": 2}
    draw_lines(ax, "internal edges", places, edges[inside], linewidths=1.3 * width, **style)
    what = "solid: inside a cluster, dashed: crossing" if few else "grey: crossing edges"
    if negative.any():
        what = what if few else "thick: inside a cluster, thin: crossing"
        what += "; red: negative"
    return what


def _draw_links(ax: Axes, C: Coarsening, places: Places, n_edges: int) -> str:
    """Draw a line for each retained link between clusters, and return a description of them."""
    from matplotlib.colors import to_rgba

    counts = np.diff(C.clusters.pair_ptr)
    kept = counts[places.links]
    widths = 0.4 + 3.5 * np.sqrt(kept / max(int(kept.max(initial=1)), 1))
    edges = C.clusters.crossing_edges
    signs = np.where(negative_edges(C.fine)[edges], -1, 1)
    pair = np.repeat(np.arange(len(counts)), counts)
    negative = np.bincount(pair, signs, len(counts))[places.links] < 0
    colors = np.where(negative[:, None], to_rgba(NEGATIVE), to_rgba("0.6"))
    style: dict = {"colors": colors, "linewidths": widths, "zorder": 1}
    draw_lines(ax, "links", places.coarse, C.clusters.pairs[places.links], **style)
    between, inside = int(counts.sum()), n_edges - int(counts.sum())
    share = f"{int(kept.sum()):,} of " if len(kept) < len(counts) else ""
    text = f"lines: {share}{between:,} edges between clusters"
    red = "red: most are negative; " if negative.any() else ""
    text += f"\n{red}{inside:,} inside not drawn"
    K = len(places.coarse)
    if len(counts) > K * (K - 1) / 4 and len(kept) < len(counts):
        text += f"\n{len(counts):,} pairs of clusters are linked: distances mean little"
    return text


def _draw_coarse(
    ax: Axes, C: Coarsening, places: Places, colors: np.ndarray, panel_area: float
) -> np.ndarray:
    """Draw the coarse graph and return the areas of its vertices, shape (K,)."""
    K, crossing = len(places.coarse), C.n_crossing_edges
    loops = C.sheaf.edges[crossing:, 0]
    largest = max(int(C.ranks.max(initial=0)), 1)
    shown = places.seen
    area = disc_area(places.coarse[shown], panel_area, 0.35)  # leave space for edges between rings
    sizes = np.maximum(area * C.ranks / largest, 0.04 * area)
    handles = [*_draw_crossing_edges(ax, C, places, area), *_draw_loops(ax, C, places, sizes, area)]
    faces = np.where((C.ranks > 0)[:, None], colors, 1.0)
    outline = 0.5 if K <= 2000 else 0
    draw_discs(ax, "vertices", places.coarse[shown], sizes[shown], faces[shown], outline)
    handles += [
        _disc_handle(
            f"vertex stalk dim {d}",
            color="0.5" if d else "1.0",
            markeredgecolor="0.15",
            markeredgewidth=0.5,
            markersize=12 * max(np.sqrt(d / largest), 0.2),
        )
        for d in _both_ends(C.ranks[shown])
    ]
    counts = f"{counted(K, 'vertex', 'vertices')}, {counted(crossing, 'edge')}"
    set_title(ax, f"coarse graph: {counts}, {counted(len(loops), 'loop')}", 11)
    kept = int(places.links.sum())
    notes = [f"{crossing:,} crossing edges"] if kept > LINES else []
    if K > MARKERS and len(loops):
        notes.append(f"{len(loops):,} loop-cells")
    hidden = K - int(shown.sum())
    if hidden:
        notes.append(f"{counted(hidden, 'hidden vertex', 'hidden vertices')}")
    elif kept < crossing:
        notes.append(f"the weakest {crossing - kept:,} of {crossing:,} edges")
    if notes:
        ax.set_xlabel(f"{' and '.join(notes)} not drawn", fontsize=10 if panel_area > NARROW else 8)
    if handles:
        style: dict = {"fontsize": 10 if panel_area > NARROW else 8, "ncols": 3}
        style |= {"handlelength": 1.4, "columnspacing": 1.0, "handletextpad": 0.5}
        add_legend_below(ax, handles, 18 if notes else 2, **style)
    return sizes


def _line_widths(C: Coarsening, dims: Any, area: float) -> np.ndarray:
    """Return widths that are proportional to the dimensions of edge stalks."""
    widest = max(int(C.sheaf.edge_dims.max(initial=0)), 1)
    return float(np.clip(0.4 * np.sqrt(area), 0.5, 5)) * np.asarray(dims) / widest


def _draw_crossing_edges(ax: Axes, C: Coarsening, places: Places, area: float) -> list:
    """Draw the coarse crossing edges, unless there are too many, and return legend entries."""
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D

    if places.links.sum() > LINES:
        return []
    crossing = np.flatnonzero(places.links)
    edges, dims = (of[crossing] for of in (C.sheaf.edges, C.sheaf.edge_dims))
    negative = negative_edges(C.sheaf)[crossing]
    widths = np.maximum(_line_widths(C, dims, area), 0.15)
    lines = np.where(negative[:, None], to_rgba(NEGATIVE), to_rgba("0.55"))
    style: dict = {"colors": lines, "linewidths": widths, "zorder": 2}
    draw_lines(ax, "crossing edges", places.coarse, edges, **style)
    ends = _both_ends(dims)
    widths = np.maximum(_line_widths(C, ends, area), 0.15)
    signs = [Line2D([], [], color=NEGATIVE, label="negative edge")] if negative.any() else []
    return [
        Line2D([], [], color="0.55", linewidth=width, label=f"edge stalk dim {d}")
        for d, width in zip(ends, widths.tolist(), strict=True)
    ] + signs


def _draw_loops(ax: Axes, C: Coarsening, places: Places, sizes: np.ndarray, area: float) -> list:
    """Draw a ring for each loop-cell, unless there are too many, and return legend entries."""
    means = places.coarse
    if len(means) > MARKERS:
        return []
    loops, dims = C.sheaf.edges[C.n_crossing_edges :, 0], C.sheaf.edge_dims[C.n_crossing_edges :]
    loops, dims = loops[places.seen[loops]], dims[places.seen[loops]]
    rings = _line_widths(C, dims, area)
    gap = min(4.0, 0.25 * np.sqrt(area))
    style: dict = {"facecolors": "none", "edgecolors": "0.3", "linewidths": np.maximum(rings, 0.3)}
    style |= {"zorder": 2, "rasterized": len(loops) > MARKERS, "label": "loop-cells"}
    style["s"] = (np.sqrt(sizes[loops]) + gap + rings) ** 2
    ax.scatter(*means[loops].T, **style)
    ends = _both_ends(dims)
    widths = np.maximum(_line_widths(C, ends, area), 0.3)
    style = {"markersize": 11, "markerfacecolor": "none", "markeredgecolor": "0.3"}
    return [
        _disc_handle(f"loop-cell, dim {d}", markeredgewidth=width, **style)
        for d, width in zip(ends, widths.tolist(), strict=True)
    ]


def _disc_handle(label: str, **style: Any) -> Any:
    """Return a disc or a ring as a legend entry."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker="o", label=label, **style)


def _both_ends(values: np.ndarray) -> list[int]:
    """Return the smallest and the largest value, or one value if they are equal."""
    return sorted({int(values.min()), int(values.max())}) if len(values) else []


def _middle_vertices(C: Coarsening, places: Places) -> np.ndarray:
    """Return, for each cluster, the position of the vertex nearest to the mean of the cluster."""
    labels = C.partition.labels
    distances = ((places.fine - places.coarse[labels]) ** 2).sum(axis=1)
    order = np.lexsort((distances, labels))
    return places.fine[order[np.searchsorted(labels[order], np.arange(len(places.coarse)))]]


def _write(
    ax: Axes, which: np.ndarray, places: np.ndarray, shifts: np.ndarray, texts: list[str]
) -> None:
    """Write some of the texts, shifted up and to the right by ``shifts`` in points."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    style: dict = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 5, "path_effects": halo}
    for a in which.tolist():
        shift = float(shifts[a])
        place = tuple(places[a].tolist())
        ax.annotate(texts[a], place, (shift, shift), textcoords="offset points", **style)
