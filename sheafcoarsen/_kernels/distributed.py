"""Kernels of :mod:`sheafcoarsen.distributed`: sums over edges and counting sorts.

They allocate no arrays, since a sheaf may fill the memory.
"""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def weigh_clusters(edges, labels, vertex_dims, edge_dims, weights):
    """Add each map's size to its cluster's weight; return the number of crossing edges."""
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
    """Write the clusters of both ends of every crossing edge."""
    k = 0
    for e in range(edges.shape[0]):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a != b:
            pairs[k, 0] = a
            pairs[k, 1] = b
            k += 1


@kernel
def crossing_entries(edges, labels, edge_dims, ranks, dest, entries):
    """Add the size of each crossing edge's uncompressed coarse maps to its destination's total."""
    for e in range(edges.shape[0]):
        a, b = labels[edges[e, 0]], labels[edges[e, 1]]
        if a != b:
            entries[dest[e]] += edge_dims[e] * (ranks[a] + ranks[b])


@kernel
def find_destinations(edges, labels, shard_of, dest):
    """Write s for each edge inside shard s, and S + s for each edge in the border of shard s.

    S is the number of shards. An edge between shards is in the border of the shard of its lower
    cluster. Returns the number of edges in borders.
    """
    n_shards = shard_of[shard_of.size - 1]  # the last entry of ``shard_of`` is the number of shards
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
def sort_by_keys(keys, starts, order):
    """Sort indices stably by their keys, 0 .. K - 1, and write the offset of each key.

    ``starts``, (K + 1,), holds zeros on entry.
    """
    for i in range(keys.size):
        starts[np.int64(keys[i]) + 1] += 1
    for k in range(1, starts.size):
        starts[k] += starts[k - 1]
    for i in range(keys.size):
        k = keys[i]
        order[starts[k]] = i
        starts[k] += 1
    for k in range(starts.size - 1, 0, -1):  # shift back: each offset is now the end of its key
        starts[k] = starts[k - 1]
    starts[0] = 0


@kernel
def copy_blocks(data, starts, lengths, to, out):
    """Copy blocks, given by starts and lengths, to the positions ``to`` of ``out``."""
    for i in range(starts.size):
        begin, at = starts[i], to[i]
        for k in range(lengths[i]):
            out[at + k] = data[begin + k]
