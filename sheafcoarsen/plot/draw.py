"""Common functions of plots: axes, titles, scales, legends, lines, marks, names, colours."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from scipy.spatial import cKDTree

from sheafcoarsen._support import checks, ragged, tables
from sheafcoarsen.sheaf import CellularSheaf

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize

DARK, MIDDLE, LIGHT = "#2B1A4F", "#2A788E", "#C9C9C9"

MARKERS = 500
"""Maximum number of markers or lines that are vector graphics; more are rasterized."""

LINES = 50_000
"""Maximum number of edges that are drawn."""

NUMBERED = 20
"""Maximum number of clusters whose indices, or of vertices whose names, are in a plot."""

AROUND = np.array(
    [
        (10, 8, -8, 6, -6, 0, 6, -6),
        (10, 0, 0, 10, 10, -11, -10, -10),
        (0, 1, -1, 1, -1, 0, 1, -1),
    ]
).T
"""Places of a name round its vertex: points to the right, points up, half widths to the right."""


# ---------------------------------------------------------------- axes


def axes_or_new(
    ax: Axes | None, width: float, height: float, projections: Sequence[str] = ("rectilinear",)
) -> Axes:
    """Check the projection of given axes and return them, or new ones with the first projection."""
    checks.check_matplotlib()
    if ax is None:
        from matplotlib import pyplot

        size: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
        return pyplot.subplots(subplot_kw={"projection": projections[0]}, **size)[1]
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"`ax` must be matplotlib axes, got {type(ax).__name__}: "
            "create them with fig, ax = pyplot.subplots()"
        )
    if ax.name not in projections:
        space = ' or axes with projection="3d"' if "3d" in projections else ""
        raise ValueError(
            f"`ax` must be plane axes{space}, got axes with projection={ax.name!r}: create plane "
            "ones with fig, ax = pyplot.subplots()"
        )
    return ax


def width_in_points(ax: Axes) -> float:
    """Return the current width of the axes in points."""
    return 72 * ax.bbox.width / ax.figure.dpi


def title(ax: Axes, text: str, fontsize: float = 10, **style: Any) -> None:
    """Set a title that is not wider than the axes."""
    fit(ax, ax.set_title("", fontsize=fontsize, **style), text)


def fit(ax: Axes, shown: Any, text: str) -> None:
    """Set a text; if it is wider than the axes, use a smaller font and more lines."""

    def fits(line: str) -> bool:
        shown.set_text(line)
        return shown.get_window_extent().width <= ax.bbox.width

    if not fits(text):
        shown.set_fontsize(min(shown.get_fontsize(), 8))
        rows: list[str] = []
        for line in text.split("\n"):
            rows.append("")
            for word in re.findall(r"(?:\$[^$]*\$|\S)+", line):  # does not break formulas
                longer = f"{rows[-1]} {word}".strip()
                if rows[-1] and not fits(longer):
                    rows.append(word)
                else:
                    rows[-1] = longer
        shown.set_text("\n".join(rows))


def frame(ax: Axes, places: np.ndarray) -> None:
    """Set limits that show all positions with a margin, equal units, and no ticks."""
    middle, reach = frame_of(places)
    (left, bottom), (right, top) = middle - reach, middle + reach
    ax.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="box")


def frame_of(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centre of the frame, and its half-width and half-height."""
    places = places if len(places) else np.eye(2)
    low, high = places.min(axis=0), places.max(axis=0)
    middle, half = low / 2 + high / 2, max(float((high - low).max()) / 2, 1e-300)
    half = 1.0 if half <= 1e-12 * float(np.abs(middle).max()) or half == 1e-300 else half
    return middle, np.maximum(high / 2 - low / 2, 0.2 * half) + 0.14 * half


def tick_whole_numbers(ax: Axes) -> None:
    """Restrict the ticks of the x axis to integers, also where a user or another plot set them."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def scale(ax: Axes, values: np.ndarray) -> None:
    """Choose a scale of the y axis that shows both zeros and values of several decades."""
    positive = values[values > 0]
    if not positive.size or positive.max() <= 100 * positive.min():
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    elif positive.size == values.size:
        ax.set_yscale("log")
        ax.set_ylim(positive.min() / 2, 2 * positive.max())
    else:
        low = 10.0 ** np.floor(np.log10(positive.min()))
        ax.set_yscale("symlog", linthresh=low, linscale=0.5)
        ax.set_ylim(-0.3 * low, 2 * positive.max())


# ---------------------------------------------------------------- legends


def legend(ax: Axes, *, below: bool = False) -> None:
    """Add a legend with visible markers, below the axes if their figure or the caller makes space.

    Otherwise it is inside: where it covers least, or at the upper right if there are many points,
    since matplotlib's search compares it with each of them.
    """
    handles = ax.get_legend_handles_labels()[0]
    if ax.figure.get_layout_engine() is not None or below or not handles:
        shown = legend_below(ax, handles, 34, fontsize=9)
    else:
        points = sum(np.shape(marks.get_offsets())[0] for marks in ax.collections)
        place = "best" if points <= 20 * MARKERS else "upper right"
        shown = ax.legend(handles=handles, loc=place, framealpha=0.8, fontsize=9).legend_handles
    for mark in shown:
        if hasattr(mark, "set_sizes"):
            mark.set_sizes([25.0])
        elif hasattr(mark, "get_linewidth"):
            mark.set_linewidth(max(mark.get_linewidth(), 1.5))


def legend_below(ax: Axes, handles: list, points: float, *, ncols: int = 3, **style: Any) -> list:
    """Add a legend of up to ``ncols`` columns, ``points`` below the axes; return its marks."""
    from matplotlib.transforms import ScaledTranslation

    below = ax.transAxes + ScaledTranslation(0, -points / 72, ax.figure.dpi_scale_trans)
    place: dict = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
    place |= {"handles": handles, "frameon": False, "borderaxespad": 0.2}
    shown: list = []
    for columns in range(min(ncols, len(handles)), 0, -1):
        added = ax.legend(ncols=columns, **place, **style)
        shown = added.legend_handles
        if added.get_window_extent().width <= ax.bbox.width:
            break
    return shown


# ---------------------------------------------------------------- lines, marks and texts


def lines(ax: Axes, label: str, places: np.ndarray, edges: np.ndarray, **style: Any) -> None:
    """Draw straight edges, if there are any, as one collection, in the plane or in space."""
    if not len(edges):
        return
    style |= {"label": label, "rasterized": len(edges) > MARKERS}
    if places.shape[1] == 3:
        from mpl_toolkits.mplot3d.art3d import Line3DCollection

        ax.add_collection3d(Line3DCollection(places[edges], **style))  # type: ignore[attr-defined]
    else:
        from matplotlib.collections import LineCollection

        ax.add_collection(LineCollection(list(places[edges]), **style))


def marks(ax: Axes, label: str, places: np.ndarray, **style: Any) -> Any:
    """Draw marks as one collection, rasterized if there are many, and return it."""
    style = {"zorder": 3, "rasterized": len(places) > MARKERS} | style
    return ax.scatter(*places.T, label=label, **style)


def text(ax: Axes, word: object, place: np.ndarray, shift: np.ndarray, **style: Any) -> Any:
    """Write a word at an offset of ``shift`` points, to the right and up, from a position."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    style |= {"ha": "center", "va": "center", "fontsize": 9, "zorder": 5, "path_effects": halo}
    word = tables.printable(word)
    return ax.annotate(
        word, tuple(place), tuple(shift), textcoords="offset points", parse_math=False, **style
    )


def names(
    ax: Axes,
    F: CellularSheaf,
    places: np.ndarray,
    chosen: np.ndarray | None = None,
    marked: np.ndarray | None = None,
) -> None:
    """Write the names of chosen vertices next to them, or farther away with a connecting line.

    By default, these are the vertices whose names are not integers, in graphs of up to 20 vertices.
    """
    labels = range(F.n_vertices) if F.vertex_labels is None else F.vertex_labels
    if chosen is None:
        few = len(labels) <= NUMBERED
        chosen = np.flatnonzero([few and not isinstance(label, int) for label in labels])
    engine: Any = ax.figure.get_layout_engine()
    if len(chosen) and engine is not None:
        engine.execute(ax.figure.figure)  # names further off may overlap if the scale changes
    factors = (1, 2, 3.5, 6)[: 4 if len(chosen) <= 100 else 2]  # more names fill the axes anyway
    rings = [AROUND * [factor, factor, 1] for factor in factors]
    words = [(labels[v], [(v, ring) for ring in rings]) for v in chosen.tolist()]
    write(ax, words[:MARKERS], places, marked)
    for word, tries in words[MARKERS:]:
        text(ax, word, places[tries[0][0]], AROUND[0, :2])


def write(
    ax: Axes,
    words: Sequence[tuple[object, list[tuple[int, np.ndarray]]]],
    places: np.ndarray,
    marked: np.ndarray | None = None,
    **style: Any,
) -> None:
    """Write each word where it covers least, after the other texts of an inset.

    Every word has a list of vertices and places round them, and takes the best place of the first
    item with one where it covers almost nothing of vertices, lines, earlier texts and the outside,
    or else the best of all. A place nearly as near to another vertex, of those ``marked``, costs 40
    square points, one that touches it 80 more. If there are several items, a line joins a word to
    its vertex if it is distant or nearly as near to another one.
    """
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.collections import PathCollection

    locate: Any = ax.get_axes_locator()
    ax.apply_aspect(locate(ax, None))  # the scale in which words overlap
    point = ax.figure.dpi / 72
    measure = RendererAgg(1, 1, ax.figure.dpi)  # that of the figure may allocate its whole image
    at, panel = ax.transData.transform(places) / point, np.atleast_2d(ax.bbox.extents) / point
    marks = at if marked is None else at[marked]
    large = marks if marked is not None else at[[tries[0][0] for _, tries in words]]
    every = len(at) // 5000 + 1  # count some vertices of a large graph several times
    dots = np.hstack([at[::every] - np.sqrt(every), at[::every] + np.sqrt(every)])
    dots = np.vstack([dots, np.hstack([large - 3, large + 3]), _on_lines(ax)])
    covered = [earlier.get_window_extent(measure).extents for earlier in ax.texts]
    taken = np.reshape(covered, (-1, 4)) / point
    sizes = [c.get_sizes().max(initial=0) for c in ax.collections if isinstance(c, PathCollection)]
    rim = max(1.0, np.sqrt(max(sizes, default=0)) / 2)  # lines end at the largest marker's edge
    for word, tries in words:
        written = text(ax, word, places[tries[0][0]], AROUND[0, :2], **style)
        half = written.get_window_extent(measure).size / point / 2
        least = np.inf
        for order, (v, ring) in enumerate(tries):
            shift = ring[:, :2] + ring[:, 2:] * [half[0], 0]
            own = np.hstack([at[v] + shift - half, at[v] + shift + half])
            gap = np.linalg.norm((np.abs(shift) - half).clip(0), axis=1)
            way = at[v] + shift[:, None] * np.linspace(0.04, 0.96, 25)[:, None]
            way = np.concatenate([way - 0.5, way + 0.5], axis=2)  # a line of small boxes
            wide = own + np.array([-3, 0, 3, 0])  # half a character between texts on one line
            cost = 3 * _shared(wide, taken) + _shared(own, dots)
            cost += 10 * (4 * half.prod() - _shared(own, panel))
            reach = np.abs(shift).max(axis=0) + half + 16
            other = marks[(np.abs(marks - at[v]) <= reach).all(axis=1)]
            other = other[(other != at[v]).any(axis=1)]
            gaps = np.maximum(own[:, None, :2] - other, other - own[:, None, 2:]).clip(0)
            nearest = np.linalg.norm(gaps, axis=2).min(axis=1, initial=np.inf)
            cost += 40 * (nearest < np.minimum(1.5 * gap, rim + 8))
            cost += 80 * ((nearest < rim + 2) & (nearest < gap + 2))
            joined = (gap > rim + 1) & ((gap > 14) | (nearest < 1.5 * gap))
            crossed = np.vstack([taken, np.hstack([other - rim, other + rim])])
            cost += joined * 20 * _shared(way.reshape(-1, 4), crossed).reshape(-1, 25).sum(axis=1)
            i = int(cost.round().argmin())
            if cost[i] + 4 * order < least:
                least, box = cost[i] + 4 * order, own[i]
                line = way[i] if joined[i] and len(tries) > 1 else way[i, :0]
                written.xy, written.xyann = tuple(places[v]), tuple(shift[i])
            if cost[i] < 40:
                break
        if len(line):  # only a new text can have a line
            written.remove()
            joint = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0, "shrinkB": rim}
            text(ax, word, written.xy, written.xyann, arrowprops=joint, **style)
        taken = np.vstack([taken, box, line + np.array([-1.5, -1.5, 1.5, 1.5])])


def _on_lines(ax: Axes) -> np.ndarray:
    """Return small boxes along the lines of a plot, in points; none if there are many lines."""
    from matplotlib.collections import LineCollection

    drawn = [c.get_segments() for c in ax.collections if isinstance(c, LineCollection)]
    ends = np.reshape([line[[0, -1]] for group in drawn for line in group], (-1, 2, 2))
    if len(ends) > MARKERS:
        return np.zeros((0, 4))
    ends = ax.transData.transform(ends.reshape(-1, 2)).reshape(-1, 2, 2) * 72 / ax.figure.dpi
    begin, end = ends.swapaxes(0, 1)
    counts = np.ceil(np.linalg.norm(end - begin, axis=1) / 4).astype(int)
    line = np.repeat(np.arange(len(ends)), counts)
    share = ((ragged.ranges(np.zeros_like(counts), counts) + 0.5) / counts[line])[:, None]
    at = begin[line] * (1 - share) + end[line] * share
    return np.hstack([at - 0.35, at + 0.35])


def _shared(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the sum of the areas in which each box intersects the other boxes."""
    low, high = boxes[:, :2], boxes[:, 2:]
    near = (others[:, :2] < high.max(axis=0)) & (others[:, 2:] > low.min(axis=0))
    others = others[near[:, 0] & near[:, 1]]
    common = np.minimum(high[:, None], others[:, 2:]) - np.maximum(low[:, None], others[:, :2])
    common = common.clip(0)
    return (common[..., 0] * common[..., 1]).sum(axis=1)


def disc_area(means: np.ndarray, panel_area: float, share: float = 0.5) -> float:
    """Return an area of the largest disc, in square points, for which most discs do not overlap.

    ``share`` is 0.75 for discs that touch.
    """
    largest = 500 * panel_area / 1e5
    if len(means) < 2:
        return largest
    gaps = cKDTree(means).query(means, k=2)[0][:, 1]
    extent = float(np.ptp(means, axis=0).max())
    diameter = share * np.sqrt(panel_area) * float(np.quantile(gaps, 0.3)) / (extent or 1.0)
    least = np.clip(0.05 * panel_area / len(means), 0.3, 12)
    return float(np.clip(diameter**2, least, max(largest, 60)))


# ---------------------------------------------------------------- colours


PALETTE = ("#440154", "#FDE725", "#31688E", "#8FD744", "#6B3A0A", "#E69F00")
"""Colours of clusters. Their lightness alternates, so that they also differ in greyscale."""

NEGATIVE = "#E41A1C"
"""Colour of negative edges, which is not in the palette of clusters."""


def cluster_colors(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return colours of n clusters, shape (n, 4), that differ between the clusters of each pair.

    Of several free colours a cluster takes the least used one: near clusters may have no edge.
    """
    which, many = np.arange(n), len(PALETTE)
    if n > 10:  # up to 10 colours differ at first sight
        graph = nx.empty_graph(n)
        graph.add_edges_from(pairs[pairs[:, 0] != pairs[:, 1]].tolist())
        which[:] = -1
        used = np.zeros(many, np.int64)
        for a in sorted(graph, key=graph.degree, reverse=True):
            taken = which[list(graph[a])]
            free = np.setdiff1d(np.arange(many), taken)
            if len(free):
                which[a] = free[used[free].argmin()]
                used[which[a]] += 1
            else:  # neighbours use all colours of the palette
                which[a] = np.setdiff1d(np.arange(many, n), taken)[0]
    return palette(int(which.max(initial=-1)) + 1)[which]


def palette(count: int) -> np.ndarray:
    """Return distinct colours, (count, 4); each beyond the palette is far from those before it.

    No colour is red, which marks negative edges.
    """
    from matplotlib.colors import to_rgba_array

    if count <= len(PALETTE):
        return to_rgba_array(PALETTE)[:count]
    hues = max(96, count)
    kept = range(hues // 12, hues - hues // 12)
    shades = [(i / hues, lightness) for lightness in (0.72, 0.38, 0.55) for i in kept]
    others = to_rgba_array([colorsys.hls_to_rgb(*shade, 0.65) for shade in shades])
    chosen = list(to_rgba_array(PALETTE))
    nearest = np.linalg.norm(others[:, None] - chosen, axis=2).min(axis=1)
    while len(chosen) < count:
        chosen.append(others[nearest.argmax()])
        nearest = np.minimum(nearest, np.linalg.norm(others - chosen[-1], axis=1))
    return np.array(chosen)


def signed_weights(F: CellularSheaf) -> np.ndarray:
    """Return the scalar products of the maps of each edge, zero unless stalks are real numbers."""
    if F.dtype.kind == "c" or (F.vertex_dims != 1).any():
        return np.zeros(F.n_edges)
    edge = np.repeat(np.arange(F.n_edges), F.edge_dims)
    return np.bincount(edge, F.tail_data * F.head_data, F.n_edges)


def number_colors(values: np.ndarray) -> tuple[Colormap, Normalize]:
    """Return a colour map and a normalization, centred at zero if values have both signs."""
    import matplotlib as mpl
    from matplotlib.colors import Normalize

    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if low < 0 < high:
        reach = max(-low, high)
        return mpl.colormaps["RdBu_r"], Normalize(-reach, reach)
    return mpl.colormaps["viridis"], Normalize(low, high)
