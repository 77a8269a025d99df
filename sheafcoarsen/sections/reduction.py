"""One level of exact coarsening: what no cluster can exclude is kept."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.coarsening import Loops
from sheafcoarsen._kernels.dense import svd_workspace
from sheafcoarsen._support import offsets, read_only, run_ranges
from sheafcoarsen.coarsening import SERIAL_BELOW, realize
from sheafcoarsen.partition import Clusters, Partition, clusters_of
from sheafcoarsen.sections.columns import CHUNK, check_status, columns_of, room_for
from sheafcoarsen.sheaf import CellularSheaf

VERTICES, DIMENSION = 40, 120
"""Size of a cluster, in vertices and in dimensions."""


LAST = 400
"""Dimension at which coarsening ends and a dense singular value decomposition is taken."""


LARGEST_LAST = 6000
"""Dimension up to which that is done where coarsening gets no further."""


class Level(NamedTuple):
    """One step: the sheaf it started from, what its clusters carry on (R) and what they peel off (P)."""

    sheaf: CellularSheaf
    clusters: Clusters
    carried: np.ndarray
    R: scipy.sparse.csr_array
    peeled: np.ndarray
    P: scipy.sparse.csr_array


def cluster_count(sheaf: CellularSheaf, growth: int) -> int:
    """Return how many clusters to take: beyond one for each component, because `select` would pack components, but not split the largest."""
    n = sheaf.n_vertices
    links = scipy.sparse.coo_array((np.ones(sheaf.n_edges, np.int8), sheaf.edges.T), shape=(n, n))
    components = scipy.sparse.csgraph.connected_components(links, directed=False)[0]
    size = max(n / (VERTICES * growth), min(sheaf.dim_c0 / (DIMENSION * growth), n / 4))
    return min(components - 1 + int(np.ceil(size)), n)


def without_heaps(sheaf: CellularSheaf, P: Partition, growth: int) -> tuple[Partition, bool]:
    """Cut vertices off clusters far heavier than the others, those of fewest links first; tell whether there were any.

    Connected clusters cannot share the leaves of a hub. Here a cluster may be of any kind: the
    leaves cut off become clusters of their own, which keep all they have, and join the hub on a
    later level.
    """
    labels, dims, K = P.labels, sheaf.vertex_dims, P.n_clusters
    largest = min(max(2 * LAST * growth, 4 * sheaf.dim_c0 // K), LARGEST_LAST)
    if np.bincount(labels, dims).max() <= largest:
        return P, False
    inner = sheaf.edges[labels[sheaf.edges[:, 0]] == labels[sheaf.edges[:, 1]]]
    order = np.lexsort((-np.bincount(inner.reshape(-1), minlength=len(labels)), labels))
    reached = np.cumsum(dims[order])
    first = np.searchsorted(labels[order], np.arange(K))
    before = reached - dims[order]
    before -= before[first][labels[order]]
    off = order[(before > 0) & (before + dims[order] > largest)]
    labels = labels.copy()
    labels[off] = K + np.arange(len(off))
    return Partition(labels), len(off) > 0


def reduce_level(
    sheaf: CellularSheaf, partition: Partition, keep: float, eps: float
) -> tuple[Level, CellularSheaf, float, float]:
    """Return one step, the coarse sheaf, the largest singular value peeled off as zero and the smallest left out."""
    clusters = clusters_of(sheaf, partition)
    if (largest := int(clusters.dims.max())) > LARGEST_LAST:
        raise np.linalg.LinAlgError(
            f"a cluster of dimension {largest} would have to be factored densely, which is done up to {LARGEST_LAST}: it is a single "
            f"stalk, of the sheaf or of what coarsening kept"
        )
    f, dims, K, dtype = sheaf.arrays, clusters.dims, clusters.n_clusters, sheaf.dtype
    crossing = clusters.with_half_edges(sheaf)
    map_size = int((sheaf.edge_dims * sheaf.vertex_dims[sheaf.edges].sum(axis=1)).max(initial=0))
    kept = np.zeros(K, np.int64)

    def count_kept(lo, hi):
        n = int(dims[lo:hi].max())
        kernels.kept_dims(
            lo, hi, f, clusters, keep, svd_workspace(n, n, dtype, map_size), kept
        )

    run_ranges(count_kept, dims**3 + 1.0, serial_below=SERIAL_BELOW)
    z_starts, loop_starts = offsets(dims * kept), offsets(kept**2)
    z, loops = np.empty(int(z_starts[-1]), dtype), np.empty(int(loop_starts[-1]), dtype)
    peeled, loop_rows = np.zeros(K, np.int64), np.zeros(K, np.int64)
    dropped, zeros = np.empty(K), np.empty(K)

    def reduce(lo, hi):
        n, k = int(dims[lo:hi].max()), int(kept[lo:hi].max())
        return kernels.reduced(
            lo, hi, f, clusters, crossing.half_ptr, crossing.half_edges, keep, eps, kept, svd_workspace(n, n, dtype, map_size),
            room_for(n, k, k + max(k, CHUNK), dtype), z_starts, z, loop_starts, loops, peeled, loop_rows, dropped, zeros,
        )  # fmt: skip

    cost = dims * (dims + kept) * (dims + 10.0 * kept) * (kept > 0) + 1.0
    check_status(run_ranges(reduce, cost, serial_below=SERIAL_BELOW), "cluster")
    carried = read_only(kept - peeled)
    R = columns_of(sheaf, clusters, kept, z_starts, z, np.zeros(K, np.int64), carried)
    P = columns_of(sheaf, clusters, kept, z_starts, z, carried, peeled)
    coarse = realize(R, Loops(loop_rows, loop_starts, loops), compress=True)
    level = Level(sheaf, clusters, carried, R.matrix, peeled, P.matrix)
    return level, coarse, float(zeros.max(initial=0)), float(dropped.min(initial=np.inf))
