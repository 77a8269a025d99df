"""Values of the assembled Laplacian, block row by block row.

The codes of a block row are its half-edges, sorted by column, then edge, and ``DIAGONAL`` for the
diagonal block. The half-edge of e at its tail has the code ``4 e``, at its head ``4 e + 1``. 2 is
added if it belongs to the block of the previous code: for parallel edges, and for loops, which
occur once and follow ``DIAGONAL``. ``f`` is a ``SheafArrays``, ``blocks`` a ``BlockPattern``.
"""

import numpy as np

from sheafcoarsen._kernels.dense import NOT_NEGATIVE, add_gram
from sheafcoarsen._kernels.jit import borrowing_kernel, llvm_inlined
from sheafcoarsen._kernels.operators.pattern import DIAGONAL
from sheafcoarsen._kernels.simd import EXACT, ONE, add_adjoint, put, read, zero


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
    """Write the rows of L of vertices lo .. hi if all maps are rows x d, with d at most 3.

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
