"""Sorts edges into clusters and pairs of clusters, in a few counting passes."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def local_offsets(members, vertex_dims, labels, dims, out):
    """out[v] = where v's stalk begins in its cluster; dims[a] += the cluster's dimension."""
    for i in range(members.size):
        v = members[i]
        a = labels[v]
        out[v] = dims[a]
        dims[a] += vertex_dims[v]


@kernel
def sort_edges(edges, labels, n_clusters):
    """Group internal edges by cluster and crossing edges by pair (a < b), edges ascending.

    Returns (internal_ptr, internal_edges, crossing_edges, pair_ptr, pairs).
    """
    m = edges.shape[0]
    internal_ptr = np.zeros(n_clusters + 1, np.int64)
    low_ptr = np.zeros(n_clusters + 1, np.int64)
    high_ptr = np.zeros(n_clusters + 1, np.int64)
    crossing = 0
    for e in range(m):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a == b:
            internal_ptr[a + 1] += 1
        else:
            low_ptr[min(a, b) + 1] += 1
            high_ptr[max(a, b) + 1] += 1
            crossing += 1
    for a in range(n_clusters):
        internal_ptr[a + 1] += internal_ptr[a]
        low_ptr[a + 1] += low_ptr[a]
        high_ptr[a + 1] += high_ptr[a]
    internal_edges = np.empty(m - crossing, np.int64)
    by_high = np.empty(crossing, np.int64)
    place = internal_ptr.copy()
    for e in range(m):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a == b:
            internal_edges[place[a]] = e
            place[a] += 1
        else:
            high = max(a, b)
            by_high[high_ptr[high]] = e
            high_ptr[high] += 1
    crossing_edges = np.empty(crossing, np.int64)
    for k in range(crossing):
        e = by_high[k]
        low = min(labels[edges[e, 0]], labels[edges[e, 1]])
        crossing_edges[low_ptr[low]] = e
        low_ptr[low] += 1
    pairs = np.empty((crossing, 2), np.int64)
    pair_ptr = np.empty(crossing + 1, np.int64)
    n_pairs = 0
    for k in range(crossing):
        e = crossing_edges[k]
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        low, high = min(a, b), max(a, b)
        if n_pairs == 0 or pairs[n_pairs - 1, 0] != low or pairs[n_pairs - 1, 1] != high:
            pairs[n_pairs, 0] = low
            pairs[n_pairs, 1] = high
            pair_ptr[n_pairs] = k
            n_pairs += 1
    pair_ptr[n_pairs] = crossing
    return (
        internal_ptr,
        internal_edges,
        crossing_edges,
        pair_ptr[: n_pairs + 1].copy(),
        pairs[:n_pairs].copy(),
    )
