"""Axes, legends and markers that all pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sheafcoarsen._support import check_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PALETTE = ("#440154", "#FDE725", "#31688E", "#8FD744", "#443A83", "#35B779")
"""Viridis, ordered so that neighbours in the list differ in lightness: it also reads in grey and without red or green."""


DARK, MIDDLE, LIGHT = "#2B1A4F", "#2A788E", "#C9C9C9"


LINES = 50_000
"""Edges up to which they are drawn."""


MARKERS = 500
"""Markers or lines up to which a vector file holds them one by one, others as pixels, and clusters up to which rings are drawn."""


NARROW = 5e4
"""Area of a panel, in square points, below which words are put in two lines."""


def axes_or_new(ax, width: float, height: float) -> Axes:
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


def square_points(ax) -> float:
    """Return the width of the axes as they stand, in points."""
    return 72 * ax.bbox.width / ax.figure.dpi


def check_kind(name: str, value, kind) -> None:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds):
        raise TypeError(
            f"`{name}` must be a {' or a '.join(k.__name__ for k in kinds)}, got {type(value).__name__}"
        )


def draw_lines(ax, label: str, places, edges, **style) -> None:
    """Draw straight edges as one collection."""
    from matplotlib.collections import LineCollection

    ax.add_collection(
        LineCollection(places[edges], rasterized=len(edges) > MARKERS, label=label, **style)
    )


def both_ends(values: np.ndarray) -> list[int]:
    """Return the smallest and the largest value, once where they are one."""
    return sorted({int(values.min()), int(values.max())}) if len(values) else []


def draw_frame(ax, places) -> None:
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


def write_numbers(ax, means, shifts) -> None:
    """Write each cluster's number, so many points up and to the right of its place."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    for a, (place, shift) in enumerate(zip(means.tolist(), shifts.tolist(), strict=True)):
        ax.annotate(
            str(a), place, (shift, shift), textcoords="offset points", ha="center", va="center", fontsize=9, zorder=5,
            path_effects=halo,
        )  # fmt: skip


def counted(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def whole_number_ticks():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, min_n_ticks=1)


def set_scale(ax, values) -> None:
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


def add_legend(ax) -> None:
    """Put a legend below the axes, with marks that can be seen."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        legend = add_legend_below(
            ax, handles, 34, labels=labels, fontsize=9, ncols=min(len(handles), 3)
        )
        for mark in legend.legend_handles:
            if hasattr(mark, "set_sizes"):
                mark.set_sizes([25.0])
            elif mark.get_label() == "gap":
                mark.set_linewidth(4)


def add_legend_below(ax, handles, points: float, **style):
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
