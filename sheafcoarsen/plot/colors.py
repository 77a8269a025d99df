"""Colours: of clusters, so that neighbours differ, and of numbers, with zero in the middle."""

from __future__ import annotations

import colorsys
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

if TYPE_CHECKING:
    from matplotlib.colors import Colormap, Normalize


PALETTE = ("#440154", "#FDE725", "#31688E", "#8FD744", "#443A83", "#35B779")
"""Viridis, neighbours in the list of different lightness: it reads in grey, too."""


def cluster_colors(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return a colour for each of n clusters, shape (n, 4): never that of a neighbour.

    ``pairs`` are the clusters that an edge joins, shape (p, 2). As many clusters as the palette has
    colours have one of their own; of more, colours repeat where clusters are no neighbours.
    """
    which = np.arange(n)
    if n > len(PALETTE):
        graph = nx.empty_graph(n)
        graph.add_edges_from(pairs[pairs[:, 0] != pairs[:, 1]].tolist())
        found = nx.greedy_color(graph, "largest_first")
        which = np.array([found[a] for a in range(n)])
    return palette(int(which.max(initial=-1)) + 1)[which]


def palette(count: int) -> np.ndarray:
    """Return so many different colours, shape (count, 4); beyond the palette by steps of hue."""
    from matplotlib.colors import to_rgba_array

    lightnesses, golden = (
        (0.72, 0.38, 0.55),
        (np.sqrt(5) - 1) / 2,
    )  # hues at multiples of it are spread evenly, however many
    more = [
        colorsys.hls_to_rgb((0.02 + i * golden) % 1, lightnesses[i % len(lightnesses)], 0.65)
        for i in range(count - len(PALETTE))
    ]
    return to_rgba_array([*PALETTE[:count], *more]) if count else np.zeros((0, 4))


def number_colors(values: np.ndarray) -> tuple[Colormap, Normalize]:
    """Return a colour map and a scale: with zero in the middle where values have both signs."""
    import matplotlib as mpl
    from matplotlib.colors import Normalize

    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low < 0 < high:
        reach = max(-low, high)
        return mpl.colormaps["RdBu_r"], Normalize(-reach, reach)
    return mpl.colormaps["viridis"], Normalize(low, high if high > low else low + 1.0)
