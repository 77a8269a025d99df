"""Assembly of the Laplacian: its sparsity pattern, and its values block row by block row.

The codes of a block row are its half-edges, sorted by column, then edge, and ``DIAGONAL`` for the
diagonal block. The half-edge of e at its tail has the code ``4 e``, at its head ``4 e + 1``. 2 is
added if it belongs to the block of the previous code: for parallel edges, and for loops, which
occur once and follow ``DIAGONAL``. ``f`` is a ``SheafArrays``, ``blocks`` a ``BlockPattern``.
"""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import NOT_NEGATIVE, add_gram
from sheafcoarsen._kernels.jit import borrowing_kernel, llvm_inlined
from sheafcoarsen._kernels.simd import EXACT, ONE, add_adjoint, put, read, zero

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
    """Write the codes and columns of all blocks for canonical edges, by one counting sort.

    Edges are canonical if u < v for each, and if they are sorted and distinct. Returns whether they
    are. ``position`` is workspace, zeros on entry.
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
        for q in range(p, start + d * width):  # the other rows of the vertex repeat the first
            indices[q] = indices[q - width]


@llvm_inlined
def put_uniform_block(lanes, a, b, p, rows, out, position, diagonal):
    """Write the block -A* B; return ``diagonal``, held in registers, plus A* A.

    Both maps begin at index p. ``position`` is the index of the block and the distance of its rows.
    """
    block = zero(lanes, lanes)
    for _ in range(rows):
        row_a, row_b = read(lanes, ONE, a, p, 0), read(lanes, ONE, b, p, 0)
        block = add_adjoint(block, -1.0, a, p, 0, row_b, EXACT)
        diagonal = add_adjoint(diagonal, 1.0, a, p, 0, row_a, EXACT)
        p += len(lanes)
    put(out, position[0], position[1], block)
    return diagonal


@borrowing_kernel
def fill_uniform(lo, hi, maps, blocks, bsr, lanes, square, out):
    """Write the block rows of L at vertices lo .. hi if all maps are rows x d, with d at most 3.

    The graph has no loops and no parallel edges. ``lanes`` is a tuple of d zeros of the type of L:
    the compiler knows its length, and compiles one kernel for each d. If ``square`` is not empty,
    rows = d.
    """
    tail_data, head_data, rows = maps
    _, codes, block_ptr, _ = blocks
    d = len(lanes)
    if len(square) > 0:
        rows = d
    size = rows * d
    for i in range(lo, hi):
        begin, end = block_ptr[i], block_ptr[i + 1]
        first = begin * d * d
        stride = d if bsr else (end - begin) * d
        step = d * d if bsr else d
        at_diagonal = first
        diagonal = zero(lanes, lanes)
        for k in range(begin, end):
            position = first + (k - begin) * step, stride
            code = np.int64(codes[k])
            p = (code >> 2) * size
            if code == DIAGONAL:
                at_diagonal = position[0]
            elif code & 1:
                diagonal = put_uniform_block(
                    lanes, head_data, tail_data, p, rows, out, position, diagonal
                )
            else:
                diagonal = put_uniform_block(
                    lanes, tail_data, head_data, p, rows, out, position, diagonal
                )
        put(out, at_diagonal, stride, diagonal)


@borrowing_kernel
def fill(lo, hi, f, blocks, row_starts, bsr, out):
    """Write the rows of L for vertices lo .. hi; the entries of vertex i start at row_starts[i].

    With ``bsr``, entries are in block order, otherwise in CSR order. A block and its transposed
    block sum the same products in the same order, which makes L exactly Hermitian.
    """
    row_ptr, codes, block_ptr, block_col = blocks
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
            if code == DIAGONAL or not code & 2:  # the first code of a block
                at += d * dj if bsr else dj
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
