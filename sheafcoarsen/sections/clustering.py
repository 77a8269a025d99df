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

from sheafcoarsen._support import offsets, ranges
from sheafcoarsen.partition import Partition, find_clusters
from sheafcoarsen.sheaf import CellularSheaf, component_count, component_labels, trusted_sheaf

VERTICES, DIMENSION = 40, 120
"""Target number of vertices, and target dimension, of a cluster."""

LAST = 400
"""Dimension at or below which coarsening ends and the last level is decomposed densely."""

LARGEST_LAST = 6000
"""Maximum dimension of a level that is decomposed densely if coarsening stalls."""


class Split(NamedTuple):
    """A partitioned sheaf with split hubs, and the map of its sections to the original sheaf.

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
    """Return the sheaf, clusters of bounded dimension, the split or None, and whether any was cut.

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


def split_hubs(sheaf: CellularSheaf, P: Partition, largest: int, capacity: int) -> Split | None:
    """Split the hubs of clusters larger than ``largest``; return None if no hub is split.

    The other vertices of a cluster form groups of dimension about ``capacity``, or more if its hubs
    are large. A cluster is not split if too many hubs would have to be removed to disconnect it.
    """
    # Minimum ratio of the dimension of a group of neighbours to that of the hubs copied for it
    group_over_hubs = 4
    n, (is_hub, pieces) = sheaf.n_vertices, _find_hubs(sheaf, P, largest, group_over_hubs)
    if not is_hub.any():
        return None
    hub_dims = np.bincount(P.labels, sheaf.vertex_dims * is_hub, minlength=P.n_clusters)
    capacities = np.maximum(capacity, group_over_hubs * hub_dims.astype(np.int64))
    labels = _grouped(sheaf, P, pieces, capacities)
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
    sizes = dims[copies]
    starts = offsets(sizes**2)
    identity = np.zeros(int(starts[-1]), sheaf.dtype)
    diagonal = ranges(np.zeros_like(sizes), sizes) * np.repeat(sizes + 1, sizes)
    identity[np.repeat(starts[:-1], sizes) + diagonal] = np.sqrt(0.5)
    data = [
        np.concatenate([old / np.repeat(factor[edges[:, end]], np.diff(starts)), identity])
        for end, old, starts in (
            (0, sheaf.tail_data, sheaf.tail_offsets),
            (1, sheaf.head_data, sheaf.head_offsets),
        )
    ]
    edges, edge_dims = np.concatenate([edges, joins]), np.concatenate([sheaf.edge_dims, sizes])
    rows = ranges(sheaf.vertex_offsets[owners], dims)
    entries = np.repeat(factor, dims).astype(sheaf.dtype), (rows, np.arange(len(rows)))
    return Split(
        trusted_sheaf(edges, dims, edge_dims, data[0], data[1]),
        Partition(np.concatenate([labels, keys % K])),
        owners,
        scipy.sparse.csr_array(entries, shape=(sheaf.dim_c0, len(rows))),
    )


def _find_hubs(
    sheaf: CellularSheaf, P: Partition, largest: int, group_over_hubs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of hubs, and the components of large clusters after removal of their hubs.

    Hubs are the vertices of highest degree inside their cluster: one, two, four ... of them, until
    no component is larger than ``largest``. Hubs, and vertices of clusters that are not split, have
    component -1.
    """
    n, dims = sheaf.n_vertices, sheaf.vertex_dims
    is_hub, pieces = np.zeros(n, bool), np.full(n, -1)
    heavy = np.bincount(P.labels, dims) > largest
    ends = sheaf.edges[P.labels[sheaf.edges[:, 0]] == P.labels[sheaf.edges[:, 1]]]
    ends = ends[(ends[:, 0] != ends[:, 1]) & heavy[P.labels[ends[:, 0]]]]
    order = np.lexsort((-np.bincount(ends.reshape(-1), minlength=n), P.labels))
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n) - P.cluster_offsets[P.labels[order]]
    count = 1
    while heavy.any():
        chosen = heavy[P.labels] & (rank < count)
        within = heavy[P.labels] & ~chosen
        inner = ends[within[ends].all(axis=1)]
        labels = component_labels(n, inner)
        weights = np.bincount(labels, dims * within)
        too_heavy = np.zeros(P.n_clusters, bool)
        too_heavy[P.labels[within & (weights[labels] > largest)]] = True
        # do not split hubs if a copy and a group ``group_over_hubs`` times as large are too heavy
        hub_dims = np.bincount(P.labels, dims * chosen, minlength=P.n_clusters)
        hopeless = heavy & (hub_dims * (1 + group_over_hubs) > largest)
        done = heavy & ~too_heavy & ~hopeless
        is_hub |= chosen & done[P.labels]
        mine = within & done[P.labels]
        pieces[mine] = labels[mine] + (pieces.max(initial=-1) + 1)  # distinct in all rounds
        heavy = heavy & too_heavy & ~hopeless
        count *= 2
    return is_hub, pieces


def _grouped(
    sheaf: CellularSheaf, P: Partition, pieces: np.ndarray, capacities: np.ndarray
) -> np.ndarray:
    """Group pieces into new clusters and return the labels; the first group keeps the hubs.

    ``capacities`` are the dimensions of the groups in each cluster of P.
    """
    dims, labels = sheaf.vertex_dims, P.labels.copy()
    here = np.flatnonzero(pieces >= 0)
    first, piece = np.unique(pieces[here], return_index=True, return_inverse=True)[1:]
    home, weight = P.labels[here[first]], np.bincount(piece, dims[here]).astype(np.int64)
    order = np.argsort(home, kind="stable")
    before = np.cumsum(weight[order]) - weight[order]
    start = np.searchsorted(home[order], home[order])
    group = np.empty(len(home), np.int64)
    group[order] = (before - before[start]) // capacities[home[order]]
    key, new = np.unique(home * (group.max() + 1) + group, return_inverse=True)
    is_first = key % (group.max() + 1) == 0
    number = np.where(is_first, key // (group.max() + 1), 0)
    number[~is_first] = P.n_clusters + np.arange(int((~is_first).sum()))
    labels[here] = number[new][piece]
    return labels
