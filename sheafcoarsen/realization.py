"""The coarse sheaf: crossing edges between clusters, and a loop-cell for the energy retained inside each."""

import numpy as np

from sheafcoarsen._kernels import realization as kernels
from sheafcoarsen._kernels.lapack import workspace
from sheafcoarsen._linalg import eps_of, zero_level
from sheafcoarsen._ragged import offsets, read_only
from sheafcoarsen._threads import run_ranges, single_threaded_blas
from sheafcoarsen.clusters import Clusters, crossing_half_edges
from sheafcoarsen.modes import LocalModes
from sheafcoarsen.partition import Partition
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
    """Write the maps of the crossing edges (``eq:coarse_restriction_left``, ``_right``), compressed where edge_dims < rows."""
    f, n_pairs = sheaf._arrays, len(clusters.pairs)
    widths = ranks[clusters.pairs].sum(axis=1)
    chunk = max(int(sheaf.edge_dims[clusters.crossing_edges].max(initial=0)), CHUNK)

    compressed, shape = edge_dims[:n_pairs] < rows, sheaf._map_shape or (0, 0)
    uniform = sheaf._map_shape is not None and not compressed.any() and (ranks == ranks[0]).all()

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
            kernels.crossing_maps(lo, hi, f, clusters, ranks, R.indptr, R.data, tail_starts, head_starts, tail, head)
            return
        w = int(widths[lo:hi][short].max())
        height = w + max(w, chunk)
        m, v, s = (np.empty(size, tail.dtype) for size in (height * w, height, w))
        kernels.compressed_maps(
            lo, hi, f, clusters, ranks, edge_dims, rows, chunk, R.indptr, R.data, tail_starts, head_starts, m, v, s, tail, head
        )  # fmt: skip

    cost = rows * widths * np.where(compressed, widths, 1.0) + 1.0
    run_ranges(work, cost, serial_below=SERIAL_BELOW)


def spectral_loops(modes: LocalModes, least: np.ndarray):
    """Return (rows per cluster, function that writes B / 2) with B_a = diag(sqrt(lambda)) for internal modes.

    Rows whose eigenvalue is zero to working accuracy are left out, but for the last ``least[a]`` rows of a cluster, which stay,
    as zeros where they must.
    """
    ranks = modes.ranks
    levels = zero_level(modes.clusters.dims, eps_of(modes.scores.dtype), modes.operator_norms.astype(np.float64))
    cluster = np.repeat(np.arange(len(ranks)), ranks)
    positive = modes.scores > levels[cluster]
    last = np.arange(len(cluster)) >= (modes.rank_offsets[1:] - least)[cluster]
    kept = np.flatnonzero(positive | last)
    cluster = cluster[kept]
    counts = np.bincount(cluster, minlength=len(ranks)).astype(np.int64)

    def write(starts, out):
        row = np.arange(len(kept)) - offsets(counts)[:-1][cluster]
        column = kept - modes.rank_offsets[:-1][cluster]
        where = starts[cluster] + row * ranks[cluster] + column
        out[where] = np.where(positive[kept], np.sqrt(modes.scores[kept]) / 2, 0)

    return counts, write


def factored_loops(
    sheaf: CellularSheaf, partition: Partition, clusters: Clusters, R, ranks: np.ndarray, least: np.ndarray
):
    """Return (rows per cluster, function that writes B / 2), H_a = R_a* L_a R_a = B_a* B_a (``eq:local_residual_factorization``).

    For any R. H_a comes straight from the maps, maps and R_a scaled by powers of two of their cluster before anything is squared.
    Rows whose energy is zero to working accuracy, measured against L_a and R_a, are left out, but a cluster has at least
    ``least[a]`` rows, the last of them zero where they must.
    """
    f, K = sheaf._arrays, clusters.n_clusters
    starts = offsets(ranks * ranks)
    energy = np.empty(int(starts[-1]), np.result_type(sheaf.dtype, R.dtype))
    map_units, block_units, columns = np.empty(K), np.empty(K), np.empty(K)
    halves = crossing_half_edges(sheaf, partition, clusters, principal=False)

    def energies(lo, hi):
        kernels.units(lo, hi, f, clusters, *halves, ranks, R.indptr, R.data, map_units, block_units)
        kernels.largest_columns(lo, hi, f, clusters, ranks, R.indptr, R.data, block_units, columns)
        kernels.retained_energy(lo, hi, f, clusters, ranks, R.indptr, R.data, map_units, block_units, starts, energy)

    run_ranges(energies, clusters.dims * (ranks + 1.0) ** 2, serial_below=SERIAL_BELOW)
    traces = np.zeros(sheaf.n_vertices)
    kernels.internal_traces(f, clusters, map_units, traces)
    sizes = np.zeros(K)
    np.maximum.at(sizes, clusters.labels, traces)
    levels = zero_level(np.maximum(clusters.dims, ranks), eps_of(energy.dtype), sizes * columns)
    kept = np.zeros(K, np.int64)

    def work(lo, hi):
        largest = int(ranks[lo:hi].max())
        room = workspace(largest, largest, energy.dtype)
        eps = eps_of(energy.dtype)
        return kernels.factor(lo, hi, ranks, starts, energy, levels, map_units, block_units, eps, room, energy, kept)

    with single_threaded_blas():
        failed = run_ranges(work, (ranks + 1.0) ** 3, serial_below=SERIAL_BELOW)
    for a in failed:
        if a >= 0:
            raise np.linalg.LinAlgError(f"the factorization of the retained energy of cluster {a} did not converge")

    def write(to, out):
        kernels.half_factors(0, K, ranks, starts, energy, kept, to, out)

    return np.maximum(kept, least), write


def realize(
    sheaf: CellularSheaf,
    clusters: Clusters,
    R,
    ranks: np.ndarray,
    loops,
    *,
    compress: bool = False,
    like: CellularSheaf | None = None,
) -> CellularSheaf:
    """Return the coarse sheaf: crossing edges sorted by (a, b), then loops sorted by a.

    The edge stalk of eps_ab is the direct sum of the fine edge stalks between a and b (``eq:coarse_crossing_edge_stalk``), or what
    compression leaves of it: min(rows, r_a + r_b) rows with the same Gram matrix.

    Parameters
    ----------
    loops : (ndarray, callable) or None
        Rows per cluster and what writes half the factors B_a; the loop at a gets the maps B_a / 2 and -B_a / 2, so that its
        coboundary is B_a (``thm:Galerkin_realization``). None leaves the loops out.
    like : CellularSheaf, optional
        An earlier result; its index arrays are shared where they are the same.
    """
    first, second = clusters.pairs[:, 0], clusters.pairs[:, 1]
    rows = read_only(np.diff(offsets(sheaf.edge_dims[clusters.crossing_edges])[clusters.pair_ptr]))
    edges, edge_dims = clusters.pairs, rows
    if compress:
        edge_dims = np.minimum(rows, ranks[first] + ranks[second])
    if loops is not None and loops[0].any():
        counts, write = loops
        at = np.flatnonzero(counts)
        edges = np.concatenate([edges, np.stack([at, at], axis=1)])
        edge_dims = np.concatenate([edge_dims, counts[at]])
    ranks, edge_dims, starts = read_only(ranks), read_only(edge_dims), {}
    if like is not None and np.array_equal(like.edges, edges):
        edges = like.edges
    if like is not None and edges is like.edges and _same(like, ranks, edge_dims):
        ranks, edge_dims = like.vertex_dims, like.edge_dims
        starts = {name: getattr(like, name) for name in OFFSETS}
    else:
        starts["tail_offsets"] = read_only(offsets(edge_dims * ranks[edges[:, 0]]))
        starts["head_offsets"] = read_only(offsets(edge_dims * ranks[edges[:, 1]]))
    tail_starts, head_starts = starts["tail_offsets"], starts["head_offsets"]
    dtype = np.result_type(sheaf.dtype, R.dtype)
    tail, head = np.empty(int(tail_starts[-1]), dtype), np.empty(int(head_starts[-1]), dtype)
    write_crossing_maps(sheaf, clusters, R, ranks, rows, edge_dims, tail_starts, head_starts, tail, head)
    n_pairs = len(clusters.pairs)
    if len(edges) > n_pairs:
        first_entry = np.zeros(len(ranks), np.int64)
        first_entry[at] = tail_starts[n_pairs:-1]
        halves = tail[tail_starts[n_pairs] :]
        halves[:] = 0
        write(first_entry, tail)
        np.negative(halves, out=head[head_starts[n_pairs] :])
    coarse = CellularSheaf._trusted(edges, ranks, edge_dims, tail, head)
    coarse.__dict__.update(starts)
    return coarse


def _same(like: CellularSheaf, vertex_dims, edge_dims) -> bool:
    return np.array_equal(like.vertex_dims, vertex_dims) and np.array_equal(like.edge_dims, edge_dims)


def loop_rows(coarse: CellularSheaf) -> np.ndarray:
    """Return the number of rows of each vertex's loops, shape (K,)."""
    loops = np.flatnonzero(coarse.edges[:, 0] == coarse.edges[:, 1])
    counts = np.bincount(coarse.edges[loops, 0], coarse.edge_dims[loops], minlength=coarse.n_vertices)
    return counts.astype(np.int64)
