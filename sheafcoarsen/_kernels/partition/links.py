"""Strengths of links and lists of neighbours."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def strengths(sheaf, factor, out):
    """out[e] = norm(F_{u->e}* F_{v->e})_F of the maps times ``factor``, 0 for loops."""
    for e in range(sheaf.edges.shape[0]):
        u = sheaf.edges[e, 0]
        v = sheaf.edges[e, 1]
        out[e] = 0.0
        if u == v or sheaf.edge_dims[e] == 0:
            continue
        rows = sheaf.vertex_dims[u]
        cols = sheaf.vertex_dims[v]
        a = sheaf.tail_offsets[e]
        b = sheaf.head_offsets[e]
        total = 0.0
        for i in range(rows):
            for j in range(cols):
                inner = 0.0 * (sheaf.tail_data[a] * factor)  # in the precision of the product
                for k in range(sheaf.edge_dims[e]):
                    left = np.conj(sheaf.tail_data[a + k * rows + i] * factor)
                    inner += left * (sheaf.head_data[b + k * cols + j] * factor)
                total += abs(inner) ** 2
        out[e] = np.sqrt(total)


@kernel
def neighbours(edges, edge_weights, starts, ends, weights, place):
    """Fill the neighbour lists of all vertices and return their total length.

    Loops are left out, parallel edges summed. ``place`` is work space for each vertex.
    """
    n = starts.size - 1
    for v in range(n + 1):
        starts[v] = 0
    for e in range(edges.shape[0]):
        if edges[e, 0] != edges[e, 1]:
            starts[edges[e, 0] + 1] += 1
            starts[edges[e, 1] + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
        place[v] = starts[v]  # where the next neighbour goes
    for e in range(edges.shape[0]):
        u = edges[e, 0]
        v = edges[e, 1]
        if u != v:
            ends[place[u]] = v
            weights[place[u]] = edge_weights[e]
            place[u] += 1
            ends[place[v]] = u
            weights[place[v]] = edge_weights[e]
            place[v] += 1
    for v in range(n):  # where a neighbour stands in the list being written
        place[v] = -1
    count = 0
    begin = 0
    for v in range(n):
        first = count
        end = starts[v + 1]
        for p in range(begin, end):
            u = ends[p]
            if place[u] >= first:
                weights[place[u]] += weights[p]
            else:
                place[u] = count
                ends[count] = u
                weights[count] = weights[p]
                count += 1
        begin = end
        starts[v + 1] = count
    return count
