"""Products with delta and with delta* delta straight from the maps, in one pass over the edges.

``f`` is a ``SheafArrays``. What the compiler should know comes as tuples of zeros: ``lanes``, as
many as columns of x are worked on at a time, of the scalar type of the result; ``columns``, as many
as all maps have, none where they differ; ``square``, one where all maps have as many rows as
columns, else none.
"""

import numpy as np

from sheafcoarsen._kernels.intrinsics import add_lanes, lanes_plus, put_lanes
from sheafcoarsen._kernels.jit import inlined, kernel


@kernel
def apply_coboundary(lo, hi, f, part, lanes, columns, x, y):
    """Y = delta x for edges lo .. hi; x is (dim_c0, h), y is (dim_c1, h).

    Only in the columns from part[0] to part[1], whose number the lanes must divide.
    """
    edges, vertex_dims, vertex_offsets, edge_dims, edge_offsets, a, ps, b, qs = f
    h, d = x.shape[1], len(columns)
    x, y = x.reshape(-1), y.reshape(-1)
    for e in range(lo, hi):
        u, v = edges[e, 0], edges[e, 1]
        loop = u == v
        rows, row = edge_dims[e], edge_offsets[e]
        if d > 0:
            du, dv, p, q = d, d, row * d, row * d
            u, v = u * d * h, v * d * h
        else:
            du, dv, p, q = vertex_dims[u], vertex_dims[v], ps[e], qs[e]
            u, v = vertex_offsets[u] * h, vertex_offsets[v] * h
        for c in range(part[0], part[1], len(lanes)):
            for k in range(rows):
                at, bt = p + k * du, q + k * dv
                total = lanes
                for i in range(du):
                    t = a[at + i] - b[bt + i] if loop else a[at + i]
                    total = lanes_plus(total, t, x, u + i * h + c)
                if not loop:
                    for i in range(dv):
                        total = lanes_plus(total, -b[bt + i], x, v + i * h + c)
                put_lanes(y, (row + k) * h + c, total)


@kernel
def apply_laplacian(lo, hi, f, lanes, columns, x, out):
    """Out += delta* delta x in the columns lo .. hi of x and out, (dim_c0, h) both.

    The lanes must divide their number.
    """
    edges, vertex_dims, vertex_offsets, edge_dims, edge_offsets, a, ps, b, qs = f
    h, d = x.shape[1], len(columns)
    x, out = x.reshape(-1), out.reshape(-1)
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        loop = u == v
        rows, row = edge_dims[e], edge_offsets[e]
        if d > 0:
            du, dv, p, q = d, d, row * d, row * d
            u, v = u * d * h, v * d * h
        else:
            du, dv, p, q = vertex_dims[u], vertex_dims[v], ps[e], qs[e]
            u, v = vertex_offsets[u] * h, vertex_offsets[v] * h
        for c in range(lo, hi, len(lanes)):
            for k in range(rows):
                at, bt = p + k * du, q + k * dv
                y = lanes
                for i in range(du):
                    t = a[at + i] - b[bt + i] if loop else a[at + i]
                    y = lanes_plus(y, t, x, u + i * h + c)
                if not loop:
                    for i in range(dv):
                        y = lanes_plus(y, -b[bt + i], x, v + i * h + c)
                for i in range(du):
                    t = a[at + i] - b[bt + i] if loop else a[at + i]
                    add_lanes(out, u + i * h + c, np.conj(t), y)
                if not loop:
                    for i in range(dv):
                        add_lanes(out, v + i * h + c, -np.conj(b[bt + i]), y)


@inlined
def column_1(a, b, p, rows, x, u, v, out):
    """Add the share of one edge whose maps have one column; sums stay in registers."""
    xu, xv = x[u], x[v]
    su, sv = out.dtype.type(0), out.dtype.type(0)
    for _ in range(rows):
        y = a[p] * xu - b[p] * xv
        su += np.conj(a[p]) * y
        sv += np.conj(b[p]) * y
        p += 1
    out[u] += su
    out[v] -= sv


@inlined
def column_2(a, b, p, rows, x, u, v, out):
    """Add the share of one edge whose maps have two columns."""
    zero = out.dtype.type(0)
    xu0, xu1, xv0, xv1 = x[u], x[u + 1], x[v], x[v + 1]
    su0, su1, sv0, sv1 = zero, zero, zero, zero
    for _ in range(rows):
        a0, a1, b0, b1 = a[p], a[p + 1], b[p], b[p + 1]
        y = a0 * xu0 + a1 * xu1 - b0 * xv0 - b1 * xv1
        su0 += np.conj(a0) * y
        su1 += np.conj(a1) * y
        sv0 += np.conj(b0) * y
        sv1 += np.conj(b1) * y
        p += 2
    out[u] += su0
    out[u + 1] += su1
    out[v] -= sv0
    out[v + 1] -= sv1


@inlined
def column_3(a, b, p, rows, x, u, v, out):
    """Add the share of one edge whose maps have three columns."""
    zero = out.dtype.type(0)
    xu0, xu1, xu2 = x[u], x[u + 1], x[u + 2]
    xv0, xv1, xv2 = x[v], x[v + 1], x[v + 2]
    su0, su1, su2, sv0, sv1, sv2 = zero, zero, zero, zero, zero, zero
    for _ in range(rows):
        a0, a1, a2 = a[p], a[p + 1], a[p + 2]
        b0, b1, b2 = b[p], b[p + 1], b[p + 2]
        y = (a0 * xu0 + a1 * xu1 + a2 * xu2) - (b0 * xv0 + b1 * xv1 + b2 * xv2)
        su0 += np.conj(a0) * y
        su1 += np.conj(a1) * y
        su2 += np.conj(a2) * y
        sv0 += np.conj(b0) * y
        sv1 += np.conj(b1) * y
        sv2 += np.conj(b2) * y
        p += 3
    out[u] += su0
    out[u + 1] += su1
    out[u + 2] += su2
    out[v] -= sv0
    out[v + 1] -= sv1
    out[v + 2] -= sv2


@kernel
def apply_laplacian_column(f, rows, columns, square, x, out):
    """Out += delta* delta x for one column, vectors of shape (dim_c0,), and maps rows x d, d <= 3.

    No edge may be a loop.
    """
    edges, _, _, _, _, a, _, b, _ = f
    d = len(columns)
    if len(square) > 0:
        rows = d
    for e in range(edges.shape[0]):
        u, v, p = edges[e, 0] * d, edges[e, 1] * d, e * rows * d
        if d == 1:
            column_1(a, b, p, rows, x, u, v, out)
        elif d == 2:
            column_2(a, b, p, rows, x, u, v, out)
        else:
            column_3(a, b, p, rows, x, u, v, out)
