"""The local operator of one cluster as a dense matrix.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``. Its half-edges, 2 e + end, are the terms of the
principal block that L_a lacks.
"""

import numpy as np

from sheafcoarsen._kernels.dense import NOT_NEGATIVE, add_gram, largest_entry, power_of_two
from sheafcoarsen._kernels.jit import numba_inlined, subkernel


@numba_inlined
def map_at(f, e, end):
    """Return the vertex at one end of edge e, its dimension, and the array and start of its map."""
    v = f.edges[e, end]
    data = f.tail_data if end == 0 else f.head_data
    return v, f.vertex_dims[v], data, f.tail_offsets[e] if end == 0 else f.head_offsets[e]


@subkernel
def cluster_unit(a, f, c):
    """Return the reciprocal of the power of two above the largest map entry in a's operator."""
    largest = 0.0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[k]
        if f.edges[e, 0] != f.edges[e, 1]:
            largest = largest_entry(f.tail_data, f.tail_offsets[e], f.tail_offsets[e + 1], largest)
            largest = largest_entry(f.head_data, f.head_offsets[e], f.head_offsets[e + 1], largest)
            continue
        tail, head = f.tail_offsets[e], f.head_offsets[e]
        for i in range(f.tail_offsets[e + 1] - tail):  # the operator contains only this difference
            size = float(abs(f.tail_data[tail + i] - f.head_data[head + i]))
            if size > largest:
                largest = size
    for k in range(c.half_ptr[a], c.half_ptr[a + 1]):
        e = c.half_edges[k] >> 1
        _, d, data, begin = map_at(f, e, c.half_edges[k] & 1)
        largest = largest_entry(data, begin, begin + f.edge_dims[e] * d, largest)
    return 1 / power_of_two(largest)


@subkernel
def scaled_map(data, begin, count, unit, out, at):
    """Write unit times the ``count`` entries of a map to ``out``, starting at index ``at``."""
    for i in range(count):
        out[(at + i) & NOT_NEGATIVE] = data[(begin + i) & NOT_NEGATIVE] * unit


@subkernel
def assemble(a, f, c, unit, maps, out):
    """Write the lower triangle of unit^2 times cluster a's local operator, N_a x N_a row-major.

    Entries above the diagonal are undefined. Maps are scaled before they are squared, so that
    squares neither over- nor underflow; ``maps`` is workspace for both maps of an edge.
    """
    start = np.int64(0)  # int64, since callees would be compiled again for a literal
    n = c.dims[a]
    for i in range(n * n):
        out[i] = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[k]
        u, v, rows = f.edges[e, 0], f.edges[e, 1], f.edge_dims[e]
        du, at_u, tail = f.vertex_dims[u], c.local_offsets[u], f.tail_offsets[e]
        dv, at_v, head = f.vertex_dims[v], c.local_offsets[v], f.head_offsets[e]
        h, n_blocks = rows * du, 3
        if u == v:
            n_blocks = 1
            for i in range(h):
                maps[i] = (f.tail_data[tail + i] - f.head_data[head + i]) * unit
        else:
            scaled_map(f.tail_data, tail, h, unit, maps, start)
            scaled_map(f.head_data, head, rows * dv, unit, maps, h)
        for block in range(n_blocks):
            # the diagonal blocks of u and v, and the one between them in the lower triangle
            i, left = at_u, (start, du)
            j, right = at_u, (start, du)
            if block == 1 or (block == 2 and at_u <= at_v):
                i, left = at_v, (h, dv)
            if block == 1 or (block == 2 and at_u > at_v):
                j, right = at_v, (h, dv)
            sign = -1.0 if block == 2 else 1.0
            add_gram(out, (i * n + j, n), maps, left, maps, right, rows, sign)
    for k in range(c.half_ptr[a], c.half_ptr[a + 1]):
        e = c.half_edges[k] >> 1
        v, d, data, begin = map_at(f, e, c.half_edges[k] & 1)
        shape = start, d
        scaled_map(data, begin, f.edge_dims[e] * d, unit, maps, start)
        at = c.local_offsets[v] * (n + 1)
        add_gram(out, (at, n), maps, shape, maps, shape, f.edge_dims[e], 1.0)


@subkernel
def stack(a, f, c, rows, out):
    """Write delta_a and, below it, the maps of the half-edges: row-major, rows x N_a.

    The Gram matrix of this stack is the local operator.
    """
    n = c.dims[a]
    for i in range(rows * n):
        out[i] = 0
    row = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[k]
        for q in range(f.edge_dims[e]):
            for end in range(2):
                v, d, data, p = map_at(f, e, end)
                at = row * n + c.local_offsets[v]
                for i in range(d):
                    out[at + i] += (1 - 2 * end) * data[p + q * d + i]
            row += 1
    for k in range(c.half_ptr[a], c.half_ptr[a + 1]):
        e = c.half_edges[k] >> 1
        v, d, data, p = map_at(f, e, c.half_edges[k] & 1)
        for q in range(f.edge_dims[e]):
            at = row * n + c.local_offsets[v]
            for i in range(d):
                out[at + i] = data[p + q * d + i]
            row += 1
