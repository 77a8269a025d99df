"""Maps of the crossing edges of the coarse sheaf."""

import math

import numpy as np

from sheafcoarsen._kernels import coarsening as kernels
from sheafcoarsen._support import run_ranges
from sheafcoarsen.modes import Prolongation

SERIAL_BELOW = 300_000.0
"""Multiplications below which one thread does all."""


CHUNK = 128
"""Rows of a coarse edge that are compressed at a time.

Enough that the factor so far is no burden, few enough for the cache.
"""


def write_crossing_maps(
    R: Prolongation,
    rows: np.ndarray,
    out: kernels.CoarseMaps,
    noise: np.ndarray | None = None,
    tallest: int = 0,
) -> None:
    """Write the maps of the crossing edges, compressed where they are to be lower than ``rows``.

    They are ``eq:coarse_restriction_left`` and ``eq:coarse_restriction_right``. ``noise``
    is that of `realize`; ``tallest`` is the largest dimension of a crossing edge's stalk in a
    larger sheaf that R is a part of, so that chunks are the same.
    """
    sheaf, clusters, ranks, blocks = R.sheaf, R.clusters, R.ranks, R.blocks
    f = sheaf.arrays
    widths = ranks[clusters.pairs].sum(axis=1)
    chunk = max(int(sheaf.edge_dims[clusters.crossing_edges].max(initial=0)), CHUNK, tallest)
    compressed = out.heights < rows
    uniform = sheaf.map_shape is not None and not compressed.any() and (ranks == ranks[0]).all()
    norms = np.zeros(clusters.n_clusters) if noise is None else noise
    longest = sheaf.largest_entry * math.sqrt(sheaf.vertex_dims.max(initial=0))
    rounding = kernels.Noise(norms, longest)

    def work(lo: int, hi: int) -> None:
        short = compressed[lo:hi]
        if uniform:
            kernels.uniform_maps(lo, hi, f, clusters, blocks, out)
        elif not short.any():
            kernels.crossing_maps(lo, hi, f, clusters, blocks, out)
        if not short.any():
            kernels.clear_rounding(lo, hi, f, clusters, blocks, rounding, out)
        else:
            width = int(widths[lo:hi][short].max())
            height = width + max(width, chunk)
            sizes = (height * width, height, width)
            stack, column, row = (np.empty(size, out.tail.dtype) for size in sizes)
            room = kernels.RoomForFactors(stack, column, row, chunk, rounding)
            kernels.compressed_maps(lo, hi, f, clusters, blocks, rows, out, room)

    cost = rows * widths * np.where(compressed, widths, 1.0) + 1.0
    run_ranges(work, cost, serial_below=SERIAL_BELOW)
