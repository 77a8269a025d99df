"""Selection of clusters of bounded size for the next level."""

import numpy as np

from sheafcoarsen.partition import Partition, find_clusters
from sheafcoarsen.sections.hubs import Split, split_hubs
from sheafcoarsen.sheaf import CellularSheaf, component_count

VERTICES, DIMENSION = 40, 120
"""Target number of vertices, and target dimension, of a cluster."""

LAST = 400
"""Dimension at or below which coarsening ends and the last level is decomposed densely."""

LARGEST_LAST = 6000
"""Maximum dimension of a level that is decomposed densely if coarsening stalls."""


def cluster_count(sheaf: CellularSheaf, growth: int) -> int:
    """Return the number of clusters, for clusters ``growth`` times as large as usual.

    There is at least one cluster per connected component, because clusters would otherwise
    merge components.
    """
    n = sheaf.n_vertices
    by_dimension = min(sheaf.dim_c0 / (DIMENSION * growth), n / 4)
    size = max(n / (VERTICES * growth), by_dimension)
    return min(component_count(sheaf) - 1 + int(np.ceil(size)), n)


def choose_clusters(
    sheaf: CellularSheaf, growth: int
) -> tuple[CellularSheaf, Partition, Split | None, bool]:
    """Return the clusters of the next level, none of them much larger than the mean.

    Hubs of large clusters are split first, which changes the sheaf. Vertices are then removed from
    clusters that are still too large; the last value tells whether any were.
    """
    labels = find_clusters(sheaf, cluster_count(sheaf, growth), "balls")[1]
    partition, split = Partition(labels), None
    mean = sheaf.dim_c0 // partition.n_clusters
    # Ratio of a cluster's dimension to the mean above which the cluster is split
    too_large = 4
    largest = min(max(2 * LAST * growth, too_large * mean), LARGEST_LAST)
    if np.bincount(partition.labels, sheaf.vertex_dims).max() > largest:
        split = split_hubs(sheaf, partition, largest, DIMENSION * growth)
        sheaf, partition = (split.sheaf, split.partition) if split else (sheaf, partition)
    partition, is_cut = shrink_clusters(sheaf, partition, largest)
    return sheaf, partition, split, is_cut


def shrink_clusters(sheaf: CellularSheaf, P: Partition, largest: int) -> tuple[Partition, bool]:
    """Remove vertices of lowest degree from clusters larger than ``largest``.

    Returns the partition and whether it changed. Removed vertices become clusters of one vertex,
    which are merged on a later level. It is needed if the stalks of hubs are too large for copies.
    """
    labels, dims, K = P.labels, sheaf.vertex_dims, P.n_clusters
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
