"""Loop-cells: loops whose maps carry the retained internal energy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._kernels import coarsening as kernels
from sheafcoarsen._kernels.coarsening import Loops
from sheafcoarsen._kernels.dense import workspace
from sheafcoarsen._support import (
    eps_of,
    offsets,
    ranges,
    run_ranges,
    scaled_norms,
    single_threaded_blas,
    zero_energy,
    zero_level,
)
from sheafcoarsen.coarsening.realization import SERIAL_BELOW
from sheafcoarsen.modes import LocalModes, Prolongation
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf


def spectral_loops(modes: LocalModes, least: np.ndarray) -> Loops:
    """Return B_a = diag(sqrt(lambda)) of internal modes (``eq:retained_internal_energy_spectral``).

    Rows whose eigenvalue is zero to working accuracy are omitted, but the last ``least[a]`` rows of
    cluster a are always kept.
    """
    ranks, clusters = modes.ranks, modes.clusters
    dtype = modes.prolongation.dtype
    levels = np.maximum(
        zero_energy(clusters.dims, dtype, modes.operator_norms),
        _cancelled(modes.sheaf, clusters, dtype) ** 2,
    )
    cluster = np.repeat(np.arange(len(ranks)), ranks)
    positive = modes.scores > levels[cluster]
    last = np.arange(len(cluster)) >= (modes.rank_offsets[1:] - least)[cluster]
    kept = np.flatnonzero(positive | last)
    cluster = cluster[kept]
    rows = np.bincount(cluster, minlength=len(ranks)).astype(np.int64)
    starts = offsets(rows * ranks)
    row = np.arange(len(kept)) - offsets(rows)[:-1][cluster]
    column = kept - modes.rank_offsets[:-1][cluster]
    factors = np.zeros(int(starts[-1]), dtype)
    roots = np.where(positive[kept], np.sqrt(modes.scores[kept]), 0)
    factors[starts[cluster] + row * ranks[cluster] + column] = roots
    return Loops(rows, starts, factors)


def _cancelled(sheaf: CellularSheaf, clusters: Clusters, dtype: npt.DTypeLike) -> np.ndarray:
    """Return the norms up to which differences of the maps of loops are rounding, shape (K,).

    They exceed the norm of L_a if the maps of all loops cancel and there is no other edge.
    """
    loops, norms = np.flatnonzero(np.equal(*sheaf.edges.T)), np.zeros(clusters.n_clusters)
    maps = (sheaf.tail_data, sheaf.tail_offsets), (sheaf.head_data, sheaf.head_offsets)
    for data, starts in maps if len(loops) else ():
        lengths = starts[loops + 1] - starts[loops]
        entries = np.abs(data[ranges(starts[loops], lengths)])
        norm = scaled_norms(entries, np.repeat(np.arange(len(loops)), lengths), len(loops))
        np.maximum.at(norms, clusters.labels[sheaf.edges[loops, 0]], norm)
    return zero_level(clusters.dims, eps_of(dtype), norms)


def factored_loops(R: Prolongation, least: np.ndarray) -> Loops:
    """Return B_a with H_a = R_a* L_a R_a = B_a* B_a (``eq:local_residual_factorization``).

    R may be any prolongation. H_a is computed from the maps; in each cluster, maps and R_a are
    scaled by powers of two, so that squares do not overflow. Rows whose energy is zero to working
    accuracy, relative to L_a and R_a, are omitted, but B_a has at least ``least[a]`` rows, of which
    the last ones may be zero.
    """
    sheaf, ranks, clusters = R.sheaf, R.ranks, R.clusters
    f, K, dims = sheaf.arrays, clusters.n_clusters, clusters.dims
    starts, dtype = offsets(ranks * ranks), np.result_type(sheaf.dtype, R.dtype)
    energy = kernels.RetainedEnergy(
        starts=starts,
        matrices=np.empty(int(starts[-1]), np.result_type(dtype, np.float64)),
        map_units=np.empty(K),
        block_units=np.empty(K),
        columns=np.empty(K),
    )
    run_ranges(
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
    traces, sizes = np.zeros(sheaf.n_vertices), np.zeros(K)
    kernels.internal_traces(f, clusters, energy.map_units, traces)
    np.maximum.at(sizes, clusters.labels, traces)
    rounding = zero_energy(np.maximum(dims, ranks).clip(min=1), dtype, 1.0)
    cancelled = (_cancelled(sheaf, clusters, dtype) * energy.map_units) ** 2 / rounding
    zero = rounding, np.maximum(sizes, cancelled) * energy.columns
    rows = np.zeros(K, np.int64)

    def factor(lo: int, hi: int) -> Any:
        largest = int(ranks[lo:hi].max())
        work = workspace(largest, largest, energy.matrices.dtype)
        return kernels.factor(lo, hi, ranks, energy, zero, work, rows)

    with single_threaded_blas():
        failed = run_ranges(factor, (ranks + 1.0) ** 3, serial_below=SERIAL_BELOW)
    for a in failed:
        if a >= 0:
            raise np.linalg.LinAlgError(
                f"the factorization of the retained energy of cluster {a} did not converge"
            )
    return Loops(np.maximum(rows, least), starts, energy.matrices.astype(dtype, copy=False))


def loop_rows(coarse: CellularSheaf) -> np.ndarray:
    """Return the number of loop rows at each coarse vertex, shape (K,)."""
    loops = np.flatnonzero(coarse.edges[:, 0] == coarse.edges[:, 1])
    counts = np.bincount(
        coarse.edges[loops, 0], coarse.edge_dims[loops], minlength=coarse.n_vertices
    )
    return counts.astype(np.int64)
