"""Pictures of a coarsening, by matplotlib, which is loaded when the first one is drawn.

Every function draws into ``ax`` and returns it; without ``ax`` it makes a pyplot figure with one.
What tells things apart is lightness, shape or place, never hue alone. Large pictures hold one
collection of many markers, drawn as pixels inside a vector file, and leave out lines that nobody
could tell apart, which they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from scipy.spatial import cKDTree

from sheafcoarsen._support import scalar_array
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.plot.axes import (
    LINES,
    MARKERS,
    NARROW,
    PALETTE,
    add_legend_below,
    axes_or_new,
    both_ends,
    counted,
    draw_frame,
    draw_lines,
    square_points,
    write_numbers,
)
from sheafcoarsen.plot.layout import graph_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NUMBERED = 20
"""Clusters up to which each carries its number."""


CELLS = 2000
"""Clusters up to which neighbours get different colours."""


MAX_AREA = 500.0
"""Of a disc in a panel of usual size, 1e5 square points, in square points."""


def partition(C: Coarsening, pos=None, *, ax=None) -> Axes:
    """Draw the fine graph in its clusters and the coarse graph beside it, at the means of the clusters' places.

    A coarse vertex has an area in proportion to the dimension r_a of its stalk (hollow where that
    is 0), a coarse edge a width in proportion to that of its stalk; a ring is a loop-cell.
    Neighbouring clusters have colours of different lightness, which repeat; up to 20 clusters carry
    their numbers. More than 50,000 edges are not drawn.

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
    room = (
        1.3 * square_points(left) ** 2
    )  # about the area of a panel, of which the markers are to cover a share
    _draw_fine(left, C, places, colors, where, room)
    discs = _draw_coarse(right, C, means, colors, room)
    for panel in (left, right):
        draw_frame(panel, places)
    if len(means) <= NUMBERED:
        write_numbers(left, means, np.full(len(means), 6.0))
        write_numbers(
            right, means, np.where(discs > 120, 0.0, np.sqrt(discs) / 2 + 4)
        )  # beside a disc smaller than a number
    return ax


def _places(C: Coarsening, pos) -> np.ndarray:
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
            f"`pos` must hold two real coordinates for each of {n} vertices, got shape {places.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(places).all(axis=1))
    if bad.size:
        raise ValueError(f"`pos` must be finite, got {places[bad[0]]} for vertex {bad[0]}")
    return places.astype(np.float64)


def _cluster_colors(C: Coarsening) -> np.ndarray:
    """Return a colour for each cluster, different between neighbours as long as the palette lasts, shape (K, 4)."""
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


def _draw_fine(ax, C: Coarsening, places, colors, where: str, room: float) -> None:
    n, labels = C.fine.n_vertices, C.partition.labels
    edges = C.fine.edges[C.fine.edges[:, 0] != C.fine.edges[:, 1]]
    inside = labels[edges[:, 0]] == labels[edges[:, 1]]
    drawn = len(edges) <= LINES
    if drawn:
        width = float(np.clip(1500 / max(len(edges), 1), 0.4, 1.4))
        dashes = (0, (3, 2)) if len(edges) <= MARKERS else "solid"
        own = colors[labels[edges[inside, 0]]]
        draw_lines(
            ax,
            "crossing edges",
            places,
            edges[~inside],
            colors="0.6",
            linewidths=0.7 * width,
            linestyles=dashes,
            zorder=1,
        )
        draw_lines(
            ax,
            "internal edges",
            places,
            edges[inside],
            colors=own,
            linewidths=1.3 * width,
            zorder=2,
        )
    ax.scatter(
        *places.T, s=float(np.clip(0.12 * room / max(n, 1), 0.3, 60 * room / 1e5)), c=colors[labels], zorder=3, rasterized=n > MARKERS,
        linewidths=0.4 if n <= CELLS else 0, edgecolors="0.15", label="vertices",
    )  # fmt: skip
    _title(
        ax,
        "fine graph",
        f"{counted(n, 'vertex', 'vertices')} in {counted(len(colors), 'cluster')}",
        room,
    )
    what = (
        "solid: inside a cluster, dashed: crossing"
        if len(edges) <= MARKERS
        else "grey: crossing edges"
    )
    if not drawn:
        what = f"{len(edges):,} edges not drawn"
    loops = C.fine.n_edges - len(edges)
    if loops:
        what += f"; {counted(loops, 'loop')} not drawn"
    text = f"places {where}\n{what}"
    ax.set_xlabel(
        text if room > NARROW else text.replace(" from", "\nfrom").replace(", ", ",\n"), fontsize=9
    )


def _draw_coarse(ax, C: Coarsening, means, colors, room: float) -> np.ndarray:
    """Draw the coarse graph and return the areas of its vertices, shape (K,)."""
    from matplotlib.lines import Line2D

    K, edges, dims = len(means), C.sheaf.edges, C.sheaf.edge_dims
    crossing = C.n_crossing_edges
    largest, widest = max(int(C.ranks.max(initial=0)), 1), max(int(dims.max(initial=0)), 1)
    area = _disc_area(means, room)
    sizes = np.maximum(area * C.ranks / largest, 0.04 * area)
    width = float(np.clip(0.4 * np.sqrt(area), 0.5, 5))
    handles = []
    notes = []
    if crossing <= LINES:
        widths = np.maximum(width * dims[:crossing] / widest, 0.15)
        draw_lines(
            ax,
            "crossing edges",
            means,
            edges[:crossing],
            colors="0.55",
            linewidths=widths,
            zorder=1,
        )
        handles += [
            Line2D(
                [],
                [],
                color="0.55",
                linewidth=max(width * d / widest, 0.15),
                label=f"edge stalk dim {d}",
            )
            for d in both_ends(dims[:crossing])
        ]
    else:
        notes.append(f"{crossing:,} crossing edges")
    loops = edges[crossing:, 0]
    if K <= MARKERS:
        ring = width * dims[crossing:] / widest
        gap = min(4.0, 0.35 * np.sqrt(area))
        ax.scatter(
            *means[loops].T, s=(np.sqrt(sizes[loops]) + gap + ring) ** 2, facecolors="none", edgecolors="0.3",
            linewidths=np.maximum(ring, 0.3), zorder=2, rasterized=len(loops) > MARKERS, label="loop-cells",
        )  # fmt: skip
        handles += [
            Line2D([], [], linestyle="none", marker="o", markersize=11, markerfacecolor="none", markeredgecolor="0.3",
                   markeredgewidth=max(width * d / widest, 0.3), label=f"loop-cell, dim {d}")
            for d in both_ends(dims[crossing:])
        ]  # fmt: skip
    elif len(loops):
        notes.append(f"{len(loops):,} loop-cells")
    faces = np.where((C.ranks > 0)[:, None], colors, 1.0)
    ax.scatter(
        *means.T, s=sizes, c=faces, edgecolors="0.15", linewidths=0.5 if K <= CELLS else 0, zorder=3, rasterized=K > MARKERS,
        label="vertices",
    )  # fmt: skip
    handles += [
        Line2D([], [], linestyle="none", marker="o", color="0.5" if d else "1.0", markeredgecolor="0.15", markeredgewidth=0.5,
               markersize=12 * max(np.sqrt(d / largest), 0.2), label=f"vertex stalk dim {d}")
        for d in both_ends(C.ranks)
    ]  # fmt: skip
    counts = (
        counted(K, "vertex", "vertices"),
        counted(crossing, "edge"),
        counted(len(loops), "loop"),
    )
    _title(ax, "coarse graph", ", ".join(counts), room)
    if notes:
        ax.set_xlabel(f"{' and '.join(notes)} not drawn", fontsize=9)
    if handles:
        add_legend_below(
            ax,
            handles,
            18 if notes else 2,
            fontsize=8,
            ncols=3 if room > NARROW else 1,
            handlelength=1.4,
            columnspacing=1.2,
        )
    return sizes


def _title(ax, what: str, counts: str, room: float) -> None:
    ax.set_title(
        f"{what}: {counts}" if room > NARROW else f"{what}:\n{counts}",
        fontsize=10 if room > NARROW else 8,
    )


def _disc_area(means: np.ndarray, room: float) -> float:
    """Return an area for the largest disc, in square points, with which most neighbours and their rings do not overlap."""
    if len(means) < 2:
        return MAX_AREA * room / 1e5
    gaps = cKDTree(means).query(means, k=2)[0][:, 1]
    extent = float(np.ptp(means, axis=0).max())
    diameter = 0.5 * np.sqrt(room) * float(np.quantile(gaps, 0.3)) / (extent or 1.0)
    return float(
        np.clip(
            diameter**2, np.clip(0.05 * room / len(means), 0.3, 60), max(MAX_AREA * room / 1e5, 60)
        )
    )
