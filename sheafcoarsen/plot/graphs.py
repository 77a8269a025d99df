"""The picture of a partition: the fine graph in its clusters, and the coarse graph beside it.

What tells things apart is lightness, shape or place, never hue alone. Large pictures hold one
collection of many markers, drawn as pixels inside a vector file, and leave out lines that nobody
could tell apart, which they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from scipy.spatial import cKDTree

from sheafcoarsen._support import scalar_array
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.plot.axes import (
    MARKERS,
    NUMBERED,
    add_legend_below,
    axes_or_new,
    counted,
    square_points,
)
from sheafcoarsen.plot.layout import graph_layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


PALETTE = ("#440154", "#FDE725", "#31688E", "#8FD744", "#443A83", "#35B779")
"""Viridis, neighbours in the list of different lightness: it reads in grey, too."""


LINES = 50_000
"""Edges up to which they are drawn."""


NARROW = 5e4
"""Area of a panel, in square points, below which words are put in two lines."""


CELLS = 2000
"""Clusters up to which neighbours get different colours."""


MAX_AREA = 500.0
"""Of a disc in a panel of usual size, 1e5 square points, in square points."""


def partition(
    C: Coarsening,
    pos: ArrayLike | Mapping | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the fine graph in its clusters and the coarse graph beside it.

    A coarse vertex stands at the mean of its cluster's places. It has an area in proportion to the
    dimension r_a of its stalk (hollow where that is 0), a coarse edge a width in proportion to that
    of its stalk; a ring is a loop-cell. Neighbouring clusters have colours of different lightness,
    which repeat; up to 20 clusters carry their numbers. More than 50,000 edges are not drawn.

    Parameters
    ----------
    C : Coarsening
    pos : array_like, shape (n, 2), or dict from vertex labels to pairs, optional
        Places of the fine vertices. By default computed from distances in the graph, in near-linear
        time.
    ax : matplotlib Axes, optional
        Its area takes two inset axes, which are its ``child_axes``: the fine graph and the coarse
        one.

    Returns
    -------
    Axes

    Raises
    ------
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> ax = sc.plot.partition(sc.coarsen(F, sc.select(F, 5), rank=2), ax=Figure().add_subplot())
    >>> [panel.get_title().partition(":")[0] for panel in ax.child_axes]
    ['fine graph', 'coarse graph']
    """
    check_coarsening(C)
    given = pos is not None
    places = _places(C, pos) if given else graph_layout(C.fine.edges, C.fine.n_vertices)
    spread = np.ptp(places, axis=0) if len(places) else np.ones(2)
    ax = axes_or_new(ax, 10, float(np.clip(5 * spread[1] / max(spread[0], 1e-300), 1.2, 5.5)) + 1.4)
    ax.set_axis_off()
    where = "as given" if given else "computed from distances in the graph"
    left, right = (ax.inset_axes((x, 0.12, 0.49, 0.80)) for x in (0, 0.51))
    colors = _cluster_colors(C)
    sizes = np.maximum(C.partition.sizes, 1)
    means = np.stack(
        [np.bincount(C.partition.labels, p, minlength=len(sizes)) / sizes for p in places.T], axis=1
    )
    # about the area of a panel, of which the markers are to cover a share
    room = 1.3 * square_points(left) ** 2
    _draw_fine(left, C, places, colors, where, room)
    discs = _draw_coarse(right, C, means, colors, room)
    for panel in (left, right):
        _draw_frame(panel, places)
    if len(means) <= NUMBERED:
        _write_numbers(left, means, np.full(len(means), 6.0))
        # beside a disc that is smaller than a number
        _write_numbers(right, means, np.where(discs > 120, 0.0, np.sqrt(discs) / 2 + 4))
    return ax


def _places(C: Coarsening, pos: Any) -> np.ndarray:
    """Return the given places as an array."""
    n = C.fine.n_vertices
    if isinstance(pos, dict):
        names = C.fine.vertex_labels if C.fine.vertex_labels is not None else range(n)
        missing = next((name for name in names if name not in pos), None)
        if missing is not None:
            raise ValueError(f"`pos` must place every vertex, but it has no place for {missing!r}")
        pos = [pos[name] for name in names]
        if n == 0:
            return np.zeros((0, 2))
    places = scalar_array("pos", pos)
    if places.shape != (n, 2) or places.dtype.kind == "c":
        raise ValueError(
            f"`pos` must hold two real coordinates for each of {n} vertices, "
            f"got shape {places.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(places).all(axis=1))
    if bad.size:
        raise ValueError(f"`pos` must be finite, got {places[bad[0]]} for vertex {bad[0]}")
    return places.astype(np.float64)


def _cluster_colors(C: Coarsening) -> np.ndarray:
    """Return a colour for each cluster, shape (K, 4), not that of a neighbour if possible."""
    from matplotlib.colors import to_rgba_array

    K = C.partition.n_clusters
    which = np.arange(K)
    if len(PALETTE) < K <= CELLS:
        graph: nx.Graph = nx.Graph()
        graph.add_nodes_from(range(K))
        graph.add_edges_from(C.clusters.pairs.tolist())
        color = nx.greedy_color(graph)
        which = np.array([color[a] for a in range(K)])
    elif K > CELLS:
        which = np.random.default_rng(0).integers(len(PALETTE), size=K)
    return to_rgba_array(PALETTE)[which % len(PALETTE)]


def _draw_fine(
    ax: Axes, C: Coarsening, places: np.ndarray, colors: np.ndarray, where: str, room: float
) -> None:
    n, labels = C.fine.n_vertices, C.partition.labels
    edges = C.fine.edges[C.fine.edges[:, 0] != C.fine.edges[:, 1]]
    inside = labels[edges[:, 0]] == labels[edges[:, 1]]
    drawn = len(edges) <= LINES
    few = len(edges) <= MARKERS
    if drawn:
        width = float(np.clip(1500 / max(len(edges), 1), 0.4, 1.4))
        own = colors[labels[edges[inside, 0]]]
        style: dict = {"colors": "0.6", "linestyles": (0, (3, 2)) if few else "solid", "zorder": 1}
        _draw_lines(ax, "crossing edges", places, edges[~inside], linewidths=0.7 * width, **style)
        style = {"colors": own, "zorder": 2}
        _draw_lines(ax, "internal edges", places, edges[inside], linewidths=1.3 * width, **style)
    _draw_discs(
        ax,
        places,
        np.clip(0.12 * room / max(n, 1), 0.3, 60 * room / 1e5),
        colors[labels],
        0.4 if n <= CELLS else 0,
    )
    counts = f"{counted(n, 'vertex', 'vertices')} in {counted(len(colors), 'cluster')}"
    _title(ax, "fine graph", counts, room)
    what = "solid: inside a cluster, dashed: crossing" if few else "grey: crossing edges"
    if not drawn:
        what = f"{len(edges):,} edges not drawn"
    loops = C.fine.n_edges - len(edges)
    if loops:
        what += f"; {counted(loops, 'loop')} not drawn"
    text = f"places {where}\n{what}"
    if room <= NARROW:
        text = text.replace(" from", "\nfrom").replace(", ", ",\n")
    ax.set_xlabel(text, fontsize=9)


def _draw_coarse(
    ax: Axes, C: Coarsening, means: np.ndarray, colors: np.ndarray, room: float
) -> np.ndarray:
    """Draw the coarse graph and return the areas of its vertices, shape (K,)."""
    K, crossing = len(means), C.n_crossing_edges
    loops = C.sheaf.edges[crossing:, 0]
    largest = max(int(C.ranks.max(initial=0)), 1)
    area = _disc_area(means, room)
    sizes = np.maximum(area * C.ranks / largest, 0.04 * area)
    handles = [
        *_draw_crossing_edges(ax, C, means, area),
        *_draw_loops(ax, C, means, sizes, area),
    ]
    faces = np.where((C.ranks > 0)[:, None], colors, 1.0)
    _draw_discs(ax, means, sizes, faces, 0.5 if K <= CELLS else 0)
    handles += [
        _disc_handle(
            f"vertex stalk dim {d}",
            color="0.5" if d else "1.0",
            markeredgecolor="0.15",
            markeredgewidth=0.5,
            markersize=12 * max(np.sqrt(d / largest), 0.2),
        )
        for d in _both_ends(C.ranks)
    ]
    counts = (
        counted(K, "vertex", "vertices"),
        counted(crossing, "edge"),
        counted(len(loops), "loop"),
    )
    _title(ax, "coarse graph", ", ".join(counts), room)
    notes = [f"{crossing:,} crossing edges"] if crossing > LINES else []
    if K > MARKERS and len(loops):
        notes.append(f"{len(loops):,} loop-cells")
    if notes:
        ax.set_xlabel(f"{' and '.join(notes)} not drawn", fontsize=9)
    if handles:
        columns = 3 if room > NARROW else 1
        style: dict = {"fontsize": 8, "ncols": columns, "handlelength": 1.4, "columnspacing": 1.2}
        add_legend_below(ax, handles, 18 if notes else 2, **style)
    return sizes


def _line_widths(C: Coarsening, dims: Any, area: float) -> np.ndarray:
    """Return widths in proportion to the dimensions of edge stalks."""
    widest = max(int(C.sheaf.edge_dims.max(initial=0)), 1)
    return float(np.clip(0.4 * np.sqrt(area), 0.5, 5)) * np.asarray(dims) / widest


def _draw_crossing_edges(ax: Axes, C: Coarsening, means: np.ndarray, area: float) -> list:
    """Draw the coarse crossing edges, unless too many, and return what the legend shows."""
    from matplotlib.lines import Line2D

    if C.n_crossing_edges > LINES:
        return []
    edges, dims = (of[: C.n_crossing_edges] for of in (C.sheaf.edges, C.sheaf.edge_dims))
    widths = np.maximum(_line_widths(C, dims, area), 0.15)
    _draw_lines(ax, "crossing edges", means, edges, colors="0.55", linewidths=widths, zorder=1)
    ends = _both_ends(dims)
    widths = np.maximum(_line_widths(C, ends, area), 0.15)
    return [
        Line2D([], [], color="0.55", linewidth=width, label=f"edge stalk dim {d}")
        for d, width in zip(ends, widths.tolist(), strict=True)
    ]


def _draw_loops(ax: Axes, C: Coarsening, means: np.ndarray, sizes: np.ndarray, area: float) -> list:
    """Draw a ring for each loop-cell, unless too many, and return what the legend shows."""
    if len(means) > MARKERS:
        return []
    loops, dims = C.sheaf.edges[C.n_crossing_edges :, 0], C.sheaf.edge_dims[C.n_crossing_edges :]
    rings = _line_widths(C, dims, area)
    gap = min(4.0, 0.35 * np.sqrt(area))
    ax.scatter(
        means[loops, 0],
        means[loops, 1],
        s=(np.sqrt(sizes[loops]) + gap + rings) ** 2,
        facecolors="none",
        edgecolors="0.3",
        linewidths=np.maximum(rings, 0.3),
        zorder=2,
        rasterized=len(loops) > MARKERS,
        label="loop-cells",
    )
    ends = _both_ends(dims)
    widths = np.maximum(_line_widths(C, ends, area), 0.3)
    style: dict = {"markersize": 11, "markerfacecolor": "none", "markeredgecolor": "0.3"}
    return [
        _disc_handle(f"loop-cell, dim {d}", markeredgewidth=width, **style)
        for d, width in zip(ends, widths.tolist(), strict=True)
    ]


def _disc_handle(label: str, **style: Any) -> Any:
    """Return a disc or a ring for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker="o", label=label, **style)


def _draw_discs(
    ax: Axes, places: np.ndarray, areas: np.ndarray, colors: np.ndarray, outline: float
) -> None:
    """Draw the vertices, as pixels where they are many."""
    style: dict = {"zorder": 3, "rasterized": len(places) > MARKERS, "label": "vertices"}
    ax.scatter(
        places[:, 0],
        places[:, 1],
        s=areas,
        c=colors,
        edgecolors="0.15",
        linewidths=outline,
        **style,
    )


def _title(ax: Axes, what: str, counts: str, room: float) -> None:
    wide = room > NARROW
    ax.set_title(f"{what}:{' ' if wide else chr(10)}{counts}", fontsize=10 if wide else 8)


def _disc_area(means: np.ndarray, room: float) -> float:
    """Return an area for the largest disc, in square points, so that most do not overlap."""
    if len(means) < 2:
        return MAX_AREA * room / 1e5
    gaps = cKDTree(means).query(means, k=2)[0][:, 1]
    extent = float(np.ptp(means, axis=0).max())
    diameter = 0.5 * np.sqrt(room) * float(np.quantile(gaps, 0.3)) / (extent or 1.0)
    least = np.clip(0.05 * room / len(means), 0.3, 60)
    return float(np.clip(diameter**2, least, max(MAX_AREA * room / 1e5, 60)))


def _draw_lines(ax: Axes, label: str, places: np.ndarray, edges: np.ndarray, **style: Any) -> None:
    """Draw straight edges as one collection."""
    from matplotlib.collections import LineCollection

    ax.add_collection(
        LineCollection(places[edges], rasterized=len(edges) > MARKERS, label=label, **style)
    )


def _both_ends(values: np.ndarray) -> list[int]:
    """Return the smallest and the largest value, once where they are one."""
    return sorted({int(values.min()), int(values.max())}) if len(values) else []


def _draw_frame(ax: Axes, places: np.ndarray) -> None:
    """Show all places with a margin, equal units in both directions, and no ticks."""
    low, high = (
        (places.min(axis=0), places.max(axis=0)) if len(places) else (np.zeros(2), np.ones(2))
    )
    middle, half = low / 2 + high / 2, max(float((high - low).max()) / 2, 1e-300)
    half = 1.0 if half <= 1e-12 * float(np.abs(middle).max()) or half == 1e-300 else half
    reach = np.maximum(high / 2 - low / 2, 0.2 * half) + 0.1 * half
    ax.set_xlim(middle[0] - reach[0], middle[0] + reach[0])
    ax.set_ylim(middle[1] - reach[1], middle[1] + reach[1])
    ax.set_aspect("equal", adjustable="box")
    ax.set_xticks([])
    ax.set_yticks([])


def _write_numbers(ax: Axes, means: np.ndarray, shifts: np.ndarray) -> None:
    """Write each cluster's number, so many points up and to the right of its place."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    style: dict = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 5, "path_effects": halo}
    for a, (place, shift) in enumerate(zip(means.tolist(), shifts.tolist(), strict=True)):
        ax.annotate(str(a), place, (shift, shift), textcoords="offset points", **style)
