"""Which clusters the next level takes."""

import numpy as np

from sheafcoarsen.partition import Partition, select
from sheafcoarsen.sections import sizes
from sheafcoarsen.sheaf import CellularSheaf, component_count

HEAVY = 4
"""A cluster is far heavier than the others beyond so many times the mean dimension."""


def cluster_count(sheaf: CellularSheaf, growth: int) -> int:
    """Return how many clusters to take, ``growth`` times as large as usual.

    Beyond one for each component, because ``select`` would pack components, but not split the
    largest.
    """
    n = sheaf.n_vertices
    by_dimension = min(sheaf.dim_c0 / (sizes.DIMENSION * growth), n / 4)
    size = max(n / (sizes.VERTICES * growth), by_dimension)
    return min(component_count(sheaf) - 1 + int(np.ceil(size)), n)


def choose_clusters(sheaf: CellularSheaf, growth: int) -> tuple[Partition, bool]:
    """Return the clusters of the next level, and whether vertices had to be cut off heavy ones."""
    partition = select(sheaf, cluster_count(sheaf, growth), "balls")
    return cut_heaps(sheaf, partition, growth)


def cut_heaps(sheaf: CellularSheaf, P: Partition, growth: int) -> tuple[Partition, bool]:
    """Cut vertices off far heavier clusters, those of fewest links first; tell whether it did.

    Connected clusters cannot share the leaves of a hub. Here a cluster may be of any kind: the
    leaves cut off become clusters of their own, which keep all they have, and join the hub on a
    later level.
    """
    labels, dims, K = P.labels, sheaf.vertex_dims, P.n_clusters
    largest = min(max(2 * sizes.LAST * growth, HEAVY * sheaf.dim_c0 // K), sizes.LARGEST_LAST)
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
