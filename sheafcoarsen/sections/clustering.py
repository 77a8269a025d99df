"""Steps (b) and (c) for one level: clusters of bounded size, split hubs, and the reduction.

A hub is a vertex with more neighbours than a cluster can contain. Its leaves cannot be distributed
to several connected clusters, and a cluster with all of them would be too large for dense matrices.
The hub is therefore replaced by several copies, joined by edges with identity maps; each copy is
adjacent to a group of the hub's neighbours. Sections correspond one to one: the values at the k
copies are equal, and divided by sqrt(k) to preserve norms.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.coarsening import Loops
from sheafcoarsen._kernels.dense import svd_workspace
from sheafcoarsen._kernels.modes import Blocks, put_columns
from sheafcoarsen._support import ragged, threads
from sheafcoarsen.coarsening import SERIAL_BELOW, realize
from sheafcoarsen.modes import Prolongation, block_layout, kernel_workspace
from sheafcoarsen.operators import degree_factors
from sheafcoarsen.partition import Partition, clusters_of, find_clusters
from sheafcoarsen.sheaf import (
    CellularSheaf,
    both_ends,
    component_count,
    component_labels,
    edge_subset,
    trusted_sheaf,
)

VERTICES, DIMENSION = 40, 120
"""Target number of vertices, and target dimension, of a cluster."""

LAST = 400
"""Dimension at or below which coarsening ends and the last level is decomposed densely."""

LARGEST_LAST = 6000
"""Maximum dimension of a level that is decomposed densely if coarsening stalls."""


class Split(NamedTuple):
    """A partitioned sheaf with split hubs, and the map from its sections to the original ones."""

    sheaf: CellularSheaf
    partition: Partition
    owners: np.ndarray  # (n',) original vertex of each new vertex
    J: scipy.sparse.csr_array  # (dim C^0, dim C^0 of the new sheaf)


class Level(NamedTuple):
    """One level: the retained directions R and the removed sections P of the clusters.

    ``split`` holds the copies of hubs if the clusters belong to a sheaf with split hubs.
    """

    R: Prolongation
    P: Prolongation
    split: Split | None = None

    def on_original(self, Y: Any) -> Any:
        """Map columns from the sheaf with split hubs to the original sheaf."""
        return Y if self.split is None else self.split.J @ Y


def choose_clusters(
    sheaf: CellularSheaf, growth: int
) -> tuple[CellularSheaf, Partition, Split | None, bool]:
    """Return the sheaf, clusters of bounded dimension, the hub split, and whether any were shrunk.

    Hubs of clusters that are too large are split, which changes the sheaf; then vertices are
    removed from clusters that still are.
    """
    n = sheaf.n_vertices
    by_dimension = min(sheaf.dim_c0 / (DIMENSION * growth), n / 4)
    wanted = int(np.ceil(max(n / (VERTICES * growth), by_dimension)))
    count = min(component_count(sheaf) - 1 + wanted, n)  # at least one per component
    partition, split = Partition(find_clusters(sheaf, count, "balls")[1]), None
    mean = sheaf.dim_c0 // partition.n_clusters
    # Ratio to the mean above which a cluster of more than 2 LAST growth dimensions is too large
    too_large = 4
    largest = min(max(2 * LAST * growth, too_large * mean), LARGEST_LAST)
    if np.bincount(partition.labels, sheaf.vertex_dims).max() > largest:
        split = split_hubs(sheaf, partition, largest, DIMENSION * growth)
        sheaf, partition = (split.sheaf, split.partition) if split else (sheaf, partition)
    partition, is_cut = shrink_clusters(sheaf, partition, largest)
    return sheaf, partition, split, is_cut


def shrink_clusters(sheaf: CellularSheaf, P: Partition, largest: int) -> tuple[Partition, bool]:
    """Split vertices of lowest degree off clusters larger than ``largest``, as single clusters.

    Returns the partition and whether it changed, as it does if stalks of hubs are too large for
    copies. The new clusters are merged on a later level.
    """
    labels, dims = P.labels, sheaf.vertex_dims
    if np.bincount(labels, dims).max() <= largest:
        return P, False
    inner = sheaf.edges[labels[sheaf.edges[:, 0]] == labels[sheaf.edges[:, 1]]]
    order = np.lexsort((-np.bincount(inner.reshape(-1), minlength=len(labels)), labels))
    before = np.cumsum(dims[order]) - dims[order]
    before -= before[P.cluster_offsets[:-1]][labels[order]]
    off = order[(before > 0) & (before + dims[order] > largest)]
    labels = labels.copy()
    labels[off] = P.n_clusters + np.arange(len(off))
    return Partition(labels), len(off) > 0


def split_hubs(sheaf: CellularSheaf, P: Partition, largest: int, capacity: int) -> Split | None:
    """Split the hubs of clusters larger than ``largest``; return None if no hub is split.

    Hubs are vertices whose neighbours in the cluster have more than half of that dimension. The
    other vertices, component by component, form groups of dimension about ``capacity``, or more if
    the hubs are large; the first group and the hubs keep the label.
    """
    # Minimum ratio of the dimension of a group of neighbours to that of the hubs copied for it
    group_over_hubs = 4
    n, K, dims, labels = sheaf.n_vertices, P.n_clusters, sheaf.vertex_dims, P.labels.copy()
    u, v = sheaf.edges.T
    inner = (u != v) & (labels[u] == labels[v])
    around = np.bincount(u[inner], dims[v[inner]], n) + np.bincount(v[inner], dims[u[inner]], n)
    is_hub = (np.bincount(labels, dims, K) > largest)[labels] & (2 * around > largest)
    of_hubs = np.bincount(labels, dims * is_hub, K)
    is_split = (of_hubs > 0) & ((1 + group_over_hubs) * of_hubs <= largest)
    is_hub &= is_split[labels]
    rest = np.flatnonzero(is_split[labels] & ~is_hub)
    parts = component_labels(n, sheaf.edges[inner & ~is_hub[u] & ~is_hub[v]])
    rest = rest[np.lexsort((parts[rest], labels[rest]))]
    own, before = labels[rest], np.cumsum(dims[rest]) - dims[rest]
    before -= before[np.searchsorted(own, own)]
    group = (before / np.maximum(capacity, group_over_hubs * of_hubs)[own]).astype(np.int64)
    keys = group * K + own
    labels[rest[group > 0]] = K + np.unique(keys[group > 0], return_inverse=True)[1]
    moved = np.flatnonzero(inner & (is_hub[u] != is_hub[v]) & (labels[u] != labels[v]))
    if not len(moved):
        return None
    end = is_hub[v[moved]].astype(np.int64)
    hub, group = sheaf.edges[moved, end], labels[sheaf.edges[moved, 1 - end]]
    n_labels = int(labels.max()) + 1
    keys, copy = np.unique(hub * n_labels + group, return_inverse=True)
    edges = sheaf.edges.copy()
    edges[moved, end] = n + copy
    owners = np.concatenate([np.arange(n), keys // n_labels])
    factor, dims = 1 / np.sqrt(np.bincount(owners)[owners]), sheaf.vertex_dims[owners]
    copies = np.arange(n, len(owners))  # the copies are sorted by hub
    first = np.searchsorted(owners[n:], owners[n:])  # index of the first copy of the same hub
    # A tree with branching factor 8 joins the copies of a hub; -1 is the hub itself
    parent = (copies - n - first) // 8 - 1
    joins = np.stack([np.where(parent < 0, owners[n:], n + first + parent), copies], axis=1)
    # identities divided by sqrt(2), so that rows of [I | -I] have norm 1
    identity = ragged.identities(dims[copies]).astype(sheaf.dtype) * np.sqrt(0.5)
    data = [
        np.concatenate([old / np.repeat(factor[ends], np.diff(starts)), identity])
        for ends, (_, old, starts) in zip(edges.T, both_ends(sheaf), strict=True)
    ]
    edges = np.concatenate([edges, joins])
    edge_dims = np.concatenate([sheaf.edge_dims, dims[copies]])
    rows = ragged.ranges(sheaf.vertex_offsets[owners], dims)
    entries = np.repeat(factor, dims).astype(sheaf.dtype), (rows, np.arange(len(rows)))
    return Split(
        trusted_sheaf(edges, dims, edge_dims, data[0], data[1]),
        Partition(np.concatenate([labels, keys % n_labels])),
        owners,
        scipy.sparse.csr_array(entries, shape=(sheaf.dim_c0, len(rows))),
    )


def reduce_level(
    sheaf: CellularSheaf, partition: Partition, cut: tuple[float, float]
) -> tuple[Level, CellularSheaf, float, float]:
    """Return level, coarse sheaf, and the largest zero and smallest eliminated singular value."""
    clusters = clusters_of(sheaf, partition)
    if (largest := int(clusters.dims.max())) > LARGEST_LAST:
        raise np.linalg.LinAlgError(
            f"a single stalk of the sheaf or of a coarse level has dimension {largest}, but dense "
            f"factorizations are limited to dimension {LARGEST_LAST}"
        )
    f, dims, K, dtype = sheaf.arrays, clusters.dims, clusters.n_clusters, sheaf.dtype
    map_size = int((sheaf.edge_dims * sheaf.vertex_dims[sheaf.edges].sum(axis=1)).max(initial=0))
    widths = np.zeros(K, np.int64)
    threads.run_ranges(
        lambda lo, hi: kernels.count_kept(
            lo,
            hi,
            f,
            clusters,
            cut[0],
            svd_workspace(dims[lo:hi].max(), dims[lo:hi].max(), dtype, map_size),
            widths,
        ),
        dims**3 + 1.0,
        serial_below=SERIAL_BELOW,
    )
    starts, loop_starts = ragged.offsets(dims * widths), ragged.offsets(widths**2)
    kept = kernels.Kept(
        widths=widths,
        n_sections=np.zeros(K, np.int64),
        columns=kernels.Ragged(starts, np.empty(int(starts[-1]), dtype)),
        loops=kernels.Ragged(loop_starts, np.empty(int(loop_starts[-1]), dtype)),
        loop_rows=np.zeros(K, np.int64),
        dropped=np.full(K, np.inf),
        zeros=np.zeros(K),
    )
    rows = np.diff(ragged.offsets(sheaf.edge_dims[clusters.internal_edges])[clusters.internal_ptr])
    factors = degree_factors(edge_subset(sheaf, clusters.crossing_edges))
    crossing = rows, kernels.Ragged(*factors)

    def reduce(lo: int, hi: int) -> int:
        n = int(dims[lo:hi].max())
        workspace = kernel_workspace(int(rows[lo:hi].max()) + n, n, dtype, map_size)
        return kernels.reduce_clusters(lo, hi, f, clusters, crossing, cut, workspace, kept)

    cost = dims * (dims + widths) * (dims + 10.0 * widths) * (widths > 0) + 1.0
    for failed in threads.run_ranges(reduce, cost, serial_below=SERIAL_BELOW):
        if failed >= 0:
            raise np.linalg.LinAlgError(f"LAPACK failed on cluster {failed}")
    retained = widths - kept.n_sections

    def block_columns(first: np.ndarray, counts: np.ndarray) -> Prolongation:
        indptr, indices = block_layout(sheaf, clusters, counts)
        data = np.empty(len(indices), dtype)
        out = Blocks(indptr, data, ragged.read_only(counts))
        put_columns(f, clusters, kept.columns.data, starts[:-1] + first, widths, out)
        return Prolongation(sheaf, clusters, counts, indptr, indices, data)

    level = Level(
        block_columns(np.zeros_like(retained), retained), block_columns(retained, kept.n_sections)
    )
    loops = Loops(kept.loop_rows, kept.loops.starts, kept.loops.data)
    coarse = realize(level.R, loops, compress=True)
    zero, dropped = kept.zeros.max(initial=0), kept.dropped.min(initial=np.inf)
    return level, coarse, float(zero), float(dropped)
