"""Sparsity pattern of L: index arrays from the graph and the dimensions."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import NOT_NEGATIVE
from sheafcoarsen._kernels.jit import borrowing_kernel

DIAGONAL = -1
"""Code of the diagonal block in a block row."""


class BlockPattern(NamedTuple):
    """The blocks of L by rows, columns ascending, and the codes of their half-edges.

    The codes are defined in ``blocks``.
    """

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
    """Write the codes of sorted half-edges and group them into blocks; return their number.

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
    """Write the CSR indices for vertices lo .. hi; those of vertex i start at row_starts[i]."""
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
