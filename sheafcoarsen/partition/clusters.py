"""Index structure of a partition: internal edges by cluster, crossing edges by pair."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import ragged
from sheafcoarsen.partition._partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf


class Clusters(NamedTuple):
    """Index structure of a partitioned graph, which kernels take as input.

    In the paper: N_a (``eq:local_cochain_space``), the internal edges E_a
    (``eq:internal_coboundary_domain``) and the crossing edges E_ab (``eq:crossing_edge_set``).
    """

    labels: np.ndarray  # (n,) cluster of each vertex
    members: np.ndarray  # (n,) vertices by cluster, ascending inside each
    member_ptr: np.ndarray
    local_offsets: np.ndarray  # (n,) offset of a stalk among the coordinates of its cluster
    dims: np.ndarray  # (K,) N_a, the dimension of C^0 on each cluster
    internal_edges: np.ndarray  # edges inside clusters (loops too), by cluster, then by index
    internal_ptr: np.ndarray
    crossing_edges: np.ndarray  # the other edges, by pair of clusters (a < b), then by index
    pair_ptr: np.ndarray
    pairs: np.ndarray  # (P, 2) the pairs of clusters joined by an edge, sorted
    half_edges: np.ndarray  # ends of crossing edges, as 2 e + end, or empty
    half_ptr: np.ndarray

    @property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return len(self.dims)


def check_partition(sheaf: CellularSheaf, partition: Partition, name: str = "P") -> None:
    """Raise an error unless ``partition`` is a Partition of the sheaf's vertices."""
    check_sheaf(sheaf)
    if not isinstance(partition, Partition):
        raise TypeError(
            f"`{name}` must be a Partition, got {type(partition).__name__}: "
            "Partition(labels) makes one"
        )
    if partition.n_vertices != sheaf.n_vertices:
        raise ValueError(
            f"`{name}` must label the sheaf's {sheaf.n_vertices} vertices, "
            f"got a partition of {partition.n_vertices}"
        )


def clusters_of(sheaf: CellularSheaf, partition: Partition) -> Clusters:
    """Return the index structure of a sheaf and a checked partition."""
    labels, members, K = partition.labels, partition.members, partition.n_clusters
    at = ragged.offsets(sheaf.vertex_dims[members])
    first = at[partition.cluster_offsets]
    dims, local = np.diff(first), np.empty(sheaf.n_vertices, np.int64)
    local[members] = at[:-1] - first[labels[members]]
    itype = ragged.index_dtype(K * K)  # half the memory if int32
    ends, size = labels.astype(itype)[sheaf.edges].T, itype(K)
    keys = np.minimum(*ends)
    keys *= size
    keys += np.maximum(*ends)
    # negative, so that internal edges come first
    np.subtract(ends[0], size, out=keys, where=ends[0] == ends[1])
    del ends
    order = ragged.read_only(np.argsort(keys, kind="stable"))
    keys = keys[order]
    internal_ptr = np.searchsorted(keys, np.arange(-K, 1, dtype=itype))
    internal_edges, crossing_edges = np.split(order, internal_ptr[-1:])
    keys = keys[internal_ptr[-1] :]
    begins = np.flatnonzero(np.diff(keys, prepend=itype(-1)))
    pairs = np.stack(divmod(keys[begins].astype(np.int64), max(K, 1)), axis=1)
    pair_ptr = np.append(begins, len(keys))
    edges = internal_edges, internal_ptr, crossing_edges, pair_ptr, pairs
    halves = np.zeros(0, np.int64), np.zeros(K + 1, np.int64)
    arrays = (ragged.read_only(array) for array in (local, dims, *edges, *halves))
    return Clusters(labels, members, partition.cluster_offsets, *arrays)
