"""Maps of the crossing edges of the coarse sheaf."""

import numpy as np

from sheafcoarsen._kernels import coarsening as kernels
from sheafcoarsen._support import run_ranges
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf

SERIAL_BELOW = 300_000.0
"""Multiplications below which one thread does all."""


CHUNK = 128
"""Rows of a coarse edge that are compressed at a time: enough that the factor so far is no burden, few enough for the cache."""


OFFSETS = ("tail_offsets", "head_offsets", "vertex_offsets", "edge_offsets")
"""Index arrays of a sheaf that depend on its topology and dimensions alone."""


def write_crossing_maps(
    sheaf: CellularSheaf,
    clusters: Clusters,
    R,
    ranks: np.ndarray,
    rows,
    edge_dims,
    tail_starts,
    head_starts,
    tail,
    head,
) -> None:
    """Write the maps of the crossing edges, compressed where edge_dims < rows.

    Those of a are ``eq:coarse_restriction_left``, those of b ``eq:coarse_restriction_right``.
    """
    f, n_pairs = sheaf.arrays, len(clusters.pairs)
    widths = ranks[clusters.pairs].sum(axis=1)
    chunk = max(int(sheaf.edge_dims[clusters.crossing_edges].max(initial=0)), CHUNK)

    compressed, shape = edge_dims[:n_pairs] < rows, sheaf.map_shape or (0, 0)
    uniform = sheaf.map_shape is not None and not compressed.any() and (ranks == ranks[0]).all()

    def work(lo, hi):
        if uniform:
            begin, end = clusters.pair_ptr[lo], clusters.pair_ptr[hi]
            kernels.uniform_maps(
                begin, end, f.edges, clusters.labels, clusters.crossing_edges, f.tail_data, f.head_data, R.data,
                *shape, int(ranks[0]), tail, head,
            )  # fmt: skip
            return
        short = compressed[lo:hi]
        if not short.any():
            kernels.crossing_maps(
                lo, hi, f, clusters, ranks, R.indptr, R.data, tail_starts, head_starts, tail, head
            )
            return
        w = int(widths[lo:hi][short].max())
        height = w + max(w, chunk)
        m, v, s = (np.empty(size, tail.dtype) for size in (height * w, height, w))
        kernels.compressed_maps(
            lo, hi, f, clusters, ranks, edge_dims, rows, chunk, R.indptr, R.data, tail_starts, head_starts, m, v, s, tail, head
        )  # fmt: skip

    cost = rows * widths * np.where(compressed, widths, 1.0) + 1.0
    run_ranges(work, cost, serial_below=SERIAL_BELOW)
