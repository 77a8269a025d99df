"""Pictures of a coarsening, by matplotlib, which is loaded when the first one is drawn.

Every function draws into ``ax`` and returns it; without ``ax`` it makes a pyplot figure with one. What tells things apart is
lightness, shape or place, never hue alone. Large pictures hold one collection of many markers, drawn as pixels inside a vector
file, and leave out lines that nobody could tell apart, which they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from scipy.spatial import cKDTree

from sheafcoarsen._checks import check_matplotlib, scalar_array
from sheafcoarsen._layout import graph_layout
from sheafcoarsen._linalg import eps_of, zero_level
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.hierarchy import Hierarchy, HierarchyLedger
from sheafcoarsen.ledger import EnergyLedger
from sheafcoarsen.operators import count_nonzeros
from sheafcoarsen.quality import Certificate, SpectralQuality

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = ("#440154", "#FDE725", "#31688E", "#8FD744", "#443A83", "#35B779")
"""Viridis, ordered so that neighbours in the list differ in lightness: it also reads in grey and without red or green."""

DARK, MIDDLE, LIGHT = "#2B1A4F", "#2A788E", "#C9C9C9"

NUMBERED = 20
"""Clusters up to which each carries its number."""

COLUMNS = 60
"""Clusters up to which each has a column of eigenvalues of its own."""

CELLS = 2000
"""Clusters up to which neighbours get different colours."""

LINES = 50_000
"""Edges up to which they are drawn."""

MARKERS = 500
"""Markers or lines up to which a vector file holds them one by one, others as pixels, and clusters up to which rings are drawn."""

MAX_AREA = 500.0
"""Of a disc in a panel of usual size, 1e5 square points, in square points."""

NARROW = 5e4
"""Area of a panel, in square points, below which words are put in two lines."""


def _axes(ax, width: float, height: float) -> Axes:
    """Return the axes to draw into, new ones where none are given."""
    check_matplotlib()
    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"`ax` must be matplotlib axes, got {type(ax).__name__}: fig, ax = pyplot.subplots() makes them"
        )
    return ax


def _points(ax) -> float:
    """Return the width of the axes as they stand, in points."""
    return 72 * ax.bbox.width / ax.figure.dpi


def _check(name: str, value, kind) -> None:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds):
        raise TypeError(f"`{name}` must be a {' or a '.join(k.__name__ for k in kinds)}, got {type(value).__name__}")


# ---------------------------------------------------------------- the partition and the coarse graph


def partition(C: Coarsening, pos=None, *, ax=None) -> Axes:
    """Draw the fine graph in its clusters and the coarse graph beside it, at the means of the clusters' places.

    A coarse vertex has an area in proportion to the dimension r_a of its stalk (hollow where that is 0), a coarse edge a width in
    proportion to that of its stalk; a ring is a loop-cell. Neighbouring clusters have colours of different lightness, which
    repeat; up to 20 clusters carry their numbers. More than 50,000 edges are not drawn.

    Parameters
    ----------
    C : Coarsening
    pos : array_like, shape (n, 2), or dict from vertex labels to pairs, optional
        Places of the fine vertices. By default computed from distances in the graph, in near-linear time.
    ax : matplotlib Axes, optional
        Its area takes two inset axes, which are its ``child_axes``: the fine graph and the coarse one.

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
    _check("C", C, Coarsening)
    given = pos is not None
    places = _places(C, pos) if given else graph_layout(C.fine.edges, C.fine.n_vertices)
    spread = np.ptp(places, axis=0) if len(places) else np.ones(2)
    ax = _axes(ax, 10, float(np.clip(5 * spread[1] / max(spread[0], 1e-300), 1.2, 5.5)) + 1.4)
    ax.set_axis_off()
    where = "as given" if given else "computed from distances in the graph"
    left, right = (ax.inset_axes((x, 0.12, 0.49, 0.80)) for x in (0, 0.51))
    colors = _cluster_colors(C)
    sizes = np.maximum(C.partition.sizes, 1)
    means = np.stack([np.bincount(C.partition.labels, p, minlength=len(sizes)) / sizes for p in places.T], axis=1)
    room = 1.3 * _points(left) ** 2  # about the area of a panel, of which the markers are to cover a share
    _draw_fine(left, C, places, colors, where, room)
    discs = _draw_coarse(right, C, means, colors, room)
    for panel in (left, right):
        _frame(panel, places)
    if len(means) <= NUMBERED:
        _numbers(left, means, np.full(len(means), 6.0))
        _numbers(
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
        raise ValueError(f"`pos` must hold two real coordinates for each of {n} vertices, got shape {places.shape}")
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
        _lines(
            ax,
            "crossing edges",
            places,
            edges[~inside],
            colors="0.6",
            linewidths=0.7 * width,
            linestyles=dashes,
            zorder=1,
        )
        _lines(ax, "internal edges", places, edges[inside], colors=own, linewidths=1.3 * width, zorder=2)
    ax.scatter(
        *places.T, s=float(np.clip(0.12 * room / max(n, 1), 0.3, 60 * room / 1e5)), c=colors[labels], zorder=3, rasterized=n > MARKERS,
        linewidths=0.4 if n <= CELLS else 0, edgecolors="0.15", label="vertices",
    )  # fmt: skip
    _title(ax, "fine graph", f"{_count(n, 'vertex', 'vertices')} in {_count(len(colors), 'cluster')}", room)
    what = "solid: inside a cluster, dashed: crossing" if len(edges) <= MARKERS else "grey: crossing edges"
    if not drawn:
        what = f"{len(edges):,} edges not drawn"
    loops = C.fine.n_edges - len(edges)
    if loops:
        what += f"; {_count(loops, 'loop')} not drawn"
    text = f"places {where}\n{what}"
    ax.set_xlabel(text if room > NARROW else text.replace(" from", "\nfrom").replace(", ", ",\n"), fontsize=9)


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
        _lines(ax, "crossing edges", means, edges[:crossing], colors="0.55", linewidths=widths, zorder=1)
        handles += [
            Line2D([], [], color="0.55", linewidth=max(width * d / widest, 0.15), label=f"edge stalk dim {d}")
            for d in _ends(dims[:crossing])
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
            for d in _ends(dims[crossing:])
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
        for d in _ends(C.ranks)
    ]  # fmt: skip
    counts = (_count(K, "vertex", "vertices"), _count(crossing, "edge"), _count(len(loops), "loop"))
    _title(ax, "coarse graph", ", ".join(counts), room)
    if notes:
        ax.set_xlabel(f"{' and '.join(notes)} not drawn", fontsize=9)
    if handles:
        _legend_below(
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
    ax.set_title(f"{what}: {counts}" if room > NARROW else f"{what}:\n{counts}", fontsize=10 if room > NARROW else 8)


def _disc_area(means: np.ndarray, room: float) -> float:
    """Return an area for the largest disc, in square points, with which most neighbours and their rings do not overlap."""
    if len(means) < 2:
        return MAX_AREA * room / 1e5
    gaps = cKDTree(means).query(means, k=2)[0][:, 1]
    extent = float(np.ptp(means, axis=0).max())
    diameter = 0.5 * np.sqrt(room) * float(np.quantile(gaps, 0.3)) / (extent or 1.0)
    return float(np.clip(diameter**2, np.clip(0.05 * room / len(means), 0.3, 60), max(MAX_AREA * room / 1e5, 60)))


def _lines(ax, label: str, places, edges, **style) -> None:
    """Draw straight edges as one collection."""
    from matplotlib.collections import LineCollection

    ax.add_collection(LineCollection(places[edges], rasterized=len(edges) > MARKERS, label=label, **style))


def _ends(values: np.ndarray) -> list[int]:
    """Return the smallest and the largest value, once where they are one."""
    return sorted({int(values.min()), int(values.max())}) if len(values) else []


def _frame(ax, places) -> None:
    """Show all places with a margin, equal units in both directions, and no ticks."""
    low, high = (places.min(axis=0), places.max(axis=0)) if len(places) else (np.zeros(2), np.ones(2))
    middle, half = low / 2 + high / 2, max(float((high - low).max()) / 2, 1e-300)
    half = 1.0 if half <= 1e-12 * float(np.abs(middle).max()) or half == 1e-300 else half
    reach = np.maximum(high / 2 - low / 2, 0.2 * half) + 0.1 * half
    ax.set_xlim(middle[0] - reach[0], middle[0] + reach[0])
    ax.set_ylim(middle[1] - reach[1], middle[1] + reach[1])
    ax.set_aspect("equal", adjustable="box")
    ax.set_xticks([])
    ax.set_yticks([])


def _numbers(ax, means, shifts) -> None:
    """Write each cluster's number, so many points up and to the right of its place."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    for a, (place, shift) in enumerate(zip(means.tolist(), shifts.tolist(), strict=True)):
        ax.annotate(
            str(a), place, (shift, shift), textcoords="offset points", ha="center", va="center", fontsize=9, zorder=5,
            path_effects=halo,
        )  # fmt: skip


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


# ---------------------------------------------------------------- local spectra


def spectra(C: Coarsening, *, ax=None) -> Axes:
    """Draw the kept eigenvalues of every cluster, the first discarded one, and the gap between them.

    What is zero to working accuracy stands at 0. Up to 60 clusters have a column each; more are sorted by their first discarded
    eigenvalue. The scale is linear up to the smallest positive eigenvalue and logarithmic beyond where they spread over more than
    two decades.

    Parameters
    ----------
    C : Coarsening
        With modes, not a basis of your own.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        For a basis of your own.
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> ax = sc.plot.spectra(sc.coarsen(F, sc.select(F, 5), rank=1), ax=Figure().add_subplot())
    >>> ax.get_xlabel()
    'cluster'
    """
    _check("C", C, Coarsening)
    modes = C.modes
    if modes is None:
        raise ValueError("`C` must be made of local modes: a basis of your own has no local spectra")
    ax = _axes(ax, 7, 4)
    K = len(modes.ranks)
    level = zero_level(C.clusters.dims, eps_of(C.fine.dtype), modes.operator_norms.astype(np.float64))
    cluster = np.repeat(np.arange(K), modes.ranks)
    kept = _zeroed(modes.scores, level[cluster])
    after = _zeroed(modes.next_eigenvalues, level)  # inf where nothing is discarded
    cut = np.isfinite(after)
    last = np.zeros(K)  # where no mode is kept the gap begins at 0
    some = modes.ranks > 0
    last[some] = kept[modes.rank_offsets[1:][some] - 1]
    many = K > COLUMNS
    order = np.lexsort((last, after)) if many else np.arange(K)
    x = np.empty(K)
    x[order] = np.arange(K)
    tied = modes.tied & cut
    size = float(np.clip(2000 / max(K, 1), 0.3, 30))
    style = {"zorder": 3, "rasterized": len(kept) > MARKERS}
    ax.scatter(x[cluster], kept, s=size, color=DARK, linewidths=0, label="kept", **style)
    if many:  # the first discarded ones are ascending: a line, and the gaps are the area below it
        low, high = last[order][cut[order]], after[order][cut[order]]
        at = np.arange(len(high))
        ax.fill_between(
            at, low, high, step="mid", color=LIGHT, linewidth=0, zorder=1, rasterized=K > MARKERS, label="gap"
        )
        ax.plot(at, high, color=MIDDLE, linewidth=2, label="first discarded", zorder=4)
    else:
        marker = {"marker": "o", "facecolors": "white", "edgecolors": MIDDLE, "linewidths": 1.3}
        ax.vlines(x[cut], last[cut], after[cut], color=LIGHT, linewidth=4, zorder=1, label="gap")
        ax.scatter(x[cut], after[cut], s=size, label="first discarded", **marker, **style)
    if K <= NUMBERED:
        near = np.sqrt(eps_of(C.fine.dtype)) * modes.operator_norms[cluster]
        _multiplicities(ax, x[cluster], kept, near)
    if tied.any():
        label = f"the cut splits a multiple eigenvalue ({tied.sum():,})"
        ax.scatter(
            x[tied],
            after[tied],
            s=max(size, 8),
            marker="x",
            color="black",
            linewidths=1,
            label=label,
            **{**style, "zorder": 5},
        )
    ax.set_xlabel(f"{K:,} clusters, sorted by first discarded eigenvalue" if many else "cluster")
    if not many:
        ax.xaxis.set_major_locator(_whole_numbers())
        ax.set_xlim(-0.6, max(K, 1) - 0.4)
    operator = {"internal": "internal Laplacian $L_a$", "principal": "principal block $L[C_a, C_a]$"}
    ax.set_ylabel(f"eigenvalue of the\n{operator.get(modes.local_operator, modes.local_operator + ' operator')}")
    _scale(ax, np.concatenate([kept, last[cut], after[cut]]))
    ax.set_title("local spectra: what is kept, and the gap to what is not", fontsize=10)
    _legend(ax)
    return ax


def _multiplicities(ax, x, values, near) -> None:
    """Write how many eigenvalues stand at one place, beside it; they are ascending for each x."""
    first = np.flatnonzero(np.append(True, (np.diff(x) != 0) | (np.diff(values) > near[1:]))[: len(x)])
    for k, count in zip(first.tolist(), np.diff(np.append(first, len(x))).tolist(), strict=True):
        if count > 1:
            ax.annotate(
                rf"$\times${count}",
                (x[k], values[k]),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )


def _whole_numbers():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, min_n_ticks=1)


def _zeroed(values, level) -> np.ndarray:
    """Return the values, those at or below the level as 0."""
    values = values.astype(np.float64)
    return np.where(values <= level, 0.0, values)


def _scale(ax, values) -> None:
    """Choose a scale of y on which positive values of several decades, and zeros beside them, are told apart."""
    positive = values[values > 0]
    if not positive.size or positive.max() <= 100 * positive.min():
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    elif positive.size == values.size:
        ax.set_yscale("log")
        ax.set_ylim(positive.min() / 2, 2 * positive.max())
    else:
        from matplotlib.ticker import FixedLocator, NullLocator

        low, high = (int(np.floor(np.log10(value))) for value in (positive.min(), positive.max()))
        ax.set_yscale("symlog", linthresh=10.0**low, linscale=0.5)
        decades = np.arange(low + 1, high + 1)
        ax.yaxis.set_major_locator(FixedLocator([0.0, *10.0 ** decades[:: len(decades) // 7 + 1]]))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_ylim(-0.3 * 10.0**low, 2 * float(positive.max()))


def _legend(ax) -> None:
    """Put a legend below the axes, with marks that can be seen."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        legend = _legend_below(ax, handles, 34, labels=labels, fontsize=9, ncols=min(len(handles), 3))
        for mark in legend.legend_handles:
            if hasattr(mark, "set_sizes"):
                mark.set_sizes([25.0])
            elif mark.get_label() == "gap":
                mark.set_linewidth(4)


def _legend_below(ax, handles, points: float, **style):
    """Put a legend so many points below the axes, where it covers nothing."""
    from matplotlib.transforms import ScaledTranslation

    below = ax.transAxes + ScaledTranslation(0, -points / 72, ax.figure.dpi_scale_trans)
    return ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=below,
        frameon=False,
        borderaxespad=0.2,
        **style,
    )


# ---------------------------------------------------------------- the energy ledger


def ledger(E: EnergyLedger | HierarchyLedger, *, ax=None) -> Axes:
    """Draw an energy ledger as a waterfall: bar after bar, from zero to the fine energy norm(delta x)^2.

    Dark bars are kept, light ones discarded, hatched ones coupling energy, of either sign. Of several cochains the sums over all of
    them are drawn.

    Parameters
    ----------
    E : EnergyLedger or HierarchyLedger
    ax : matplotlib Axes, optional

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
    >>> C = sc.coarsen(F, sc.select(F, 5), rank=1)
    >>> ax = sc.plot.ledger(sc.energy_ledger(C, range(34)), ax=Figure().add_subplot())
    >>> [label.get_text() for label in ax.get_yticklabels()][-1]
    'fine energy'
    """
    _check("E", E, (EnergyLedger, HierarchyLedger))
    lines = {name: float(np.sum(value)) for name, value in E.lines.items()}
    if isinstance(E, EnergyLedger):  # what is kept first
        lines = {name: lines[name] for name in sorted(lines, key=lambda name: _ROLES.index(_role(name)))}
    fine = float(np.sum(E.fine_energy))
    ax = _axes(ax, 7, 1.2 + 0.4 * (len(lines) + 1))
    names = [*lines, "fine energy"]
    values = np.array([*lines.values(), fine])
    ends = np.cumsum(values[:-1])
    starts = np.append(ends - values[:-1], 0.0)
    y = np.arange(len(names))
    for role in _ROLES:
        own = np.array([_role(name) == role for name in names])
        if own.any():
            color, hatch, label = _BARS[role]
            ax.barh(
                y[own],
                values[own],
                left=starts[own],
                height=0.62,
                facecolor=color,
                edgecolor="black",
                linewidth=0.7,
                hatch=hatch,
                label=label,
            )
    ax.vlines(ends, y[:-1], y[1:], color="0.4", linewidth=0.8, linestyle=":", zorder=0)
    right = np.maximum(starts, starts + values)
    rounding = 1e3 * np.finfo(float).eps * float(np.abs(values).sum())
    for at, end, value in zip(y.tolist(), right.tolist(), values.tolist(), strict=True):
        share = f"  ({round(100 * value / fine, 2) + 0.0:.2f} %)" if fine > 0 else ""
        text = "0, to rounding" if 0 < abs(value) <= rounding else f"{value:.4g}{share}"
        ax.annotate(text, (end, at), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(y, names)
    ax.invert_yaxis()
    low, high = min(float(starts.min()), float((starts + values).min()), 0.0), float(right.max())
    span = high - low or 1.0
    ax.set_xlim(low - (0.03 * span if low < 0 else 0), high + span * 110 / max(_points(ax) - 110, 110))
    columns = np.size(E.fine_energy)
    ax.set_xlabel(
        "energy, in squared units of $\\delta x$" + (f", summed over {columns} cochains" if columns != 1 else "")
    )
    ax.set_title(r"energy ledger: the lines add up to $\|\delta x\|^2$", fontsize=10)
    _legend(ax)
    return ax


_ROLES = ("kept", "lost", "coupling", "total")

_BARS = {
    "kept": (MIDDLE, "", "kept"),
    "lost": ("#E8E3B0", "", "discarded"),
    "coupling": ("white", "////", "coupling"),
    "total": (DARK, "", "fine energy, computed on its own"),
}


def _role(name: str) -> str:
    """Return what a line of the ledger is about."""
    if name == "fine energy":
        return "total"
    if "coupling" in name:
        return "coupling"
    return "lost" if "discarded" in name or name.startswith("level") else "kept"


# ---------------------------------------------------------------- eigenvalues


def quality(Q: SpectralQuality, certificate: Certificate | None = None, *, ax=None) -> Axes:
    """Draw the low positive eigenvalues of L beside those of R* L R, and where a certificate says that the former lie.

    The i-th eigenvalue is counted with the zeros, so that the band of the i-th coarse one encloses the i-th fine one also where a
    global section is lost. Eigenvalues that the coarse space does not have are left out, and so is the part of the band more than four
    decades below the eigenvalues.

    Parameters
    ----------
    Q : SpectralQuality
    certificate : Certificate, optional
        That of the same coarsening.
    ax : matplotlib Axes, optional

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
    >>> C = sc.coarsen(F, sc.select(F, 5), rank=1)
    >>> ax = sc.plot.quality(sc.spectral_quality(C, 4), sc.certificate(C), ax=Figure().add_subplot())
    >>> bool(ax.get_xlim()[1] > 5)
    True
    """
    _check("Q", Q, SpectralQuality)
    if certificate is not None:
        _check("certificate", certificate, Certificate)
    ax = _axes(ax, 6, 4)
    there = np.isfinite(Q.coarse)
    i = Q.kernel_fine + 1 + np.arange(len(Q.fine))
    j = (max(Q.kernel_fine, Q.kernel_coarse) + 1 + np.arange(len(Q.coarse)))[there]
    coarse = Q.coarse[there]
    ax.plot(i, Q.fine, linestyle="none", marker="o", markersize=6, color=DARK, label=r"fine, of $L$", zorder=4)
    ax.plot(
        j, coarse, linestyle="none", marker="s", markersize=9, markerfacecolor="none", markeredgecolor=MIDDLE, markeredgewidth=1.6,
        label=r"coarse, of $R^* L R$", zorder=3,
    )  # fmt: skip
    shown = np.concatenate([Q.fine, coarse])
    if len(shown):
        ax.set_yscale("log")
        bottom, top = float(shown.min()), float(shown.max())
        if certificate is not None and len(coarse):
            lower, upper = certificate.interval(coarse)
            floor = 1e-4 * bottom
            bottom = min(bottom, max(float(lower.min()), floor))
            below = " (and below the axis)" if (lower < floor).any() else ""
            ax.bar(
                j, upper - np.maximum(lower, floor / 2), bottom=np.maximum(lower, floor / 2), width=0.7, color="#DDE9EC", edgecolor=MIDDLE,
                linewidth=0.6, label=f"certificate{below}", zorder=1,
            )  # fmt: skip
        ax.set_ylim(bottom / 1.4, top * 1.4)
    missing = int((~there).sum())
    if missing:
        ax.plot([], [], linestyle="none", label=f"{missing} have no coarse one")
    ax.xaxis.set_major_locator(_whole_numbers())
    zeros = f"{Q.kernel_fine} of $L$, {Q.kernel_coarse} of $R^* L R$"
    ax.set_xlabel(f"i-th eigenvalue, counted with the zeros ({zeros})")
    ax.set_ylabel("eigenvalue")
    ax.set_title("low spectrum, fine against coarse", fontsize=10)
    _legend(ax)
    return ax


# ---------------------------------------------------------------- the hierarchy


def hierarchy(H: Hierarchy, *, ax=None) -> Axes:
    """Draw the sizes of all sheaves of a hierarchy, level after level, on a logarithmic scale with a place for 0.

    Parameters
    ----------
    H : Hierarchy
    ax : matplotlib Axes, optional

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
    >>> ax = sc.plot.hierarchy(sc.coarsen_levels(F, 3, rank=1, min_vertices=5), ax=Figure().add_subplot())
    >>> len(ax.lines)
    5
    """
    _check("H", H, Hierarchy)
    ax = _axes(ax, 6.5, 4)
    sizes = {
        "nonzeros of $L$": [count_nonzeros(F) for F in H.sheaves],
        "edges, with loops": [F.n_edges for F in H.sheaves],
        "$\\dim C^1$": [F.dim_c1 for F in H.sheaves],
        "$\\dim C^0$": [F.dim_c0 for F in H.sheaves],
        "vertices": [F.n_vertices for F in H.sheaves],
    }
    levels = np.arange(len(H.sheaves))
    styles = zip(
        ("D", "v", "^", "s", "o"), (":", "--", "-.", "-", "-"), (LIGHT, "#6B9F2F", "0.45", MIDDLE, DARK), strict=True
    )
    for (name, counts), (marker, dash, color) in zip(sizes.items(), styles, strict=True):
        ax.plot(
            levels, counts, marker=marker, linestyle=dash, color=color, markeredgecolor="0.2", markersize=7, label=name
        )
    for level, n in zip(levels.tolist(), sizes["vertices"], strict=True):
        ax.annotate(f"{n:,}", (level, n), xytext=(0, -13), textcoords="offset points", ha="center", fontsize=8)
    _scale(ax, np.array(list(sizes.values()), dtype=float).ravel())
    if ax.get_yscale() == "log":
        ax.set_ylim(bottom=ax.get_ylim()[0] / 1.6)  # room for the last number
    ax.set_xticks(levels, ["fine", *map(str, levels[1:])])
    ax.set_xlim(-0.4, max(len(levels) - 0.6, 0.4))
    ax.set_xlabel("level")
    ax.set_ylabel("count")
    ax.set_title(f"hierarchy: {_count(len(H), 'level')}", fontsize=10)
    _legend(ax)
    return ax
