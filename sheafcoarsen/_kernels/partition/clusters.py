"""Connected components, and edges grouped by clusters and pairs of clusters."""

from sheafcoarsen._kernels.jit import borrowing_kernel


@borrowing_kernel
def sort_edges(edges, labels, by_cluster, by_edge, pairs):
    """Group internal edges by cluster and crossing edges by pair (a < b), edges ascending.

    ``by_cluster`` are (internal_ptr, low_ptr, high_ptr, position), zeros on entry, ``by_edge`` are
    (internal_edges, crossing_edges, pair_ptr, by_high); the other arrays are workspace. Returns the
    number of pairs.
    """
    internal_ptr, low_ptr, high_ptr, position = by_cluster
    m, n_clusters, crossing = edges.shape[0], internal_ptr.size - 1, 0
    internal_edges, crossing_edges, pair_ptr, by_high = by_edge
    for e in range(m):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a == b:
            internal_ptr[a + 1] += 1
        else:
            low, high = (a, b) if a < b else (b, a)
            low_ptr[low + 1] += 1
            high_ptr[high + 1] += 1
            crossing += 1
    for a in range(n_clusters):
        internal_ptr[a + 1] += internal_ptr[a]
        low_ptr[a + 1] += low_ptr[a]
        high_ptr[a + 1] += high_ptr[a]
        position[a] = internal_ptr[a]
    for e in range(m):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a == b:
            internal_edges[position[a]] = e
            position[a] += 1
        else:
            high = b if a < b else a
            by_high[high_ptr[high]] = e
            high_ptr[high] += 1
    for k in range(crossing):
        e = by_high[k]
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        low = a if a < b else b
        crossing_edges[low_ptr[low]] = e
        low_ptr[low] += 1
    n_pairs = 0
    for k in range(crossing):
        e = crossing_edges[k]
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        low, high = (a, b) if a < b else (b, a)
        if n_pairs == 0 or pairs[n_pairs - 1, 0] != low or pairs[n_pairs - 1, 1] != high:
            pairs[n_pairs, 0] = low
            pairs[n_pairs, 1] = high
            pair_ptr[n_pairs] = k
            n_pairs += 1
    pair_ptr[n_pairs] = crossing
    return n_pairs


@borrowing_kernel
def label_components(edges, labels):
    """Number the connected components in the order of their lowest vertices; label each vertex.

    By Rem's algorithm (Dijkstra 1976): until the end, ``labels`` are parents, never above children.
    """
    for v in range(labels.size):
        labels[v] = v
    for e in range(len(edges)):
        u, v = edges[e, 0], edges[e, 1]
        while labels[u] != labels[v]:
            if labels[u] < labels[v]:
                u, v = v, u
            parent = labels[u]
            labels[u] = labels[v]
            if u == parent:
                break
            u = parent
    count = 0
    for v in range(labels.size):  # parents precede their children and are labelled already
        if labels[v] == v:
            labels[v] = count
            count += 1
        else:
            labels[v] = labels[labels[v]]
