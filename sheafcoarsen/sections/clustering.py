"""Choose the clusters of the next level."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen.partition import Partition, find_clusters
from sheafcoarsen.sections.hubs import Split, split_hubs
from sheafcoarsen.sheaf import CellularSheaf, component_count

VERTICES, DIMENSION = 40, 120
"""Size of a cluster, in vertices and in dimensions."""

LAST = 400
"""Dimension at which coarsening ends and a dense singular value decomposition is taken."""

LARGEST_LAST = 6000
"""Dimension up to which that is done where coarsening gets no further."""

HEAVY = 4
"""A cluster is far heavier than the others beyond so many times the mean dimension."""


def cluster_count(sheaf: CellularSheaf, growth: int) -> int:
    """Return how many clusters to take, ``growth`` times as large as usual.

    Beyond one for each component, because ``select`` would pack components, but not split the
    largest.
    """
    n = sheaf.n_vertices
    by_dimension = min(sheaf.dim_c0 / (DIMENSION * growth), n / 4)
    size = max(n / (VERTICES * growth), by_dimension)
    return min(component_count(sheaf) - 1 + int(np.ceil(size)), n)


class Choice(NamedTuple):
    """Clusters of a sheaf, or of one in which hubs are split."""

    sheaf: CellularSheaf
    partition: Partition
    split: Split | None
    is_cut: bool


def choose_clusters(sheaf: CellularSheaf, growth: int) -> Choice:
    """Return the clusters of the next level, none of them far heavier than the others.

    Hubs are split first. What is heavy still has vertices cut off.
    """
    labels = find_clusters(sheaf, cluster_count(sheaf, growth), "balls")[1]
    partition, split = Partition(labels), None
    mean = sheaf.dim_c0 // partition.n_clusters
    largest = min(max(2 * LAST * growth, HEAVY * mean), LARGEST_LAST)
    if np.bincount(partition.labels, sheaf.vertex_dims).max() > largest:
        split = split_hubs(sheaf, partition, largest, DIMENSION * growth)
        sheaf, partition = (split.sheaf, split.partition) if split else (sheaf, partition)
    partition, is_cut = cut_heaps(sheaf, partition, largest)
    return Choice(sheaf, partition, split, is_cut)


def cut_heaps(sheaf: CellularSheaf, P: Partition, largest: int) -> tuple[Partition, bool]:
    """Cut vertices off clusters heavier than ``largest``, those of fewest links first.

    Tells whether there were any. What is cut off becomes clusters of single vertices, which keep
    all they have, and is joined on a later level. So a level takes little off; it is for hubs
    whose own stalks are too large to be copied.
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
