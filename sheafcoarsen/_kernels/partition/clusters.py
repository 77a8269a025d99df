"""Sorts edges into clusters and pairs of clusters, in a few counting passes."""

from sheafcoarsen._kernels.jit import kernel


@kernel
def sort_edges(edges, labels, by_cluster, by_edge, pairs):
    """Group internal edges by cluster and crossing edges by pair (a < b), edges ascending.

    ``by_cluster`` are (internal_ptr, low_ptr, high_ptr, place), zeros at first, ``by_edge`` are
    (internal_edges, crossing_edges, pair_ptr, by_high); work space but for the pointers and edges
    that are internal or crossing. Returns the number of pairs.
    """
    internal_ptr, low_ptr, high_ptr, place = by_cluster
    m, n_clusters, crossing = edges.shape[0], internal_ptr.size - 1, 0
    internal_edges, crossing_edges, pair_ptr, by_high = by_edge
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
        place[a] = internal_ptr[a]
    for e in range(m):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a == b:
            internal_edges[place[a]] = e
            place[a] += 1
        else:
            high = max(a, b)
            by_high[high_ptr[high]] = e
            high_ptr[high] += 1
    for k in range(crossing):
        e = by_high[k]
        low = min(labels[edges[e, 0]], labels[edges[e, 1]])
        crossing_edges[low_ptr[low]] = e
        low_ptr[low] += 1
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
    return n_pairs
