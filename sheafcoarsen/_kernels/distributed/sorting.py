"""Counting sorts over the edges of a sheaf: a few passes, and no array beside the results."""

from sheafcoarsen._kernels.jit import kernel


@kernel
def weigh_clusters(edges, labels, vertex_dims, edge_dims, weights):
    """Add the map entries of every edge to the clusters of its ends; return how many cross."""
    crossing = 0
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        weights[labels[u]] += edge_dims[e] * vertex_dims[u]
        weights[labels[v]] += edge_dims[e] * vertex_dims[v]
        if labels[u] != labels[v]:
            crossing += 1
    return crossing


@kernel
def crossing_pairs(edges, labels, pairs):
    """Write the clusters of both ends of every edge that crosses."""
    k = 0
    for e in range(edges.shape[0]):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a != b:
            pairs[k, 0] = a
            pairs[k, 1] = b
            k += 1


@kernel
def crossing_entries(edges, labels, edge_dims, ranks, dest, entries):
    """Add the entries of crossing edges' coarse maps, before compression, to destinations."""
    for e in range(edges.shape[0]):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a != b:
            entries[dest[e]] += edge_dims[e] * (ranks[a] + ranks[b])


@kernel
def tallest_crossing(edges, labels, edge_dims):
    """Return the largest dimension of the stalk of an edge that crosses."""
    tallest = 0
    for e in range(edges.shape[0]):
        if labels[edges[e, 0]] != labels[edges[e, 1]] and edge_dims[e] > tallest:
            tallest = edge_dims[e]
    return tallest


@kernel
def find_destinations(edges, labels, shard_of, dest):
    """Write s for an edge inside of shard s, S + s for one that joins it to another shard.

    That is the border of the shard of the lower cluster. Returns how many edges lie in borders.
    """
    n_shards = shard_of[shard_of.size - 1]  # stands after the clusters' own
    border = 0
    for e in range(edges.shape[0]):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        s, t = shard_of[a], shard_of[b]
        if s == t:
            dest[e] = s
        else:
            dest[e] = n_shards + (s if a < b else t)
            border += 1
    return border


@kernel
def count_keys(keys, counts):
    """counts[k] += how often the key k occurs."""
    for i in range(keys.size):
        counts[keys[i]] += 1


@kernel
def sort_by_keys(keys, places, order):
    """Write the indices of the keys in their stable order; places[k] is where key k begins."""
    for i in range(keys.size):
        k = keys[i]
        order[places[k]] = i
        places[k] += 1


@kernel
def sum_sizes(entries, dest, edges, vertex_dims, edge_dims, tails, heads):
    """Add the map entries of some edges to those of their destinations, for either end."""
    for i in range(entries.size):
        e, d = entries[i], dest[i]
        tails[d] += edge_dims[e] * vertex_dims[edges[e, 0]]
        heads[d] += edge_dims[e] * vertex_dims[edges[e, 1]]


@kernel
def copy_blocks(data, starts, lengths, to, out):
    """Copy blocks of the given starts and lengths to the given places."""
    for i in range(starts.size):
        begin, at = starts[i], to[i]
        for k in range(lengths[i]):
            out[at + k] = data[begin + k]
