"""Kernels of the assembled Laplacian: which blocks stand where, and their values.

The entries of a block row are its half-edges, sorted by column, then edge; the diagonal block has
an entry of its own, ``DIAGONAL``. Half-edge e seen from its tail is coded ``4 e``, from its head
``4 e + 1``; 2 is added where it belongs to the block of the entry before it: parallel edges, and
loops, which are seen once and follow ``DIAGONAL``. ``f`` is a ``SheafArrays``, ``blocks`` a
``BlockPattern``.
"""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import NOT_NEGATIVE, add_gram
from sheafcoarsen._kernels.jit import inlined, kernel
from sheafcoarsen._kernels.llvm_intrinsics import multiply_add
from sheafcoarsen._kernels.operators.delta import add_loop_gram
from sheafcoarsen._kernels.operators.pattern import DIAGONAL


class UniformMaps(NamedTuple):
    """The maps of all edges, one after the other, where every one has so many rows."""

    tail_data: np.ndarray
    head_data: np.ndarray
    rows: int


@inlined
def entry_1(a, b, p, rows, out, at, s):
    """Write block -A* B for maps of one column and return s with A* A added."""
    s00 = s[0]
    t = a.dtype.type(0)
    for _ in range(rows):
        x = np.conj(a[p & NOT_NEGATIVE])
        t = multiply_add(-x, b[p & NOT_NEGATIVE], t)
        s00 = multiply_add(x, a[p & NOT_NEGATIVE], s00)
        p += 1
    out[at] = t
    return s00, s[1], s[2], s[3], s[4], s[5]


@inlined
def entry_2(a, b, p, rows, out, place, s):
    """Write block -A* B for maps of two columns and return s with A* A added."""
    s00, s10, s11 = s[0], s[1], s[2]
    zero = a.dtype.type(0)
    t00, t01, t10, t11 = zero, zero, zero, zero
    for _ in range(rows):
        i = p & NOT_NEGATIVE
        a0, a1 = a[i], a[i + 1]
        b0, b1 = b[i], b[i + 1]
        x0, x1 = np.conj(a0), np.conj(a1)
        t00 = multiply_add(-x0, b0, t00)
        t01 = multiply_add(-x0, b1, t01)
        t10 = multiply_add(-x1, b0, t10)
        t11 = multiply_add(-x1, b1, t11)
        s00 = multiply_add(x0, a0, s00)
        s10 = multiply_add(x1, a0, s10)
        s11 = multiply_add(x1, a1, s11)
        p += 2
    at, stride = place
    out[at], out[at + 1] = t00, t01
    at = (at + stride) & NOT_NEGATIVE
    out[at], out[at + 1] = t10, t11
    return s00, s10, s11, s[3], s[4], s[5]


@inlined
def entry_3(a, b, p, rows, out, place, s):
    """Write block -A* B for maps of three columns and return s with A* A added."""
    s00, s10, s11, s20, s21, s22 = s
    zero = a.dtype.type(0)
    t00, t01, t02 = zero, zero, zero
    t10, t11, t12 = zero, zero, zero
    t20, t21, t22 = zero, zero, zero
    for _ in range(rows):
        i = p & NOT_NEGATIVE
        a0, a1, a2 = a[i], a[i + 1], a[i + 2]
        b0, b1, b2 = b[i], b[i + 1], b[i + 2]
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
    at, stride = place
    out[at], out[at + 1], out[at + 2] = t00, t01, t02
    at = (at + stride) & NOT_NEGATIVE
    out[at], out[at + 1], out[at + 2] = t10, t11, t12
    at = (at + stride) & NOT_NEGATIVE
    out[at], out[at + 1], out[at + 2] = t20, t21, t22
    return s00, s10, s11, s20, s21, s22


@inlined
def entry(a, b, p, rows, out, place, s, columns):
    """Write one off-diagonal block and return s with the diagonal's share added.

    Both maps begin at p; the block begins at place[0], a row of it place[1] after the one before.
    """
    if len(columns) == 1:
        return entry_1(a, b, p, rows, out, place[0], s)
    if len(columns) == 2:
        return entry_2(a, b, p, rows, out, place, s)
    return entry_3(a, b, p, rows, out, place, s)


@kernel
def fill_uniform(lo, hi, maps, blocks, bsr, columns, square, out):
    """Write the rows of L of vertices lo .. hi where all maps are rows x d, d at most 3.

    No two edges may join the same ends.

    ``columns`` is any tuple of d integers: its length is known to the compiler, which makes one
    kernel of this for every d, and another for rows = d where ``square`` is not empty.
    """
    tail_data, head_data, rows = maps
    _, codes, block_ptr, _ = blocks
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
                p = (code >> 2) * size
                s = entry(head_data, tail_data, p, rows, out, (at, stride), s, columns)
            else:
                p = (code >> 2) * size
                s = entry(tail_data, head_data, p, rows, out, (at, stride), s, columns)
        at = diagonal & NOT_NEGATIVE
        out[at] = s[0]
        if d > 1:
            after = (at + stride) & NOT_NEGATIVE
            out[at + 1], out[after], out[after + 1] = np.conj(s[1]), s[1], s[2]
            if d > 2:
                out[at + 2], out[after + 2] = np.conj(s[3]), np.conj(s[4])
                at = (after + stride) & NOT_NEGATIVE
                out[at], out[at + 1], out[at + 2] = s[3], s[4], s[5]


@kernel
def fill(lo, hi, f, blocks, row_starts, bsr, out):
    """Write the rows of L of vertices lo .. hi, whose scalar rows begin at row_starts.

    With ``bsr`` blocks follow each other; otherwise their rows are interleaved, in CSR order. A
    block and its mirror image sum the same products in the same order, which makes L exactly
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
                add_loop_gram(out, (at, stride), f.tail_data, tail, f.head_data, head, (rows, d))
                continue
            if code & 1:
                a, pa, b, pb = f.head_data, head, f.tail_data, tail
            else:
                a, pa, b, pb = f.tail_data, tail, f.head_data, head
            add_gram(out, (diagonal, stride), a, (pa, d), a, (pa, d), rows, 1.0)
            add_gram(out, (at, stride), a, (pa, d), b, (pb, dj), rows, -1.0)
