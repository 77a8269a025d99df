"""Plot of the sizes of a hierarchy's sheaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sheafcoarsen._support import counted
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.operators import count_nonzeros
from sheafcoarsen.plot.axes import (
    DARK,
    LIGHT,
    MIDDLE,
    add_legend,
    axes_or_new,
    check_kind,
    set_scale,
    set_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def hierarchy(H: Hierarchy, *, ax: Axes | None = None) -> Axes:
    """Plot the sizes of all sheaves of a hierarchy.

    The scale is logarithmic if positive sizes differ by more than a factor of 100, and then linear
    near zero if some sizes are zero.

    Parameters
    ----------
    H : Hierarchy
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        Axes that are not plane.
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    See Also
    --------
    partition : one level, as two graphs.
    sheafcoarsen.coarsen_levels : what is drawn.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> H = sc.coarsen_levels(F, 3, rank=1, min_vertices=5)
    >>> ax = sc.plot.hierarchy(H, ax=Figure().add_subplot())
    >>> len(ax.lines)
    5
    """
    check_kind("H", H, Hierarchy)
    ax = axes_or_new(ax, 6.5, 4)
    sizes = {
        "nonzeros of $L$": [count_nonzeros(F) for F in H.sheaves],
        "edges, with loops": [F.n_edges for F in H.sheaves],
        "$\\dim C^1$": [F.dim_c1 for F in H.sheaves],
        "$\\dim C^0$": [F.dim_c0 for F in H.sheaves],
        "vertices": [F.n_vertices for F in H.sheaves],
    }
    levels = np.arange(len(H.sheaves))
    styles = zip(
        ("D", "v", "^", "s", "o"),
        (":", "--", "-.", "-", "-"),
        (LIGHT, "#6B9F2F", "0.45", MIDDLE, DARK),
        strict=True,
    )
    for (name, counts), (marker, dash, color) in zip(sizes.items(), styles, strict=True):
        style: dict = {"marker": marker, "markersize": 7, "linestyle": dash, "color": color}
        ax.plot(levels, counts, markeredgecolor="0.2", label=name, **style)
    for level, n in zip(levels.tolist(), sizes["vertices"], strict=True):
        below: dict = {"xytext": (0, -13), "textcoords": "offset points", "ha": "center"}
        ax.annotate(f"{n:,}", (level, n), fontsize=8, **below)
    set_scale(ax, np.array(list(sizes.values()), dtype=float).ravel())
    if ax.get_yscale() == "log":
        ax.set_ylim(bottom=ax.get_ylim()[0] / 1.6)  # space for the numbers below points
    ax.set_xticks(levels, ["0 (fine)", *map(str, levels[1:])])
    ax.set_xlim(-0.4, max(len(levels) - 0.6, 0.4))
    ax.set_xlabel("sheaf: level i leads from sheaf i to sheaf i + 1")
    ax.set_ylabel("count")
    set_title(ax, f"hierarchy: {counted(len(H), 'level')}")
    add_legend(ax)
    return ax
