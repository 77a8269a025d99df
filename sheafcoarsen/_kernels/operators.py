"""Kernels of :mod:`sheafcoarsen.operators`: delta, the Laplacian, and products with them.

The codes of a block row of L are its half-edges, sorted by column, then edge, and ``DIAGONAL`` for
the diagonal block. The half-edge of e at its tail has the code ``4 e``, at its head ``4 e + 1``. 2
is added if it belongs to the block of the previous code: for parallel edges, and for loops, which
occur once and follow ``DIAGONAL``. ``f`` is a ``SheafArrays``, ``blocks`` a ``BlockPattern``.

Products are computed from the maps, in one pass over the edges. In their ``f`` the tail map of a
loop is the difference of its maps, and the head map is zero. ``lanes`` is a tuple of zeros of the
scalar type of the result; its length is the number of columns computed together, at most that of x.
``blocks`` are tuples (rows, columns, uniform). The lengths of the first two are the shape of the
blocks of maps, and divide the dimensions of all edge and all vertex stalks. ``uniform`` is not
empty if each map is one block; the compiler then knows all sizes and keeps sums in registers.
"""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import triangular_factor
from sheafcoarsen._kernels.jit import borrowing_kernel, kernel, llvm_inlined
from sheafcoarsen._kernels.simd import (
    EXACT,
    NOT_NEGATIVE,
    ONE,
    add_adjoint,
    add_block,
    add_gram,
    put,
    read,
    zero,
)

DIAGONAL = -1
"""Code of the diagonal block in a block row."""


class BlockPattern(NamedTuple):
    """Blocks of L, row by row in ascending column order, and the codes of their half-edges."""

    row_ptr: np.ndarray  # (n + 1,) int64, offsets of the codes of each row
    codes: np.ndarray  # int32 if the codes fit
    # (n + 1,) int64, offsets of the blocks of each row; row_ptr itself if each has one code
    block_ptr: np.ndarray
    columns: np.ndarray  # int32, column of each block


@borrowing_kernel
def canonical_entries(edges, row_ptr, position, columns, codes):
    """Write the codes and columns of all blocks by one counting sort; return False if impossible.

    It requires sorted, distinct edges with u < v. ``position`` is workspace, zeros on entry.
    """
    n, m = position.size, edges.shape[0]
    last_u, last_v = -1, -1
    for e in range(m):
        u, v = edges[e, 0], edges[e, 1]
        if u >= v or u < last_u or (u == last_u and v <= last_v):
            return False
        last_u, last_v = u, v
        position[v & NOT_NEGATIVE] += 1
    e, p = 0, 0
    for u in range(n):  # position[u] counts edges to lower vertices; edges to higher ones follow
        row_ptr[u] = p
        lower = position[u]
        position[u] = p
        p += lower
        columns[p & NOT_NEGATIVE] = u
        codes[p & NOT_NEGATIVE] = DIAGONAL
        p += 1
        while e < m and edges[e & NOT_NEGATIVE, 0] == u:
            columns[p & NOT_NEGATIVE] = edges[e & NOT_NEGATIVE, 1]
            codes[p & NOT_NEGATIVE] = 4 * e
            e += 1
            p += 1
    row_ptr[n] = p
    for e in range(m):
        v = edges[e, 1] & NOT_NEGATIVE
        p = position[v] & NOT_NEGATIVE
        columns[p] = edges[e, 0]
        codes[p] = 4 * e + 1
        position[v] = p + 1
    return True


@borrowing_kernel
def sort_half_edges(edges, by_row, by_column, middle, sorted_entries):
    """Sort all half-edges 2 e + side by row, then column, then edge, by two counting sorts.

    Both counts are zeros on entry; by_row[i] becomes the end of row i. A loop has one half-edge, at
    its tail. Returns the number of half-edges.
    """
    n = by_row.size - 1
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        by_row[u + 1] += 1
        by_column[v + 1] += 1
        if u != v:
            by_row[v + 1] += 1
            by_column[u + 1] += 1
    for i in range(n):
        by_row[i + 1] += by_row[i]
        by_column[i + 1] += by_column[i]
    count = by_row[n]
    for e in range(edges.shape[0]):
        u, v = edges[e, 0], edges[e, 1]
        middle[by_column[v]] = 2 * e
        by_column[v] += 1
        if u != v:
            middle[by_column[u]] = 2 * e + 1
            by_column[u] += 1
    for p in range(count):
        h = middle[p]
        row = edges[h >> 1, h & 1]
        sorted_entries[by_row[row]] = h
        by_row[row] += 1
    return count


@borrowing_kernel
def group_entries(edges, row_ends, sorted_entries, row_ptr, block_ptr, columns, codes):
    """Write the codes of sorted half-edges and group them into blocks; return the block count.

    Every row has a diagonal block.
    """
    p, k, begin, n = 0, 0, 0, row_ptr.size - 1
    for i in range(n):
        row_ptr[i], block_ptr[i], last, diagonal_done = p, k, -1, False
        for h in sorted_entries[begin : row_ends[i]]:
            j = edges[h >> 1, 1 - (h & 1)]
            if j >= i and not diagonal_done:
                columns[k], codes[p] = i, DIAGONAL
                diagonal_done, last = True, i
                k += 1
                p += 1
            codes[p] = 4 * (h >> 1) + (h & 1)
            if j == last:
                codes[p] += 2
            else:
                columns[k] = j
                k += 1
            last = j
            p += 1
        if not diagonal_done:
            columns[k], codes[p] = i, DIAGONAL
            k += 1
            p += 1
        begin = row_ends[i]
    row_ptr[n], block_ptr[n] = p, k
    return k


@borrowing_kernel
def scalar_pattern(lo, hi, f, blocks, row_starts, indptr, indices):
    """Write indptr and indices of the CSR rows of vertices lo .. hi, from row_starts[i] on."""
    block_ptr, block_col = blocks.block_ptr, blocks.columns
    dims, offsets = f.vertex_dims, f.vertex_offsets
    for i in range(lo, hi):
        d = dims[i]
        if d == 0:
            continue
        start = row_starts[i] & NOT_NEGATIVE
        p = start
        for k in range(block_ptr[i], block_ptr[i + 1]):
            j = block_col[k]
            for c in range(offsets[j], offsets[j + 1]):
                indices[p] = c
                p += 1
        width = p - start
        for a in range(d):
            indptr[offsets[i] + a] = start + a * width
        for q in range(p, start + d * width):  # all rows of the vertex have the same columns
            indices[q] = indices[q - width]


@llvm_inlined
def put_uniform_block(lanes, a, b, maps, to, diagonal):
    """Write the block -A* B; return ``diagonal``, held in registers, plus A* A.

    ``maps`` are the index and the height of both, ``to`` is the array, the index and the distance
    of rows of the block.
    """
    (p, rows), (out, at, stride) = maps, to
    block = zero(lanes, lanes)
    for _ in range(rows):
        row_a, row_b = read(lanes, ONE, a, p, 0), read(lanes, ONE, b, p, 0)
        block = add_adjoint(block, -1.0, a, p, 0, row_b, EXACT)
        diagonal = add_adjoint(diagonal, 1.0, a, p, 0, row_a, EXACT)
        p += len(lanes)
    put(out, at, stride, block)
    return diagonal


@borrowing_kernel
def fill_uniform(lo, hi, maps, blocks, bsr, lanes, square, out):
    """Write the block rows of L at vertices lo .. hi if all maps are rows x d, with d at most 3.

    The graph has no loops and no parallel edges. ``lanes`` is a tuple of d zeros of the type of L,
    whose length the compiler knows. If ``square`` is not empty, rows = d.
    """
    tail_data, head_data, rows = maps
    _, codes, block_ptr, _ = blocks
    d = len(lanes)
    if len(square) > 0:
        rows = d
    for i in range(lo, hi):
        begin, end = block_ptr[i], block_ptr[i + 1]
        at, stride = begin * d * d, d if bsr else (end - begin) * d
        at_diagonal, diagonal = at, zero(lanes, lanes)
        for k in range(begin, end):
            code = np.int64(codes[k])
            maps, to = ((code >> 2) * rows * d, rows), (out, at, stride)
            if code == DIAGONAL:
                at_diagonal = at
            elif code & 1:
                diagonal = put_uniform_block(lanes, head_data, tail_data, maps, to, diagonal)
            else:
                diagonal = put_uniform_block(lanes, tail_data, head_data, maps, to, diagonal)
            at += d * d if bsr else d
        put(out, at_diagonal, stride, diagonal)


@borrowing_kernel
def fill(lo, hi, f, blocks, row_starts, bsr, out):
    """Write the rows of L for vertices lo .. hi, in the order of BSR or CSR, from row_starts[i] on.

    A block and its transposed block sum the same products in the same order, which makes L exactly
    Hermitian.
    """
    row_ptr, codes, block_ptr, block_col = blocks
    for i in range(lo, hi):
        d = f.vertex_dims[i]
        first, last = row_starts[i], row_starts[i + 1]
        for z in range(first, last):
            out[z & NOT_NEGATIVE] = 0
        if d == 0:
            continue
        stride, step = (d, d) if bsr else ((last - first) // d, 1)
        diagonal, k = first, block_ptr[i]
        while block_col[k] != i:
            diagonal += step * f.vertex_dims[block_col[k]]
            k += 1
        at, k, j, dj = first, block_ptr[i] - 1, 0, 0
        for p in range(row_ptr[i], row_ptr[i + 1]):
            code = np.int64(codes[p])
            if code == DIAGONAL or not code & 2:  # the first code of a block
                at += step * dj
                k += 1
                j = block_col[k]
                dj = f.vertex_dims[j]
                if j == i:
                    continue
            e = code >> 2
            rows, tail, head = f.edge_dims[e], f.tail_offsets[e], f.head_offsets[e]
            if j == i:
                for _ in range(rows):  # add (A - B)* (A - B) for the maps A and B of a loop
                    for s in range(d):
                        x = np.conj(f.tail_data[tail + s] - f.head_data[head + s])
                        for t in range(d):
                            y = f.tail_data[tail + t] - f.head_data[head + t]
                            out[at + s * stride + t] += x * y
                    tail += d
                    head += d
                continue
            if code & 1:
                a, pa, b, pb = f.head_data, head, f.tail_data, tail
            else:
                a, pa, b, pb = f.tail_data, tail, f.head_data, head
            add_gram(out, (diagonal, stride), a, (pa, d), a, (pa, d), rows, 1.0)
            add_gram(out, (at, stride), a, (pa, d), b, (pb, dj), rows, -1.0)


@kernel
def stacked_factors(lo, hi, f, half_ptr, half_edges, starts, out):
    """Write triangular R_v with R_v* R_v = D_v for vertices lo .. hi, d x d row-major at starts[v].

    R_v is the factor of the QR decomposition of the maps at v (for a loop, of their difference),
    which loses fewer digits than a factor of D_v. ``half_edges`` are 2 e + end, by vertex.
    """
    tallest, widest = 0, 0
    for v in range(lo, hi):
        widest = max(widest, f.vertex_dims[v])
        for k in range(half_ptr[v], half_ptr[v + 1]):
            tallest = max(tallest, f.edge_dims[half_edges[k] >> 1])
    height = widest + max(tallest, 64)
    m = np.empty(height * widest, out.dtype)
    column, row = np.empty(height, out.dtype), np.empty(widest, out.dtype)
    for v in range(lo, hi):
        d, filled = f.vertex_dims[v], 0
        for k in range(half_ptr[v], half_ptr[v + 1]):
            e, end = half_edges[k] >> 1, half_edges[k] & 1
            loop = f.edges[e, 0] == f.edges[e, 1]
            if d == 0:
                continue
            rows = f.edge_dims[e]
            if filled + rows > d + max(rows, 64):  # of v alone: ranges do not change the bits
                triangular_factor(m, filled, d, column, row)
                filled = min(filled, d)
            tail, head, at = f.tail_offsets[e], f.head_offsets[e], filled * d
            for i in range(rows * d):
                if loop:
                    m[at + i] = f.tail_data[tail + i] - f.head_data[head + i]
                elif end == 0:
                    m[at + i] = f.tail_data[tail + i]
                else:
                    m[at + i] = f.head_data[head + i]
            filled += rows
        triangular_factor(m, filled, d, column, row)
        for i in range(d * d):
            out[starts[v] + i] = m[i] if i < filled * d else 0


@borrowing_kernel
def multiply_maps(lo, hi, f, bases, begins, out):
    """Write F_{v->e} W_v at both ends of edges lo .. hi to out[end][begins[end][e]:].

    ``bases`` are (starts, ranks, W): W_v are the first ranks[v] columns of the d_v x d_v matrix at
    W[starts[v]].
    """
    starts, ranks, W = bases
    for end in range(2):
        maps = f.tail_data if end == 0 else f.head_data
        offsets = f.tail_offsets if end == 0 else f.head_offsets
        to, data = begins[end], out[end]
        for e in range(lo, hi):
            v = f.edges[e, end]
            d, r = f.vertex_dims[v], ranks[v]
            for q in range(f.edge_dims[e]):
                at, p = offsets[e] + q * d, to[e] + q * r
                for j in range(r):
                    data[p + j] = 0
                for i in range(d):
                    x, w = maps[at + i], starts[v] + i * d
                    for j in range(r):
                        data[p + j] += x * W[w + j]


@borrowing_kernel
def coboundary_csr(f, indptr, indices, data):
    """Write the CSR indices, sorted within rows, and data of the coboundary; indptr is given."""
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        ou, ov = f.vertex_offsets[u], f.vertex_offsets[v]
        for q in range(f.edge_dims[e]):
            p = indptr[f.edge_offsets[e] + q]
            a, b = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            if u == v:
                for i in range(du):
                    indices[p + i] = ou + i
                    data[p + i] = f.tail_data[a + i] - f.head_data[b + i]
                continue
            pu, pv = (p, p + du) if u < v else (p + dv, p)
            for i in range(du):
                indices[pu + i] = ou + i
                data[pu + i] = f.tail_data[a + i]
            for i in range(dv):
                indices[pv + i] = ov + i
                data[pv + i] = -f.head_data[b + i]


@borrowing_kernel
def sum_products(starts, y, z, out):
    """Write Re sum_r conj(y[r, c]) z[r, c], r in starts[k]:starts[k + 1], to out[k, c]."""
    h = y.shape[1]
    for k in range(starts.size - 1):
        for c in range(h):
            out[k, c] = 0
        for r in range(starts[k], starts[k + 1]):
            for c in range(h):
                out[k, c] += (np.conj(y[r, c]) * z[r, c]).real


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
    (rows, columns, _), h, w, tallest = blocks, x.shape[1], len(lanes), 0
    a, b, x, out = f.tail_data, f.head_data, x.reshape(-1), out.reshape(-1)
    end = h if hi == h // w else hi * w
    for n in f.edge_dims:
        tallest = max(tallest, n)
    y = np.empty(tallest * w, out.dtype)
    for e in range(f.edges.shape[0]):
        (p, du, u), (q, dv, v), n = ends_of(e, f, blocks)
        for begin in range(lo * w, end, w):
            c = min(begin, h - w)
            at_u, at_v = u * h + c, v * h + c
            for k in range(0, n, len(rows)):
                maps = (a, p + k * du, du, at_u), (b, q + k * dv, dv, at_v)
                put(y, k * w, w, image(lanes, rows, columns, maps, x, h))
            for i in range(begin - c):  # add no column of the previous vector twice
                for k in range(n):
                    y[k * w + i] = 0
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
