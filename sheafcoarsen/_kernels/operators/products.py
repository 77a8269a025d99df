"""Products with delta and delta* delta from the maps, in one pass over the edges.

``f`` is a ``SheafArrays`` in which the tail map of a loop is the difference of its maps, and the
head map is zero. ``lanes`` is a tuple of zeros of the scalar type of the result; its length is the
number of columns computed together, at most that of x. ``blocks`` are tuples (rows, columns,
uniform). The lengths of the first two are the shape of the blocks of maps, and divide the
dimensions of all edge and all vertex stalks. ``uniform`` is not empty if each map is one block; the
compiler then knows all sizes and keeps sums in registers.
"""

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, kernel, llvm_inlined
from sheafcoarsen._kernels.simd import add_adjoint, add_block, put, read, zero


@llvm_inlined
def image(lanes, rows, columns, maps, x, h):
    """Return ``len(rows)`` rows of delta x as vectors.

    ``maps`` are (a, p, du, u), (b, q, dv, v): the arrays of tail and head maps, the index and
    length of the rows in them, and the index of the stalks in x.
    """
    (a, p, du, u), (b, q, dv, v) = maps
    sums = zero(lanes, rows)
    for i in range(0, du, len(columns)):
        sums = add_block(sums, 1.0, a, p + i, du, read(lanes, columns, x, u + i * h, h))
    for i in range(0, dv, len(columns)):
        sums = add_block(sums, -1.0, b, q + i, dv, read(lanes, columns, x, v + i * h, h))
    return sums


@llvm_inlined
def add_adjoint_product(lanes, blocks, sign, map_, y, to, h):
    """Add sign F* y to ``out`` at index u, for a map F given as (array, begin, rows, columns)."""
    (a, p, n, d), (out, u), (rows, columns, _) = map_, to, blocks
    for i in range(0, d, len(columns)):
        sums = read(lanes, columns, out, u + i * h, h)
        for k in range(0, n, len(rows)):
            others = read(lanes, rows, y, k * len(lanes), len(lanes))
            sums = add_adjoint(sums, sign, a, p + k * d + i, d, others)
        put(out, u + i * h, h, sums)


@llvm_inlined
def ends_of(e, f, blocks):
    """Return the two maps of edge e as (begin, columns, index of the stalk), and their rows."""
    rows, columns, uniform = blocks
    u, v = f.edges[e, 0], f.edges[e, 1]
    if len(uniform) > 0:
        n, d = len(rows), len(columns)
        return (e * n * d, d, u * d), (e * n * d, d, v * d), n
    tail = f.tail_offsets[e], f.vertex_dims[u], f.vertex_offsets[u]
    head = f.head_offsets[e], f.vertex_dims[v], f.vertex_offsets[v]
    return tail, head, f.edge_dims[e]


@borrowing_kernel
def apply_coboundary(lo, hi, f, lanes, blocks, x, y):
    """Write delta x, for edges lo .. hi, to y; x is (dim_c0, h), y is (dim_c1, h)."""
    (rows, columns, uniform), h, w = blocks, x.shape[1], len(lanes)
    a, b, x, y = f.tail_data, f.head_data, x.reshape(-1), y.reshape(-1)
    for e in range(lo, hi):
        (p, du, u), (q, dv, v), n = ends_of(e, f, blocks)
        at = e * n if len(uniform) > 0 else f.edge_offsets[e]
        for begin in range(0, h, w):
            c = min(begin, h - w)
            for k in range(0, n, len(rows)):
                maps = (a, p + k * du, du, u * h + c), (b, q + k * dv, dv, v * h + c)
                put(y, (at + k) * h + c, h, image(lanes, rows, columns, maps, x, h))


@kernel
def apply_laplacian(lo, hi, f, lanes, blocks, x, out):
    """Add delta* delta x to ``out`` for groups lo .. hi of columns; both arrays are (dim_c0, h).

    A group has ``len(lanes)`` columns; the last one includes the remaining columns.
    """
    rows, columns, uniform = blocks
    h, w, tallest = x.shape[1], len(lanes), len(rows)
    a, b, x, out = f.tail_data, f.head_data, x.reshape(-1), out.reshape(-1)
    end = h if hi == h // w else hi * w
    for e in range(f.edges.shape[0]):
        tallest = max(tallest, f.edge_dims[e])
    y = np.empty(tallest * w, out.dtype)
    for e in range(f.edges.shape[0]):
        (p, du, u), (q, dv, v), n = ends_of(e, f, blocks)
        for begin in range(lo * w, end, w):
            c = min(begin, h - w)
            at_u, at_v = u * h + c, v * h + c
            for k in range(0, n, len(rows)):
                maps = (a, p + k * du, du, at_u), (b, q + k * dv, dv, at_v)
                sums = image(lanes, rows, columns, maps, x, h)
                if len(uniform) == 0 or c < begin:
                    put(y, k * w, w, sums)
                    for i in range(begin - c):  # add no column of the previous vector twice
                        for j in range(len(rows)):
                            y[(k + j) * w + i] = 0
                    if len(uniform) > 0:
                        sums = read(lanes, rows, y, k * w, w)
            if len(uniform) > 0:
                total = add_adjoint(read(lanes, columns, out, at_u, h), 1.0, a, p, du, sums)
                put(out, at_u, h, total)
                total = add_adjoint(read(lanes, columns, out, at_v, h), -1.0, b, q, dv, sums)
                put(out, at_v, h, total)
            else:
                add_adjoint_product(lanes, blocks, 1.0, (a, p, n, du), y, (out, at_u), h)
                add_adjoint_product(lanes, blocks, -1.0, (b, q, n, dv), y, (out, at_v), h)


@borrowing_kernel
def apply_laplacian_column(f, stalk, x, out):
    """Add delta* delta x to ``out`` for one column.

    ``stalk`` is a tuple as long as the dimension of all vertex stalks, or empty if they differ.
    Indices are unsigned, since numba adds code for negative ones.
    """
    edges, vertex_dims, vertex_offsets, edge_dims, _, a, ps, b, qs = f
    for e in range(edges.shape[0]):
        u, v, n = edges[e, 0], edges[e, 1], edge_dims[e]
        if len(stalk) > 0:
            du, dv = np.uint64(len(stalk)), np.uint64(len(stalk))
            u, v, p, q = (
                np.uint64(u) * du,
                np.uint64(v) * dv,
                np.uint64(e * n) * du,
                np.uint64(e * n) * dv,
            )
        else:
            du, dv = np.uint64(vertex_dims[u]), np.uint64(vertex_dims[v])
            u, v = np.uint64(vertex_offsets[u]), np.uint64(vertex_offsets[v])
            p, q = np.uint64(ps[e]), np.uint64(qs[e])
        for _ in range(n):
            y = out.dtype.type(0)
            for i in range(du):
                y += a[p + i] * x[u + i]
            for i in range(dv):
                y -= b[q + i] * x[v + i]
            for i in range(du):
                out[u + i] += np.conj(a[p + i]) * y
            for i in range(dv):
                out[v + i] -= np.conj(b[q + i]) * y
            p += du
            q += dv
