"""Plot of an elimination: the fine graph and the remaining graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import Vertices, counted, vertex_indices
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.plot.axes import (
    MARKERS,
    add_legend_below,
    check_kind,
    draw_discs,
    draw_frame,
    draw_lines,
    set_title,
    two_panels,
    write_names,
)
from sheafcoarsen.plot.positions import LINES, UpAxis, flat_places, view_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def elimination(
    K: Elimination,
    pos: ArrayLike | Mapping | None = None,
    *,
    names: Vertices | None = None,
    view: tuple[float, float] = (20, -60),
    up: UpAxis = "z",
    ax: Axes | None = None,
) -> Axes:
    """Plot the fine graph and the graph that remains after an elimination.

    On the left eliminated vertices are small and grey, retained ones dark. On the right are the
    retained ones at the same positions: solid edges join vertices that were adjacent, dashed ones
    replace paths through eliminated vertices, and a ring is a loop. More than 50,000 edges are not
    drawn.

    Parameters
    ----------
    K : Elimination
    pos : array_like, shape (n, 2) or (n, 3), or dict from vertex labels to positions, optional
        Positions of the fine vertices. By default computed from distances in the graph.
    names : array_like of int or bool, or sequence of names, optional
        Vertices whose names, or indices without names, are written next to them. By default, if a
        panel has at most 20 vertices, all whose names are not integers. A name is moved round its
        vertex to where it covers least of other names and of vertices.
    view : pair of float
        Elevation and azimuth in degrees of the view of positions in space, as in matplotlib's
        ``view_init``.
    up : {"z", "y", "x", "-z", "-y", "-x"}
        The coordinate axis that points up, or down with a minus sign.
    ax : matplotlib Axes, optional
        Its area is divided into two inset axes, ``child_axes``: the fine graph and the remaining
        graph.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError, TypeError
        Any other object; positions that are not finite, or do not have two or three coordinates
        for each vertex; axes that are not plane.
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    See Also
    --------
    partition : a coarsening, both graphs side by side.
    sheafcoarsen.eliminate : computes what is drawn.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> K = sc.eliminate(sc.CellularSheaf.constant(nx.karate_club_graph()))
    >>> ax = sc.plot.elimination(K, ax=Figure(figsize=(10, 5)).add_subplot())
    >>> [panel.get_title() for panel in ax.child_axes]
    ['34 vertices, 12 eliminated', '22 vertices, 56 edges']
    """
    check_kind("K", K, Elimination)
    chosen = None if names is None else vertex_indices("names", names, K.fine)
    n = K.fine.n_vertices
    places, _ = flat_places(K.fine, pos, view_from(view, up))
    ax, left, right, panel_area = two_panels(ax, places, 1.0)
    # few retained vertices of a large graph must stay visible, so the sizes differ
    counts = np.maximum([n, len(K.kept)], 1)
    smaller, size = np.clip(0.05 * panel_area / counts, 0.5, 30).tolist()
    remaining_places = places[K.kept]
    edges = K.fine.edges[K.fine.edges[:, 0] != K.fine.edges[:, 1]]
    notes = _draw_edges(left, "edges", places, edges, colors="0.75", linewidths=0.8)
    loops = K.fine.n_edges - len(edges)
    if loops:
        notes.append(f"{counted(loops, 'loop')} not drawn")
    handles = [
        draw_discs(left, "eliminated", places[K.eliminated], 0.5 * smaller, "0.6"),
        draw_discs(left, "kept", remaining_places, size, "0.1"),
    ]
    total = counted(n, "vertex", "vertices")
    _finish(left, f"{total}, {len(K.eliminated):,} eliminated", handles, notes)
    G = K.sheaf
    is_loop = G.edges[:, 0] == G.edges[:, 1]
    edges = G.edges[~is_loop]
    # one number for each pair of vertices; an edge is new if it joins no former neighbours
    fine, remaining = (np.sort(ends, axis=1) @ [n, 1] for ends in (K.fine.edges, K.kept[edges]))
    new = ~np.isin(remaining, fine)
    style: dict = {"linewidths": float(np.clip(800 / max(len(edges), 1), 0.5, 1.0))}
    label = "edges between former neighbours"
    notes = _draw_edges(right, label, remaining_places, edges[~new], colors="0.6", **style)
    style |= {"colors": "0.1", "linestyles": (0, (4, 2))}
    label = "edges through eliminated vertices"
    notes += _draw_edges(right, label, remaining_places, edges[new], **style)
    handles = [*right.collections, draw_discs(right, "kept", remaining_places, size, "0.1")]
    words = [counted(G.n_vertices, "vertex", "vertices"), counted(len(edges), "edge")]
    at = remaining_places[G.edges[is_loop, 0]]
    if len(at):
        rings: dict = {"s": 4 * size, "facecolors": "none", "edgecolors": "0.1", "linewidths": 0.8}
        rings |= {"label": "loops", "rasterized": len(at) > MARKERS, "zorder": 2}
        handles.append(right.scatter(*at.T, **rings))
        words.append(counted(len(at), "loop"))
    _finish(right, ", ".join(words), handles, notes)
    for panel, sheaf, own in ((left, K.fine, places), (right, G, remaining_places)):
        draw_frame(panel, places)
        if chosen is None:
            write_names(panel, sheaf, own)
    if chosen is not None:
        write_names(left, K.fine, places, chosen)
        write_names(right, K.fine, places, np.intersect1d(chosen, K.kept))
    return ax


def _draw_edges(
    ax: Axes, label: str, places: np.ndarray, edges: np.ndarray, **style: Any
) -> list[str]:
    """Draw edges unless there are too many; return a list of notes about edges left out."""
    if len(edges) > LINES:
        return [f"{len(edges):,} {label} not drawn"]
    if len(edges):
        draw_lines(ax, label, places, edges, zorder=1, **style)
    return []


def _finish(ax: Axes, title: str, handles: list, notes: list[str]) -> None:
    """Add the title, and below the plot the notes and a legend."""
    set_title(ax, title)
    if notes:
        ax.set_xlabel("; ".join(notes), fontsize=9)
    shown = [handle for handle in handles if len(handle.get_offsets())]
    style: dict = {"fontsize": 9, "ncols": 4, "columnspacing": 1.2}
    legend: Any = add_legend_below(ax, shown, 18 if notes else 2, **style)
    for mark in legend.legend_handles:  # enlarge marks of large graphs in the legend
        if hasattr(mark, "set_sizes") and mark.get_label() != "loops":
            mark.set_sizes([25.0])
