"""Construction of the coarse sheaf from crossing edges and loop-cells."""

import math
from typing import Any

import numpy as np

from sheafcoarsen._kernels import coarsening as kernels
from sheafcoarsen._kernels.dense import workspace
from sheafcoarsen._support import EPS, linalg, ragged, threads
from sheafcoarsen.modes import LocalModes, Prolongation
from sheafcoarsen.operators import loop_norms
from sheafcoarsen.sheaf import (
    CellularSheaf,
    Topology,
    same_array,
    same_topology,
    sheaf_like,
    trusted_sheaf,
)

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
    noise: tuple[np.ndarray, float] | None = None,
) -> CellularSheaf:
    """Return the coarse sheaf, with crossing edges sorted by (a, b), then loops sorted by a.

    The stalk of the coarse edge eps_ab is the direct sum of the fine edge stalks between a and b
    (``eq:coarse_crossing_edge_stalk``). Compressed maps have min(rows, r_a + r_b) rows and the same
    Gram matrix. With the factors B_a in ``loops``, the loop at a gets the maps B_a / 2 and
    -B_a / 2, so that its coboundary is B_a (``eq:loop_coboundary``). Its rows follow the crossing
    ones (``eq:augmented_coboundary``), and the Laplacian becomes R* L R
    (``eq:augmented_exact_realization``). Index arrays of ``like`` are shared if they are equal.
    With ``noise``, the fields of `kernels.Noise`, coarse rows without an entry above this level,
    times the norm of the fine row, are set to zero.
    """
    sheaf, clusters, ranks = R.sheaf, R.clusters, R.ranks
    first, second = clusters.pairs.T
    rows = ragged.read_only(
        np.diff(ragged.offsets(sheaf.edge_dims[clusters.crossing_edges])[clusters.pair_ptr])
    )
    n_pairs, edges, edge_dims = len(rows), clusters.pairs, rows
    if compress:
        edge_dims = np.minimum(rows, ranks[first] + ranks[second])
    if loops is not None and loops.rows.any():
        at = np.flatnonzero(loops.rows)
        edges = np.concatenate([edges, np.stack([at, at], axis=1)])
        edge_dims = np.concatenate([edge_dims, loops.rows[at]])
    if like is not None and same_array(like.edges, edges):
        edges = like.edges
    dtype, wanted = np.result_type(sheaf.dtype, R.dtype), Topology(edges, ranks, edge_dims)
    if like is None or not same_topology(like, wanted):
        like = trusted_sheaf(*wanted, np.zeros(0, dtype), np.zeros(0, dtype))
    starts = like.tail_offsets, like.head_offsets
    tail, head = (np.empty(int(begins[-1]), dtype) for begins in starts)
    out = kernels.CoarseMaps(like.edge_dims[:n_pairs], *starts, tail, head)
    write_crossing_maps(
        R, rows, out, (np.zeros(clusters.n_clusters), 0.0) if noise is None else noise
    )
    if loops is not None and len(edges) > n_pairs:
        entries = ragged.ranges(loops.starts[at], loops.rows[at] * ranks[at])
        tail[starts[0][n_pairs] :] = loops.factors[entries] / 2
        np.negative(tail[starts[0][n_pairs] :], out=head[starts[1][n_pairs] :])
    coarse = sheaf_like(like, tail, head)
    object.__setattr__(
        coarse,
        "vertex_labels",
        coarse_labels(sheaf.vertex_labels, clusters.members, clusters.member_ptr),
    )
    return coarse


def coarse_labels(
    fine: tuple | None, members: np.ndarray, member_ptr: np.ndarray
) -> tuple[tuple, ...] | None:
    """Return the coarse labels, tuples of the fine labels of a cluster, or None without labels."""
    if fine is None:
        return None
    groups = np.split(members, member_ptr[1:])[:-1]
    return tuple(tuple(fine[v] for v in group.tolist()) for group in groups)


def rounding_noise(dims: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, float]:
    """Return the errors of coarse rows for modes of clusters of given dimensions.

    Modes are computed in double precision and rounded to ``dtype``. Clearing rows of this size
    changes R* L R by rounding errors only.
    """
    return 10 * EPS * dims, 4 * linalg.eps_of(dtype)


def write_crossing_maps(
    R: Prolongation, rows: np.ndarray, out: kernels.CoarseMaps, noise: tuple[np.ndarray, float]
) -> None:
    """Write the crossing maps (``eq:coarse_restriction_left``, ``eq:coarse_restriction_right``).

    They are compressed if their height is less than ``rows``. ``noise`` is as in `realize`.
    """
    sheaf, clusters, ranks, blocks = R.sheaf, R.clusters, R.ranks, R.blocks
    f = sheaf.arrays
    widths = ranks[clusters.pairs].sum(axis=1)
    tallest = int(sheaf.edge_dims[clusters.crossing_edges].max(initial=0))
    compressed = out.heights < rows
    uniform = sheaf.map_shape is not None and not compressed.any() and (ranks == ranks[0]).all()
    longest = sheaf.largest_entry * math.sqrt(sheaf.vertex_dims.max(initial=0))
    rounding = kernels.Noise(*noise, longest)

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
    threads.run_ranges(work, cost, serial_below=SERIAL_BELOW)


def spectral_loops(modes: LocalModes, least: np.ndarray) -> kernels.Loops:
    """Return B_a = diag(sqrt(lambda)) of internal modes (``eq:retained_internal_energy_spectral``).

    Rows whose eigenvalue is zero to working accuracy are omitted, but the last ``least[a]`` rows of
    cluster a are always kept.
    """
    ranks, clusters = modes.ranks, modes.clusters
    dtype = modes.prolongation.dtype
    norms = loop_norms(modes.sheaf, clusters.labels, clusters.n_clusters)
    levels = np.maximum(
        linalg.zero_energy(clusters.dims, dtype, modes.operator_norms),
        linalg.zero_level(clusters.dims, linalg.eps_of(dtype), norms) ** 2,
    )
    cluster = np.repeat(np.arange(len(ranks)), ranks)
    positive = modes.scores > levels[cluster]
    last = np.arange(len(cluster)) >= (modes.rank_offsets[1:] - least)[cluster]
    kept = np.flatnonzero(positive | last)
    cluster = cluster[kept]
    rows = np.bincount(cluster, minlength=len(ranks)).astype(np.int64)
    starts = ragged.offsets(rows * ranks)
    row = np.arange(len(kept)) - ragged.offsets(rows)[:-1][cluster]
    column = kept - modes.rank_offsets[:-1][cluster]
    factors = np.zeros(int(starts[-1]), dtype)
    roots = np.where(positive[kept], np.sqrt(modes.scores[kept]), 0)
    factors[starts[cluster] + row * ranks[cluster] + column] = roots
    return kernels.Loops(rows, starts, factors)


def factored_loops(R: Prolongation, least: np.ndarray) -> kernels.Loops:
    """Return B_a with H_a = R_a* L_a R_a = B_a* B_a (``eq:local_residual_factorization``).

    R may be any prolongation. H_a is computed from the maps; in each cluster, maps and R_a are
    scaled by powers of two, so that squares do not overflow. Rows whose energy is zero to working
    accuracy, relative to L_a (or loops that cancel) and R_a, are omitted, but B_a has at least
    ``least[a]`` rows, of which the last ones may be zero.
    """
    sheaf, ranks = R.sheaf, R.ranks
    # without half-edges, whose maps would determine the unit of L_a
    clusters = R.clusters._replace(half_ptr=ragged.read_only(np.zeros(len(ranks) + 1, np.int64)))
    f, K, dims = sheaf.arrays, clusters.n_clusters, clusters.dims
    starts, dtype = ragged.offsets(ranks * ranks), np.result_type(sheaf.dtype, R.dtype)
    energy = kernels.RetainedEnergy(
        starts=starts,
        matrices=np.empty(int(starts[-1]), np.result_type(dtype, np.float64)),
        map_units=np.empty(K),
        block_units=np.empty(K),
        columns=np.empty(K),
        traces=np.zeros(sheaf.n_vertices),
    )
    threads.run_ranges(
        lambda lo, hi: kernels.retained_energy(
            lo,
            hi,
            f,
            clusters,
            R.blocks,
            energy,
            np.empty(ranks.max(initial=0), energy.matrices.dtype),
        ),
        dims * (ranks + 1.0) ** 2,
        serial_below=SERIAL_BELOW,
    )
    sizes = np.zeros(K)
    np.maximum.at(sizes, clusters.labels, energy.traces)
    rounding = linalg.zero_energy(np.maximum(dims, ranks).clip(min=1), dtype, 1.0)
    norms = loop_norms(sheaf, clusters.labels, K) * energy.map_units
    cancelled = linalg.zero_level(dims, linalg.eps_of(dtype), norms)
    zero = rounding, np.maximum(sizes, cancelled**2 / rounding) * energy.columns
    rows = np.zeros(K, np.int64)

    def factor(lo: int, hi: int) -> Any:
        largest = int(ranks[lo:hi].max())
        work = workspace(largest, largest, energy.matrices.dtype)
        return kernels.factor(lo, hi, ranks, energy, zero, work, rows)

    with threads.single_threaded_blas():
        failed = threads.run_ranges(factor, (ranks + 1.0) ** 3, serial_below=SERIAL_BELOW)
    if (a := max(failed, default=-1)) >= 0:
        raise np.linalg.LinAlgError(
            f"the factorization of the retained energy of cluster {a} did not converge"
        )
    return kernels.Loops(np.maximum(rows, least), starts, energy.matrices.astype(dtype, copy=False))


def check_pattern(C: Any) -> None:
    """Raise if a stored coarse sheaf does not match the fine graph and the partition."""
    fine, coarse, clusters, restored = C.fine, C.sheaf, C.clusters, C.restored_loops
    K = coarse.n_vertices
    if not np.array_equal(restored, np.intersect1d(restored, np.arange(K))):
        raise ValueError(f"`restored_loops` must be strictly increasing in 0 .. {K - 1}")
    crossing = ragged.range_of_blocks(fine.edge_offsets, clusters.crossing_edges)
    dims = np.diff(ragged.offsets(fine.edge_dims[clusters.crossing_edges])[clusters.pair_ptr])
    if C.crossing_rows is None:
        dims = np.minimum(dims, coarse.vertex_dims[clusters.pairs].sum(axis=1))
    elif not np.array_equal(C.crossing_rows, crossing):
        raise ValueError(
            "`crossing_rows` must hold the rows of crossing fine edges, sorted by pair of clusters"
        )
    crossing_edges, loops = np.split(coarse.edges, [len(dims)])
    crossing_dims, loop_dims = np.split(coarse.edge_dims, [len(dims)])
    if not (same_array(crossing_edges, clusters.pairs) and same_array(crossing_dims, dims)):
        raise ValueError(
            "the crossing edges of the coarse sheaf do not match the fine sheaf and partition"
        )
    ascend = (loops[:, 0] == loops[:, 1]).all() and (loops[1:, 0] > loops[:-1, 0]).all()
    too_tall = (loop_dims > coarse.vertex_dims[loops[:, 0]]).any()
    if not ascend or too_tall or (len(loops) and not C.loops):
        raise ValueError(
            "the loops of the coarse sheaf must be sorted by cluster, and a loop can have at most "
            "as many rows as its cluster has modes"
        )
