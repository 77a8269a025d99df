"""Products with delta and with delta* delta straight from the maps, in one pass over the edges.

``f`` is a ``SheafArrays`` whose loops have their difference for a tail map and zero for a head map.
``lanes`` holds zeros of the scalar type of the result: for several columns as many as columns are
worked on at a time, at most as many as x has; for one column at least as many as the longest stalk
has entries. ``blocks`` are (rows, columns, uniform), tuples: the first two are as long as the
blocks of maps that are worked on at a time, which divide the dimensions of all edge and vertex
stalks. ``uniform`` is not empty where each map is one block, or each stalk fills the lanes; the
compiler then knows all sizes, and sums stay in registers.
"""

import numpy as np

from sheafcoarsen._kernels.jit import inlined, kernel
from sheafcoarsen._kernels.simd import (
    ONE,
    add_adjoint,
    add_block,
    add_multiple,
    dot,
    put,
    read,
    zero,
)


@inlined
def image(lanes, rows, columns, maps, x, h):
    """Return the next rows of delta x as vectors.

    ``maps`` are (a, p, du, u), (b, q, dv, v): the arrays of tail and head maps, where the rows
    begin, how many entries each has, and where the stalks begin in x.
    """
    (a, p, du, u), (b, q, dv, v) = maps
    sums = zero(lanes, rows)
    for i in range(0, du, len(columns)):
        sums = add_block(sums, 1.0, a, p + i, du, read(lanes, columns, x, u + i * h, h))
    for i in range(0, dv, len(columns)):
        sums = add_block(sums, -1.0, b, q + i, dv, read(lanes, columns, x, v + i * h, h))
    return sums


@inlined
def add_adjoint_image(lanes, blocks, sign, map_, y, to, h):
    """Add sign times the adjoint of a map, (array, begin, rows, columns), times y to out[u ...]."""
    (a, p, n, d), (out, u), (rows, columns, _) = map_, to, blocks
    for i in range(0, d, len(columns)):
        sums = read(lanes, columns, out, u + i * h, h)
        for k in range(0, n, len(rows)):
            others = read(lanes, rows, y, k * len(lanes), len(lanes))
            sums = add_adjoint(sums, sign, a, p + k * d + i, d, others)
        put(out, u + i * h, h, sums)


@kernel
def apply_coboundary(lo, hi, f, lanes, blocks, x, y):
    """Y = delta x for edges lo .. hi; x is (dim_c0, h), y is (dim_c1, h)."""
    edges, vertex_dims, vertex_offsets, edge_dims, edge_offsets, a, ps, b, qs = f
    (rows, columns, uniform), h, w = blocks, x.shape[1], len(lanes)
    x, y = x.reshape(-1), y.reshape(-1)
    for e in range(lo, hi):
        u, v = edges[e, 0], edges[e, 1]
        if len(uniform) > 0:
            n, du, dv = len(rows), len(columns), len(columns)
            u, v, p, q, at = u * du, v * du, e * n * du, e * n * du, e * n
        else:
            n, du, dv, p, q, at = (
                edge_dims[e],
                vertex_dims[u],
                vertex_dims[v],
                ps[e],
                qs[e],
                edge_offsets[e],
            )
            u, v = vertex_offsets[u], vertex_offsets[v]
        for begin in range(0, h, w):
            c = min(begin, h - w)
            for k in range(0, n, len(rows)):
                maps = (a, p + k * du, du, u * h + c), (b, q + k * dv, dv, v * h + c)
                put(y, (at + k) * h + c, h, image(lanes, rows, columns, maps, x, h))


@kernel
def apply_laplacian(lo, hi, f, lanes, blocks, x, out):
    """Out += delta* delta x, both (dim_c0, h), in whole vectors of columns lo .. hi.

    With the last of them come the columns left over.
    """
    edges, vertex_dims, vertex_offsets, edge_dims, _, a, ps, b, qs = f
    rows, columns, uniform = blocks
    h, w, most = x.shape[1], len(lanes), len(rows)
    x, out = x.reshape(-1), out.reshape(-1)
    end = h if hi == h // w else hi * w
    for e in range(edges.shape[0]):
        most = max(most, edge_dims[e])
    y = np.empty(most * w, out.dtype)
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        if len(uniform) > 0:
            n, du, dv = len(rows), len(columns), len(columns)
            u, v, p, q = u * du, v * du, e * n * du, e * n * du
        else:
            n, du, dv, p, q = edge_dims[e], vertex_dims[u], vertex_dims[v], ps[e], qs[e]
            u, v = vertex_offsets[u], vertex_offsets[v]
        for begin in range(lo * w, end, w):
            c = min(begin, h - w)
            to, at = u * h + c, v * h + c
            for k in range(0, n, len(rows)):
                maps = (a, p + k * du, du, to), (b, q + k * dv, dv, at)
                sums = image(lanes, rows, columns, maps, x, h)
                if len(uniform) == 0 or c < begin:
                    put(y, k * w, w, sums)
                    for i in range(begin - c):  # columns that were done before
                        for j in range(len(rows)):
                            y[(k + j) * w + i] = 0
                    if len(uniform) > 0:
                        sums = read(lanes, rows, y, k * w, w)
            if len(uniform) > 0:
                put(out, to, h, add_adjoint(read(lanes, columns, out, to, h), 1.0, a, p, du, sums))
                put(out, at, h, add_adjoint(read(lanes, columns, out, at, h), -1.0, b, q, dv, sums))
            else:
                add_adjoint_image(lanes, blocks, 1.0, (a, p, n, du), y, (out, to), h)
                add_adjoint_image(lanes, blocks, -1.0, (b, q, n, dv), y, (out, at), h)


@kernel
def apply_laplacian_column(f, lanes, uniform, x, out):
    """Out += delta* delta x for one column; of complex ones the conjugates."""
    edges, vertex_dims, vertex_offsets, edge_dims, _, a, ps, b, qs = f
    for e in range(edges.shape[0]):
        u, v, n = edges[e, 0], edges[e, 1], edge_dims[e]
        if len(uniform) > 0:
            du, dv = len(lanes), len(lanes)
            u, v, p, q = u * du, v * du, e * n * du, e * n * du
        else:
            du, dv, p, q = vertex_dims[u], vertex_dims[v], ps[e], qs[e]
            u, v = vertex_offsets[u], vertex_offsets[v]
        xu, xv = read(lanes, ONE, x, u, 0, du), read(lanes, ONE, x, v, 0, dv)
        xv = add_multiple(zero(lanes, ONE), -1.0, xv)
        su, sv = zero(lanes, ONE), zero(lanes, ONE)
        for _ in range(n):
            A, B = read(lanes, ONE, a, p, 0, du), read(lanes, ONE, b, q, 0, dv)
            y = np.conj(dot((A[0], B[0]), (xu[0], xv[0])))
            su, sv = add_multiple(su, y, A), add_multiple(sv, -y, B)
            p += du
            q += dv
        put(out, u, 0, add_multiple(read(lanes, ONE, out, u, 0, du), 1.0, su), du)
        put(out, v, 0, add_multiple(read(lanes, ONE, out, v, 0, dv), 1.0, sv), dv)
