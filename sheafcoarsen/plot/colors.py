"""Colours: of clusters, so that neighbours differ, and of numbers, with zero in the middle."""

from __future__ import annotations

import colorsys
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

if TYPE_CHECKING:
    from matplotlib.colors import Colormap, Normalize


PALETTE = ("#440154", "#FDE725", "#31688E", "#8FD744", "#443A83", "#35B779")
"""Viridis, neighbours in the list of different lightness: it reads in grey, too."""


def cluster_colors(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return a colour for each of n clusters, shape (n, 4): never that of a neighbour.

    ``pairs`` are the clusters that an edge joins, shape (p, 2). As many clusters as the palette has
    colours have one of their own; of more, colours repeat where clusters are no neighbours.
    """
    which = np.arange(n) if n <= len(PALETTE) else greedy_coloring(pairs, n)
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


def greedy_coloring(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return a number for each vertex of a graph, that of no neighbour, the smallest that is free.

    Vertices come in the order of their degrees, the largest first, but all at once that have no
    neighbour left before them (Jones and Plassmann): a few rounds, however large the graph.
    """
    u, v = pairs[pairs[:, 0] != pairs[:, 1]].T
    ends = (np.concatenate([u, v]), np.concatenate([v, u]))
    graph = scipy.sparse.csr_array((np.ones(len(ends[0])), ends), shape=(n, n))
    degrees = np.diff(graph.indptr)
    # random among equal degrees: in the order of vertices, a path would take a round for each
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((np.random.default_rng(0).permutation(n), -degrees))] = np.arange(n)
    rows = np.repeat(np.arange(n), degrees)
    earlier = rank[graph.indices] < rank[rows]
    rows, columns = rows[earlier], graph.indices[earlier]
    colors = np.full(n, -1)
    while len(rows):
        waiting = np.zeros(n, dtype=bool)
        waiting[rows[colors[columns] < 0]] = True
        now = (colors < 0) & ~waiting
        own = now[rows]
        colors[now] = _smallest_free(rows[own], colors[columns[own]], n)[now]
        rows, columns = rows[~own], columns[~own]
    colors[colors < 0] = 0
    return colors


def _smallest_free(rows: np.ndarray, taken: np.ndarray, n: int) -> np.ndarray:
    """Return for each of n rows the smallest number that is not among those taken in it."""
    rows, taken = np.unique(np.stack([rows, taken]), axis=1)
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    # ascending and different, the numbers taken are 0, 1, ... up to the first gap
    return np.bincount(rows[taken == place], minlength=n)


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
