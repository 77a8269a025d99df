"""Equilibration: rows of every edge made orthonormal, columns of every vertex as well."""

import math

from sheafcoarsen._kernels.dense import (
    inverse_of_triangular,
    power_of_two,
    singular_rows,
    triangular_factor,
)
from sheafcoarsen._kernels.jit import kernel

REGULAR = 1e4
"""Condition up to which the factor of a vertex's maps is inverted as it is."""


@kernel
def normalized_edges(lo, hi, f, tail, head):
    """Divide [A | -B] of edges lo .. hi by its Frobenius norm.

    A loop gets the maps (A - B) / norm([A | -B]) and 0.
    """
    for e in range(lo, hi):
        a, a_end, b, b_end = (
            f.tail_offsets[e],
            f.tail_offsets[e + 1],
            f.head_offsets[e],
            f.head_offsets[e + 1],
        )
        largest = 0.0
        for i in range(a, a_end):
            largest = max(largest, float(abs(f.tail_data[i])))
        for i in range(b, b_end):
            largest = max(largest, float(abs(f.head_data[i])))
        scale = power_of_two(largest)
        size = 0.0
        for i in range(a, a_end):
            tail[i] = f.tail_data[i] / scale
            size += float(abs(tail[i])) ** 2
        for i in range(b, b_end):
            head[i] = f.head_data[i] / scale
            size += float(abs(head[i])) ** 2
        if size == 0:
            continue
        size = math.sqrt(size)
        for i in range(a, a_end):
            tail[i] /= size
        for i in range(b, b_end):
            head[i] /= size
        if f.edges[e, 0] == f.edges[e, 1]:
            for i in range(a_end - a):
                tail[a + i] -= head[b + i]
                head[b + i] = 0


@kernel
def vertex_bases(lo, hi, f, ptr, halves, eps, s, room, starts, W, V, ranks, sizes):
    """Bases W_v in which the maps at vertex v, stacked, are an isometry, for vertices lo .. hi; W_v W_v* is D_v^+.

    W_v is the first ranks[v] columns of the d_v x d_v matrix W[starts[v] ...]. The columns of the
    unitary V_v there span im W_v, those beyond them what all maps at v kill. sizes[v]: squared
    Frobenius norm of the maps, of a loop's before they are subtracted. Returns -1, or the first
    vertex at which LAPACK failed.
    """
    m = room.stack
    for v in range(lo, hi):
        d, at = f.vertex_dims[v], starts[v]
        filled, size = 0, 0.0
        for k in range(ptr[v], ptr[v + 1]):
            e, end = halves[k] >> 1, halves[k] & 1
            data = f.tail_data if end == 0 else f.head_data
            begin = f.tail_offsets[e] if end == 0 else f.head_offsets[e]
            if f.edges[e, 0] == f.edges[e, 1]:
                size += 1.0
            for q in range(f.edge_dims[e]):
                if (filled + 1) * d > m.size or filled == room.column.size:
                    triangular_factor(m, filled, d, room.column, room.row)
                    filled = min(filled, d)
                for i in range(d):
                    x = data[begin + q * d + i]
                    m[filled * d + i] = x
                    size += float(abs(x)) ** 2
                filled += 1
        triangular_factor(m, filled, d, room.column, room.row)
        filled = min(filled, d)
        ranks[v], sizes[v] = d, size
        for i in range(d * d):
            V[at + i] = 0
        for i in range(d):
            V[at + i * d + i] = 1
        if filled == d and inverse_of_triangular(m, d, W[at:]) < REGULAR:
            continue
        for i in range(filled * d):
            s.a[i] = m[i]
        if singular_rows(filled, d, True, s) != 0:
            return v
        for j in range(d):
            sigma = float(s.w[j]) if j < filled else 0.0
            zero = sigma <= 10 * d * eps * math.sqrt(size)
            if zero:
                ranks[v] = min(ranks[v], j)
            for i in range(d):
                V[at + i * d + j] = s.z[j * d + i]
                W[at + i * d + j] = 0 if zero else s.z[j * d + i] / sigma
    return -1


@kernel
def put_change(data, begin, rows, d, W, at, r, out, to):
    """out[to ...] = F W, rows x r, W the first r columns of a d x d matrix."""
    for q in range(rows):
        for j in range(r):
            x = out.dtype.type(0)
            for i in range(d):
                x += data[begin + q * d + i] * W[at + i * d + j]
            out[to + q * r + j] = x


@kernel
def changed_maps(lo, hi, f, starts, W, ranks, tail_starts, head_starts, tail, head):
    """Maps F_{v->e} W_v of edges lo .. hi."""
    for e in range(lo, hi):
        u, v, rows = f.edges[e, 0], f.edges[e, 1], f.edge_dims[e]
        tail_at, head_at = f.tail_offsets[e], f.head_offsets[e]
        put_change(
            f.tail_data,
            tail_at,
            rows,
            f.vertex_dims[u],
            W,
            starts[u],
            ranks[u],
            tail,
            tail_starts[e],
        )
        put_change(
            f.head_data,
            head_at,
            rows,
            f.vertex_dims[v],
            W,
            starts[v],
            ranks[v],
            head,
            head_starts[e],
        )
