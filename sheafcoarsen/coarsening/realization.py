"""Construction of the coarse sheaf from crossing edges and loop-cells."""

import math

import numpy as np

from sheafcoarsen._kernels import coarsening as kernels
from sheafcoarsen._support import offsets, ranges, read_only, run_ranges
from sheafcoarsen.modes import Prolongation
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf, Topology, same_array, same_topology, trusted_sheaf

SERIAL_BELOW = 300_000.0
"""Number of multiplications below which a single thread is used."""

CHUNK = 128
"""Number of rows of a coarse edge that are compressed at a time.

This is many more than the rows of a typical factor, but few enough to fit in the cache.
"""


def realize(
    R: Prolongation,
    loops: kernels.Loops | None,
    *,
    compress: bool = False,
    like: CellularSheaf | None = None,
    noise: np.ndarray | None = None,
) -> CellularSheaf:
    """Return the coarse sheaf, with crossing edges sorted by (a, b), then loops sorted by a.

    The stalk of the coarse edge eps_ab is the direct sum of the fine edge stalks between a and b
    (``eq:coarse_crossing_edge_stalk``). Compressed maps have min(rows, r_a + r_b) rows and the same
    Gram matrix.

    Parameters
    ----------
    loops : Loops or None
        The factors B_a. The loop at a gets the maps B_a / 2 and -B_a / 2, so that its coboundary is
        B_a (``eq:loop_coboundary``). Its rows follow the crossing ones
        (``eq:augmented_coboundary``), and the Laplacian becomes R* L R
        (``eq:augmented_exact_realization``). None omits the loops.
    like : CellularSheaf, optional
        An earlier result, whose index arrays are shared if they are equal.
    noise : ndarray, shape (K,), optional
        Coarse rows of at most this norm, relative to the fine row, are set to zero.
        By default none are.
    """
    sheaf, clusters, ranks = R.sheaf, R.clusters, R.ranks
    first, second = clusters.pairs.T
    rows = read_only(np.diff(offsets(sheaf.edge_dims[clusters.crossing_edges])[clusters.pair_ptr]))
    n_pairs, edges, edge_dims = len(rows), clusters.pairs, rows
    if compress:
        edge_dims = np.minimum(rows, ranks[first] + ranks[second])
    if loops is not None and loops.rows.any():
        at = np.flatnonzero(loops.rows)
        edges = np.concatenate([edges, np.stack([at, at], axis=1)])
        edge_dims = np.concatenate([edge_dims, loops.rows[at]])
    edge_dims, starts = read_only(edge_dims), {}
    if like is not None and same_array(like.edges, edges):
        edges = like.edges
    if like is not None and same_topology(like, Topology(edges, ranks, edge_dims)):
        ranks, edge_dims = like.vertex_dims, like.edge_dims
        names = ("tail_offsets", "head_offsets", "vertex_offsets", "edge_offsets")
        starts = {name: getattr(like, name) for name in names}
    else:
        starts["tail_offsets"] = read_only(offsets(edge_dims * ranks[edges[:, 0]]))
        starts["head_offsets"] = read_only(offsets(edge_dims * ranks[edges[:, 1]]))
    tail_starts, head_starts = starts["tail_offsets"], starts["head_offsets"]
    dtype = np.result_type(sheaf.dtype, R.dtype)
    tail, head = np.empty(int(tail_starts[-1]), dtype), np.empty(int(head_starts[-1]), dtype)
    out = kernels.CoarseMaps(edge_dims[:n_pairs], tail_starts, head_starts, tail, head)
    write_crossing_maps(R, rows, out, noise)
    if loops is not None and len(edges) > n_pairs:
        entries = ranges(loops.starts[at], loops.rows[at] * ranks[at])
        tail[tail_starts[n_pairs] :] = loops.factors[entries] / 2
        np.negative(tail[tail_starts[n_pairs] :], out=head[head_starts[n_pairs] :])
    coarse = trusted_sheaf(edges, ranks, edge_dims, tail, head, coarse_labels(sheaf, clusters))
    coarse.__dict__.update(starts)
    return coarse


def coarse_labels(sheaf: CellularSheaf, clusters: Clusters) -> tuple[tuple, ...] | None:
    """Return the name of each coarse vertex, the names in its cluster; None without names."""
    if (fine := sheaf.vertex_labels) is None:
        return None
    groups = np.split(clusters.members, clusters.member_ptr[1:])[:-1]
    return tuple(tuple(fine[v] for v in group.tolist()) for group in groups)


def write_crossing_maps(
    R: Prolongation,
    rows: np.ndarray,
    out: kernels.CoarseMaps,
    noise: np.ndarray | None = None,
) -> None:
    """Write the maps of the crossing edges, compressed if their height is less than ``rows``.

    They are ``eq:coarse_restriction_left`` and ``eq:coarse_restriction_right``. ``noise`` is
    as in `realize`.
    """
    sheaf, clusters, ranks, blocks = R.sheaf, R.clusters, R.ranks, R.blocks
    f = sheaf.arrays
    widths = ranks[clusters.pairs].sum(axis=1)
    tallest = int(sheaf.edge_dims[clusters.crossing_edges].max(initial=0))
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
            height = width + max(width, CHUNK, tallest)
            sizes = (height * width, height, width)
            stack, column, row = (np.empty(size, out.tail.dtype) for size in sizes)
            workspace = kernels.FactorWorkspace(stack, column, row, CHUNK, rounding)
            kernels.compressed_maps(lo, hi, f, clusters, blocks, rows, out, workspace)

    cost = rows * widths * np.where(compressed, widths, 1.0) + 1.0
    run_ranges(work, cost, serial_below=SERIAL_BELOW)


def shortest_columns(R: Prolongation) -> np.ndarray:
    """Return the smallest max norm of a column of each R_a, or 0 without columns, shape (K,)."""
    largest = np.zeros(int(R.offsets[-1]))
    np.maximum.at(largest, R.indices, np.abs(R.data))
    shortest = np.where(R.ranks > 0, np.inf, 0.0)
    np.minimum.at(shortest, np.repeat(np.arange(len(R.ranks)), R.ranks), largest)
    return shortest
