"""The local operator of one cluster as a dense matrix.

``c`` is a ``Clusters`` or ``PatchIndex``. Its half-edges, 2 e + end, are the terms of the principal
block that L_a lacks.
"""

import numpy as np

from sheafcoarsen._kernels.dense import NOT_NEGATIVE, add_gram, power_of_two
from sheafcoarsen._kernels.jit import subkernel


@subkernel
def largest_entry(data, begin, end):
    """Return the largest absolute value of data[begin:end]."""
    largest = 0.0
    for i in range(begin, end):
        largest = max(largest, float(abs(data[i])))
    return largest


@subkernel
def cluster_unit(a, f, c):
    """Return one over the power of two just above the largest map entry of cluster a's operator."""
    edges, inner, half_ptr, half_edges = f.edges, c.internal_edges, c.half_ptr, c.half_edges
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    largest = 0.0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = inner[k]
        tail, head = tail_offsets[e], head_offsets[e]
        if edges[e, 0] == edges[e, 1]:  # the operator contains only the difference of a loop's maps
            for i in range(tail_offsets[e + 1] - tail):
                largest = max(largest, float(abs(tail_data[tail + i] - head_data[head + i])))
            continue
        largest = max(largest, largest_entry(tail_data, tail, tail_offsets[e + 1]))
        largest = max(largest, largest_entry(head_data, head, head_offsets[e + 1]))
    for k in range(half_ptr[a], half_ptr[a + 1]):
        e = half_edges[k] >> 1
        if half_edges[k] & 1 == 0:
            entry = largest_entry(tail_data, tail_offsets[e], tail_offsets[e + 1])
        else:
            entry = largest_entry(head_data, head_offsets[e], head_offsets[e + 1])
        largest = max(largest, entry)
    return 1 / power_of_two(largest)


@subkernel
def largest_loop_entry(a, f, c):
    """Return the largest entry of the maps of cluster a's loops.

    Only the difference of the two maps enters the operator. If they cancel, the difference is
    rounding relative to this entry, and must not count as rank.
    """
    edges, inner = f.edges, c.internal_edges
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    largest = 0.0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = inner[k]
        if edges[e, 0] == edges[e, 1]:
            largest = max(largest, largest_entry(tail_data, tail_offsets[e], tail_offsets[e + 1]))
            largest = max(largest, largest_entry(head_data, head_offsets[e], head_offsets[e + 1]))
    return largest


@subkernel
def scaled_map(data, begin, end, unit, out, at):
    """Write unit times data[begin:end] to ``out`` from index ``at``."""
    for i in range(begin, end):
        out[(at + i - begin) & NOT_NEGATIVE] = data[i & NOT_NEGATIVE] * unit


@subkernel
def assemble(a, f, c, unit, maps, out):
    """Write the lower triangle of unit^2 times cluster a's local operator, N_a x N_a row-major.

    Entries above the diagonal are undefined. Maps are scaled before they are squared, so that
    squares neither over- nor underflow; ``maps`` is workspace for both maps of an edge.
    """
    # fields are read once, because every access to one counts references
    edges, vertex_dims, edge_dims, local = f.edges, f.vertex_dims, f.edge_dims, c.local_offsets
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    inner, half_ptr, half_edges = c.internal_edges, c.half_ptr, c.half_edges
    start = np.int64(0)  # int64, since callees would be compiled again for a literal
    n = c.dims[a]
    for i in range(n * n):
        out[i] = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = inner[k]
        u, v, rows = edges[e, 0], edges[e, 1], edge_dims[e]
        du, dv, at_u, at_v = vertex_dims[u], vertex_dims[v], local[u], local[v]
        if u == v:
            for i in range(rows * du):
                maps[i] = (tail_data[tail_offsets[e] + i] - head_data[head_offsets[e] + i]) * unit
            add_gram(out, (at_u * (n + 1), n), maps, (start, du), maps, (start, du), rows, 1.0)
            continue
        h = rows * du
        scaled_map(tail_data, tail_offsets[e], tail_offsets[e + 1], unit, maps, start)
        scaled_map(head_data, head_offsets[e], head_offsets[e + 1], unit, maps, h)
        add_gram(out, (at_u * (n + 1), n), maps, (start, du), maps, (start, du), rows, 1.0)
        add_gram(out, (at_v * (n + 1), n), maps, (h, dv), maps, (h, dv), rows, 1.0)
        if at_u > at_v:
            add_gram(out, (at_u * n + at_v, n), maps, (start, du), maps, (h, dv), rows, -1.0)
        else:
            add_gram(out, (at_v * n + at_u, n), maps, (h, dv), maps, (start, du), rows, -1.0)
    for k in range(half_ptr[a], half_ptr[a + 1]):
        e = half_edges[k] >> 1
        v, rows = edges[e, half_edges[k] & 1], edge_dims[e]
        d, at_u = vertex_dims[v], local[v]
        if half_edges[k] & 1 == 0:
            scaled_map(tail_data, tail_offsets[e], tail_offsets[e + 1], unit, maps, start)
        else:
            scaled_map(head_data, head_offsets[e], head_offsets[e + 1], unit, maps, start)
        add_gram(out, (at_u * (n + 1), n), maps, (start, d), maps, (start, d), rows, 1.0)


@subkernel
def stack(a, f, c, rows, out):
    """Write delta_a and, below it, the maps of the half-edges: row-major, rows x N_a.

    The Gram matrix of this stack is the local operator.
    """
    edges, vertex_dims, edge_dims, local = f.edges, f.vertex_dims, f.edge_dims, c.local_offsets
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    inner, half_ptr, half_edges = c.internal_edges, c.half_ptr, c.half_edges
    n = c.dims[a]
    for i in range(rows * n):
        out[i] = 0
    row = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = inner[k]
        u, v = edges[e, 0], edges[e, 1]
        du, dv = vertex_dims[u], vertex_dims[v]
        for q in range(edge_dims[e]):
            at = row * n + local[u]
            for i in range(du):
                out[at + i] += tail_data[tail_offsets[e] + q * du + i]
            at = row * n + local[v]
            for i in range(dv):
                out[at + i] -= head_data[head_offsets[e] + q * dv + i]
            row += 1
    for k in range(half_ptr[a], half_ptr[a + 1]):
        e, end = half_edges[k] >> 1, half_edges[k] & 1
        v = edges[e, end]
        d = vertex_dims[v]
        for q in range(edge_dims[e]):
            at = row * n + local[v]
            for i in range(d):
                if end == 0:
                    out[at + i] = tail_data[tail_offsets[e] + q * d + i]
                else:
                    out[at + i] = head_data[head_offsets[e] + q * d + i]
            row += 1
