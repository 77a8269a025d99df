"""Products with delta and with delta* delta straight from the maps, in one pass over the edges.

``f`` is a ``SheafArrays`` whose loops have their difference for a tail map and zero for a head map.
``lanes`` are as many zeros of the scalar type of the result as numbers are worked on at a time:
those of neighbouring columns of x, at most as many as it has. Where x is one column, the kernels
whose names end in ``column`` work on neighbouring entries of a stalk.
"""

import numpy as np

from sheafcoarsen._kernels.dense import NOT_NEGATIVE
from sheafcoarsen._kernels.intrinsics import prefetch
from sheafcoarsen._kernels.jit import inlined, kernel
from sheafcoarsen._kernels.vectors import (
    add_adjoint,
    add_column,
    add_image,
    add_multiple,
    add_products,
    add_row_of_adjoint,
    add_rows,
    add_some,
    negative,
    put_row,
    put_rows,
    read_row,
    read_rows,
    read_some,
    sum_of,
    without,
    zero_row,
    zero_rows,
)

AHEAD = 512
"""Entries of maps that are asked for before they are read: pages are crossed without waiting."""

TWO = (0, 0)
"""Rows of a map that are worked on together, so that x is read and written half as often."""


@kernel
def apply_uniform_coboundary(lo, hi, f, shape, lanes, x, y):
    """Do what ``apply_coboundary`` does where all maps are of one shape.

    That is given as (rows, columns, square): a number, zeros as many as there are columns, and a
    tuple that is empty where there may be more or fewer rows than columns.
    """
    edges, _, _, _, _, a, _, b, _ = f
    rows, columns, square = shape
    h, w, d = x.shape[1], len(lanes), len(columns)
    if len(square) > 0:
        rows = d
    x, y = x.reshape(-1), y.reshape(-1)
    for e in range(lo, hi):
        u, v = edges[e, 0] * d * h, edges[e, 1] * d * h
        for begin in range(0, h, w):
            c = min(begin, h - w)
            xu = read_rows(lanes, columns, x, u + c, h)
            xv = read_rows(lanes, columns, x, v + c, h)
            for row in range(e * rows, e * rows + rows):
                prefetch(a, row * d + AHEAD)
                prefetch(b, row * d + AHEAD)
                total = add_image(zero_row(lanes), 1.0, a, row * d, xu)
                put_row(y, row * h + c, add_image(total, -1.0, b, row * d, xv))


@kernel
def apply_uniform_laplacian(lo, hi, f, shape, lanes, x, out):
    """Do what ``apply_laplacian`` does where all maps are of one shape; sums stay in registers."""
    edges, _, _, _, _, a, _, b, _ = f
    rows, columns, square = shape
    h, w, d = x.shape[1], len(lanes), len(columns)
    if len(square) > 0:
        rows = d
    x, out = x.reshape(-1), out.reshape(-1)
    end = h if hi == h // w else hi * w
    for e in range(edges.shape[0]):
        u, v = edges[e, 0] * d * h, edges[e, 1] * d * h
        for begin in range(lo * w, end, w):
            c, p = min(begin, h - w), e * rows * d
            xu = read_rows(lanes, columns, x, u + c, h)
            xv = read_rows(lanes, columns, x, v + c, h)
            su, sv = zero_rows(lanes, columns), zero_rows(lanes, columns)
            for _ in range(rows):
                prefetch(a, p + AHEAD)
                prefetch(b, p + AHEAD)
                y = add_image(zero_row(lanes), 1.0, a, p, xu)
                (y,) = without((add_image(y, -1.0, b, p, xv),), begin - c, 1)
                su = add_adjoint(su, 1.0, a, p, y)
                sv = add_adjoint(sv, -1.0, b, p, y)
                p += d
            put_rows(out, u + c, h, add_rows(su, 1.0, out, u + c, h))
            put_rows(out, v + c, h, add_rows(sv, 1.0, out, v + c, h))


@inlined
def two_rows(lanes, maps, left, x, h):
    """Return the next two rows of delta x as vectors, or the last one twice.

    ``maps`` are (a, p, du, u), (b, q, dv, v): the arrays of tail and head maps, where their rows
    begin and how many entries these have, and where the stalk does in x.
    """
    (a, p, du, u), (b, q, dv, v) = maps
    y = zero_rows(lanes, TWO)
    prefetch(a, p + AHEAD)
    prefetch(b, q + AHEAD)
    for i in range(du):
        y = add_column(y, 1.0, a, p + i, du, left, read_row(lanes, x, u + i * h))
    for i in range(dv):
        y = add_column(y, -1.0, b, q + i, dv, left, read_row(lanes, x, v + i * h))
    return y


@kernel
def apply_coboundary(lo, hi, f, lanes, x, y):
    """Y = delta x for edges lo .. hi; x is (dim_c0, h), y is (dim_c1, h)."""
    edges, vertex_dims, vertex_offsets, edge_dims, edge_offsets, a, ps, b, qs = f
    h, w = x.shape[1], len(lanes)
    x, y = x.reshape(-1), y.reshape(-1)
    for e in range(lo, hi):
        u, v = edges[e, 0], edges[e, 1]
        du, dv, p, q = vertex_dims[u], vertex_dims[v], ps[e], qs[e]
        u, v = vertex_offsets[u] * h, vertex_offsets[v] * h
        for begin in range(0, h, w):
            c = min(begin, h - w)
            for k in range(0, edge_dims[e], 2):
                left, at = edge_dims[e] - k, (edge_offsets[e] + k) * h + c
                maps = (a, p + k * du, du, u + c), (b, q + k * dv, dv, v + c)
                rows = two_rows(lanes, maps, left, x, h)
                put_row(y, at, rows[0])
                if left > 1:
                    put_row(y, at + h, rows[1])


@kernel
def apply_laplacian(lo, hi, f, lanes, x, out):
    """Out += delta* delta x, both (dim_c0, h), in whole vectors of columns lo .. hi.

    With the last of them come the columns left over.
    """
    edges, vertex_dims, vertex_offsets, edge_dims, _, a, ps, b, qs = f
    h, w = x.shape[1], len(lanes)
    x, out = x.reshape(-1), out.reshape(-1)
    end = h if hi == h // w else hi * w
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        du, dv, p, q = vertex_dims[u], vertex_dims[v], ps[e], qs[e]
        u, v = vertex_offsets[u] * h, vertex_offsets[v] * h
        for begin in range(lo * w, end, w):
            c = min(begin, h - w)
            for k in range(0, edge_dims[e], 2):
                left, at, bt = edge_dims[e] - k, p + k * du, q + k * dv
                maps = (a, at, du, u + c), (b, bt, dv, v + c)
                y = without(two_rows(lanes, maps, left, x, h), begin - c, left)
                for i in range(du):
                    add_row_of_adjoint(out, u + c + i * h, a, at + i, du, left, y)
                y = negative(y[0]), negative(y[1])
                for i in range(dv):
                    add_row_of_adjoint(out, v + c + i * h, b, bt + i, dv, left, y)


# Below, w is the number of lanes once more, and ``one`` is 1, as numbers that the compiler does not
# know: it would prepare loops that run once or twice for eight rounds at a time, which takes longer
# than they do.


@inlined
def entry_of_image(lanes, w, maps, x):
    """Return an entry of delta x; ``maps`` are those of ``two_rows``."""
    (a, p, du, u), (b, q, dv, v) = maps
    total, i = zero_row(lanes), 0
    while i < du:
        entries = read_some(lanes, x, u + i, du - i)
        total = add_products(total, read_some(lanes, a, p + i, du - i), entries)
        i += w
    i = 0
    while i < dv:
        entries = negative(read_some(lanes, x, v + i, dv - i))
        total = add_products(total, read_some(lanes, b, q + i, dv - i), entries)
        i += w
    return sum_of(total)


@inlined
def add_adjoint_column(lanes, w, sign, map_, y, out, u):
    """Add sign times the adjoint of a map, that at a[p] with d columns, times y to out[u ...]."""
    (a, p, d), i = map_, 0
    while i < d:
        total = zero_row(lanes)
        for k in range(len(y)):
            total = add_multiple(total, read_some(lanes, a, p + k * d + i, d - i), sign * y[k])
        add_some(out, u + i, d - i, total)
        i += w


@kernel
def apply_coboundary_column(lo, hi, f, lanes, w, x, y):
    """Y = delta x for edges lo .. hi and one column."""
    edges, vertex_dims, vertex_offsets, edge_dims, edge_offsets, a, ps, b, qs = f
    one = w // len(lanes)
    for e in range(lo, hi):
        u, v = edges[e, 0], edges[e, 1]
        du, dv, p, q = vertex_dims[u], vertex_dims[v], ps[e], qs[e]
        u, v, row = vertex_offsets[u], vertex_offsets[v], edge_offsets[e]
        end, narrow = row + edge_dims[e], max(du, dv) <= w
        xu, xv = read_some(lanes, x, u, du), negative(read_some(lanes, x, v, dv))
        while row < end:
            prefetch(a, p + AHEAD)
            prefetch(b, q + AHEAD)
            if narrow:
                total = add_products(zero_row(lanes), read_some(lanes, a, p, du), xu)
                y[row & NOT_NEGATIVE] = sum_of(add_products(total, read_some(lanes, b, q, dv), xv))
            else:
                y[row & NOT_NEGATIVE] = entry_of_image(lanes, w, ((a, p, du, u), (b, q, dv, v)), x)
            p += du
            q += dv
            row += one


@kernel
def apply_laplacian_column(f, lanes, w, x, out):
    """Out += delta* delta x for one column."""
    edges, vertex_dims, vertex_offsets, edge_dims, _, a, ps, b, qs = f
    one, most = w // len(lanes), 0
    for e in range(edges.shape[0]):
        most = max(most, edge_dims[e])
    room = np.empty(most, out.dtype)
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        du, dv, p, q = vertex_dims[u], vertex_dims[v], ps[e], qs[e]
        u, v, rows, k = vertex_offsets[u], vertex_offsets[v], edge_dims[e], 0
        if max(du, dv) <= w:  # sums stay in registers
            xu, xv = read_some(lanes, x, u, du), negative(read_some(lanes, x, v, dv))
            su, sv = zero_row(lanes), zero_row(lanes)
            while k < rows:
                prefetch(a, p + AHEAD)
                prefetch(b, q + AHEAD)
                A, B = read_some(lanes, a, p, du), read_some(lanes, b, q, dv)
                y = sum_of(add_products(add_products(zero_row(lanes), A, xu), B, xv))
                su, sv = add_multiple(su, A, y), add_multiple(sv, B, -y)
                p += du
                q += dv
                k += one
            add_some(out, u, du, su)
            add_some(out, v, dv, sv)
            continue
        while k < rows:
            maps = (a, p + k * du, du, u), (b, q + k * dv, dv, v)
            room[k] = entry_of_image(lanes, w, maps, x)
            k += one
        add_adjoint_column(lanes, w, 1.0, (a, p, du), room[:rows], out, u)
        add_adjoint_column(lanes, w, -1.0, (b, q, dv), room[:rows], out, v)
