"""The coarse sheaf: crossing edges between clusters, and a loop-cell for the energy retained inside each."""

import numpy as np

from sheafcoarsen._kernels import realization as kernels
from sheafcoarsen._kernels.lapack import workspace
from sheafcoarsen._linalg import eps_of, zero_level
from sheafcoarsen._ragged import offsets, ranges
from sheafcoarsen._threads import run_ranges, single_threaded_blas
from sheafcoarsen.clusters import Clusters, crossing_half_edges
from sheafcoarsen.modes import LocalModes
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf

SERIAL_BELOW = 300_000.0
"""Multiplications below which one thread does all."""


def crossing_maps(sheaf: CellularSheaf, clusters: Clusters, R, ranks: np.ndarray):
    """Return (edge dims, tail data, head data) of the crossing edges (``eq:coarse_restriction_left``, ``_right``).

    The edge stalk of eps_ab is the direct sum of the fine edge stalks between a and b (``eq:coarse_crossing_edge_stalk``).
    """
    rows_before = offsets(sheaf.edge_dims[clusters.crossing_edges])
    rows = np.diff(rows_before[clusters.pair_ptr])
    tail_starts = offsets(rows * ranks[clusters.pairs[:, 0]])
    head_starts = offsets(rows * ranks[clusters.pairs[:, 1]])
    dtype = np.result_type(sheaf.dtype, R.dtype)
    tail, head = np.empty(int(tail_starts[-1]), dtype), np.empty(int(head_starts[-1]), dtype)
    run_ranges(
        lambda lo, hi: kernels.crossing_maps(
            lo, hi, sheaf._arrays, clusters, ranks, R.indptr, R.data, tail_starts, head_starts, tail, head
        ),
        np.diff(tail_starts) + np.diff(head_starts) + 1.0,
        serial_below=SERIAL_BELOW,
    )
    return rows, tail, head


def spectral_loops(modes: LocalModes):
    """Return (kept rows per cluster, B data) with B_a = diag(sqrt(lambda)) for internal modes.

    Rows whose eigenvalue is zero to working accuracy are left out.
    """
    ranks = modes.ranks
    levels = zero_level(modes.clusters.dims, eps_of(modes.scores.dtype), modes.operator_norms.astype(np.float64))
    cluster = np.repeat(np.arange(len(ranks)), ranks)
    kept = np.flatnonzero(modes.scores > levels[cluster])
    counts = np.bincount(cluster[kept], minlength=len(ranks)).astype(np.int64)
    starts = offsets(counts * ranks)
    data = np.zeros(int(starts[-1]), modes.prolongation.dtype)
    row = np.arange(len(kept)) - offsets(counts)[:-1][cluster[kept]]
    column = kept - modes.rank_offsets[:-1][cluster[kept]]
    data[starts[:-1][cluster[kept]] + row * ranks[cluster[kept]] + column] = np.sqrt(modes.scores[kept])
    return counts, data


def factored_loops(sheaf: CellularSheaf, partition: Partition, clusters: Clusters, R, ranks: np.ndarray):
    """Return (kept rows per cluster, B data) with H_a = R_a* L_a R_a = B_a* B_a (``eq:local_residual_factorization``), any R.

    H_a comes straight from the maps, maps and R_a scaled by powers of two of their cluster before anything is squared. Rows whose
    energy is zero to working accuracy, measured against L_a and R_a, are left out.
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
    factors = np.empty_like(energy)
    kept = np.zeros(K, np.int64)

    def work(lo, hi):
        largest = int(ranks[lo:hi].max())
        room = workspace(largest, largest, energy.dtype)
        return kernels.factor(
            lo, hi, ranks, starts, energy, levels, map_units, block_units, eps_of(energy.dtype), room, factors, kept
        )

    with single_threaded_blas():
        failed = run_ranges(work, (ranks + 1.0) ** 3, serial_below=SERIAL_BELOW)
    for a in failed:
        if a >= 0:
            raise np.linalg.LinAlgError(f"the factorization of the retained energy of cluster {a} did not converge")
    return kept, factors[ranges(starts[:-1], kept * ranks)]


def realize(sheaf: CellularSheaf, clusters: Clusters, R, ranks: np.ndarray, loops) -> CellularSheaf:
    """Return the coarse sheaf: crossing edges sorted by (a, b), then loops sorted by a.

    Parameters
    ----------
    loops : (ndarray, ndarray) or None
        Rows per cluster and data of the factors B_a; the loop at a gets the maps B_a / 2 and -B_a / 2, so that its
        coboundary is B_a (``thm:Galerkin_realization``). None leaves the loops out.
    """
    rows, tail, head = crossing_maps(sheaf, clusters, R, ranks)
    edges, edge_dims = clusters.pairs, rows
    if loops is not None:
        counts, B = loops
        at = np.flatnonzero(counts)
        half = (B / 2).astype(tail.dtype, copy=False)
        edges = np.concatenate([edges, np.stack([at, at], axis=1)])
        edge_dims = np.concatenate([edge_dims, counts[at]])
        tail, head = np.concatenate([tail, half]), np.concatenate([head, -half])
    return CellularSheaf._trusted(edges, ranks, edge_dims, tail, head)
