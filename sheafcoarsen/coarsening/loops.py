"""Loop-cells: the retained internal energy, written as the maps of a loop."""

import numpy as np

from sheafcoarsen._kernels import coarsening as kernels
from sheafcoarsen._kernels.dense import workspace
from sheafcoarsen._support import eps_of, offsets, run_ranges, single_threaded_blas, zero_level
from sheafcoarsen.coarsening.crossing import SERIAL_BELOW
from sheafcoarsen.modes import LocalModes
from sheafcoarsen.partition import Clusters, Partition, crossing_half_edges
from sheafcoarsen.sheaf import CellularSheaf


def spectral_loops(modes: LocalModes, least: np.ndarray):
    """Return (rows per cluster, function that writes B / 2) with B_a = diag(sqrt(lambda)) for internal modes.

    H_a is then diag(lambda) (``eq:retained_internal_energy_spectral``). Rows whose eigenvalue is
    zero to working accuracy are left out, but for the last ``least[a]``
    rows of a cluster, which stay, as zeros where they must.
    """
    ranks = modes.ranks
    levels = zero_level(
        modes.clusters.dims, eps_of(modes.scores.dtype), modes.operator_norms.astype(np.float64)
    )
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
    sheaf: CellularSheaf,
    partition: Partition,
    clusters: Clusters,
    R,
    ranks: np.ndarray,
    least: np.ndarray,
):
    """Return (rows per cluster, function that writes B / 2), H_a = R_a* L_a R_a = B_a* B_a (``eq:local_residual_factorization``).

    For any R. H_a comes straight from the maps, maps and R_a scaled by powers of two of their
    cluster before anything is squared. Rows whose energy is zero to working accuracy, measured
    against L_a and R_a, are left out, but a cluster has at least ``least[a]`` rows, the last of
    them zero where they must.
    """
    f, K = sheaf.arrays, clusters.n_clusters
    starts = offsets(ranks * ranks)
    energy = np.empty(int(starts[-1]), np.result_type(sheaf.dtype, R.dtype))
    map_units, block_units, columns = np.empty(K), np.empty(K), np.empty(K)
    halves = crossing_half_edges(sheaf, partition, clusters, principal=False)

    def energies(lo, hi):
        kernels.units(lo, hi, f, clusters, *halves, ranks, R.indptr, R.data, map_units, block_units)
        kernels.largest_columns(lo, hi, f, clusters, ranks, R.indptr, R.data, block_units, columns)
        kernels.retained_energy(
            lo, hi, f, clusters, ranks, R.indptr, R.data, map_units, block_units, starts, energy
        )

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
        return kernels.factor(
            lo, hi, ranks, starts, energy, levels, map_units, block_units, eps, room, energy, kept
        )

    with single_threaded_blas():
        failed = run_ranges(work, (ranks + 1.0) ** 3, serial_below=SERIAL_BELOW)
    for a in failed:
        if a >= 0:
            raise np.linalg.LinAlgError(
                f"the factorization of the retained energy of cluster {a} did not converge"
            )

    def write(to, out):
        kernels.half_factors(0, K, ranks, starts, energy, kept, to, out)

    return np.maximum(kept, least), write


def loop_rows(coarse: CellularSheaf) -> np.ndarray:
    """Return the number of rows of each vertex's loops, shape (K,)."""
    loops = np.flatnonzero(coarse.edges[:, 0] == coarse.edges[:, 1])
    counts = np.bincount(
        coarse.edges[loops, 0], coarse.edge_dims[loops], minlength=coarse.n_vertices
    )
    return counts.astype(np.int64)
