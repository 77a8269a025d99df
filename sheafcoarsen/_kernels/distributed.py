"""Kernels of :mod:`sheafcoarsen.distributed`: sums over edges and counting sorts.

They allocate no arrays, since a sheaf may fill the memory.
"""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def weigh_clusters(edges, labels, vertex_dims, edge_dims, weights):
    """Add each map's size to its cluster's weight."""
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        weights[labels[u]] += edge_dims[e] * vertex_dims[u]
        weights[labels[v]] += edge_dims[e] * vertex_dims[v]


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
