"""The local operator of one cluster as a dense matrix.

Of the index ``c``, ``Clusters`` or ``PatchIndex``, it reads internal edges, half-edges (2 e + end:
what the principal block holds beyond L_a), dimensions and the places of the vertices.
"""

import numpy as np

from sheafcoarsen._kernels.dense import NOT_NEGATIVE, add_gram, power_of_two
from sheafcoarsen._kernels.jit import subkernel


@subkernel
def cluster_unit(a, f, c):
    """One over the power of two just above the largest entry that enters cluster a's operator."""
    edges, inner, half_ptr, half_edges = f.edges, c.internal_edges, c.half_ptr, c.half_edges
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    largest = 0.0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = inner[k]
        tail, head = tail_offsets[e], head_offsets[e]
        if edges[e, 0] == edges[e, 1]:  # of a loop only the difference enters
            for i in range(tail_offsets[e + 1] - tail):
                largest = max(largest, float(abs(tail_data[tail + i] - head_data[head + i])))
            continue
        for i in range(tail, tail_offsets[e + 1]):
            largest = max(largest, float(abs(tail_data[i])))
        for i in range(head, head_offsets[e + 1]):
            largest = max(largest, float(abs(head_data[i])))
    for k in range(half_ptr[a], half_ptr[a + 1]):
        e = half_edges[k] >> 1
        if half_edges[k] & 1 == 0:
            for i in range(tail_offsets[e], tail_offsets[e + 1]):
                largest = max(largest, float(abs(tail_data[i])))
        else:
            for i in range(head_offsets[e], head_offsets[e + 1]):
                largest = max(largest, float(abs(head_data[i])))
    return 1 / power_of_two(largest)


@subkernel
def largest_loop_entry(a, f, c):
    """Largest entry of the maps of cluster a's loops, of which only the difference enters.

    What is left where they cancel is rounding of that size, which is no rank.
    """
    edges, inner = f.edges, c.internal_edges
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    largest = 0.0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = inner[k]
        if edges[e, 0] == edges[e, 1]:
            for i in range(tail_offsets[e], tail_offsets[e + 1]):
                largest = max(largest, float(abs(tail_data[i])))
            for i in range(head_offsets[e], head_offsets[e + 1]):
                largest = max(largest, float(abs(head_data[i])))
    return largest


@subkernel
def scaled_map(data, begin, end, unit, out, at):
    """out[at ...] = unit times one map."""
    for i in range(begin, end):
        out[(at + i - begin) & NOT_NEGATIVE] = data[i & NOT_NEGATIVE] * unit


@subkernel
def assemble(a, f, c, unit, m, out):
    """Fill the lower triangle of unit^2 times cluster a's local operator, N_a x N_a row-major.

    What is above the diagonal means nothing. The maps are scaled before they are squared, so that
    neither over- nor underflows; ``m`` has room for the maps of an edge.
    """
    # taken out of the tuples once: they count references at every access
    edges, vertex_dims, edge_dims, local = f.edges, f.vertex_dims, f.edge_dims, c.local_offsets
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    inner, half_ptr, half_edges = c.internal_edges, c.half_ptr, c.half_edges
    start = np.int64(0)  # a literal would be a type of its own, and every callee compiled for it
    n = c.dims[a]
    for i in range(n * n):
        out[i] = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = inner[k]
        u, v, rows = edges[e, 0], edges[e, 1], edge_dims[e]
        du, dv, at, to = vertex_dims[u], vertex_dims[v], local[u], local[v]
        if u == v:
            for i in range(rows * du):
                m[i] = (tail_data[tail_offsets[e] + i] - head_data[head_offsets[e] + i]) * unit
            add_gram(out, (at * (n + 1), n), m, (start, du), m, (start, du), rows, 1.0)
            continue
        h = rows * du
        scaled_map(tail_data, tail_offsets[e], tail_offsets[e + 1], unit, m, start)
        scaled_map(head_data, head_offsets[e], head_offsets[e + 1], unit, m, h)
        add_gram(out, (at * (n + 1), n), m, (start, du), m, (start, du), rows, 1.0)
        add_gram(out, (to * (n + 1), n), m, (h, dv), m, (h, dv), rows, 1.0)
        if at > to:
            add_gram(out, (at * n + to, n), m, (start, du), m, (h, dv), rows, -1.0)
        else:
            add_gram(out, (to * n + at, n), m, (h, dv), m, (start, du), rows, -1.0)
    for k in range(half_ptr[a], half_ptr[a + 1]):
        e = half_edges[k] >> 1
        v, rows = edges[e, half_edges[k] & 1], edge_dims[e]
        d, at = vertex_dims[v], local[v]
        if half_edges[k] & 1 == 0:
            scaled_map(tail_data, tail_offsets[e], tail_offsets[e + 1], unit, m, start)
        else:
            scaled_map(head_data, head_offsets[e], head_offsets[e + 1], unit, m, start)
        add_gram(out, (at * (n + 1), n), m, (start, d), m, (start, d), rows, 1.0)


@subkernel
def stack(a, f, c, rows, out):
    """Write the matrix whose Gram matrix is cluster a's local operator, row-major, rows x N_a.

    Its rows are delta_a and then the near maps of the half-edges.
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
