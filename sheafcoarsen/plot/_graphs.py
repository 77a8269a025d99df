"""Plots of two graphs side by side: a partition and its coarse graph, and an elimination.

Lightness, shape or position distinguish objects, never hue alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import Vertices, checks, labels, linalg, tables
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.plot import draw, positions
from sheafcoarsen.plot._fields import fill_faces
from sheafcoarsen.plot.positions import Places, UpAxis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


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

    A coarse vertex is drawn at the vertex of its cluster nearest to their mean, or near it without
    ``pos``. Its area is proportional to the dimension r_a of its stalk (hollow if that is 0), the
    width of a coarse edge to the dimension of its stalk; a ring is a loop-cell. Both panels draw a
    cluster in the same colour, different from its neighbours'; up to 20 clusters have bold numbers.
    In sheaves with real stalks of dimension 1 negative edges are red; a coarse edge is if the
    signed weights between its clusters, those of ``C.quotient(F.tail_data * F.head_data)``, have a
    negative sum, because the sign of its own maps depends on the signs of the modes.

    Without ``pos``, a graph is drawn by its quotient if it has more than 50,000 edges, more than
    1000 edges that join more than a quarter of all pairs of its vertices, or more than 500 vertices
    of which one has more than ten times the mean degree. The quotient has a disc of vertices for
    each cluster, and lines between clusters: for each the three links with the most edges relative
    to those of both clusters, and a spanning forest, so that links between hubs may be missing.
    With ``pos``, more than 50,000 edges are not drawn.

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
        is moved to where it covers little of texts and vertices. Lines join distant ones to their
        vertices.
    view, up : pair of float, str
        The view of positions in space, as in :func:`surface`.
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
    chosen = None if names is None else labels.vertex_indices("names", names, C.fine)
    places = positions.places_of(C, pos, faces, view, up)
    ax, left, right, panel_area = _two_panels(ax, places.fine, 1.4)
    K = C.partition.n_clusters
    colors = draw.cluster_colors(C.clusters.pairs, K)
    radius = _draw_fine(left, C, places, colors, panel_area)
    discs = _draw_coarse(right, C, places, colors, panel_area)
    by_vertices = places.scene is None and not places.by_quotient
    draw.frame(left, places.fine)
    draw.frame(right, places.coarse if by_vertices else places.fine)
    if K <= draw.NUMBERED:
        # write a number at a corner of a vertex too small for it; names are at the right
        shifts = np.where(discs > 100 * len(str(K - 1)), 0.0, -np.sqrt(discs) / 2 - 4)
        corners = np.array([[-1, -1, 0], [-1, 1, 0], [1, -1, 0], [1, 1, 0]]) * (radius + 4)
        at, ring = (places.fine, corners) if by_vertices else (places.coarse, 0 * corners[:1])
        numbers = []
        for a in np.flatnonzero(places.seen).tolist():
            draw.text(right, a, places.coarse[a], shifts[[a, a]], fontweight="bold")
            own = C.partition.cluster(a) if by_vertices else np.array([a])
            distances = np.linalg.norm(at[own] - places.coarse[a], axis=1)
            nearest = own[distances.argsort(kind="stable")[:12]]
            numbers.append((a, [(v, ring) for v in nearest.tolist()]))
        # in large graphs every place is next to other vertices
        near = None if C.fine.n_vertices <= draw.MARKERS else np.arange(0)
        draw.write(left, numbers, at, near, fontweight="bold")
    if by_vertices or chosen is not None:
        draw.names(left, C.fine, places.fine, chosen)
    return ax


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

    On the left eliminated vertices are small and grey, retained ones dark. Junctions, retained
    vertices with more than ``K.max_neighbors`` neighbours, would remain even if they were not to be
    kept. They are hollow, unless they are in ``names`` or all are junctions. On the right are the
    retained ones at the same positions: solid edges join vertices that were adjacent, dashed ones
    replace paths through eliminated vertices, and a ring is a loop. More than 50,000 edges are not
    drawn.

    Parameters
    ----------
    K : Elimination
    pos : array_like, shape (n, 2) or (n, 3), or dict from vertex labels to positions, optional
        Positions of the fine vertices. By default computed from distances in the graph.
    names : array_like of int or bool, or sequence of names, optional
        Vertices whose names are written next to them, as in :func:`partition`. By default, if a
        panel has at most 20 vertices, all whose names are not integers.
    view, up : pair of float, str
        The view of positions in space, as in :func:`surface`.
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
    checks.kind("K", K, Elimination)
    F, G = K.fine, K.sheaf
    chosen = None if names is None else labels.vertex_indices("names", names, F)
    places, *_ = positions.flat_places(F, pos, None, view, up)
    remaining_places = places[K.kept]
    ax, left, right, panel_area = _two_panels(ax, places, 1.0)
    # few retained vertices of a large graph must stay visible, so the sizes differ
    counts = np.maximum([F.n_vertices, G.n_vertices], 1)
    smaller, size = np.clip(0.05 * panel_area / counts, 0.5, 30).tolist()
    edges, remaining = (H.edges[H.edges[:, 0] != H.edges[:, 1]] for H in (F, G))
    notes = _draw_edges(left, "edges", places, edges, colors="0.75", linewidths=0.8)
    if len(edges) < F.n_edges:
        notes.append(f"{tables.counted(F.n_edges - len(edges), 'loop')} not drawn")
    disc: dict = {"s": 0.5 * smaller, "c": "0.6", "linewidths": 0, "edgecolors": "0.15"}
    gone = draw.marks(left, "eliminated", places[K.eliminated], **disc)
    disc |= {"s": size, "c": "0.1"}
    many = np.bincount(remaining.ravel(), minlength=G.n_vertices) > K.max_neighbors
    many &= not many.all()
    if chosen is not None:
        many &= ~np.isin(K.kept, chosen)
    hollow = disc | {"s": 2 * size, "c": "1.0", "linewidths": min(1.0, np.sqrt(size) / 4)}
    # one number for each pair of vertices; an edge is new if it joins no former neighbours
    before, after = (np.sort(e, axis=1) @ [F.n_vertices, 1] for e in (F.edges, K.kept[remaining]))
    new = ~np.isin(after, before)
    style: dict = {"linewidths": float(np.clip(800 / max(len(remaining), 1), 0.5, 1.0))}
    # those in one line cover each other's gaps: the colour tells them from former edges
    dashed: dict = style | {"colors": draw.MIDDLE, "linestyles": (0, (4, 2))}
    label, old = "edges through eliminated vertices", remaining[~new]
    omitted = _draw_edges(right, label, remaining_places, remaining[new], **dashed)
    label = "edges between former neighbours"
    omitted += _draw_edges(right, label, remaining_places, old, colors="0.1", **style)
    handles = {left: [gone], right: [*right.collections]}
    label = f"kept, more than {tables.counted(K.max_neighbors, 'neighbour')}"
    for panel, own in handles.items():
        own.append(draw.marks(panel, "kept", remaining_places, **disc))
        own.append(draw.marks(panel, label, remaining_places[many], **hollow))
    total = tables.counted(F.n_vertices, "vertex", "vertices")
    _finish(left, f"{total}, {len(K.eliminated):,} eliminated", handles[left], notes)
    title = tables.counted(G.n_vertices, "vertex", "vertices")
    title += f", {tables.counted(len(remaining), 'edge')}"
    at = remaining_places[G.edges[G.edges[:, 0] == G.edges[:, 1], 0]]
    if len(at):
        rings: dict = {"facecolors": "none", "edgecolors": "0.1", "linewidths": 0.8, "zorder": 2}
        handles[right].append(draw.marks(right, "loops", at, s=4 * size, **rings))
        title += f", {tables.counted(len(at), 'loop')}"
    _finish(right, title, handles[right], omitted)
    draw.frame(left, places)
    draw.frame(right, places)
    if chosen is None:
        draw.names(left, F, places)
        draw.names(right, G, remaining_places)
    else:
        draw.names(left, F, places, chosen, np.union1d(chosen, K.kept))
        shown = np.where(np.isin(np.arange(len(places)), K.kept)[:, None], places, np.nan)
        draw.names(right, F, shown, np.intersect1d(chosen, K.kept))
    return ax


def _two_panels(
    ax: Axes | None, places: np.ndarray, words: float
) -> tuple[Axes, Axes, Axes, float]:
    """Return axes, two insets for graphs, and a nominal area of an inset in square points.

    New axes have ``words`` inches for text in addition to the graphs.
    """
    spread = np.ptp(places, axis=0) if len(places) else np.ones(2)
    height = float(np.clip(5 * spread[1] / max(spread[0], 1e-300), 1.2, 5.5)) + words
    ax = draw.axes_or_new(ax, 10, height)
    ax.set_axis_off()
    left, right = (ax.inset_axes((x, 0.12, 0.49, 0.80)) for x in (0, 0.51))
    return ax, left, right, 1.3 * draw.width_in_points(left) ** 2


# ---------------------------------------------------------------- parts of an elimination


def _draw_edges(
    ax: Axes, label: str, places: np.ndarray, edges: np.ndarray, **style: Any
) -> list[str]:
    """Draw edges unless there are too many; return a list of notes about edges left out."""
    if len(edges) > draw.LINES:
        return [f"{len(edges):,} {label} not drawn"]
    draw.lines(ax, label, places, edges, zorder=1, **style)
    return []


def _finish(ax: Axes, title: str, handles: list, notes: list[str]) -> None:
    """Add a title, and notes and a legend below the plot."""
    from matplotlib.lines import Line2D

    draw.title(ax, title)
    if notes:
        ax.set_xlabel("; ".join(notes), fontsize=9)
    handles = [mark for mark in handles if isinstance(mark, Line2D) or len(mark.get_offsets())]
    style: dict = {"fontsize": 9, "ncols": 4, "columnspacing": 1.0, "handletextpad": 0.5}
    for mark in draw.legend_below(ax, handles, 18 if notes else 2, **style):
        # enlarge marks of large graphs
        if hasattr(mark, "set_sizes") and mark.get_label() != "loops":
            mark.set_sizes([25.0])


# ---------------------------------------------------------------- parts of a partition


def _draw_fine(
    ax: Axes, C: Coarsening, places: Places, colors: np.ndarray, panel_area: float
) -> float:
    """Draw the fine graph and return the radius of its vertices in points."""
    F, labels, n = C.fine, C.partition.labels, C.fine.n_vertices
    clusters = tables.counted(len(colors), "cluster")
    draw.title(ax, f"fine graph: {tables.counted(n, 'vertex', 'vertices')} in {clusters}")
    proper = F.edges[:, 0] != F.edges[:, 1]
    area = 0.0
    if places.scene is not None:
        fill_faces(ax, places.scene, colors[labels[places.scene.faces], :3])
        what = "faces of more than one cluster are divided among them"
    else:
        what = _draw_lines(ax, C, places, colors, proper)
        area = np.clip(0.12 * panel_area / max(n, 1), 0.3, 60 * panel_area / 1e5)
        area = min(area, draw.disc_area(places.fine, panel_area, 0.7))
        style: dict = {"edgecolors": "0.15", "linewidths": 0.4 if n <= 2000 else 0, "s": area}
        shown = places.order
        draw.marks(ax, "vertices", places.fine[shown], c=colors[labels[shown]], **style)
    loops = F.n_edges - int(proper.sum())
    if loops:
        what += f"; {tables.counted(loops, 'loop')} not drawn"
    draw.fit(ax, ax.set_xlabel("", fontsize=10), f"places {places.how}\n{what}")
    return float(np.sqrt(area) / 2)


def _draw_lines(
    ax: Axes, C: Coarsening, places: Places, colors: np.ndarray, proper: np.ndarray
) -> str:
    """Draw links between clusters, or edges unless there are too many; return a description.

    ``proper`` is the mask of edges that are not loops.
    """
    from matplotlib.colors import to_rgba

    edges = C.fine.edges[proper]
    if places.by_quotient:
        counts = np.diff(C.clusters.pair_ptr)
        kept = counts[places.links]
        widths = 0.4 + 3.5 * np.sqrt(kept / kept.max(initial=1))
        sums_are_negative = _draw_pairs(ax, C, places, "links", widths, "0.6", 1)
        K, between, all_drawn = len(colors), int(counts.sum()), len(kept) == len(counts)
        what = "lines: " + ("" if all_drawn else f"{int(kept.sum()):,} of ")
        what += f"{between:,} edges between clusters\n"
        what += "red: negative sum of weights; " if sums_are_negative else ""
        what += f"{len(edges) - between:,} inside not drawn"
        if len(counts) > K * (K - 1) / 4 and not all_drawn:
            what += f"\n{len(counts):,} pairs of clusters are linked: distances mean little"
        return what
    negative = draw.signed_weights(C.fine)[proper] < 0
    if len(edges) > draw.LINES:
        return f"{len(edges):,} edges not drawn"
    few = len(edges) <= draw.MARKERS
    tail, head = C.partition.labels[edges].T
    inside = tail == head
    own = np.where(inside[:, None], colors[tail], to_rgba("0.6"))
    own[negative] = to_rgba(draw.NEGATIVE)
    width = float(np.clip(1500 / max(len(edges), 1), 0.4, 1.4))
    style: dict = {"colors": own[~inside], "linewidths": 0.7 * width, "zorder": 1}
    style["linestyles"] = (0, (3, 2)) if few else "solid"
    draw.lines(ax, "crossing edges", places.fine, edges[~inside], **style)
    style = {"colors": own[inside], "linewidths": 1.3 * width, "zorder": 2}
    draw.lines(ax, "internal edges", places.fine, edges[inside], **style)
    what = "solid: inside a cluster, dashed: crossing" if few else "grey: crossing edges"
    if negative.any():
        what = what if few else "thick: inside a cluster, thin: crossing"
        what += "; red: negative"
    return what


def _draw_pairs(
    ax: Axes, C: Coarsening, places: Places, label: str, widths: np.ndarray, grey: str, zorder: int
) -> bool:
    """Draw a line for each retained pair of clusters and return whether some are red.

    A line is red if the weights of the edges between the two clusters have a negative sum.
    """
    from matplotlib.colors import to_rgba

    counts = np.diff(C.clusters.pair_ptr)
    weights = draw.signed_weights(C.fine)[C.clusters.crossing_edges]
    pair = np.repeat(np.arange(len(counts)), counts)
    sums, sizes = (np.bincount(pair, w, len(counts)) for w in (weights, np.abs(weights)))
    # weights that cancel leave rounding of either sign
    rounding = (4 + counts) * linalg.eps_of(C.fine.dtype) * sizes
    negative = (sums < -rounding)[places.links]
    style: dict = {"linewidths": widths, "zorder": zorder}
    style["colors"] = np.where(negative[:, None], to_rgba(draw.NEGATIVE), to_rgba(grey))
    draw.lines(ax, label, places.coarse, C.clusters.pairs[places.links], **style)
    return bool(negative.any())


def _draw_coarse(
    ax: Axes, C: Coarsening, places: Places, colors: np.ndarray, panel_area: float
) -> np.ndarray:
    """Draw the coarse graph and return the areas of its vertices, shape (K,)."""
    from matplotlib.lines import Line2D

    if places.scene is not None:
        fill_faces(ax, places.scene)
    K, crossing, shown = len(places.coarse), C.n_crossing_edges, places.seen
    n_loops, kept = C.sheaf.n_edges - crossing, int(places.links.sum())
    largest = max(int(C.ranks.max(initial=0)), 1)
    area = draw.disc_area(places.coarse[shown], panel_area, 0.35)  # leave space for edges
    sizes = np.maximum(area * C.ranks / largest, 0.04 * area)
    # width of lines and rings, in points, for each dimension of an edge stalk
    unit = float(np.clip(0.4 * np.sqrt(area), 0.5, 5))
    unit /= max(int(C.sheaf.edge_dims.max(initial=0)), 1)
    handles, notes = [], []
    if kept > draw.LINES:
        notes.append(f"{crossing:,} crossing edges not drawn")
    else:
        dims = C.sheaf.edge_dims[np.flatnonzero(places.links)]
        widths = np.maximum(unit * dims, 0.15)
        negative = _draw_pairs(ax, C, places, "crossing edges", widths, "0.55", 2)
        for d in _both_ends(dims):
            style: dict = {"color": "0.55", "linewidth": max(unit * d, 0.15)}
            handles.append(Line2D([], [], label=f"edge stalk dim {d}", **style))
        if negative:
            handles.append(Line2D([], [], color=draw.NEGATIVE, label="negative sum of weights"))
    disc: dict = {"linestyle": "none", "marker": "o"}
    diameter = float(np.clip(np.sqrt(area), 3, 12))  # of the largest disc in the legend
    if K <= draw.MARKERS:  # a ring for each loop-cell
        loops, dims = C.sheaf.edges[crossing:, 0], C.sheaf.edge_dims[crossing:]
        loops, dims = loops[shown[loops]], dims[shown[loops]]
        gap, widths = min(4.0, 1 + 0.25 * np.sqrt(area)), np.maximum(unit * dims, 0.6)
        style = {"facecolors": "none", "edgecolors": "0.3", "zorder": 2, "linewidths": widths}
        style["s"] = (np.sqrt(sizes[loops]) + gap + widths) ** 2
        draw.marks(ax, "loop-cells", places.coarse[loops], **style)
        for d in _both_ends(dims):
            style = {"markersize": diameter, "markerfacecolor": "none", "markeredgecolor": "0.3"}
            style |= disc | {"markeredgewidth": max(unit * d, 0.6)}
            handles.append(Line2D([], [], label=f"loop-cell, dim {d}", **style))
    elif n_loops:
        notes.append(f"{n_loops:,} loop-cells not drawn")
    style = {"edgecolors": "0.15", "linewidths": 0.5 if K <= 2000 else 0, "s": sizes[shown]}
    style["c"] = np.where((C.ranks > 0)[:, None], colors, 1.0)[shown]
    draw.marks(ax, "vertices", places.coarse[shown], **style)
    for d in _both_ends(C.ranks[shown]):
        style = disc | {"markeredgecolor": "0.15", "markeredgewidth": 0.5}
        size = diameter * max(np.sqrt(d / largest), 0.2)
        style |= {"color": "0.5" if d else "1.0", "markersize": size}
        handles.append(Line2D([], [], label=f"vertex stalk dim {d}", **style))
    hidden = K - int(shown.sum())
    if hidden:
        notes.append(f"{tables.counted(hidden, 'hidden vertex', 'hidden vertices')} not drawn")
    elif kept < crossing:
        notes.append(f"{crossing - kept:,} of {crossing:,} edges not drawn")
    counts = f"{tables.counted(K, 'vertex', 'vertices')}, {tables.counted(crossing, 'edge')}"
    _finish(ax, f"coarse graph: {counts}, {tables.counted(n_loops, 'loop')}", handles, notes)
    return sizes


def _both_ends(values: np.ndarray) -> list[int]:
    """Return the smallest and the largest value, or one value if they are equal."""
    return sorted({int(values.min()), int(values.max())}) if len(values) else []
