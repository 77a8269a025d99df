"""Products of small dense matrices in flat arrays, with the sums in registers.

A matrix is given by the array that holds it and its position, (index of the first entry, distance
between rows). The products are F* G, added to a block of a Laplacian, and F R, a map times a block
of R, both for up to three columns at a time.
"""

from sheafcoarsen._kernels.jit import llvm_inlined, subkernel
from sheafcoarsen._kernels.simd import (
    EXACT,
    ONE,
    add_adjoint,
    add_block,
    add_multiple,
    put,
    read,
    zero,
)

NOT_NEGATIVE = (1 << 62) - 1
"""Mask for indices that are never negative; numba then omits its wraparound of negative indices."""


@llvm_inlined
def add_gram_columns(lanes, out, to, a, at_a, b, at_b, sizes):
    """Apply ``add_gram`` to ``len(lanes)`` columns; ``sizes`` are (rows, sign)."""
    (at, stride), (p, columns), (q, step), (rows, sign) = to, at_a, at_b, sizes
    for i in range(columns):
        sums = zero(lanes, ONE)
        for k in range(rows):
            row = read(lanes, ONE, b, q + k * step, 0)
            sums = add_adjoint(sums, 1.0, a, p + i + k * columns, 0, row, EXACT)
        before = read(lanes, ONE, out, at + i * stride, 0)
        put(out, at + i * stride, 0, add_multiple(before, sign, sums))


@subkernel
def add_gram(out, to, a, at_a, b, at_b, rows, sign):
    """Add sign A* B to the matrix at position ``to``, for row-major A and B with ``rows`` rows.

    Positions are (begin, columns) for A and B, and (begin, stride) for the result. The sign is 1.0
    or -1.0.
    """
    at, stride = to
    q, step = at_b
    sizes, left, o = (rows, sign), step, out.dtype.type(0)
    while left > 0:
        to, of = (at, stride), (q, step)
        if left >= 3:
            add_gram_columns((o, o, o), out, to, a, at_a, b, of, sizes)
        elif left == 2:
            add_gram_columns((o, o), out, to, a, at_a, b, of, sizes)
        else:
            add_gram_columns((o,), out, to, a, at_a, b, of, sizes)
        at += 3
        q += 3
        left -= 3


@llvm_inlined
def put_product_columns(lanes, out, to, a, at_a, b, at_b, sizes):
    """Apply ``put_product`` to ``len(lanes)`` columns; ``sizes`` are (rows, sign)."""
    (at, stride), (p, inner), (q, step), (rows, sign) = to, at_a, at_b, sizes
    for i in range(rows):
        sums = zero(lanes, ONE)
        for k in range(inner):
            row = read(lanes, ONE, b, q + k * step, 0)
            sums = add_block(sums, sign, a, p + i * inner + k, 0, row, EXACT)
        put(out, at + i * stride, 0, sums)


@subkernel
def put_product(out, to, a, at_a, b, at_b, rows, sign):
    """Write sign A B to the matrix at position ``to``; A and B are row-major, A has ``rows`` rows.

    Positions and sign are those of ``add_gram``.
    """
    at, stride = to
    q, step = at_b
    sizes, left, o = (rows, sign), step, out.dtype.type(0)
    while left > 0:
        to, of = (at, stride), (q, step)
        if left >= 3:
            put_product_columns((o, o, o), out, to, a, at_a, b, of, sizes)
        elif left == 2:
            put_product_columns((o, o), out, to, a, at_a, b, of, sizes)
        else:
            put_product_columns((o,), out, to, a, at_a, b, of, sizes)
        at += 3
        q += 3
        left -= 3
