"""Kernels of the assembled Laplacian: which blocks stand where, and their values.

The entries of a block row are its half-edges, sorted by column, then edge; the diagonal block has an entry of its own, ``DIAGONAL``.
Half-edge e seen from its tail is coded ``4 e``, from its head ``4 e + 1``; 2 is added where it belongs to the block of the entry before
it: parallel edges, and loops, which are seen once and follow ``DIAGONAL``. ``f`` is a ``SheafArrays``.
"""

import numpy as np

from sheafcoarsen._kernels.jit import inlined, kernel, multiply_add
from sheafcoarsen._kernels.products import NOT_NEGATIVE, put_product

DIAGONAL = -1


@kernel
def canonical_entries(edges, row_ptr, place, columns, codes):
    """Write the entries and their columns, one block each, for canonical edges: one counting sort; ``place`` begins as zeros.

    Edges are canonical if each runs from the lower to the higher vertex and all are sorted, none twice. Returns False for others.
    """
    n, m = place.size, edges.shape[0]
    last_u, last_v = -1, -1
    for e in range(m):
        u, v = edges[e, 0], edges[e, 1]
        if u >= v or u < last_u or (u == last_u and v <= last_v):
            return False
        last_u, last_v = u, v
        place[v & NOT_NEGATIVE] += 1
    e, p = 0, 0
    for u in range(n):  # lower half-edges get their room, upper ones are the next edges
        row_ptr[u] = p
        lower = place[u]
        place[u] = p
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
        p = place[v] & NOT_NEGATIVE
        columns[p] = edges[e, 0]
        codes[p] = 4 * e + 1
        place[v] = p + 1
    return True


@kernel
def sort_half_edges(edges, by_row, by_column, middle, sorted_entries):
    """Sort all half-edges 2 e + side by row, then column, then edge, in two counting sorts; both counts begin as zeros.

    by_row[i] becomes where row i ends; loops are seen once, from their tail.
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


@kernel
def group_entries(edges, row_ends, sorted_entries, row_ptr, block_ptr, columns, codes):
    """Code sorted half-edges and group them into blocks, the diagonal included in every row; returns the number of blocks."""
    p, k, begin = 0, 0, 0
    for i in range(row_ptr.size - 1):
        row_ptr[i] = p
        block_ptr[i] = k
        last = -1
        diagonal_done = False
        for h in sorted_entries[begin : row_ends[i]]:
            j = edges[h >> 1, 1 - (h & 1)]
            if j >= i and not diagonal_done:
                columns[k] = i
                codes[p] = DIAGONAL
                diagonal_done = True
                last = i
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
            columns[k] = i
            codes[p] = DIAGONAL
            k += 1
            p += 1
        begin = row_ends[i]
    row_ptr[-1] = p
    block_ptr[-1] = k
    return k


@kernel
def scalar_row_widths(block_ptr, block_col, dims, widths):
    """Number of scalar columns stored in each block row."""
    for i in range(block_ptr.size - 1):
        w = 0
        for k in range(block_ptr[i], block_ptr[i + 1]):
            w += dims[block_col[k]]
        widths[i] = w


@kernel
def scalar_pattern(lo, hi, block_ptr, block_col, dims, offsets, row_starts, indptr, indices):
    """Fill the CSR indices of vertices lo .. hi; row_starts[i] is where vertex i's scalar rows begin."""
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
        for q in range(p, start + d * width):  # the other rows are like the first
            indices[q] = indices[q - width]


# ---------------------------------------------------------------- values: stalks of dimension 1, 2 and 3 in registers

# Sums run in scalars, which the compiler can keep in registers: it must assume that `out` and the maps overlap. Entries of a
# row are added to the lower triangle s of its diagonal block by rows; `at` is where the off-diagonal block begins.


@inlined
def entry_1(a, p, b, q, rows, out, at, s):
    """Write block -A* B for maps of one column and return s with A* A added."""
    s00 = s[0]
    t = a.dtype.type(0)
    for _ in range(rows):
        x = np.conj(a[p & NOT_NEGATIVE])
        t = multiply_add(-x, b[q & NOT_NEGATIVE], t)
        s00 = multiply_add(x, a[p & NOT_NEGATIVE], s00)
        p += 1
        q += 1
    out[at] = t
    return s00, s[1], s[2], s[3], s[4], s[5]


@inlined
def entry_2(a, p, b, q, rows, out, at, stride, s):
    """Write block -A* B for maps of two columns and return s with A* A added."""
    s00, s10, s11 = s[0], s[1], s[2]
    zero = a.dtype.type(0)
    t00, t01, t10, t11 = zero, zero, zero, zero
    for _ in range(rows):
        i, j = p & NOT_NEGATIVE, q & NOT_NEGATIVE
        a0, a1 = a[i], a[i + 1]
        b0, b1 = b[j], b[j + 1]
        x0, x1 = np.conj(a0), np.conj(a1)
        t00 = multiply_add(-x0, b0, t00)
        t01 = multiply_add(-x0, b1, t01)
        t10 = multiply_add(-x1, b0, t10)
        t11 = multiply_add(-x1, b1, t11)
        s00 = multiply_add(x0, a0, s00)
        s10 = multiply_add(x1, a0, s10)
        s11 = multiply_add(x1, a1, s11)
        p += 2
        q += 2
    out[at], out[at + 1] = t00, t01
    at = (at + stride) & NOT_NEGATIVE
    out[at], out[at + 1] = t10, t11
    return s00, s10, s11, s[3], s[4], s[5]


@inlined
def entry_3(a, p, b, q, rows, out, at, stride, s):
    """Write block -A* B for maps of three columns and return s with A* A added."""
    s00, s10, s11, s20, s21, s22 = s
    zero = a.dtype.type(0)
    t00, t01, t02, t10, t11, t12, t20, t21, t22 = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for _ in range(rows):
        i, j = p & NOT_NEGATIVE, q & NOT_NEGATIVE
        a0, a1, a2 = a[i], a[i + 1], a[i + 2]
        b0, b1, b2 = b[j], b[j + 1], b[j + 2]
        x0, x1, x2 = np.conj(a0), np.conj(a1), np.conj(a2)
        t00 = multiply_add(-x0, b0, t00)
        t01 = multiply_add(-x0, b1, t01)
        t02 = multiply_add(-x0, b2, t02)
        t10 = multiply_add(-x1, b0, t10)
        t11 = multiply_add(-x1, b1, t11)
        t12 = multiply_add(-x1, b2, t12)
        t20 = multiply_add(-x2, b0, t20)
        t21 = multiply_add(-x2, b1, t21)
        t22 = multiply_add(-x2, b2, t22)
        s00 = multiply_add(x0, a0, s00)
        s10 = multiply_add(x1, a0, s10)
        s11 = multiply_add(x1, a1, s11)
        s20 = multiply_add(x2, a0, s20)
        s21 = multiply_add(x2, a1, s21)
        s22 = multiply_add(x2, a2, s22)
        p += 3
        q += 3
    out[at], out[at + 1], out[at + 2] = t00, t01, t02
    at = (at + stride) & NOT_NEGATIVE
    out[at], out[at + 1], out[at + 2] = t10, t11, t12
    at = (at + stride) & NOT_NEGATIVE
    out[at], out[at + 1], out[at + 2] = t20, t21, t22
    return s00, s10, s11, s20, s21, s22


@inlined
def entry(a, b, p, rows, out, at, stride, s, columns):
    """Write one off-diagonal block and return s with the diagonal's share added."""
    if len(columns) == 1:
        return entry_1(a, p, b, p, rows, out, at, s)
    if len(columns) == 2:
        return entry_2(a, p, b, p, rows, out, at, stride, s)
    return entry_3(a, p, b, p, rows, out, at, stride, s)


@kernel
def fill_uniform(lo, hi, tail_data, head_data, rows, block_ptr, codes, bsr, columns, square, out):
    """Write the values of L in the rows of vertices lo .. hi, where all maps are rows x d, d at most 3, and no two edges join the same ends.

    ``columns`` is any tuple of d integers: its length is known to the compiler, which makes one kernel of this for every d, and
    another for rows = d where ``square`` is not empty.
    """
    d = len(columns)
    if len(square) > 0:
        rows = d
    size = rows * d
    zero = out.dtype.type(0)
    for i in range(lo, hi):
        begin, end = block_ptr[i], block_ptr[i + 1]
        first = begin * d * d
        stride = d if bsr else (end - begin) * d
        step = d * d if bsr else d
        diagonal = first
        s = (zero, zero, zero, zero, zero, zero)
        for k in range(begin, end):
            at = (first + (k - begin) * step) & NOT_NEGATIVE
            code = np.int64(codes[k])
            if code == DIAGONAL:
                diagonal = at
            elif code & 1:
                s = entry(head_data, tail_data, (code >> 2) * size, rows, out, at, stride, s, columns)
            else:
                s = entry(tail_data, head_data, (code >> 2) * size, rows, out, at, stride, s, columns)
        at = diagonal & NOT_NEGATIVE
        out[at] = s[0]
        if d > 1:
            after = (at + stride) & NOT_NEGATIVE
            out[at + 1], out[after], out[after + 1] = np.conj(s[1]), s[1], s[2]
            if d > 2:
                out[at + 2], out[after + 2] = np.conj(s[3]), np.conj(s[4])
                at = (after + stride) & NOT_NEGATIVE
                out[at], out[at + 1], out[at + 2] = s[3], s[4], s[5]


# ---------------------------------------------------------------- values: stalks of any dimensions


@kernel
def add_loop(out, at, stride, a, p, b, q, d, rows):
    """Add (A - B)* (A - B): what a loop with maps A and B adds to the diagonal block."""
    for _ in range(rows):
        for i in range(d):
            x = np.conj(a[p + i] - b[q + i])
            for j in range(d):
                out[at + i * stride + j] += x * (a[p + j] - b[q + j])
        p += d
        q += d


@kernel
def fill(lo, hi, f, row_ptr, codes, block_ptr, block_col, row_starts, bsr, out):
    """Write the values of L in the rows of vertices lo .. hi, whose scalar rows begin at row_starts.

    With ``bsr`` blocks follow each other; otherwise their rows are interleaved, in CSR order. A block and its mirror image sum the same
    products in the same order, which makes L exactly Hermitian.
    """
    one = out.dtype.type(1).real
    for i in range(lo, hi):
        d = f.vertex_dims[i]
        first, last = row_starts[i], row_starts[i + 1]
        for z in range(first, last):
            out[z & NOT_NEGATIVE] = 0
        if d == 0:
            continue
        stride = d if bsr else (last - first) // d
        diagonal = first
        k = block_ptr[i]
        while block_col[k] != i:
            diagonal += d * f.vertex_dims[block_col[k]] if bsr else f.vertex_dims[block_col[k]]
            k += 1
        at = first
        k = block_ptr[i] - 1
        j, dj = 0, 0
        for p in range(row_ptr[i], row_ptr[i + 1]):
            code = np.int64(codes[p])
            if code == DIAGONAL or not code & 2:  # a new block
                at += d * dj if bsr else dj
                k += 1
                j = block_col[k]
                dj = f.vertex_dims[j]
                if j == i:
                    continue
            e = code >> 2
            rows, tail, head = f.edge_dims[e], f.tail_offsets[e], f.head_offsets[e]
            if j == i:
                add_loop(out, at, stride, f.tail_data, tail, f.head_data, head, d, rows)
                continue
            if code & 1:
                a, pa, b, pb = f.head_data, head, f.tail_data, tail
            else:
                a, pa, b, pb = f.tail_data, tail, f.head_data, head
            put_product(out, diagonal, stride, a, pa, 1, d, True, a, pa, d, d, rows, d, one, True)
            put_product(out, at, stride, a, pa, 1, d, True, b, pb, dj, d, rows, dj, -one, True)
