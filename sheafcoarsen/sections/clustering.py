"""Selection of clusters of bounded size for the next level, and splitting of hubs.

A hub is a vertex with more neighbours than a cluster can contain. Its leaves cannot be distributed
to several connected clusters, and a cluster with all of them would be too large for dense matrices.
The hub is therefore replaced by several copies, joined by edges with identity maps; each copy is
adjacent to a group of the hub's neighbours. Sections correspond one to one: the values at the k
copies are equal, and divided by sqrt(k) to preserve norms.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._support import ragged
from sheafcoarsen.partition import Partition, find_clusters
from sheafcoarsen.sheaf import (
    CellularSheaf,
    both_ends,
    component_count,
    component_labels,
    trusted_sheaf,
)

VERTICES, DIMENSION = 40, 120
"""Target number of vertices, and target dimension, of a cluster."""

LAST = 400
"""Dimension at or below which coarsening ends and the last level is decomposed densely."""

LARGEST_LAST = 6000
"""Maximum dimension of a level that is decomposed densely if coarsening stalls."""


class Split(NamedTuple):
    """A partitioned sheaf with split hubs, and the map from its sections to the original ones.

    ``owners``, of shape (n',), holds the original vertex of each new vertex. ``J``, of shape
    (dim C^0, dim C^0 of the new sheaf), maps sections of the new sheaf to the original one.
    """

    sheaf: CellularSheaf
    partition: Partition
    owners: np.ndarray
    J: scipy.sparse.csr_array


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
    """Return the sheaf, clusters of bounded dimension, the hub split, and whether any were shrunk.

    The bound is the larger of 2 ``LAST`` ``growth`` and four times the mean dimension, but at most
    ``LARGEST_LAST``. Hubs of larger clusters are split first, which changes the sheaf. Vertices are
    then removed from clusters that are still too large; the last value is whether any was.
    """
    labels = find_clusters(sheaf, cluster_count(sheaf, growth), "balls")[1]
    partition, split = Partition(labels), None
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
    """Remove vertices of lowest degree from clusters larger than ``largest``.

    Returns the partition and whether it changed. Removed vertices become clusters of one vertex,
    which are merged on a later level. This is needed if stalks of hubs are too large for copies.
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
    """Split the hubs of clusters larger than ``largest``; return None if no hub is split."""
    n, (labels, is_hub) = sheaf.n_vertices, _without_hubs(sheaf, P, largest, capacity)
    hub_ends = is_hub[sheaf.edges]
    away = labels[sheaf.edges[:, 0]] != labels[sheaf.edges[:, 1]]
    inner = P.labels[sheaf.edges[:, 0]] == P.labels[sheaf.edges[:, 1]]
    moved = np.flatnonzero(away & inner & (hub_ends[:, 0] != hub_ends[:, 1]))
    end = hub_ends[moved, 1].astype(np.int64)
    hub, group = sheaf.edges[moved, end], labels[sheaf.edges[moved, 1 - end]]
    K = int(labels.max()) + 1
    keys, copy = np.unique(hub * K + group, return_inverse=True)
    if not len(keys):
        return None
    edges = sheaf.edges.copy()
    edges[moved, end] = n + copy
    owners = np.concatenate([np.arange(n), keys // K])
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
        Partition(np.concatenate([labels, keys % K])),
        owners,
        scipy.sparse.csr_array(entries, shape=(sheaf.dim_c0, len(rows))),
    )


def _without_hubs(
    sheaf: CellularSheaf, P: Partition, largest: int, capacity: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return new cluster labels of the vertices, and a mask of the hubs.

    In a cluster larger than ``largest``, hubs are the vertices of highest degree inside it: one,
    two, four ... of them, until without them no component is larger. These components form groups
    of dimension about ``capacity``, or more if the hubs are large; the first group and the hubs
    keep the label. Clusters with too many such hubs do not change.
    """
    # Minimum ratio of the dimension of a group of neighbours to that of the hubs copied for it
    group_over_hubs = 4
    labels, is_hub = P.labels.copy(), np.zeros(sheaf.n_vertices, bool)
    ends = sheaf.edges[np.not_equal(*sheaf.edges.T) & np.equal(*P.labels[sheaf.edges].T)]
    ends = ends[np.argsort(P.labels[ends[:, 0]], kind="stable")]
    starts = np.searchsorted(P.labels[ends[:, 0]], np.arange(P.n_clusters + 1))
    position, n_labels = np.empty(sheaf.n_vertices, np.int64), P.n_clusters
    for a in np.flatnonzero(np.bincount(P.labels, sheaf.vertex_dims) > largest).tolist():
        members = P.cluster(a)
        position[members] = np.arange(len(members))
        inner, dims = position[ends[starts[a] : starts[a + 1]]], sheaf.vertex_dims[members]
        degrees = np.bincount(inner.reshape(-1), minlength=len(members))
        by_degree = np.argsort(-degrees, kind="stable")
        rest, count = np.ones(len(members), bool), 1
        while (1 + group_over_hubs) * dims[by_degree[:count]].sum() <= largest:
            rest[by_degree[:count]] = False
            parts = component_labels(len(members), inner[rest[inner].all(axis=1)])
            weights = np.bincount(parts, dims * rest).astype(np.int64)
            if weights.max() > largest:
                count *= 2
                continue
            size = max(capacity, group_over_hubs * int(dims[~rest].sum()))
            group = (np.cumsum(weights) - weights) // size
            number = np.unique(group[parts[rest]], return_inverse=True)[1]
            labels[members[rest]] = np.where(number > 0, n_labels + number - 1, a)
            n_labels += int(number.max())
            is_hub[members[~rest]] = True
            break
    return labels, is_hub
